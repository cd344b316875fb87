"""Gathers the results that a run body yields."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from evaluators.metrics.scores import Score
from orchestration.study.run import Result, Scored, Trained
from trainers.engine.world import Progress


@dataclass(frozen=True)
class RunResults:
    """All results of one run."""

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
    """Gather the results of one run. trained is None if the run was only scored."""
    every = list(results)
    trained = [result for result in every if isinstance(result, Trained)]
    scored = [result for result in every if isinstance(result, Scored)]
    assert len({result.run.id for result in every}) == 1
    notes = {name: value for result in every for name, value in result.notes.items()}
    return RunResults(trained[0] if trained else None, [s for result in scored for s in result.scores], notes)
