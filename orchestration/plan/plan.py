"""A study as runs: arms × backbones × seeds, minus what the ledger holds.

`gather_facts` reads what a plan depends on (models, corpora, this machine); `plan` itself is a pure function, so
the same file gives the same plan.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from evaluators.tasks.task import Task, Tasks, is_dev, named
from orchestration.families import registry
from orchestration.families.registry import as_plain, family
from orchestration.study.errors import StudyError
from orchestration.study.extras import missing_packages, needs_train
from orchestration.study.run import NO_BACKBONE, WITHOUT_DEV, Job, Run, former_id
from orchestration.study.study import Study

if TYPE_CHECKING:
    from pathlib import Path

    from trainers.engine.world import Precision


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What run ids need beside the study itself: fingerprints of its backbones, rows and tasks, and the precision.

    former: the fingerprint of all rows that old ledgers use, "" if no run there could be this study's. seconds,
    scoring, costs: run id -> the time, that of scoring alone, and the recorded cost of runs in the ledger. before:
    the same facts with the previous version of each task that has one, None if no task has. With these an older
    ledger is read; nothing is scored with them.
    """

    backbones: Mapping[str, str]
    corpus: str
    tasks: Mapping[str, str]
    precision: Precision
    former: str = ""
    seconds: Mapping[str, float] = field(default_factory=dict)
    scoring: Mapping[str, float] = field(default_factory=dict)
    costs: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    before: Facts | None = None


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The runs of a study in the order of their start. finished: the entries that the ledger holds.

    gone: ids of runs that lack only scores, but whose model is gone, so that they train again.
    """

    study: Study
    facts: Facts
    runs: tuple[Run, ...]
    finished: frozenset[str] = frozenset()
    gone: frozenset[str] = frozenset()

    @cached_property
    def done(self) -> tuple[Run, ...]:
        return tuple(run for run in self.runs if not run.lacking(self.finished))

    @cached_property
    def left(self) -> tuple[Run, ...]:
        """The unfinished runs, each once: the best points of two searches may be the same recipe."""
        found: dict[str, Run] = {}
        for run in self.runs:
            if run.lacking(self.finished):
                found.setdefault(run.id, run)
        return tuple(found.values())

    @property
    def to_score(self) -> tuple[Run, ...]:
        """The unfinished runs that are trained and lack only scores."""
        return tuple(run for run in self.left if run.id in self.finished)

    @cached_property
    def only_scored(self) -> frozenset[str]:
        """The ids of the unfinished runs that need no training."""
        return frozenset(run.id for run in self.to_score) - self.gone

    @property
    def jobs(self) -> tuple[Job, ...]:
        """The unfinished runs as jobs: single runs, stacks if the study says so, or all runs of a backbone if the
        family trains them as one model."""
        left = tuple(run.remaining(self.finished) for run in self.left)
        if not family(self.study.family).stacked:
            return self._stacks(left)
        return tuple(
            Job(runs=runs)
            for backbone in self.study.backbones
            if (runs := tuple(run for run in left if run.backbone == backbone))
        )

    def _stacks(self, left: Sequence[Run]) -> tuple[Job, ...]:
        """Jobs of up to `runs_per_stack` runs of one backbone and shape that train; any other run is a job alone.

        Jobs are ordered by their first runs.
        """
        most, shape = self.study.resources.runs_per_stack, family(self.study.family).shape
        stacks: list[list[Run]] = []
        open_stack: dict[Any, list[Run]] = {}
        for run in left:
            trains = run.stacked and run.id not in self.finished
            key = (run.backbone, shape(self.study.arms[run.arm])) if shape and trains else run.id
            stack = open_stack.get(key)
            if stack is None or len(stack) == most:
                stacks.append(stack := [])
                open_stack[key] = stack
            stack.append(run)
        return tuple(Job(runs=tuple(stack)) for stack in stacks)

    def seeds(self, arm: str, backbone: str) -> tuple[int, ...]:
        """The seeds of an arm on a backbone; none for an untrained arm, whose result is paired with every seed."""
        return tuple(run.seed for run in self.runs_of.get((arm, backbone), ()) if run.seed is not None)

    def run(self, arm: str, backbone: str, seed: int) -> Run | None:
        """The run of an arm at a seed, or the one run of an untrained arm."""
        candidates = self.runs_of.get((arm, backbone), ())
        return next((run for run in candidates if run.seed in (seed, None)), None)

    @cached_property
    def runs_of(self) -> Mapping[tuple[str, str], Sequence[Run]]:
        """(arm, backbone) -> its runs, in the order of the plan."""
        return by_arm(self.runs)


def by_arm(runs: Iterable[Run]) -> Mapping[tuple[str, str], Sequence[Run]]:
    """(arm, backbone) -> its runs, in the given order."""
    found: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        found.setdefault((run.arm, run.backbone), []).append(run)
    return found


def gather_facts(study: Study) -> Facts:
    """Read the models, the corpus, the tasks and this machine. StudyError names everything that is missing."""
    from corpora.store.errors import CorpusError
    from trainers.encoders.backbones import BackboneError, backbone_fingerprint, resolve_backbone

    problems, backbones, corpus, tasks, former = list[str](), {}, "", {}, ""
    recipes = family(study.family)

    @contextmanager
    def collected(*errors: type[Exception], at: str = "") -> Iterator[None]:
        """Add these errors in the block to the problems instead of raising them."""
        try:
            yield
        except errors as error:
            problems.append(f"{study.path}: {at}{error}")

    with collected(ValueError):
        recipes.check(study)
    for name in study.backbones:
        if name == NO_BACKBONE and not recipes.needs_backbone:
            backbones[name] = ""
            continue
        damaged_file = collected(OSError, ValueError, at=f"backbones: {name}: ")
        with damaged_file, collected(BackboneError):
            backbones[name] = backbone_fingerprint(resolve_backbone(name))
    needed = _tasks(study)
    for task in needed:
        with collected(CorpusError, BackboneError):
            tasks[task.name] = task.fingerprint
    with collected(CorpusError, BackboneError):
        corpus = recipes.fingerprint(study.data)
        former = recipes.former_fingerprint(study.data) if all(task.version <= 2 for task in needed) else ""
    problems = list(dict.fromkeys(problems))  # several tasks may lack the same rows
    problems += [
        f"{study.path}: backbones: {name} and {twin} are the same weights\n  accepted: each encoder once"
        for name, twin in _twins(backbones)
    ]
    if problems:
        raise StudyError("\n".join(problems))
    facts = Facts(backbones=backbones, corpus=corpus, tasks=tasks, precision=_best(study), former=former)
    previous = {task.name: task.fingerprint_of(task.version - 1) for task in needed if task.version > 1}
    return replace(facts, former="", before=replace(facts, tasks=tasks | previous)) if previous else facts


def _tasks(study: Study) -> list[Task[Any, Any]]:
    """The tasks that the study evaluates, and the development tasks of its search."""
    table = family(study.family).tasks(study.data)
    dev = search_tasks(study, table)
    return named(table, (*study.evaluate, *dev))


def search_tasks(study: Study, table: Tasks) -> tuple[str, ...]:
    """The names of the development tasks that yield a figure of the search's objectives."""
    objectives = study.search.objectives if study.search else ()
    sought = {figure for objective in objectives for figure in study.figures_of(objective.metric)}
    return tuple(name for name, task in table.items() if is_dev(name) and sought & task.metrics.keys())


