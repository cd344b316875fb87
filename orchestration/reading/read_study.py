"""Reads a study file. Every field, name and number is checked, and all mistakes are raised together.

No corpus and no model is read here: `plan.gather_facts` does that.
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
RUNS_AT_MOST = 100_000  # of a study: listing them takes seconds, training them years
KEYS = [f.name for f in fields(Study) if f.name not in ("name", "path", "figures")] + ["train"]
HINT = "; one that another package brings, once that is installed here"
JOINT_FIELDS = {name: kind for name, kind in field_types(Joint).items() if name != "all"}


class Known(NamedTuple):
    """The tasks a study may name, and its groups of tasks. Both are empty if they depend on data that is wrong."""

    tasks: Tasks
    groups: Mapping[str, tuple[str, ...]]


def read_study(path: str | Path, given: Mapping[Place, Document] | None = None) -> Study:
    """The study in a YAML file. StudyError lists every mistake: file, line, field, value, what is accepted.

    given: as in `Checker`.
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
    """The fields of a study. A field with a mistake is WRONG or incomplete."""
    content = check.document.content
    for key in content:
        if key not in KEYS:
            check.refuse((key,), names_accepted(key, KEYS))
    family = _family(check)
    parts: dict[str, Any] = {
        "question": _required(check, Question, "question"),
        "family": content.get("family"),
        "backbones": _backbones(check, family),
        "seeds": _seeds(check),
    }
    parts["resources"] = check.build(Resources, ("resources",))
    parts["data"] = check.build(family.data, ("data",)) if family else WRONG
    parts["arms"] = _arms(check, family)
    known = _known_tasks(parts["data"], family)
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


def _required(check: Checker, kind: Any, key: str) -> Any:
    """The value of a key that every study must have, or WRONG."""
    if key in check.document.content:
        return check.value(kind, (key,))
    check.refuse((key,), words(kind))
    return WRONG


def _family(check: Checker) -> Family | None:
    from orchestration.families import registry

    known = registry.names()
    name = _required(check, Annotated[Text, ", ".join(known)], "family")
    valid = name is not WRONG and (name in registry.WRITTEN or check.name(("family",), known, HINT))
    return registry.family(name) if valid else None


def _backbones(check: Checker, family: Family | None) -> Any:
    """The encoders that runs start from, or WRONG; `(NO_BACKBONE,)` for a family that needs none."""
    if family and not family.needs_backbone and "backbones" not in check.document.content:
        return (NO_BACKBONE,)
    return _names(check, Backbones, "backbones")


def _names(check: Checker, kind: Any, key: str) -> Any:
    """The non-empty list of names at a key, or WRONG. Duplicates are recorded as mistakes."""
    names = _required(check, kind, key)
    if names is WRONG:
        return WRONG
    if not names:
        check.refuse((key,), words(kind))
    check.refuse_duplicates((key,), names)
    return names


def _seeds(check: Checker) -> Any:
    place = ("seeds",)
    written = check.document.content.get("seeds", DEFAULT_SEEDS)
    if isinstance(written, dict):
        growing = check.build(Growing, place)
        if growing is WRONG:
            return WRONG
        return Seeds(initial=tuple(range(growing.start)), reserve=tuple(range(growing.start, growing.max)))
    if isinstance(written, list):
        if len(written) > SEEDS_AT_MOST:
            check.refuse(place, f"at most {SEEDS_AT_MOST} seeds", says=f"are {len(written)}")
            return WRONG
        seeds = check.value(tuple[Seed, ...], place)
        if seeds is WRONG:
            return WRONG
        if not seeds:
            check.refuse(place, "at least one seed")
        check.refuse_duplicates(place, seeds)
        return Seeds(initial=seeds)
    if isinstance(written, int) and not isinstance(written, bool) and accepts(Count, written):
        return Seeds(initial=tuple(range(written)))
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
        resolved = check.construct(family.settings, {**common, **own}, [("train",), (*place, name)])
        settings[name] = resolved if len(check.problems) == before else WRONG
    _check_recipes_differ(check, family, {name: made for name, made in settings.items() if made is not WRONG})
    return settings


