"""Sums of figures, each with its own items: their item variance by arithmetic and by the figures they are made of."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from evaluators.significance.claims import Claim
from evaluators.significance.comparisons import PairedSeeds
from evaluators.significance.item_bootstrap import Undefined, strata_of
from evaluators.significance.item_tests import closed_form_variance, item_variance
from evaluators.significance.judge import judge
from evaluators.significance.paired_items import ItemScores, ItemSum

RNG = np.random.default_rng(3)


def task(name: str, size: int, n: int = 4, aggregate: str = "mean") -> ItemScores:
    arms = RNG.normal(size=(2, n, size)) + RNG.normal(size=(2, 1, size))
    ids = tuple(f"{name} {k}" for k in range(size))
    gold = None if aggregate == "mean" else RNG.normal(size=size)
    return ItemScores(
        aggregate=aggregate,  # type: ignore[arg-type]
        treatment=arms[0],
        control=arms[1],
        gold=gold,
        item_ids=ids,
        group_ids=ids,
    )


def test_independent_tasks_add_their_variances():
    """Var((a + b) / 2) = (Var a + Var b) / 4; the bootstrap of 2,000 is known to 3 %."""
    tasks = task("a", 200), task("b", 80)
    alone = [closed_form_variance(one) for one in tasks]
    found = item_variance(ItemSum(tuple((0.5, one) for one in tasks)), np.random.default_rng(0))
    assert found.v_item == pytest.approx(sum(one.v_item for one in alone if one) / 4, rel=0.12)
    assert found.v_both == pytest.approx(sum(one.v_both for one in alone if one) / 4, rel=0.3)


def test_the_same_items_twice_are_no_more_items():
    """Var((a + a) / 2) = Var a: shared items are drawn together."""
    one = task("a", 150)
    found = item_variance(ItemSum(((0.5, one), (0.5, one))), np.random.default_rng(0))
    assert found.v_item == pytest.approx(closed_form_variance(one).v_item, rel=0.12)  # type: ignore[union-attr]
    apart = replace(
        one, item_ids=tuple(f"b {k}" for k in range(150)), group_ids=tuple(f"b {k}" for k in range(150))
    )
    half = item_variance(ItemSum(((0.5, one), (0.5, apart))), np.random.default_rng(0))
    assert half.v_item == pytest.approx(found.v_item / 2, rel=0.15)


def test_a_gain_less_a_gain_is_the_difference_of_differences():
    """Of means, (a - b) - (c - d) of every item is one figure with a formula."""
    first, second = task("a", 120), task("a", 120)
    merged = replace(first, treatment=first.treatment - first.control, control=second.treatment - second.control)
    found = item_variance(ItemSum(((1.0, first), (-1.0, second))), np.random.default_rng(0))
    assert found.v_item == pytest.approx(closed_form_variance(merged).v_item, rel=0.12)  # type: ignore[union-attr]


def test_groups_are_shared_by_item_and_by_name():
    one = replace(task("a", 4), group_ids=("g", "g", "h", "i"))
    other = replace(task("b", 3), item_ids=("a 2", "b 1", "b 2"), group_ids=("x", "x", "i"))
    both = ItemSum(((0.5, one), (0.5, other)))
    assert both.group_index.tolist() == [0, 0, 1, 2, 1, 1, 2]  # h and x hold a 2; i is called so in both
    assert (both.groups, len(both.item_ids)) == (2, 6)
    assert [part.tolist() for part in strata_of(both)] == [[0, 1, 2]]
    apart = ItemSum(((0.5, task("c", 3)), (0.5, task("d", 2)), (0.5, task("c", 3))))
    assert sorted(part.tolist() for part in strata_of(apart)) == [[0, 1, 2], [3, 4]]


def test_a_sum_rests_on_the_rarest_class_of_its_terms():
    """Of three positives in one task a mean over tasks knows no more than that task alone."""
    rare = replace(task("b", 40, aggregate="spearman"), aggregate="auc", gold=np.repeat([1.0, 0.0], [3, 37]))
    both = ItemSum(((0.5, task("a", 90)), (0.5, rare)))
    assert (both.groups, both.effective, both.shortfall) == (40, 3, 1.5)
    plain = ItemSum(((0.5, task("a", 90)), (0.5, task("b", 60))))
    assert (plain.effective, plain.shortfall) == (60, 1.0)


@pytest.mark.parametrize(("aggregate", "label"), [("auc", 1), ("balanced_accuracy", 0), ("f1", 1)])
def test_a_class_that_another_task_joins_into_one_group_has_no_variance(aggregate: str, label: int):
    """By one task's groups three independent items hold the rarer label, by both tasks' a single one."""
    gold = np.where(np.arange(40) < 3, label, 1 - label).astype(float)
    rare = replace(task("a", 40, aggregate="spearman"), aggregate=aggregate, gold=gold)
    other = replace(task("a", 40), group_ids=("g",) * 3 + rare.group_ids[3:])
    assert item_variance(rare, np.random.default_rng(0)).v_item > 0
    with pytest.raises(Undefined, match=f"independent items labelled {label}: 1, {aggregate} needs at least 2"):
        item_variance(ItemSum(((0.5, rare), (0.5, other))), np.random.default_rng(0))


@pytest.mark.parametrize("more", [("b 0", "b 1"), ("a 1",)])
def test_a_task_whose_groups_another_joins_into_one_has_no_variance(more: tuple[str, ...]):
    """By itself each task has groups enough; the second one's join the first one's, once with others left, once none."""
    one = replace(task("a", 4), group_ids=("g", "g", "h", "h"))
    names = ("a 0", "a 2", *more)
    other = replace(task("b", len(names)), item_ids=names, group_ids=("x", "x", *"yz"[: len(more)]))
    both = ItemSum(((0.5, one), (0.5, other)))
    assert (both.groups, both.effective, both.shortfall) == (1, 1, pytest.approx(1.6) if len(more) > 1 else 1.0)
    with pytest.raises(Undefined, match="mean is undefined without one of the items"):
        item_variance(both, np.random.default_rng(0))


def test_figures_of_the_same_items_keep_their_class_sizes():
    """Two tasks with an item in common are drawn as one, whatever the classes are."""
    gold = np.array([1.0, 0.0, 0.0, 1.0, 0.0])
    one, same, other = (replace(task("a", 5, aggregate="spearman"), aggregate="auc", gold=gold) for _ in range(3))
    both = ItemSum(((0.5, one), (0.5, same)))
    assert sorted(part.tolist() for part in strata_of(both)) == [[0, 3], [1, 2, 4]]
    other = replace(other, item_ids=("a 0", "b 1", "b 2", "b 3", "b 4"), group_ids=("a 0", *"wxyz"))
    for sums in ((one, same, other), (other, same, one), (one, other, same)):
        together = ItemSum(tuple((1 / 3, term) for term in sums))
        assert [part.tolist() for part in strata_of(together)] == [list(range(9))]


def test_the_order_of_the_tasks_means_nothing():
    """Only the random draws differ: the variance agrees to their noise, mean and scope are the same."""
    tasks = [task("a", 90, aggregate="spearman"), task("b", 60)]
    sums = [ItemSum(tuple((0.5, one) for one in order)) for order in (tasks, tasks[::-1])]
    found = [item_variance(items, np.random.default_rng(1)).v_item for items in sums]
    assert found[0] == pytest.approx(found[1], rel=0.15)


def test_figures_that_are_kept_in_float32_are_those_of_their_items():
    """Milliseconds, say, of which an arm takes 1 in 1,000 more: float32 holds such a mean to 3e-5, which is more
    than 1e-5 of the difference and less than 1e-5 of the figure."""
    tasks = [
        replace(one, treatment=(1001 + one.treatment), control=(1000 + one.control))
        for one in (task("a", 21), task("b", 23))
    ]
    means = {
        arm: [np.float32(getattr(one, arm)).mean(1).astype(float) for one in tasks]
        for arm in ("treatment", "control")
    }
    for weights in ((0.5, 0.5), (1.0, -1.0)):  # a mean over tasks, and the difference of two gains
        of_arm = {
            arm: sum(w * one for w, one in zip(weights, figures, strict=True)) for arm, figures in means.items()
        }
        pairs = PairedSeeds(
            seeds=(0, 1, 2, 3),
            treatment=tuple(of_arm["treatment"]),
            control=tuple(of_arm["control"]),
            items=ItemSum(tuple(zip(weights, tasks, strict=True))),
            tasks=("a", "b"),
        )
        claim = Claim(claim="H", treatment="A", control="B", metric="mean(a, b)", expect="better")
        assert judge([(claim, pairs)])[0].n_items == 44
        with pytest.raises(ValueError, match="but its items by"):
            judge([(claim, replace(pairs, control=tuple(of_arm["control"] + 0.1)))])


def test_items_that_do_not_make_the_difference_are_refused():
    tasks = task("a", 20), task("b", 20)
    items = ItemSum(tuple((0.5, one) for one in tasks))
    means = [np.mean([getattr(one, arm).mean(1) for one in tasks], axis=0) for arm in ("treatment", "control")]
    pairs = PairedSeeds(
        seeds=(0, 1, 2, 3), treatment=tuple(means[0]), control=tuple(means[1]), items=items, tasks=("a", "b")
    )
    claim = Claim(claim="H", treatment="A", control="B", metric="mean(a, b)", expect="better")
    (found,) = judge([(claim, pairs)])
    assert (found.test, found.scope, found.n_groups) == ("crossed t", "on these tasks", 20)
    with pytest.raises(ValueError, match="but its items by"):
        judge([(claim, replace(pairs, control=tuple(means[1] + 0.1)))])
