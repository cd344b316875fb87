"""The model families, and the one place where corpus, trainer and tasks of each meet.

A new family is a module in `trainers`, a search space, a test and one entry in `FAMILIES`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from orchestration.study.run import Result, Run
    from orchestration.study.study import Study
    from search_spaces.space import Space
    from trainers.engine.world import World


@dataclass(frozen=True, kw_only=True)
class Family:
    """What the rest of the system may ask of a family.

    settings and data are frozen data classes: `train:` and an arm of a study merge into the first, `data:` is
    the second. tasks are the names that `evaluate:` accepts. metrics(data, evaluate) names every figure of
    those tasks that may be claimed, with True where larger is better; headlines(data, evaluate) those that decide,
    one a task. defining(settings) keeps what can change the result.
    fingerprint(data) names the corpus, cheaply. prepare(study, backbones) builds or opens what every run needs,
    and raises ValueError or CorpusError for whatever cannot work, before a lane starts.
    execute trains and evaluates runs of one job; stacked families take many runs in one job.
    space: the settings that a search may move; empty where there is none.
    selection: tasks on development data (dev/...) that only a search may name; other such stand in `tasks`.
    distributions: what the report plots of single items: quantity -> part -> the metric whose items it is.
    """

    settings: type
    data: type
    tasks: tuple[str, ...]
    metrics: Callable[[Any, Sequence[str]], Mapping[str, bool]]
    headlines: Callable[[Any, Sequence[str]], tuple[str, ...]]
    defining: Callable[[Any], dict[str, Any]]
    fingerprint: Callable[[Any], str]
    prepare: Callable[[Study, Sequence[Path]], None]
    execute: Callable[[Sequence[Run], World], Iterator[tuple[Run, Result]]]
    stacked: bool = False
    space: Space = ()
    selection: tuple[str, ...] = ()
    distributions: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def dev_tasks(self) -> tuple[str, ...]:
        """The tasks on development data: what a search may choose by."""
        return (*(task for task in self.tasks if task.startswith("dev/")), *self.selection)


def _cale() -> Family:
    from corpora.cale.corpus import SIZES, CaleData, fingerprint, load
    from evaluators.metrics.concept_differentiation import distance_metrics
    from evaluators.tasks.cale import TASKS
    from evaluators.tasks.task import headlines, metric_names
    from orchestration.families.encoders import train_encoders
    from orchestration.families.readiness import check_metrics
    from orchestration.families.readiness_cale import check_claims, check_pairs, check_target_layers
    from search_spaces.cale import SPACE
    from trainers.cale import training
    from trainers.cale.settings import Settings, defining

    def prepare(study: Study, backbones: Sequence[Path]) -> None:
        check_claims(study)
        check_target_layers(study, backbones)
        corpus = load(study.data)
        check_pairs(study, corpus)
        check_metrics(study, corpus, TASKS, (*SIZES, "lscd", "cosimlex", "wic"))

    return Family(
        settings=Settings,
        data=CaleData,
        tasks=tuple(TASKS),
        metrics=lambda data, evaluate: metric_names(TASKS, evaluate),
        headlines=lambda data, evaluate: headlines(TASKS, evaluate),
        defining=defining,
        fingerprint=fingerprint,
        prepare=prepare,
        execute=train_encoders(training, Settings, CaleData, load, TASKS),
        space=SPACE,
        distributions={"cosine distance": distance_metrics("spcd")},
    )


def _concept() -> Family:
    from corpora.concept.corpus import ConceptData, fingerprint, load
    from evaluators.tasks.concept import TASKS
    from evaluators.tasks.task import headlines, metric_names
    from orchestration.families.encoders import train_encoders
    from orchestration.families.readiness import check_batches, check_layers, check_metrics
    from search_spaces.concept import SPACE
    from trainers.concept import training
    from trainers.concept.settings import Settings, defining

    def prepare(study: Study, backbones: Sequence[Path]) -> None:
        check_layers(study, backbones)
        corpus = load(study.data)
        check_batches(study, corpus)
        check_metrics(study, corpus, TASKS, ("n_id", "n_hh", "n_dev", "test_concepts", "stress_concepts"))

    return Family(
        settings=Settings,
        data=ConceptData,
        tasks=tuple(TASKS),
        metrics=lambda data, evaluate: metric_names(TASKS, evaluate),
        headlines=lambda data, evaluate: headlines(TASKS, evaluate),
        defining=defining,
        fingerprint=fingerprint,
        prepare=prepare,
        execute=train_encoders(training, Settings, ConceptData, load, TASKS),
        space=SPACE,
    )


def _difficulty() -> Family:
    from corpora.difficulty.pairs import PairData, load_task
    from evaluators.tasks.pair_similarity import TASKS, headlines, metric_names
    from orchestration.families.difficulty import train_stack
    from search_spaces.difficulty import SPACE
    from trainers.difficulty.judges import fingerprint
    from trainers.difficulty.settings import Settings, defining

    def prepare(study: Study, backbones: Sequence[Path]) -> None:
        for name in study.data.tasks:
            load_task(name, study.data)
        judged = [arm.form for arm in study.arms.values() if arm.needs_judge]
        if study.data.judge == "none" and judged:
            raise ValueError(f"data.judge = 'none', but {', '.join(judged)} need a judge's scores")

    return Family(
        settings=Settings,
        data=PairData,
        tasks=tuple(name for name in TASKS if not name.startswith("dev/")),
        selection=tuple(name for name in TASKS if name.startswith("dev/")),  # they train on other pairs
        metrics=lambda data, evaluate: metric_names(data.tasks, evaluate),
        headlines=lambda data, evaluate: headlines(data.tasks, evaluate),
        defining=defining,
        fingerprint=fingerprint,
        prepare=prepare,
        execute=train_stack,
        stacked=True,
        space=SPACE,
    )


FAMILIES: dict[str, Callable[[], Family]] = {"cale": _cale, "concept": _concept, "difficulty": _difficulty}


def family(name: str) -> Family:
    """The family of that name; KeyError for a name that `FAMILIES` does not hold."""
    return FAMILIES[name]()


def as_plain(settings: Any) -> dict[str, Any]:
    """A settings or data object as plain JSON types."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(settings).items()}
