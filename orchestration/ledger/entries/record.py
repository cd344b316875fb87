"""The record of a run in the ledger: its definition, scores and cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from trainers.engine.meter import added

if TYPE_CHECKING:
    from evaluators.metrics.scores import Aggregate
    from orchestration.study.run import Run


@dataclass(frozen=True, kw_only=True)
class Metric:
    """One figure of a run, and the entry that holds its items.

    aggregate as in `evaluators.metrics.scores.Score`; value is nan where it has none.
    """

    value: float
    aggregate: Aggregate | None
    larger_is_better: bool
    entry: str = ""


@dataclass(frozen=True, kw_only=True)
class Record:
    """The record of a run: its training alone, or with scores. url: the place of its files.

    sealed: False for an entry from before seals. items_digest: the seal's digest of the items, if this is one
    entry with scores. began: when its training began, in Unix time; None in entries that do not record it. cost:
    as `trainers.engine.meter` measures it; empty in old entries.
    """

    id: str
    run: Run
    metrics: Mapping[str, Metric]
    seconds: Mapping[str, float]
    notes: Mapping[str, Any]
    env: Mapping[str, Any]
    attempt: int
    url: str
    sealed: bool = True
    items_digest: str = ""
    began: float | None = None
    cost: Mapping[str, float] = field(default_factory=dict)

    def with_scores(self, scores: Record) -> Record:
        """The record with the run's scores on one more task."""
        seconds = {
            name: self.seconds.get(name, 0.0) + scores.seconds.get(name, 0.0)
            for name in {**self.seconds, **scores.seconds}
        }
        return replace(
            self,
            metrics={**self.metrics, **scores.metrics},
            seconds=seconds,
            notes={**self.notes, **scores.notes},
            cost=added(self.cost, scores.cost),
        )
