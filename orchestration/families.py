"""The model families, and the one place where corpus, trainer and tasks of each meet.

A new family is a module in `trainers`, a search space, a test and one entry in `FAMILIES`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
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
    fingerprint(data) names the corpus, cheaply. prepare(data, arms, backbones) builds or opens what every run
    needs, and raises ValueError or CorpusError for whatever cannot work, before a lane starts.
    execute trains and evaluates runs of one job; stacked families take many runs in one job.
    """

    settings: type
    data: type
    tasks: tuple[str, ...]
    metrics: Callable[[Any, Sequence[str]], Mapping[str, bool]]
    defining: Callable[[Any], dict[str, Any]]
    fingerprint: Callable[[Any], str]
    prepare: Callable[[Any, Sequence[Any], Sequence[Path]], None]
    execute: Callable[[Sequence[Run], World], Iterator[tuple[Run, Result]]]
    stacked: bool = False


def _concept() -> Family:
    from corpora.concept import ConceptData, fingerprint, load
    from evaluators.tasks import TASKS, metric_names
    from orchestration.execute import train_encoders
    from trainers import concept

    def prepare(data: Any, arms: Sequence[Any], backbones: Sequence[Path]) -> None:
        load(data)
        wanted = max((arm.layers for arm in arms if arm.readout == "weighted"), default=0)
        for folder in backbones:
            if wanted > (depth := json.loads((folder / "config.json").read_text())["num_hidden_layers"]):
                raise ValueError(f"layers = {wanted}\n  accepted: up to {depth}, the layers of {folder.name}")

    return Family(
        settings=concept.Settings,
        data=ConceptData,
        tasks=tuple(TASKS),
        metrics=lambda data, evaluate: metric_names(evaluate),
        defining=concept.defining,
        fingerprint=fingerprint,
        prepare=prepare,
        execute=train_encoders(concept, ConceptData, load),
    )


def _difficulty() -> Family:
    from corpora.pairs import PairData, fingerprint, load_task
    from evaluators.pair_similarity import TASKS, metric_names
    from orchestration.execute_stack import train_stack
    from trainers import difficulty

    def prepare(data: Any, arms: Sequence[Any], backbones: Sequence[Path]) -> None:
        for name in data.tasks:
            load_task(name, data)
        if data.judge == "none" and (judged := [arm.form for arm in arms if arm.needs_judge]):
            raise ValueError(f"data.judge = 'none', but {', '.join(judged)} need a judge's scores")

    return Family(
        settings=difficulty.Settings,
        data=PairData,
        tasks=tuple(TASKS),
        metrics=lambda data, evaluate: metric_names(data.tasks, evaluate),
        defining=difficulty.defining,
        fingerprint=fingerprint,
        prepare=prepare,
        execute=train_stack,
        stacked=True,
    )


FAMILIES: dict[str, Callable[[], Family]] = {"concept": _concept, "difficulty": _difficulty}


def family(name: str) -> Family:
    """The family of that name; KeyError for a name that `FAMILIES` does not hold."""
    return FAMILIES[name]()


def as_plain(settings: Any) -> dict[str, Any]:
    """A settings or data object as plain JSON types."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(settings).items()}
