"""The one run body: corpus, training, evaluation. Free of Ray: tests, lanes and Ray Train workers share it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from orchestration.study.run import Job, Result, Run, built

if TYPE_CHECKING:
    from types import ModuleType

    from evaluators.tasks.task import Table
    from trainers.engine.world import World


def execute(job: Job, world: World) -> Iterator[tuple[Run, Result]]:
    """Train and evaluate the runs of a job, yielding each as soon as it is whole."""
    from orchestration.families.registry import family

    yield from family(job.runs[0].family).execute(job.runs, world)


def train_encoders(
    trainer: ModuleType, settings: type, data: type, load: Callable[[Any], Any], tasks: Table
) -> Callable[[Sequence[Run], World], Iterator[tuple[Run, Result]]]:
    """The body of every family that trains an encoder.

    `trainer` gives `fit`, `load` its corpus, `tasks` what `evaluate:` may name.
    """
    return partial(_train_encoders, trainer, settings, data, load, tasks)


def _train_encoders(
    trainer: ModuleType,
    settings: type,
    data: type,
    load: Callable[[Any], Any],
    tasks: Table,
    runs: Sequence[Run],
    world: World,
) -> Iterator[tuple[Run, Result]]:
    from evaluators.tasks.task import evaluate
    from orchestration.families.sources import check_sources
    from trainers.encoders.backbones import resolve_backbone

    for run in runs:
        started = time.perf_counter()
        corpus, backbone = load(built(data, run.data)), resolve_backbone(run.backbone)
        check_sources(run, backbone, corpus.fingerprint)
        prepared = time.perf_counter()
        watched = replace(world, look_at=run.look_at, look=partial(_look, tasks, run.evaluate, corpus))
        encoder, curve = trainer.fit(built(settings, run.settings), backbone, corpus, run.seed or 0, watched)
        trained, cut = time.perf_counter(), encoder.truncated
        scores = evaluate(tasks, run.evaluate, corpus, encoder.encode) if world.rank == 0 else []
        cut = encoder.truncated - cut  # of what is evaluated: the same number for every seed
        seconds = {
            "data": prepared - started,
            "train": trained - prepared,
            "evaluate": time.perf_counter() - trained,
        }
        notes = {"texts cut at max_length": cut} if cut else {}
        yield run, Result(scores=scores, curve=curve, seconds=seconds, notes=notes, save_model=encoder.save)


def _look(tasks: Table, named: Sequence[str], corpus: Any, encoder: Any) -> dict[str, float]:
    """The figures of an encoder in its training, on development data alone."""
    from evaluators.tasks.task import evaluate

    dev = [name for name in named if name.startswith("dev/")]
    return {score.metric: score.value for score in evaluate(tasks, dev, corpus, encoder.encode)}
