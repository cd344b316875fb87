"""All figures of a pair task at once, as the stack asks for them."""

from __future__ import annotations

from typing import Any

from evaluators.metrics.scores import Score
from evaluators.tasks.pair_similarity import isolation_scores, retrieval_scores, similarity_scores


def pair_metrics(task: Any, predicted: Any, control: Any = None) -> list[Score]:
    return [
        score
        for part in (similarity_scores, isolation_scores, retrieval_scores)
        for score in part(task, predicted, control)
    ]


def evaluated(request: Any, task: Any, predicted: Any, control: Any) -> list[Score]:
    """The same for `fit_stack`, which says of which arm and seed the predictions are."""
    return pair_metrics(task, predicted, control)
