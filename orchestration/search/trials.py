"""A search as data: its space, the points it tried, and their scores in the ledger.

The ledger keeps the points in the order of their suggestion, and the runs that score them. So a search's table can
be read at any time, and a search that was killed goes on from it.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from operator import attrgetter
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from corpora.store.fields import flat
from evaluators.tasks.figures import mean_of
from evaluators.tasks.task import metric_names, named
from orchestration.families.registry import family
from orchestration.plan.held import facts_where
from orchestration.plan.plan import Facts, planned_run, search_tasks
from orchestration.reading.read_search import space_of
from orchestration.study.blocks import Objective, Seeds
from orchestration.study.errors import StudyError
from orchestration.study.run import Run, canonical
from search_spaces.space import Dimension, Point, Space, moves, settings_at

if TYPE_CHECKING:
    from orchestration.ledger.entries.record import Record
    from orchestration.ledger.ledger import Ledger
    from orchestration.ledger.points import Points
    from orchestration.study.blocks import Search
    from orchestration.study.study import Study


@dataclass(frozen=True, kw_only=True)
class Selection:
    """The search around one arm, resolved. study: has that arm alone, with dev tasks and selection seeds.

    held: tied settings that the arm takes from the best point of an arm searched before it, where they differ from
    its own.
    """

    study: Study
    facts: Facts
    search: Search
    arm: str
    space: Space
    held: Mapping[str, Any] = field(default_factory=dict)

    @property
    def start(self) -> str:
        """The name of the first point: the arm's, unless it holds settings of another arm."""
        return f"{self.arm}@0" if self.held else self.arm

    @property
    def trials(self) -> int:
        """How many points are tried; one if no dimension is left."""
        return self.search.trials if self.space else 1

    @property
    def settings(self) -> Any:
        return self.study.arms[self.arm]

    @property
    def backbone(self) -> str:
        return self.study.backbones[0]

    @property
    def seeds(self) -> tuple[int, ...]:
        return self.search.seeds

    @property
    def objectives(self) -> tuple[Objective, ...]:
        return self.search.objectives

    @property
    def signs(self) -> tuple[int, ...]:
        """Per objective +1 where larger is better, -1 where smaller is."""
        return tuple(1 if objective.mode == "max" else -1 for objective in self.objectives)

    @property
    def budget(self) -> int:
        """The most runs that may be asked for."""
        return self.search.budget or self.trials * len(self.seeds)

    @property
    def id(self) -> str:
        """16 hex digits: the hash of what decides which points are suggested and what they score.

        Trials and budget are left out, so that a search can be lengthened.
        """
        left_out = {"trials", "budget", "arms", "dimensions", "at_once", "match_control"}
        if self.search.stop_early is None:
            left_out.add("stop_early")
        search = {name: value for name, value in asdict(self.search).items() if name not in left_out}
        search["race"] = self.search.least_chance
        space = [asdict(dimension) | {"source": ""} for dimension in self.space]
        for dimension in space:
            for name in ("paper", "tied", "cap", "capped"):
                del dimension[name]
        start = self.run(0, {}, self.seeds[0]).entries
        text = canonical({"search": search, "space": space, "start": start})
        return hashlib.sha256(text).hexdigest()[:16]

    def points(self, ledger: Ledger) -> Points:
        """The points of the search in a ledger."""
        return ledger.points(self.study.name, self.id)

    @property
    def at_choices(self) -> Study:
        """The study with an arm for each choice, or each end, of each dimension. To prepare it finds settings that
        do not fit its backbone and rows before the first run."""
        arms = dict(self.study.arms)
        for dimension in self.space:
            for choice in dimension.choices or (dimension.low, dimension.high):
                point = {**self._conditions_of(dimension), dimension.name: choice}
                if moves(dimension, self.settings, point):
                    name = f"{self.arm} (search.dimensions.{dimension.name}: {choice})"
                    arms[name] = settings_at(self.space, self.settings, point)
        return replace(self.study, arms=arms)

    def _conditions_of(self, dimension: Dimension) -> Point:
        """Values of other dimensions under which this one matters, where the arm's own do not do."""
        own, moving, point = flat(self.settings), {one.name: one for one in self.space}, dict[str, Any]()
        for name, wanted in dimension.when.items():
            if name in moving and own[name] not in wanted:
                value = next(filter(moving[name].holds, wanted), own[name])
                point |= {**self._conditions_of(moving[name]), name: value}
        return point

    def run(self, number: int, point: Point, seed: int) -> Run:
        """The run of a point at a selection seed."""
        name = f"{self.arm}@{number}"
        settings = settings_at(self.space, self.settings, point) if point else self.settings
        study = replace(self.study, arms={name: settings})
        run = planned_run(study, self.facts, name, self.backbone, seed)
        return run if self.search.stop_early is None else replace(run, look_at=self.search.stop_early.at)


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A point of a search and its seeds so far.

    scores: seed -> a value per objective; failed: seed -> reason; stopped: seed -> step and score at which its run
    was stopped early. A point is given up with its first failed or stopped seed.
    """

    number: int
    point: Point
    scores: Mapping[int, tuple[float, ...]] = field(default_factory=dict)
    failed: Mapping[int, str] = field(default_factory=dict)
    stopped: Mapping[int, tuple[int, float]] = field(default_factory=dict)

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds that were run: scored, failed or stopped."""
        return (*self.scores, *self.failed, *self.stopped)

    @property
    def given_up(self) -> bool:
        return bool(self.failed or self.stopped)

    def values(self, objective: int = 0) -> list[float]:
        return [values[objective] for values in self.scores.values()]

    def mean(self, objective: int = 0) -> float:
        """Mean over the seeds so far; nan before the first."""
        return fmean(self.values(objective)) if self.scores else math.nan

    def sd(self, objective: int = 0) -> float:
        """Sd over the seeds so far; nan before the second."""
        return stdev(self.values(objective)) if len(self.scores) > 1 else math.nan

    def reached(self, objective: int = 0) -> float:
        """The mean over scores, stopped runs with their last one, as the sampler sees it; nan before the first."""
        values = self.values(objective) + [score for _, score in self.stopped.values()]
        return fmean(values) if values else math.nan


