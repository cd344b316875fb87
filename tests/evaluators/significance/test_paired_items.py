import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.significance.paired_items import ItemScores, ItemsError, align_items, effective_groups


def test_items_are_aligned_by_id():
    items = align_items(
        [5, 6],
        {5: {"a": 1, "b": 0}, 6: {"b": 1, "a": 0}},
        {5: {"a": 0, "b": 0}, 6: {"a": 1, "b": 1}},
        aggregate="auc", gold={"b": 0, "a": 1}, groups={"a": "x", "b": "y"},
    )  # fmt: skip
    assert items.item_ids == ("a", "b")
    assert items.treatment.tolist() == [[1, 0], [0, 1]]
    assert items.gold.tolist() == [1, 0]  # type: ignore[union-attr]
    assert items.group_ids == ("x", "y")
    runs = {5: {"a": 1, "b": 0}, 6: {"b": 1, "a": 0}}
    alone = align_items([6, 5], runs, runs, aggregate="mean")
    assert (alone.item_ids, alone.group_ids, alone.gold) == (("b", "a"), ("b", "a"), None)
    assert alone.control.tolist() == [[1, 0], [0, 1]]
    with pytest.raises(ItemsError, match=r"treatment seed 6 differs in 2 items from the first run, e\.g\. b$"):
        align_items([5, 6], {5: {"a": 1, "b": 0}, 6: {"a": 1, "c": 0}}, runs, aggregate="mean")
    with pytest.raises(ValueError, match=r"control seed 6 differs in 1 items .* e\.g\. b"):
        align_items(
            [5, 6],
            {5: {"a": 1, "b": 0}, 6: {"b": 1, "a": 0}},
            {5: {"a": 0, "b": 0}, 6: {"a": 1}},
            aggregate="mean",
        )


ONE, IDS = np.ones((1, 2)), ("a", "b")


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        ({"treatment": np.array([[1.0, math.nan]])}, "treatment row 0, item b: nan is not finite"),
        ({"control": np.array([[-math.inf, 1.0]])}, "control row 0, item a: -inf is not finite"),
        ({"treatment": np.ones(2)}, r"treatment has shape \(2,\), accepted: seeds x 2 items in both arms"),
        ({"control": np.ones((2, 2))}, r"control has shape \(2, 2\)"),
        ({"control": np.ones((1, 3))}, r"control has shape \(1, 3\)"),
        ({"item_ids": ("a", "a")}, "2 items need distinct ids and one group each, got 2 groups"),
        ({"group_ids": ("x", "y", "z")}, "got 3 groups"),
        ({"group_ids": ("x", "x")}, "fewer than two groups"),
        ({"aggregate": "spearman"}, "spearman needs gold, one finite value for each of 2 items"),
        ({"aggregate": "pearson", "gold": np.ones(3)}, "pearson needs gold"),
        ({"aggregate": "spearman", "gold": np.array([0.5, math.nan])}, "spearman needs gold"),
        ({"aggregate": "auc", "gold": np.array([1.0, 2.0])}, "auc needs gold labels 0 or 1"),
        ({"aggregate": "balanced_accuracy", "gold": np.array([0.5, 1.0])}, "balanced_accuracy needs gold labels"),
        ({"aggregate": "f1", "gold": np.array([-1.0, 1.0])}, "f1 needs gold labels 0 or 1"),
    ],
)
def test_items_say_what_is_wrong_with_them(change: dict[str, Any], wrong: str):
    whole = {"aggregate": "mean", "treatment": ONE, "control": ONE, "item_ids": IDS, "group_ids": IDS}
    with pytest.raises(ItemsError, match=wrong):
        ItemScores(**(whole | change))


@pytest.mark.parametrize("aggregate", ["mean", "sd", "spearman", "f1"])
def test_groups_are_numbered_as_they_come(aggregate: Any):
    ids = ("a", "b", "c", "d")
    items = ItemScores(
        aggregate=aggregate,
        treatment=np.ones((3, 4)),
        control=np.ones((3, 4)),
        gold=None if aggregate in ("mean", "sd") else np.array([1.0, 0.0, 1.0, 0.0]),
        item_ids=ids,
        group_ids=("y", "x", "y", "z"),
    )
    assert items.group_index.tolist() == [0, 1, 0, 2]
    assert (items.groups, items.effective, items.shortfall) == pytest.approx((3, 8 / 3, 1.6))


@given(st.lists(st.integers(1, 30), min_size=1, max_size=30))
def test_groups_count_as_so_many_equal_ones(sizes: list[int]):
    """The variance of a sum is known by Satterthwaite's degrees of freedom, a group's part being as large as it is."""
    found = effective_groups("mean", None, np.repeat(np.arange(len(sizes)), sizes))
    assert found == pytest.approx(sum(sizes) ** 2 / sum(size**2 for size in sizes))
    assert 1 <= found <= len(sizes) + 1e-9
    if len({*sizes}) == 1:
        assert found == len(sizes)