def _check_recipes_differ(check: Checker, family: Family, settings: Mapping[str, Any]) -> None:
    first_with: dict[bytes, str] = {}
    for name, resolved in settings.items():
        twin = first_with.setdefault(canonical(family.defining(resolved)), name)
        if twin != name:
            check.refuse(
                ("arms", name),
                "arms that differ in a setting that can change the result",
                says=f"is the same recipe as arms.{twin}",
            )


def _evaluate(check: Checker, parts: Mapping[str, Any], family: Family | None, known: Known) -> Any:
    """The names of the tasks, with each group replaced by its tasks, or WRONG."""
    table, groups = known
    accepted = [*(name for name in groups if name not in table), *_without_members(table, groups)]
    choices = f": {', '.join(accepted)}" if accepted else ""
    names = _names(check, Annotated[tuple[Text, ...], f"a list of tasks{choices}"], "evaluate")
    if names is WRONG or family is None or not table:
        return names
    unknown = [(index, name) for index, name in enumerate(names) if name not in table and name not in groups]
    for index, name in unknown:
        if not (isinstance(table, Table) and table.looks_up(name)):
            check.name(("evaluate", index), accepted, _broken(table))
        elif parts["data"] is not WRONG:  # else valid data might bring the task
            check.refuse(("evaluate", index), table.why_not(name))
    if unknown:
        return WRONG
    tasks = tuple(dict.fromkeys(task for name in names for task in groups.get(name, (name,))))
    _check_readable(check, parts["arms"], family, [table[task] for task in tasks])
    return tasks


def _known_tasks(data: Any, family: Family | None) -> Known:
    """The tasks and groups for these data; if data is WRONG, for the family's default data where it has such."""
    if family is None or (data is WRONG and needs_any(family.data)):
        return Known({}, {})
    data = family.data() if data is WRONG else data
    kept = family.tasks(data)
    if family.dev_apart:
        kept = {name: task for name, task in kept.items() if not is_dev(name)}
    groups = family.groups(data).items()
    return Known(kept, {group: tasks for group, tasks in groups if all(task in kept for task in tasks)})


def _without_members(table: Tasks, groups: Mapping[str, tuple[str, ...]]) -> list[str]:
    """The names of the tasks that belong to no group; a message lists them beside the groups."""
    members = {task for tasks in groups.values() for task in tasks}
    return [name for name in table if name not in members]


def _broken(table: Tasks) -> str:
    """The end of a message that names packages of tasks that could not be loaded; "" if all could."""
    broken = table.broken if isinstance(table, Table) else ()
    return f"; tasks of these packages are not to be had: {'; '.join(broken)}" if broken else ""