def best_of(trials: Sequence[Trial], signs: Sequence[int]) -> Trial | None:
    """Of trials not given up: the most seeds, then the best mean of the first objective, then the first number."""
    sound = [trial for trial in trials if trial.scores and not trial.given_up]
    return max(sound, key=lambda t: (len(t.scores), signs[0] * t.mean(), -t.number), default=None)


def front_of(trials: Sequence[Trial], signs: Sequence[int]) -> list[Trial]:
    """The trials with the most seeds, not given up, that no other such trial beats in every objective."""
    sound = [trial for trial in trials if trial.scores and not trial.given_up]
    most = max((len(trial.scores) for trial in sound), default=0)
    at = {t.number: tuple(s * t.mean(i) for i, s in enumerate(signs)) for t in sound if len(t.scores) == most}

    def beaten(mine: tuple[float, ...]) -> bool:
        return any(
            all(a >= b for a, b in zip(other, mine, strict=True)) and other != mine for other in at.values()
        )

    return [trial for trial in sound if trial.number in at and not beaten(at[trial.number])]


@dataclass(frozen=True, kw_only=True)
class Searched:
    """The table of a search: its points with at least one run.

    The first trial is the arm as the study declares it, even without runs.
    """

    selection: Selection
    trials: tuple[Trial, ...]

    @property
    def best(self) -> Trial | None:
        return best_of(self.trials, self.selection.signs)

    @property
    def at_best(self) -> Any:
        """The settings at the best point; the arm's own if there is none yet."""
        selection, best = self.selection, self.best
        return settings_at(selection.space, selection.settings, best.point) if best else selection.settings

    @property
    def front(self) -> list[Trial]:
        return front_of(self.trials, self.selection.signs)

    @property
    def spent(self) -> int:
        """How many runs were scored, failed or stopped; a run that two points share counts once."""
        return len({self.selection.run(t.number, t.point, seed).id for t in self.trials for seed in t.seeds})


