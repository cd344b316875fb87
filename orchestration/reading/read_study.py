"""Is this file a study? Every field, name and number of one is checked, and all mistakes are told at once.

No corpus and no model is read; `plan.gather_facts` looks at those.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from corpora.store.fields import NAME, Name, Text, accepts, field_types, is_name, words
from evaluators.metrics.ranges import range_of, range_of_ours
from evaluators.significance.claims import Claim, Joint
from evaluators.tasks.figures import is_mean, names_of
from evaluators.tasks.scores_file import NAME as SCORES
from evaluators.tasks.task import Table, Task, Tasks, is_dev, named
from orchestration.reading.checking import WRONG, Checker, needs_any
from orchestration.reading.document import Document, Place, read
from orchestration.reading.figures import figures_at
from orchestration.reading.read_search import check_search
from orchestration.study.blocks import DEFAULT_SEEDS, SEEDS_AT_MOST, Count, Growing, Resources, Seed, Seeds
from orchestration.study.errors import StudyError
from orchestration.study.names import NAME_WORDS, is_path_component, names_accepted
from orchestration.study.run import NO_BACKBONE, canonical
from orchestration.study.study import Study

if TYPE_CHECKING:
    from orchestration.families.contract import Family

Question = Annotated[Text, "text: what the study is to answer"]
Backbones = Annotated[tuple[Name, ...], "a list of encoders, such as [all-MiniLM-L6-v2]"]
RUNS_AT_MOST = 100_000  # of a study: to list them takes seconds, to train them years
KEYS = [f.name for f in fields(Study) if f.name not in ("name", "path", "figures")] + ["train"]
ELSEWHERE = "; one that another package brings, once that is installed here"
JOINT = {name: kind for name, kind in field_types(Joint).items() if name != "all"}


class Known(NamedTuple):
    """What a study may be measured on, and the names that stand for several tasks. Both empty where only its data
    could tell."""

    tasks: Tasks
    groups: Mapping[str, tuple[str, ...]]


def read_study(path: str | Path, given: Mapping[Place, Document] | None = None) -> Study:
    """The study in a YAML file. StudyError lists every mistake: file, line, field, value, what is accepted.

    given: as `Checker` has it.
    """
    document = read(Path(path))
    if not is_path_component(document.path.stem):  # it names folders: reports, the lock, the declaration
        raise StudyError(f"{document.path}: names its study {document.path.stem!r}\n  accepted: {NAME_WORDS}")
    check = Checker(document, given)
    parts = _parts(check)
    check.finish()
    parts["question"] = " ".join(parts["question"].split())
    return Study(name=document.path.stem, path=document.path, **parts)


def _parts(check: Checker) -> dict[str, Any]:
    """The fields of a study; WRONG or incomplete where something was reported."""
    content = check.document.content
    for key in content:
        if key not in KEYS:
            check.refuse((key,), names_accepted(key, KEYS))
    family = _family(check)
    parts: dict[str, Any] = {
        "question": _given(check, Question, "question"),
        "family": content.get("family"),
        "backbones": _backbones(check, family),
        "seeds": _seeds(check),
    }
    parts["resources"] = check.built(Resources, ("resources",))
    parts["data"] = check.built(family.data, ("data",)) if family else WRONG
    parts["arms"] = _arms(check, family)
    known = _known(parts["data"], family)
    parts["evaluate"] = _evaluate(check, parts, family, known)
    parts["figures"] = {}
    parts["compare"] = _compare(check, parts, family, known)
    if "search" in content:
        parts["search"] = check_search(check, parts, family)
    if family:
        _check_launch(check, family, parts["resources"])
    _check_number_of_runs(check, parts)
    return parts


def _check_number_of_runs(check: Checker, parts: Mapping[str, Any]) -> None:
    if any(parts[key] is WRONG for key in ("arms", "backbones", "seeds")):
        return
    arms, backbones, seeds = len(parts["arms"]), len(parts["backbones"]), len(parts["seeds"].all)
    if arms * backbones * seeds > RUNS_AT_MOST:
        check.refuse(
            ("arms",),
            f"at most {RUNS_AT_MOST:,} runs",
            says=f"come to {arms} arms x {backbones} backbones x {seeds} seeds",
        )


def _given(check: Checker, kind: Any, key: str) -> Any:
    """The value of a key that every study has, or WRONG."""
    if key in check.document.content:
        return check.value(kind, (key,))
    check.refuse((key,), words(kind))
    return WRONG


def _family(check: Checker) -> Family | None:
    from orchestration.families import registry

    known = registry.names()
    name = _given(check, Annotated[Text, ", ".join(known)], "family")
    held = name is not WRONG and (name in registry.WRITTEN or check.name(("family",), known, ELSEWHERE))
    return registry.family(name) if held else None


def _backbones(check: Checker, family: Family | None) -> Any:
    """The encoders that runs start from; a family may do without."""
    if family and not family.needs_backbone and "backbones" not in check.document.content:
        return (NO_BACKBONE,)
    return _names(check, Backbones, "backbones")


def _names(check: Checker, kind: Any, key: str) -> Any:
    """A list of different names, at least one, or WRONG."""
    names = _given(check, kind, key)
    if names is WRONG:
        return WRONG
    if not names:
        check.refuse((key,), words(kind))
    check.different((key,), names)
    return names


def _seeds(check: Checker) -> Any:
    place = ("seeds",)
    declared = check.document.content.get("seeds", DEFAULT_SEEDS)
    if isinstance(declared, dict):
        growing = check.built(Growing, place)
        if growing is WRONG:
            return WRONG
        return Seeds(initial=tuple(range(growing.start)), reserve=tuple(range(growing.start, growing.max)))
    if isinstance(declared, list):
        if len(declared) > SEEDS_AT_MOST:
            check.refuse(place, f"at most {SEEDS_AT_MOST} seeds", says=f"are {len(declared)}")
            return WRONG
        seeds = check.value(tuple[Seed, ...], place)
        if seeds is WRONG:
            return WRONG
        if not seeds:
            check.refuse(place, "at least one seed")
        check.different(place, seeds)
        return Seeds(initial=seeds)
    if isinstance(declared, int) and not isinstance(declared, bool) and accepts(Count, declared):
        return Seeds(initial=tuple(range(declared)))
    check.refuse(
        place,
        f"a whole number from 1 to {SEEDS_AT_MOST} (8: seeds 0 to 7), a list such as [0, 1], or"
        " {start: 8, max: 24}",
    )
    return WRONG


def _arms(check: Checker, family: Family | None) -> Any:
    """Arm name -> settings (None where the family is not known), or WRONG."""
    place = ("arms",)
    arms = check.mapping(place)
    if arms is WRONG:
        return WRONG
    if not arms:
        check.refuse(place, "a mapping of arm names to settings, such as B1: {learning_rate: 2.0e-5}")
    if family is None:
        return dict.fromkeys(arms)
    common = check.block(family.settings, ("train",))
    settings = {}
    for name in arms:
        if not is_name(name):
            check.refuse((*place, name), NAME, says="is the name of an arm")
        before = len(check.problems)
        own = check.block(family.settings, (*place, name))
        made = check.made(family.settings, {**common, **own}, [("train",), (*place, name)])
        settings[name] = made if len(check.problems) == before else WRONG
    _check_recipes_differ(check, family, {name: made for name, made in settings.items() if made is not WRONG})
    return settings


def _check_recipes_differ(check: Checker, family: Family, settings: Mapping[str, Any]) -> None:
    seen: dict[bytes, str] = {}
    for name, made in settings.items():
        twin = seen.setdefault(canonical(family.defining(made)), name)
        if twin != name:
            check.refuse(
                ("arms", name),
                "arms that differ in a setting that can change the result",
                says=f"is the same recipe as arms.{twin}",
            )


def _evaluate(check: Checker, parts: Mapping[str, Any], family: Family | None, known: Known) -> Any:
    """The tasks, those of a group by their own names, or WRONG."""
    table, groups = known
    accepted = [*(name for name in groups if name not in table), *_without_members(table, groups)]
    of_these = f": {', '.join(accepted)}" if accepted else ""
    names = _names(check, Annotated[tuple[Text, ...], f"a list of tasks{of_these}"], "evaluate")
    if names is WRONG or family is None or not table:
        return names
    unknown = [(index, name) for index, name in enumerate(names) if name not in table and name not in groups]
    for index, name in unknown:
        if not (isinstance(table, Table) and table.looks_up(name)):
            check.name(("evaluate", index), accepted, _broken(table))
        elif parts["data"] is not WRONG:  # else it may come with what is wrong there
            check.refuse(("evaluate", index), table.why_not(name))
    if unknown:
        return WRONG
    tasks = tuple(dict.fromkeys(task for name in names for task in groups.get(name, (name,))))
    _check_readable(check, parts["arms"], family, [table[task] for task in tasks])
    return tasks


def _known(data: Any, family: Family | None) -> Known:
    """data: WRONG where it was reported; the family's default data tell then, where every field has a default."""
    if family is None or (data is WRONG and needs_any(family.data)):
        return Known({}, {})
    of = family.data() if data is WRONG else data
    kept = family.tasks(of)
    if family.dev_apart:
        kept = {name: task for name, task in kept.items() if not is_dev(name)}
    groups = family.groups(of).items()
    return Known(kept, {group: tasks for group, tasks in groups if all(task in kept for task in tasks)})


