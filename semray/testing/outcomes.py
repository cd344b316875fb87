"""What a body yields of a run, gathered."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from evaluators.metrics.scores import Score
from orchestration.study.run import Result, Scored, Trained
from trainers.engine.world import Progress


@dataclass(frozen=True)
class RunResults:
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


def outcome(results: Iterable[Result]) -> RunResults:
    """What a body yields of one run, together. trained: None where it was only scored."""
    every = list(results)
    trained = [one for one in every if isinstance(one, Trained)]
    scored = [one for one in every if isinstance(one, Scored)]
    assert len({one.run.id for one in every}) == 1
    notes = {name: value for one in every for name, value in one.notes.items()}
    return RunResults(trained[0] if trained else None, [score for one in scored for score in one.scores], notes)
