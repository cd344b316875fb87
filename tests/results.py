"""What a run leaves, made up in a test: its training, and scores for each of its tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from evaluators.metrics.scores import Score
from orchestration.ledger.ledger import Ledger
from orchestration.study.run import Result, Run, Scored, Trained
from semray.testing import RunResults, outcome

__all__ = ["RunResults", "finish", "outcome", "put", "results", "run_in", "without_model"]


def run_in(folder: Path, seed: int | None, arm: str = "A", **settings: object) -> Run:
    """A run of one task m whose body meets its test in this folder, and does what the settings say."""
    return Run(
        family="concept",
        arm=arm,
        backbone="tiny",
        seed=seed,
        settings=settings,
        data={"folder": str(folder)},
        tasks={"m": "rows"},
        defining=settings,
        backbone_fingerprint="b",
        corpus_fingerprint="c",
    )


def results(run: Run, scores: Sequence[Score] = (), **training: Any) -> Iterator[Result]:
    """The training, then each task with the scores that begin with its name; all others go with the first task.

    training: the fields of `Trained`.
    """
    yield Trained(run=run, **training)
    for number, task in enumerate(run.tasks):
        others = [name for name in run.tasks if name != task]
        yield Scored(
            run=run,
            task=task,
            scores=[
                s for s in scores if _of(s, task) or (not number and not any(_of(s, name) for name in others))
            ],
        )


def finish(ledger: Ledger, run: Run, scores: Sequence[Score] = (), **training: Any) -> int:
    """Put into the ledger what a run leaves, made up. -> the attempt's number"""
    return put(ledger, run, results(run, scores, **training))


def put(ledger: Ledger, run: Run, left: Iterable[Result]) -> int:
    """Lease a run, stage all it left and commit it, as a lane and the driver would. -> the attempt's number"""
    attempt = ledger.lease(run.id)
    for result in left:
        ledger.stage(result, attempt)
        ledger.commit(result.entry, attempt)
    ledger.forget(run.id)
    return attempt


def without_model(result: Result) -> Result:
    """The same, whose model nobody needs."""
    return replace(result, save_model=None) if isinstance(result, Trained) else result


def _of(score: Score, task: str) -> bool:
    return score.metric == task or score.metric.startswith(f"{task}/")
