"""The model families, and the one place where corpus, trainer and tasks of each meet.

A new family is a module in `trainers`, a search space, a test and one entry in `FAMILIES`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from orchestration.run import Result, Run
    from trainers.world import World


@dataclass(frozen=True, kw_only=True)
class Family:
    """What the rest of the system may ask of a family.

    settings and data are frozen data classes: `train:` and an arm of a study merge into the first, `data:` is
    the second. tasks are the names that `evaluate:` accepts. metrics(data, evaluate) names every figure those
    tasks will yield, with True where larger is better. defining(settings) keeps what can change the result.
    execute trains and evaluates runs of one job; stacked families take many runs in one job.
    """

    settings: type
    data: type
    tasks: tuple[str, ...]
    metrics: Callable[[Any, Sequence[str]], Mapping[str, bool]]
    defining: Callable[[Any], dict[str, Any]]
    fingerprint: Callable[[Any], str]
    execute: Callable[[Sequence[Run], World], Iterator[tuple[Run, Result]]]
    stacked: bool = False


def _concept() -> Family:
    from corpora.concept import ConceptData, fingerprint, load
    from evaluators.tasks import TASKS, metric_names
    from orchestration.execute import train_encoders
    from trainers import concept

    return Family(
        settings=concept.Settings,
        data=ConceptData,
        tasks=tuple(TASKS),
        metrics=lambda data, evaluate: metric_names(evaluate),
        defining=concept.defining,
        fingerprint=fingerprint,
        execute=train_encoders(concept, ConceptData, load),
    )


FAMILIES: dict[str, Callable[[], Family]] = {"concept": _concept}


def family(name: str) -> Family:
    """The family of that name; KeyError for a name that `FAMILIES` does not hold."""
    return FAMILIES[name]()


def settings_of(run: Run) -> Any:
    """The family's settings object of a run."""
    return family(run.family).settings(**run.settings)


def as_plain(settings: Any) -> dict[str, Any]:
    """A settings or data object as plain JSON types."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(settings).items()}