def _without_members(table: Tasks, groups: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Names for a message: a group stands for its tasks."""
    members = {task for tasks in groups.values() for task in tasks}
    return [name for name in table if name not in members]


def _broken(table: Tasks) -> str:
    """For a message: the packages that may have the task and give none."""
    told = table.broken if isinstance(table, Table) else ()
    return f"; tasks of these packages are not to be had: {'; '.join(told)}" if told else ""


def _check_readable(check: Checker, arms: Any, family: Family, tasks: Sequence[Task[Any, Any]]) -> None:
    """Does every arm read what it is to be measured on?"""
    for name, settings in arms.items() if arms is not WRONG else ():
        reads = family.reads(settings) if settings is not WRONG else {task.reads for task in tasks}
        unread = next((task for task in tasks if task.reads not in reads), None)
        if unread is not None:
            check.refuse(
                ("evaluate",),
                f"tasks that read {' or '.join(reads)}, as arms.{name} does",
                says=f"holds {unread.name}, which reads {unread.reads}",
            )


def _compare(check: Checker, parts: Mapping[str, Any], family: Family | None, known: Known) -> Any:
    place = ("compare",)
    entries = check.document.content.get("compare")
    if entries is None:
        return ()
    if not isinstance(entries, list):
        check.refuse(place, "a list of comparisons, each `- {claim: H1, treatment: …, control: …, metric: …, …}`")
        return WRONG
    claims = [_claim(check, (*place, index), entry) for index, entry in enumerate(entries)]
    places: list[Place] = []
    for index, (entry, claim) in enumerate(zip(entries, claims, strict=True)):
        written = _written_parts((*place, index), entry)
        places += [(*place, index), *(where for where, _ in written)]
        for where, part in written:
            _check_claim(check, where, part, parts, known if family else None)
            _check_at_least(check, where, claim, parts["figures"])
    _check_different(check, places)
    return tuple(claims)


def _claim(check: Checker, place: Place, entry: Any) -> Any:
    """The claim that an entry of `compare` declares, a joint one where it has `all`; or WRONG."""
    if not isinstance(entry, dict) or "all" not in entry:
        return check.built(Claim, place)
    before = len(check.problems)
    values = {name: check.value(kind, (*place, name)) for name, kind in JOINT.items() if name in entry}
    for key in entry:
        if key not in (*JOINT, "all"):
            check.refuse((*place, key), names_accepted(key, [*JOINT, "all"]))
    if "claim" not in entry:
        check.refuse((*place, "claim"), words(JOINT["claim"]))
    if not isinstance(entry["all"], list):
        check.refuse((*place, "all"), words(field_types(Joint)["all"]))
        return WRONG
    found = [check.built(Claim, (*place, "all", index)) for index in range(len(entry["all"]))]
    if len(check.problems) > before or WRONG in found:
        return WRONG
    return check.made(Joint, {**values, "all": tuple(found)}, [place])


def _written_parts(place: Place, entry: Any) -> list[tuple[Place, Mapping[str, Any]]]:
    """Where the differences of an entry are declared: those of a joint claim one by one."""
    if not isinstance(entry, dict):
        return []
    if "all" not in entry:
        return [(place, entry)]
    inner = entry["all"] if isinstance(entry["all"], list) else []
    return [((*place, "all", index), one) for index, one in enumerate(inner) if isinstance(one, dict)]


def _check_different(check: Checker, places: Sequence[Place]) -> None:
    """Every claim, and every part of one, has a name of its own."""
    seen: set[str] = set()
    for place in dict.fromkeys(places):
        entry = check.document.at(place)
        name = entry.get("claim") if isinstance(entry, dict) else None
        if isinstance(name, str):
            if name in seen:
                check.refuse((*place, "claim"), "a name that no other comparison has")
            seen.add(name)


def _check_claim(
    check: Checker, place: Place, entry: Mapping[str, Any], parts: Mapping[str, Any], known: Known | None
) -> None:
    """Do the names of a claim exist? Entries that have other mistakes are looked at too."""
    written = [pair for role in ("treatment", "control", "matched_control") for pair in _written_arms(entry, role)]
    for number, (where, arm) in enumerate(written):
        if parts["arms"] is not WRONG:
            check.name((*place, *where), parts["arms"])
        earlier = next((other[0] for other, named in written[:number] if named == arm), None)
        if earlier and len(where) == 1:
            check.refuse((*place, *where), f"another arm than {earlier}")
    sides: list[tuple[Place, Any]] = [((role,), entry.get(role)) for role in ("treatment", "control")]
    for steps, inner in [((), entry), *sides]:
        if isinstance(inner, dict) and isinstance(inner.get("backbone"), str) and parts["backbones"] is not WRONG:
            check.name((*place, *steps, "backbone"), parts["backbones"])
    if isinstance(entry.get("metric"), str) and known and parts["data"] is not WRONG:
        figures = _figures(check, (*place, "metric"), entry["metric"], parts, known)
        if figures is not None:
            if figures != (entry["metric"],):
                parts["figures"][entry["metric"]] = figures
            _check_margins(check, place, entry, figures, known.tasks)


def _written_arms(entry: Mapping[str, Any], role: str) -> list[tuple[tuple[str | int, ...], str]]:
    """Where a role of a claim names arms, and which."""
    given = entry.get(role)
    if isinstance(given, dict):
        return [((role, key), given[key]) for key in ("arm", "over") if isinstance(given.get(key), str)]
    if isinstance(given, list):
        return [((role, index), arm) for index, arm in enumerate(given) if isinstance(arm, str)]
    return [((role,), given)] if isinstance(given, str) else []


def _check_at_least(check: Checker, place: Place, claim: Any, figures: Mapping[str, tuple[str, ...]]) -> None:
    if not isinstance(claim, Claim) or claim.at_least is None or claim.metric not in figures:
        return
    if claim.at_least > (most := len(figures[claim.metric])):
        check.refuse((*place, "at_least"), f"1 to {most}, as many tasks as {claim.metric} names")


def _check_margins(
    check: Checker, place: Place, entry: Mapping[str, Any], figures: Sequence[str], tasks: Tasks
) -> None:
    """A margin as wide as the metric's range holds whatever the runs give, and no effect is as large.

    A mean is as wide as its figures are on average; of `each(…)` the narrowest counts.
    """
    ranges = [limits for figure in figures if (limits := _range(figure, tasks)) is not None]
    if not ranges or (is_mean(entry["metric"]) and len(ranges) < len(figures)):
        return
    low, high = min(ranges, key=lambda limits: limits[1] - limits[0])
    if is_mean(entry["metric"]):
        low, high = (math.fsum(ends) / len(ranges) for ends in zip(*ranges, strict=True))
    for key in ("margin", "min_effect"):
        value = entry.get(key)
        if not isinstance(value, int | float) or isinstance(value, bool):
            continue
        if value >= (width := high - low):
            between = f"{entry['metric']} lies between {low:g} and {high:g}"
            check.refuse((*place, key), f"below {width:g}: {between}, so no difference is larger")


def _range(figure: str, tasks: Tasks) -> tuple[float, float] | None:
    """Of a figure that a script or a table names: what its name means to everybody."""
    theirs = any(task.reads == SCORES and figure in task.metrics for task in tasks.values())
    return range_of(figure) if theirs else range_of_ours(figure)


def _figures(
    check: Checker, place: Place, metric: str, parts: Mapping[str, Any], known: Known
) -> tuple[str, ...] | None:
    table, groups = known
    if parts["evaluate"] is WRONG and isinstance(table, Table) and any(map(table.looks_up, names_of(metric))):
        return None  # of a task that is not listed: what is wrong with `evaluate` says more
    measured = table.values() if parts["evaluate"] is WRONG else named(table, parts["evaluate"])
    return figures_at(check, place, metric, {task.name: task for task in measured}, groups, table)


def _check_launch(check: Checker, family: Family, resources: Any) -> None:
    if resources is WRONG:
        return
    because = "this family trains all its runs as one stacked model"
    if resources.runs_per_stack > 1 and family.shape is None:
        why = f"{because} already" if family.stacked else "runs of this family train one by one"
        check.refuse(("resources", "runs_per_stack"), f"1: {why}")
    if not family.stacked:
        return
    for place, wrong, accepted in (
        (("workers_per_run",), resources.workers_per_run > 1, f"1: {because}"),
        (("launcher",), resources.launcher == "train", f"auto or pool: {because}"),
        (("precision",), resources.precision == "bf16", f"auto or fp32: {because}, in fp32"),
        (("deepspeed", "zero_stage"), resources.deepspeed.zero_stage, f"0: {because}, without DeepSpeed"),
        (("checkpoint_every",), resources.checkpoint_every, f"0: {because}, which keeps no checkpoints"),
    ):
        if wrong:
            check.refuse(("resources", *place), accepted)