def prepare(study: Study, auto: Precision | None = None) -> None:
    """Build or open what all runs need, before any lane starts. StudyError for mistakes that only this finds.

    auto: as in `checked_backbones`.
    """
    from corpora.store.errors import CorpusError
    from trainers.encoders.backbones import BackboneError

    if absent := missing_packages():
        raise needs_train(study.path.name, absent[0])
    folders = checked_backbones(study, auto)
    try:
        family(study.family).prepare(study, folders)
    except (CorpusError, BackboneError, ValueError) as error:
        raise StudyError(f"{study.path}: {error}") from None


def checked_backbones(study: Study, auto: Precision | None = None) -> list[Path]:
    """The folders of the backbones. StudyError for one that its configuration shows to be none for an arm.

    auto: what `precision: auto` means, which a plan's facts say; None for what it means where the ledger holds
    nothing of the study.
    """
    from trainers.encoders.backbones import BackboneError, resolve_backbone

    folders = [resolve_backbone(name) for name in study.backbones if name != NO_BACKBONE]
    precision = _precision(study, auto or _best(study))
    resolved = replace(study, resources=replace(study.resources, precision=precision))
    try:
        family(study.family).check_backbones(resolved, folders)
    except (BackboneError, ValueError) as error:
        raise StudyError(f"{study.path}: {error}") from None
    return folders


