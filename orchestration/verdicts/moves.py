"""What moved of a claim's items, as a report shows it: how far each came, and how many concepts or words gained.

No verdict rests on this and no passport holds it, so old passports are verified as they were printed. What
rounding alone moved counts as not moved.
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
        away = [np.abs(scores - scores.mean()) for scores in (control, treatment)]
        return sign * (away[1] - away[0])
    if items.aggregate in ("spearman", "pearson"):
        gold = mid_ranks(np.asarray(items.gold))
        distance = [np.abs(mid_ranks(scores) - gold) for scores in (control, treatment)]
        return sign * (distance[0] - distance[1]) / len(gold)
    towards = 1.0 if items.gold is None else 2 * items.gold - 1
    return sign * towards * (treatment - control)


def placed_gains(items: ItemScores, sign: int) -> np.ndarray:
    """Of an AUC: of how many items of the other label more, as a share, each item is told rightly. (M,)

    The mean over the items of either label is the mean difference of the AUC: a shift of all scores moves nothing.
    """
    assert items.gold is not None
    placed = [
        np.mean([placements(row, items.gold) for row in rows], axis=0) for rows in (items.treatment, items.control)
    ]
    return sign * (placed[0] - placed[1])


def moves(items: ItemScores, sign: int, counted: str) -> Moves:
    """What to tell of the items.

    counted: what a group of items is, in the plural ("concepts"); "" where its items are counted one by one, as
    those of a mean or a share are in any case.
    """
    ranked = items.aggregate in ("auc", "spearman", "pearson")
    size = 1.0 if ranked else max(np.abs(items.treatment).max(), np.abs(items.control).max())
    gains = _settled(placed_gains(items, sign) if items.aggregate == "auc" else item_gains(items, sign), size)
    each, groups = gains, counted if ranked else ""
    if groups:
        each = _settled(np.bincount(items.group_index, gains) / np.bincount(items.group_index), size)
    return Moves(
        counted=groups or "items",
        better=int((each > 0).sum()),
        worse=int((each < 0).sum()),
        equal=int((each == 0).sum()),
        items=moved_most(items, gains),
    )


def _settled(gains: np.ndarray, size: float) -> np.ndarray:
    """The same, and 0 where a gain is rounding beside scores of this size."""
    return np.where(np.abs(gains) > ROUNDING * size, gains, 0.0)


def moved_most(items: ItemScores, gains: np.ndarray) -> tuple[ItemDelta, ...]:
    """The items of the largest wins and of the largest losses, best first. gains (M,)"""
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
