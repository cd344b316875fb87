import math

import numpy as np
import pytest

from evaluators.significance.paired_items import ItemScores, align_items


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
    with pytest.raises(ValueError, match=r"control seed 6 differs in 1 items .* e\.g\. b"):
        align_items(
            [5, 6],
            {5: {"a": 1, "b": 0}, 6: {"b": 1, "a": 0}},
            {5: {"a": 0, "b": 0}, 6: {"a": 1}},
            aggregate="mean",
        )


def test_items_say_what_is_wrong_with_them():
    one, ids = np.ones((1, 2)), ("a", "b")
    with pytest.raises(ValueError, match="item b: nan"):
        ItemScores(
            aggregate="mean", treatment=np.array([[1.0, math.nan]]), control=one, item_ids=ids, group_ids=ids
        )
    with pytest.raises(ValueError, match="shape"):
        ItemScores(aggregate="mean", treatment=one, control=np.ones((2, 2)), item_ids=ids, group_ids=ids)
    with pytest.raises(ValueError, match="distinct"):
        ItemScores(aggregate="mean", treatment=one, control=one, item_ids=("a", "a"), group_ids=ids)
    with pytest.raises(ValueError, match="two groups"):
        ItemScores(aggregate="mean", treatment=one, control=one, item_ids=ids, group_ids=("x", "x"))
    with pytest.raises(ValueError, match="needs gold"):
        ItemScores(aggregate="spearman", treatment=one, control=one, item_ids=ids, group_ids=ids)
    with pytest.raises(ValueError, match="0 or 1"):
        ItemScores(
            aggregate="auc", treatment=one, control=one, gold=np.array([1.0, 2.0]), item_ids=ids, group_ids=ids
        )