def _best(study: Study) -> Precision:
    """The precision that this machine, or a GPU if runs use one, computes fastest in."""
    from trainers.engine.precision import best_precision

    return best_precision("cuda" if study.resources.gpus_per_run else "cpu")


def _precision(study: Study, auto: Precision) -> Precision:
    """The precision of a study's runs. auto: what `precision: auto` means."""
    if family(study.family).stacked:
        return "fp32"  # a stack equals its members bit for bit in fp32
    return auto if study.resources.precision == "auto" else study.resources.precision


def _twins(fingerprints: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Each name whose fingerprint an earlier name has, with that name."""
    first_name: dict[str, str] = {}
    for name, fingerprint in fingerprints.items():
        if fingerprint in first_name:
            yield name, first_name[fingerprint]
        first_name.setdefault(fingerprint, name)


def plan(study: Study, facts: Facts, done: Collection[str] = ()) -> Plan:
    """The plan with the initial seeds: untrained arms, then all arms seed by seed, so that pairs finish early."""
    untrained = [arm for arm, settings in study.arms.items() if not settings.train]
    trained = [arm for arm in study.arms if arm not in untrained]
    runs = _runs(study, facts, [None], untrained) + _runs(study, facts, study.seeds.initial, trained)
    return Plan(study=study, facts=facts, runs=runs, finished=frozenset(done))


def extend(plan: Plan, seeds: Sequence[int], arms: Collection[tuple[str, str]]) -> Plan:
    """The plan with further seeds for these (arm, backbone); untrained arms get none."""
    trained = [arm for arm, settings in plan.study.arms.items() if settings.train]
    known = {run.id for run in plan.runs}
    added = tuple(
        run
        for run in _runs(plan.study, plan.facts, seeds, trained)
        if (run.arm, run.backbone) in arms and run.id not in known
    )
    return replace(plan, runs=plan.runs + added)


def _runs(study: Study, facts: Facts, seeds: Sequence[int | None], arms: Sequence[str]) -> tuple[Run, ...]:
    """The runs of these arms on all backbones, seed by seed. What seeds share is resolved once."""
    if not seeds:
        return ()
    first = [_resolved(study, facts, arm, name, seeds[0]) for name in study.backbones for arm in arms]
    runs = [*first, *(replace(run, seed=seed) for seed in seeds[1:] for run in first)]
    return tuple(_with_former(runs, study, facts))


def planned_run(study: Study, facts: Facts, arm: str, backbone: str, seed: int | None) -> Run:
    """The run of an arm on a backbone with a seed; an untrained arm has the seed None."""
    return _with_former([_resolved(study, facts, arm, backbone, seed)], study, facts)[0]


def _resolved(study: Study, facts: Facts, arm: str, backbone: str, seed: int | None) -> Run:
    settings, resources, recipes = study.arms[arm], study.resources, family(study.family)
    precision = _precision(study, facts.precision)
    defining = registry.defining(study.family, settings, precision)
    without_dev = recipes.dev_apart and all(map(is_dev, study.evaluate))
    return Run(
        family=study.family,
        arm=arm,
        backbone=backbone,
        seed=seed,
        settings=as_plain(settings),
        data=as_plain(study.data),
        defining={**defining, WITHOUT_DEV: True} if without_dev else defining,
        backbone_fingerprint=facts.backbones[backbone],
        corpus_fingerprint=facts.corpus if recipes.learns(settings) else "",
        tasks={name: facts.tasks[name] for name in study.evaluate},
        world_size=1 if seed is None else resources.workers_per_run,  # an untrained run only evaluates
        precision=precision,
        zero_stage=resources.deepspeed.zero_stage,
        stacked=seed is not None and resources.runs_per_stack > 1,
    )


def _with_former(runs: Sequence[Run], study: Study, facts: Facts) -> Sequence[Run]:
    """The runs with their ids in old ledgers, if the family has runs there."""
    if not facts.former:
        return runs
    groups = family(study.family).groups(study.data)
    group_of = {task: group for group, tasks in groups.items() for task in tasks}
    evaluate = list(dict.fromkeys(group_of.get(name, name) for name in study.evaluate))
    return [replace(run, former=_former(run, facts.former, evaluate)) for run in runs]


def _former(run: Run, rows: str, evaluate: Sequence[str]) -> str:
    defining = {name: value for name, value in run.defining.items() if name != WITHOUT_DEV}
    return former_id({**vars(run), "defining": defining, "corpus_fingerprint": rows, "evaluate": evaluate})
