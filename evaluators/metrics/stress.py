"""Does a term stand closer to its definition than to one made wrong by rule? One AUC for each rule.

Source: Concept, appendix G. The positives of a rule are the concepts it applies to. Two readings are kept apart:
the AUC pools all concepts, so it asks for one threshold that fits them all; the accuracy compares within a
concept. A frozen encoder can be at chance in the first and far above it in the second.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from corpora.concept.records import KINDS_OF, RULES, EvalSplit, StressRow
from evaluators.metrics.item_metrics import score_of_items
from evaluators.metrics.scores import Score

BY_KIND = ("antonym", "negate", "pos_prefix")  # rules that make several kinds of negatives of one corpus


def metric_names(task: str = "stress") -> tuple[str, ...]:
    """Everything `stress_scores` can yield for a task of this name."""
    places = [f"{task}/{rule}" for rule in RULES]
    places += [f"{task}/{rule}/{kind}" for rule in BY_KIND for kind in KINDS_OF[rule]]
    return tuple(f"{place}/{figure}" for place in places for figure in ("auc", "acc"))


def stress_scores(split: EvalSplit, right: np.ndarray, wrong: np.ndarray, task: str = "stress") -> list[Score]:
    """AUC and pairwise accuracy of each rule, and of each kind where a rule makes several.

    right, wrong (N,): cosine of the term of `split.stress[i]` with its definition and with its negative.
    A rule or kind without rows yields nothing.
    """
    rows, groups = split.stress, _groups(split)
    return [
        score
        for place, chosen in _selections(task, rows)
        if len(chosen)
        for score in _pair_of_scores(place, [rows[i] for i in chosen], groups, right[chosen], wrong[chosen])
    ]


def pair_auc(metric: str, split: EvalSplit, right: np.ndarray, wrong: np.ndarray) -> Score:
    """ROC-AUC of every concept's definition, once each, against the negatives of all rules together.

    right, wrong (N,) as for `stress_scores`.
    """
    rows, groups = split.stress, _groups(split)
    first_row: dict[str, int] = {}
    for i, row in enumerate(rows):
        first_row.setdefault(row.concept, i)
    positives = list(first_row.values())
    return score_of_items(
        metric,
        "auc",
        [f"{concept}+" for concept in first_row] + [f"{row.concept}-{row.rule}" for row in rows],
        [groups[rows[i].definition] for i in positives] + [groups[row.definition] for row in rows],
        np.concatenate([right[positives], wrong]),
        np.repeat([1.0, 0.0], [len(positives), len(rows)]),
    )


def _selections(task: str, rows: Sequence[StressRow]) -> Iterator[tuple[str, np.ndarray]]:
    rules, kinds = np.array([row.rule for row in rows]), np.array([row.kind for row in rows])
    for rule in RULES:
        yield f"{task}/{rule}", np.flatnonzero(rules == rule)
        for kind in KINDS_OF[rule] if rule in BY_KIND else ():
            yield f"{task}/{rule}/{kind}", np.flatnonzero((rules == rule) & (kinds == kind))


def _pair_of_scores(
    place: str, rows: Sequence[StressRow], groups: Mapping[str, str], right: np.ndarray, wrong: np.ndarray
) -> Iterator[Score]:
    concepts = [row.concept for row in rows]
    owners = [groups[row.definition] for row in rows]
    yield score_of_items(
        f"{place}/auc",
        "auc",
        [f"{concept}+" for concept in concepts] + [f"{concept}-" for concept in concepts],
        owners * 2,
        np.concatenate([right, wrong]),
        np.repeat([1.0, 0.0], len(rows)),
    )
    yield score_of_items(f"{place}/acc", "mean", concepts, owners, right > wrong)


def _groups(split: EvalSplit) -> dict[str, str]:
    """Per definition the first concept that carries it: rows that share a definition are resampled together."""
    return {
        text: concepts[0] for text, concepts in zip(split.definitions, split.concept_of_definition, strict=True)
    }
