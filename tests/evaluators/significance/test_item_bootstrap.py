"""The oracle is the plain loop: repeat the drawn items, compute the metric anew."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from evaluators.metrics import counted_metrics
from evaluators.metrics.counted_metrics import METRICS
from evaluators.metrics.item_metrics import aggregate
from evaluators.significance import item_bootstrap
from evaluators.significance.item_bootstrap import (
    Undefined,
    deltas_of,
    distinct_rows,
    drawn_counts,
    jackknife_item_variance,
    resampled_deltas,
    strata_of,
    two_level_means,
    two_level_of,
)
from evaluators.significance.paired_items import ItemScores, ItemSum


def scored(
    kind: str, n: int = 3, m: int = 57, *, ties: bool = False, per_group: int = 1, seed: int = 1
) -> ItemScores:
    rng = np.random.default_rng(seed)
    gold = rng.normal(size=m)
    treatment, control = gold + rng.normal(size=(n, m)), gold + 1.2 * rng.normal(size=(n, m))
    control[:] = control[0]  # a frozen control
    if kind in ("auc", "balanced_accuracy", "f1"):
        gold = (gold > 0.3).astype(float)
    if ties:
        treatment, gold = np.round(treatment, 1), np.round(gold, 1)
    ids = tuple(f"item {j}" for j in range(m))
    groups = tuple(f"group {j // per_group}" for j in range(m))
    return ItemScores(
        aggregate=kind,
        treatment=treatment,
        control=control,
        gold=None if kind == "mean" else gold,
        item_ids=ids,
        group_ids=groups,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("per_group", [1, 2])
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("kind", METRICS)
def test_counts_give_what_repeated_items_give(kind: str, ties: bool, per_group: int):
    items = scored(kind, ties=ties, per_group=per_group)
    counts = drawn_counts(strata_of(items), items.group_index, 20, np.random.default_rng(0))
    found = deltas_of(items)(counts)
    for b in range(20):
        taken = np.repeat(np.arange(57), counts[:, b].astype(int))
        gold = None if items.gold is None else items.gold[taken]
        for seed in range(3):
            arms = [
                aggregate(items.aggregate, rows[seed][taken], gold) for rows in (items.treatment, items.control)
            ]
            assert found[seed, b] == pytest.approx(arms[0] - arms[1], abs=1e-12)


@pytest.mark.parametrize("kind", ["spearman", "auc"])
def test_ranks_stay_exact_for_many_items(kind: str):
    items = scored(kind, n=1, m=9_001)
    counts = drawn_counts(strata_of(items), items.group_index, 2, np.random.default_rng(0))
    taken = np.repeat(np.arange(9_001), counts[:, 1].astype(int))
    assert items.gold is not None
    expected = aggregate(items.aggregate, items.treatment[0][taken], items.gold[taken])
    expected -= aggregate(items.aggregate, items.control[0][taken], items.gold[taken])
    assert deltas_of(items)(counts)[0, 1] == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("ties", [False, True])
def test_an_auc_is_the_same_in_narrow_numbers_and_in_wide_ones(ties: bool, monkeypatch: pytest.MonkeyPatch):
    """Digit for digit, whatever the counts are: 16 bits hold some of these, and few of their products together."""
    items = scored("auc", m=321, ties=ties)
    counts = [
        drawn_counts(strata_of(items), items.group_index, 70, np.random.default_rng(0)) * k for k in (1, 30, 400)
    ]
    narrow = [deltas_of(items)(of) for of in counts]
    monkeypatch.setattr(counted_metrics, "SHORT", 0)
    assert all(np.array_equal(one, deltas_of(items)(of)) for one, of in zip(narrow, counts, strict=True))


@pytest.mark.parametrize("digits", [0, 1, 9])
def test_distinct_rows_are_those_of_numpy(digits: int):
    rows = np.random.default_rng(digits).normal(size=(9, 3)).round(digits)
    rows = rows[[*range(9), 3, 3, 0]] * np.array([1, -1, 1])
    rows[1] = -0.0
    rows[2] = 0.0
    found, place = distinct_rows(rows)
    expected, of = np.unique(rows, axis=0, return_inverse=True)
    assert np.array_equal(found, expected)
    assert np.array_equal(place, of.ravel())


def test_draws_are_groups_with_replacement_within_classes():
    items = scored("auc", per_group=1)
    assert items.gold is not None
    counts = drawn_counts(strata_of(items), items.group_index, 200, np.random.default_rng(0))
    assert (counts[items.gold == 1].sum(0) == (items.gold == 1).sum()).all()
    assert counts.mean() == pytest.approx(1)
    paired = scored("mean", m=60, per_group=2)
    counts = drawn_counts(strata_of(paired), paired.group_index, 200, np.random.default_rng(0))
    assert (counts[::2] == counts[1::2]).all()
    assert counts[::2].var() == pytest.approx(1 - 1 / 30, rel=0.1)


def test_groups_of_one_class_of_the_other_and_of_both_are_drawn_apart_where_each_are_enough():
    """Of few, one of both would be drawn in every resample, and so never vary; without such, classes keep their size."""
    ones, zeros, both = [1.0, 1.0], [0.0, 0.0], [1.0, 0.0]

    def strata(*groups: list[float]) -> list[list[int]]:
        items = replace(scored("auc", m=2 * len(groups), per_group=2), gold=np.concatenate(groups))
        return sorted(part.tolist() for part in strata_of(items))

    assert strata(*[ones, zeros, both] * 10) == [[*range(k, 30, 3)] for k in range(3)]
    assert strata(*[ones, zeros, both] * 9) == [[*range(27)]]
    assert strata(*[ones, zeros] * 9, both) == [[*range(19)]]
    assert strata(*[ones, zeros] * 2) == [[0, 2], [1, 3]]


@pytest.mark.parametrize("per_group", [1, 2])
def test_draws_are_the_same_however_many_are_made_at_a_time(per_group: int, monkeypatch: pytest.MonkeyPatch):
    items = scored("auc", m=57, per_group=per_group)

    def drawn() -> np.ndarray:
        return drawn_counts(strata_of(items), items.group_index, 100, np.random.Generator(np.random.Philox(key=5)))

    at_once = drawn()
    monkeypatch.setattr(item_bootstrap, "DRAWN", 130)
    assert np.array_equal(drawn(), at_once)


def test_the_generator_decides_not_the_threads_or_global_state():
    items = scored("spearman", m=300)
    draw = [resampled_deltas(items, np.random.default_rng(3), 3_000, workers) for workers in (1, 2, 3)]
    np.random.seed(0)  # noqa: NPY002
    again = resampled_deltas(items, np.random.default_rng(3), 3_000)
    for other in (*draw[1:], again):
        assert np.array_equal(draw[0], other)  # type: ignore[arg-type]


def test_no_resample_of_many_items_comes_twice():
    """Of so many items few resamples are drawn at a time, each time from a stream of its own."""
    drawn = resampled_deltas(scored("mean", n=1, m=9_001), np.random.default_rng(0), 2_000)
    assert drawn is not None
    assert len(np.unique(drawn)) == 2_000


@pytest.mark.parametrize("m", [57, 1_501])  # at once, and a part of the items at a time
def test_jackknife_of_a_mean_is_the_textbook_variance(m: int):
    items = scored("mean", m=m)
    over_seeds = (items.treatment - items.control).mean(0)
    assert jackknife_item_variance(items) == pytest.approx(over_seeds.var(ddof=1) / m, rel=1e-5)


@pytest.mark.parametrize("kind", METRICS)
def test_bootstrap_and_jackknife_agree(kind: str):
    items = scored(kind, m=400)
    deltas = resampled_deltas(items, np.random.default_rng(1), 2_000)
    assert deltas is not None
    assert deltas.mean(0).var(ddof=1) == pytest.approx(jackknife_item_variance(items), rel=0.15)


def test_undefined_resamples_are_redrawn_or_given_up():
    """One item in 8 differs from the rest: a third of the resamples is constant."""
    rare = np.array([[1.0, 0, 0, 0, 0, 0, 0, 0]])
    gold = np.arange(8.0)
    ids = tuple("abcdefgh")
    items = ItemScores(
        aggregate="spearman", treatment=rare, control=gold[None], gold=gold, item_ids=ids, group_ids=ids
    )
    assert resampled_deltas(items, np.random.default_rng(0), 500) is None
    with pytest.raises(Undefined, match=r"^spearman is undefined without one of the items"):
        jackknife_item_variance(items)
    mean = replace(items, aggregate="mean", gold=None)
    with pytest.raises(Undefined, match=r"^mean and spearman is undefined without"):
        jackknife_item_variance(ItemSum(((0.3, mean), (0.3, items), (0.3, items))))
    some = ItemScores(
        aggregate="spearman",
        treatment=np.array([[1.0, 1, 1, 0, 0, 0, 0, 0]]),
        control=gold[None],
        gold=gold,
        item_ids=ids,
        group_ids=ids,
    )
    deltas = resampled_deltas(some, np.random.default_rng(0), 500)
    assert deltas is not None
    assert deltas.shape == (1, 500)
    assert np.isfinite(deltas).all()
    three = np.array([[1.0, 1, 1, 0, 0, 0, 0, 0], [0, 0, 0, 1, 1, 1, 0, 0], [0, 0, 0, 0, 0, 1, 1, 1]])
    more = replace(some, treatment=three, control=np.tile(gold, (3, 1)))
    assert resampled_deltas(more, np.random.default_rng(0), 4_000) is None  # 7 % of them are undefined


def test_two_level_interval_covers_seeds_and_items():
    """Variance of the resampled means: item variance, plus s²(n-1)/n² of the seeds drawn with replacement."""
    rng = np.random.default_rng(2)
    n, m = 8, 500
    delta = 0.02 + rng.normal(0, 0.02, size=(n, 1)) + rng.normal(0, 0.3, size=m)
    ids = tuple(map(str, range(m)))
    items = ItemScores(aggregate="mean", treatment=delta, control=np.zeros((n, m)), item_ids=ids, group_ids=ids)
    draws = np.random.default_rng(0)
    deltas = resampled_deltas(items, draws, 4_000)
    assert deltas is not None
    means, (low, high) = two_level_means(deltas, draws, 1), two_level_of(deltas, draws)
    expected = delta.mean(0).var() / m + delta.mean(1).var() / n
    assert means.var() == pytest.approx(expected, rel=0.1)
    assert low < delta.mean() < high
    assert (high - low) / 2 == pytest.approx(stats.norm.ppf(0.975) * expected**0.5, rel=0.06)


def test_more_draws_of_seeds_per_draw_of_items():
    deltas = np.random.default_rng(0).normal(size=(5, 300))
    means = two_level_means(deltas, np.random.default_rng(1), 5)
    assert means.shape == (1_500,)
    drawn = two_level_of(deltas, np.random.default_rng(1), seed_draws=5)
    assert drawn == pytest.approx(tuple(np.quantile(means, [0.025, 0.975])))


def test_spearman_oracle_is_scipy():
    items = scored("spearman", n=1, ties=True)
    everything = np.ones((57, 1), np.float32)
    expected = (
        stats.spearmanr(items.treatment[0], items.gold).statistic
        - stats.spearmanr(items.control[0], items.gold).statistic
    )
    assert deltas_of(items)(everything)[0, 0] == pytest.approx(expected)
