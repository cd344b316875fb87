"""How far the items of a claim moved, and how many concepts or words gained, for the report.

No verdict uses this and no passport holds it, so old passports verify as they were printed. A move by rounding
alone counts as none.
"""

from __future__ import annotations

import numpy as np

from evaluators.metrics.item_metrics import mid_ranks, placements
from evaluators.significance.paired_items import ItemScores
from evaluators.significance.seed_tests import ROUNDING
from orchestration.verdicts.findings import ItemDelta, Moves

SHOWN_ITEMS = 12  # largest wins and largest losses kept per comparison


def item_gains(items: ItemScores, sign: int) -> np.ndarray:
    """How much each item moved in the treatment's favour, averaged over seeds. (M,)

    Mean of items: the difference itself. Labels 0/1: the score's move towards its label. Correlations: how much
    closer the item's rank came to its rank in gold, as a share of all items. Standard deviation: how much farther
    the item moved from the mean of its arm.
    """
    treatment, control = items.treatment.mean(axis=0), items.control.mean(axis=0)
    if items.aggregate == "sd":
        deviation = [np.abs(scores - scores.mean()) for scores in (control, treatment)]
        return sign * (deviation[1] - deviation[0])
    if items.aggregate in ("spearman", "pearson"):
        gold = mid_ranks(np.asarray(items.gold))
        distance = [np.abs(mid_ranks(scores) - gold) for scores in (control, treatment)]
        return sign * (distance[0] - distance[1]) / len(gold)
    direction = 1.0 if items.gold is None else 2 * items.gold - 1
    return sign * direction * (treatment - control)


def placed_gains(items: ItemScores, sign: int) -> np.ndarray:
    """For an AUC: how much the share of the other label's items grew that an item is ranked rightly against. (M,)

    The mean over the items of either label is the mean difference of the AUC: a shift of all scores moves nothing.
    """
    assert items.gold is not None
    shares = [
        np.mean([placements(row, items.gold) for row in rows], axis=0) for rows in (items.treatment, items.control)
    ]
    return sign * (shares[0] - shares[1])


def moves(items: ItemScores, sign: int, counted: str) -> Moves:
    """How many items, or groups of items, gained and lost, and those that moved most.

    counted: the name of a group of items, in the plural ("concepts"); "": items are counted singly, as they always
    are for a mean or a share.
    """
    ranked = items.aggregate in ("auc", "spearman", "pearson")
    size = 1.0 if ranked else max(np.abs(items.treatment).max(), np.abs(items.control).max())
    gains = placed_gains(items, sign) if items.aggregate == "auc" else item_gains(items, sign)
    gains = _without_rounding(gains, size)
    each, groups = gains, counted if ranked else ""
    if groups:
        each = _without_rounding(np.bincount(items.group_index, gains) / np.bincount(items.group_index), size)
    return Moves(
        counted=groups or "items",
        better=int((each > 0).sum()),
        worse=int((each < 0).sum()),
        equal=int((each == 0).sum()),
        items=moved_most(items, gains),
    )


def _without_rounding(gains: np.ndarray, size: float) -> np.ndarray:
    """The gains, with 0 for those that are mere rounding of scores of this size."""
    return np.where(np.abs(gains) > ROUNDING * size, gains, 0.0)


def moved_most(items: ItemScores, gains: np.ndarray) -> tuple[ItemDelta, ...]:
    """The items with the largest wins and the largest losses, best first. gains (M,)"""
    order = np.argsort(-gains, kind="stable")
    shown = order if len(order) <= 2 * SHOWN_ITEMS else np.concatenate([order[:SHOWN_ITEMS], order[-SHOWN_ITEMS:]])
    return tuple(_item_delta(items, index, gains[index]) for index in shown)


def _item_delta(items: ItemScores, index: int, gain: float) -> ItemDelta:
    return ItemDelta(
        item_id=items.item_ids[index],
        group_id=items.group_ids[index],
        treatment=float(items.treatment[:, index].mean()),
        control=float(items.control[:, index].mean()),
        delta=float(gain),
    )