def selections(
    study: Study, facts: Facts, at_best: Callable[[Selection], Any] = attrgetter("settings")
) -> Iterator[Selection]:
    """The searches that a study declares, arm by arm. StudyError if it declares none.

    Compared arms share their tied settings: the first arm is searched over them, the others hold the values of its
    best point. at_best(selection) gives the settings at that point, and is called before the next selection.
    """
    if study.search is None:
        raise StudyError(f"{study.path}: search is missing\n  accepted: a study with a `search` block")
    search, recipe = study.search, family(study.family)
    tasks, best_settings = search_tasks(study, recipe.tasks(study.data)), dict[str, Any]()
    for arm in search.arms:
        settings, space = study.arms[arm], space_of(search, recipe, study.arms[arm])
        leader = _leader(study, search, arm)
        tied = {one.name for one in space if one.tied} if leader != arm else set()
        lead = best_settings[leader] if tied else settings
        held = {name: getattr(lead, name) for name in tied if getattr(lead, name) != getattr(settings, name)}
        selection = Selection(
            study=replace(
                study,
                backbones=(search.backbone or study.backbones[0],),
                seeds=Seeds(initial=search.seeds),
                arms={arm: replace(settings, **held)},
                evaluate=tasks,
                compare=(),
                search=None,
            ),
            facts=facts,
            search=search,
            arm=arm,
            space=tuple(one for one in space if one.name not in tied),
            held=held,
        )
        yield selection
        best_settings[arm] = at_best(selection)


def _leader(study: Study, search: Search, arm: str) -> str:
    """The first searched arm that claims connect with this one, directly or through others; may be itself."""
    claims = [set(part.arms).intersection(search.arms) for part in study.parts] if search.match_control else []
    connected = {arm}
    while more := {other for claim in claims if claim & connected for other in claim} - connected:
        connected |= more
    return next(candidate for candidate in search.arms if candidate in connected)


def selections_in(study: Study, ledger: Ledger, *, as_scored: bool = False) -> Iterator[Selection]:
    """The searches in order, as earlier ones may decide for later ones, by what the ledger holds most of.

    as_scored: only to read their results.
    """

    def at_best(selection: Selection) -> Any:
        return searched(selection, ledger).at_best

    def points(facts: Facts) -> int:
        return sum(len(one.points(ledger).suggested()) for one in selections(study, facts, at_best))

    return selections(study, facts_where(study, points, as_scored=as_scored), at_best)


def searches_of(study: Study, ledger: Ledger) -> list[Searched]:
    """The tables of a study's searches from what the ledger holds now."""
    return [searched(selection, ledger) for selection in selections_in(study, ledger, as_scored=True)]


def searched(selection: Selection, ledger: Ledger) -> Searched:
    """The table of a search from what the ledger holds now."""
    points = selection.points(ledger)
    suggested, failures, stopped = points.suggested(), ledger.failed(), points.stopped()
    places = [(number, seed) for number in range(len(suggested)) for seed in selection.seeds]
    runs = {at: selection.run(at[0], suggested[at[0]], at[1]) for at in places if at not in stopped}
    held = ledger.held(runs.values())
    records = ledger.records({run.id: run for run in runs.values() if not run.lacking(held)}.values())
    trials = []
    for number, point in enumerate(suggested):
        trial = Trial(number=number, point=point)
        for seed in selection.seeds:
            run = runs.get((number, seed))
            if run is None:
                trial = with_stop(trial, seed, stopped[number, seed])
            elif run.id in records:
                trial = with_score(trial, selection, records[run.id])
            elif run.id in failures:
                trial = replace(trial, failed={**trial.failed, seed: failures[run.id].error})
        if number == 0 or trial.seeds:
            trials.append(trial)
    return Searched(selection=selection, trials=tuple(trials))


def with_stop(trial: Trial, seed: int, looks: Mapping[int, float]) -> Trial:
    """The trial with a run that was stopped early. looks: step -> score; the last one stopped it."""
    return replace(trial, stopped={**trial.stopped, seed: max(looks.items())})


def with_score(trial: Trial, selection: Selection, record: Record) -> Trial:
    """The trial with the scores of a finished run. A score that is not finite counts as a failure."""
    run, metrics, seed = record.run, record.metrics, record.run.seed
    assert seed is not None
    found = {name: metric.value for name, metric in metrics.items()}
    figures = [selection.study.figures_of(objective.metric) for objective in selection.objectives]
    missing = [figure for group in figures for figure in group if figure not in metrics]
    if missing:
        study = selection.study
        declared = metric_names(named(family(study.family).tasks(study.data), run.tasks))
        raise StudyError(
            f"{selection.study.path}: search.objective.metric = {missing[0]!r}: not of {selection.arm}\n"
            f"  accepted: {', '.join(name for name in metrics if name in declared)}"
        )
    values = tuple(mean_of(found, group) for group in figures)
    if not all(map(math.isfinite, values)):
        why = ", ".join(f"{o.metric} = {value}" for o, value in zip(selection.objectives, values, strict=True))
        return replace(trial, failed={**trial.failed, seed: why})
    return replace(trial, scores={**trial.scores, seed: values})
