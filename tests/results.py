"""What a run leaves, made up in a test: its training, and scores for each of its tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from evaluators.metrics.scores import Score
from orchestration.ledger.ledger import Ledger
from orchestration.study.run import Result, Run, Scored, Trained
from trainers.engine.world import Progress


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
    """Lease a run, stage all it leaves and commit it, as a lane and the driver would. -> the attempt's number"""
    attempt = ledger.lease(run.id)
    for result in results(run, scores, **training):
        ledger.stage(result, attempt)
        ledger.commit(result.entry, attempt)
    ledger.forget(run.id)
    return attempt


@dataclass(frozen=True)
class Outcome:
    """All that came of one run."""

    trained: Trained | None
    scores: list[Score]
    notes: dict[str, Any]

    @property
    def curve(self) -> Sequence[Progress]:
        return self.trained.curve if self.trained else ()

    @property
    def values(self) -> dict[str, float]:
        return {score.metric: score.value for score in self.scores}


def outcome(results: Iterable[Result]) -> Outcome:
    """What a body yields of one run, together. trained: None where it was only scored."""
    every = list(results)
    trained = [one for one in every if isinstance(one, Trained)]
    scored = [one for one in every if isinstance(one, Scored)]
    assert len({one.run.id for one in every}) == 1
    notes = {name: value for one in every for name, value in one.notes.items()}
    return Outcome(trained[0] if trained else None, [score for one in scored for score in one.scores], notes)


def _of(score: Score, task: str) -> bool:
    return score.metric == task or score.metric.startswith(f"{task}/")
