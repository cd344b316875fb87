"""Which models of a study the ledger keeps: all, each arm's best seed, or none. Scores are always kept."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from evaluators.tasks.figures import mean_of
from evaluators.tasks.task import named
from orchestration.families.registry import family
from orchestration.plan.plan import by_arm

if TYPE_CHECKING:
    from orchestration.ledger.entries.record import Record
    from orchestration.ledger.ledger import Ledger
    from orchestration.plan.plan import Plan
    from orchestration.study.blocks import Models
    from orchestration.study.run import Run
    from orchestration.study.study import Study


def models_to_remove(plan: Plan, ledger: Ledger, keep: Models) -> tuple[Run, ...]:
    """The finished runs whose models are in the ledger and may be removed.

    keep "best": each arm on each backbone keeps its best seed by `deciding_metric`; of equals, the first.
    """
    if keep == "keep":
        return ()
    done = plan.done
    sizes = ledger.model_sizes(done)
    with_model = tuple(run for run in done if sizes[run.id])
    if keep == "none":
        return with_model
    figures = plan.study.figures_of(deciding_metric(plan.study))
    records = ledger.records(done)
    best = {_best(runs, records, figures).id for runs in by_arm(done).values()}
    return tuple(run for run in with_model if run.id not in best)


def deciding_metric(study: Study) -> str:
    """The metric of the first claim, else the headline of the first task."""
    if first := next(study.parts, None):
        return first.metric
    return named(family(study.family).tasks(study.data), study.evaluate)[0].headline


def _best(runs: Sequence[Run], records: Mapping[str, Record], figures: tuple[str, ...]) -> Run:
    def worth(run: Run) -> float:
        found = records[run.id].metrics
        mean = mean_of({name: one.value for name, one in found.items()}, figures)
        if math.isnan(mean):
            return -math.inf
        return mean if found[figures[0]].larger_is_better else -mean

    return max(runs, key=worth)