def _check_readable(check: Checker, arms: Any, family: Family, tasks: Sequence[Task[Any, Any]]) -> None:
    """Refuse tasks whose input an arm cannot read: one of each input, with the first such arm."""
    made = {} if arms is WRONG else arms
    inputs = {name: family.reads(settings) for name, settings in made.items() if settings is not WRONG}
    for reads, task in {task.reads: task for task in reversed(tasks)}.items():
        arm = next((name for name, accepted in inputs.items() if reads not in accepted), None)
        if arm is not None:
            check.refuse(
                ("evaluate",),
                f"tasks that read {' or '.join(inputs[arm])}, as arms.{arm} does",
                says=f"holds {task.name}, which reads {reads}",
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
        differences = _declared_differences((*place, index), entry)
        places += [(*place, index), *(part_place for part_place, _ in differences)]
        for part_place, part in differences:
            _check_claim(check, part_place, part, parts, known if family else None)
            _check_at_least(check, part_place, claim, parts["figures"])
    _check_unique_names(check, places)
    return tuple(claims)


def _claim(check: Checker, place: Place, entry: Any) -> Any:
    """The claim that an entry of `compare` declares (a joint one if it has `all`), or WRONG."""
    if not isinstance(entry, dict) or "all" not in entry:
        return check.build(Claim, place)
    before = len(check.problems)
    values = {name: check.value(kind, (*place, name)) for name, kind in JOINT_FIELDS.items() if name in entry}
    for key in entry:
        if key not in (*JOINT_FIELDS, "all"):
            check.refuse((*place, key), names_accepted(key, [*JOINT_FIELDS, "all"]))
    check.refuse_missing(Joint, [place])
    if not isinstance(entry["all"], list):
        check.refuse((*place, "all"), words(field_types(Joint)["all"]))
        return WRONG
    parts = [check.build(Claim, (*place, "all", index)) for index in range(len(entry["all"]))]
    if len(check.problems) > before:
        return WRONG
    return check.construct(Joint, {**values, "all": tuple(parts)}, [place])


def _declared_differences(place: Place, entry: Any) -> list[tuple[Place, Mapping[str, Any]]]:
    """The mappings of an entry that declare a difference, with their places; a joint claim has several."""
    if not isinstance(entry, dict):
        return []
    if "all" not in entry:
        return [(place, entry)]
    inner = entry["all"] if isinstance(entry["all"], list) else []
    return [((*place, "all", index), part) for index, part in enumerate(inner) if isinstance(part, dict)]


def _check_unique_names(check: Checker, places: Sequence[Place]) -> None:
    """Refuse a claim, or a part of one, whose name another has."""
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
    """Refuse unknown names in a claim, even if the claim has other mistakes, and margins that mean nothing."""
    arms = [pair for role in ("treatment", "control", "matched_control") for pair in _written_arms(entry, role)]
    roles: dict[str, str] = {}  # arm -> the first role that is this arm alone, without `over` or a backbone
    for path, arm in arms:
        if parts["arms"] is not WRONG:
            check.name((*place, *path), parts["arms"])
        role = str(path[0])
        if entry[role] in (arm, {"arm": arm}) and (earlier := roles.setdefault(arm, role)) != role:
            check.refuse((*place, role), f"another arm than {earlier}")
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
    """The arms that a role of a claim names, each with the steps from the claim to the name."""
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
    """Refuse a margin or effect as wide as the range of the metric: every difference is within it.

    The range of a mean is the mean range of its figures; of `each(…)` the narrowest counts.
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
    """The range of a figure. One named by a script or a table has the range that its name commonly has."""
    of_scores_file = any(task.reads == SCORES and figure in task.metrics for task in tasks.values())
    return range_of(figure) if of_scores_file else range_of_ours(figure)


def _figures(
    check: Checker, place: Place, metric: str, parts: Mapping[str, Any], known: Known
) -> tuple[str, ...] | None:
    table, groups = known
    if parts["evaluate"] is WRONG and isinstance(table, Table) and any(map(table.looks_up, names_of(metric))):
        return None  # its task is not listed: the mistake in `evaluate` says more
    measured = table.values() if parts["evaluate"] is WRONG else named(table, parts["evaluate"])
    return figures_at(check, place, metric, {task.name: task for task in measured}, groups, table)


def _check_launch(check: Checker, family: Family, resources: Any) -> None:
    if resources is WRONG:
        return
    reason = "this family trains all its runs as one stacked model"
    if resources.runs_per_stack > 1 and family.shape is None:
        why = f"{reason} already" if family.stacked else "runs of this family train one by one"
        check.refuse(("resources", "runs_per_stack"), f"1: {why}")
    if not family.stacked:
        return
    for place, wrong, accepted in (
        (("workers_per_run",), resources.workers_per_run > 1, f"1: {reason}"),
        (("launcher",), resources.launcher == "train", f"auto or pool: {reason}"),
        (("precision",), resources.precision == "bf16", f"auto or fp32: {reason}, in fp32"),
        (("deepspeed", "zero_stage"), resources.deepspeed.zero_stage, f"0: {reason}, without DeepSpeed"),
        (("checkpoint_every",), resources.checkpoint_every, f"0: {reason}, which keeps no checkpoints"),
    ):
        if wrong:
            check.refuse(("resources", *place), accepted)
