"""Golden numbers: an independent numpy script, and CALE's tables 1, 7 and 8. The threshold against brute force."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import balanced_accuracy_score, f1_score, recall_score

from evaluators.metrics.concept_differentiation import (
    BASELINE_METRICS,
    DISTANCE_METRICS,
    PairItems,
    baseline_scores,
    best_threshold,
    distance_scores,
    metric_names,
    one_lemma_one_concept,
    pair_scores,
    ranking_names,
    ranking_scores,
)
from evaluators.metrics.item_metrics import aggregate

TABLE_8 = {"sc_sl": 14018, "sc_dl": 4299, "dc_sl": 12300, "dc_dl": 14274}  # the paper's test split
DISTANCES = np.array([0.1, 0.5, 0.3, 0.2, 0.6, 0.7, 0.9, 0.35, 0.15, 0.8], np.float32)
CATEGORY = np.array([0, 0, 0, 1, 1, 2, 2, 2, 3, 3], np.uint8)


def named(count):
    rows = range(count)
    return PairItems(
        [f"pair {n}" for n in rows], [f"concept {n // 2}" for n in rows], [f"lemma {n // 4}" for n in rows]
    )


def figures(distances, category, threshold):
    scores = pair_scores("spcd/test", named(len(distances)), distances, category, threshold)
    return {score.metric.removeprefix("spcd/test/"): score for score in scores}


def test_threshold_golden():
    distances = np.array([0.1, 0.2, 0.25, 0.4, 0.5, 0.55, 0.7, 0.9])
    labels = np.array([1, 1, 0, 1, 0, 1, 0, 0])
    threshold = best_threshold(distances, labels)
    assert threshold == pytest.approx(0.225)
    assert np.mean((distances < threshold) == labels) == 0.75


@given(st.lists(st.tuples(st.integers(0, 8), st.booleans()), min_size=1, max_size=30))
def test_threshold_by_trying_every_candidate(pairs):
    """Eighths are exact, so equally good candidates are exact equals."""
    values = sorted({d / 8 for d, _ in pairs})
    candidates = [values[0] - 1, *((a + b) / 2 for a, b in pairwise(values)), values[-1] + 1]
    right = [sum((d / 8 < candidate) == label for d, label in pairs) for candidate in candidates]
    found = best_threshold(np.array([d for d, _ in pairs]) / 8, np.array([label for _, label in pairs]))
    assert found == candidates[right.index(max(right))]


def test_threshold_says_one_thing_where_nothing_else_is_right():
    near = np.array([0.2, 0.4])
    assert best_threshold(near, np.array([0, 0])) < 0.2
    assert best_threshold(near, np.array([1, 1])) > 0.4
    assert best_threshold(near, np.array([0, 1])) < 0.2  # never, or for one of two: equals, so the smallest
    with pytest.raises(ValueError, match="no pairs"):
        best_threshold(np.zeros(0), np.zeros(0))


def test_sixty_thousand_distances_are_quick():
    """One sort: trying every candidate on every pair would be 3.6 billion decisions."""
    rng = np.random.default_rng(0)
    distances, labels = rng.random(60_000, np.float32), rng.random(60_000) < 0.4
    labels |= distances < 0.3
    assert best_threshold(distances, labels) == pytest.approx(0.3, abs=0.02)


def test_pair_metrics_golden():
    found = {name: score.value for name, score in figures(DISTANCES, CATEGORY, 0.45).items()}
    assert found == pytest.approx(
        {
            "ba_all": 0.6,
            "f1_all": 0.6,
            "ba_sl": 2 / 3,
            "f1_sl": 2 / 3,
            "ba_dl": 0.5,
            "f1_dl": 0.5,
            "acc_sc_sl": 2 / 3,
            "acc_sc_dl": 0.5,
            "acc_dc_sl": 2 / 3,
            "acc_dc_dl": 0.5,
            "recall_pos": 3 / 5,
            "recall_neg": 3 / 5,
        }
    )


def test_against_scikit_learn():
    rng = np.random.default_rng(1)
    distances, category = rng.random(400, np.float32), rng.integers(0, 4, 400).astype(np.uint8)
    said, label = distances < 0.4, category < 2
    found = figures(distances, category, 0.4)
    for column, rows in {"all": category < 4, "sl": category % 2 == 0, "dl": category % 2 == 1}.items():
        assert found[f"ba_{column}"].value == pytest.approx(balanced_accuracy_score(label[rows], said[rows]))
        assert found[f"f1_{column}"].value == pytest.approx(f1_score(label[rows], said[rows]))
    assert found["recall_neg"].value == pytest.approx(recall_score(label, said, pos_label=False))


def test_figures_are_declared_and_made_of_their_items():
    scores = [
        *pair_scores("spcd/test", named(10), DISTANCES, CATEGORY, 0.45),
        *distance_scores(named(10), DISTANCES, CATEGORY),
        *baseline_scores(CATEGORY),
        *ranking_scores("spcd/ranking", named(10), DISTANCES, CATEGORY),
    ]
    declared = metric_names("spcd/test") | DISTANCE_METRICS | BASELINE_METRICS | ranking_names("spcd/ranking")
    assert {score.metric: score.larger_is_better for score in scores} == declared
    for score in scores:
        if score.aggregate is not None:
            assert score.value == aggregate(score.aggregate, score.values, score.gold)
            assert len(set(score.item_ids)) == len(score.item_ids) == len(score.group_ids) == len(score.values)


def test_a_distance_on_the_threshold_is_another_concept():
    """The items hold decisions, so no rounding can turn one."""
    on_it = np.float32(0.1)
    found = figures(np.array([on_it, 0.0], np.float32), np.array([2, 0]), float(on_it))["ba_all"]
    assert (found.values.tolist(), found.gold.tolist(), found.value) == ([0.0, 1.0], [0.0, 1.0], 1.0)


@pytest.mark.parametrize("start", [0.3, np.nextafter(np.float32(0.3), np.float32(1))])
def test_a_threshold_between_neighbours_parts_them(start):
    """Rounded to float32 it would be one of the two: of both starts, one rounds up and one down."""
    near = np.float32(start)
    distances, category = np.array([near, np.nextafter(near, np.float32(1))]), np.array([0, 2])
    threshold = best_threshold(distances, category < 2)
    assert figures(distances, category, threshold)["ba_all"].value == 1


def test_figures_without_pairs_are_left_out():
    """Same-lemma pairs alone: what the `sl` columns and two of the categories ask for."""
    found = figures(DISTANCES[:7], np.array([0, 0, 0, 0, 2, 2, 2]), 0.45)
    assert found.keys() == {
        *("ba_all", "f1_all", "ba_sl", "f1_sl", "acc_sc_sl", "acc_dc_sl", "recall_pos", "recall_neg")
    }
    for missing in range(4):
        assert baseline_scores(np.delete(np.arange(4), missing)) == []
    assert len(baseline_scores(np.arange(4))) == 4


def test_distances_by_category():
    """Figure 1 can be drawn from the ledger: each category's distances are the items of its mean."""
    found = {score.metric: score for score in distance_scores(named(10), DISTANCES, CATEGORY)}
    assert found["spcd/dist_mean_sc_sl"].values == pytest.approx([0.1, 0.5, 0.3])
    assert found["spcd/dist_mean_sc_sl"].value == pytest.approx(0.3)
    assert found["spcd/dist_q50_dc_sl"].value == pytest.approx(0.7)
    assert found["spcd/dist_q25_dc_dl"].value == pytest.approx(0.15 + 0.65 / 4)  # of .15 and .8
    for number, short in enumerate(("sc_sl", "sc_dl", "dc_sl", "dc_dl")):
        values = DISTANCES[number == CATEGORY]
        for percent in (5, 25, 50, 75, 95):
            expected = np.quantile(values, percent / 100)
            assert found[f"spcd/dist_q{percent:02d}_{short}"].value == pytest.approx(expected)
    assert found["spcd/dist_spread"].value == pytest.approx((0.15 + 0.8) / 2 - 0.3)  # DC/DL less SC/SL
    assert not found["spcd/dist_mean_sc_dl"].larger_is_better
    assert found["spcd/dist_mean_dc_sl"].larger_is_better


@pytest.mark.parametrize("missing", range(4))
def test_a_category_without_pairs_has_no_distances(missing):
    """And without SC/SL or DC/DL there is no spread."""
    held = missing != CATEGORY
    found = {score.metric for score in distance_scores(named(held.sum()), DISTANCES[held], CATEGORY[held])}
    lost = ("sc_sl", "sc_dl", "dc_sl", "dc_dl")[missing]
    left = {name for name in DISTANCE_METRICS if not name.endswith(lost)}
    assert found == left - ({"spcd/dist_spread"} if missing in (0, 3) else set())


def test_one_lemma_one_concept_on_table_8():
    """Exactly what table 1 and the F1 scores of appendix C print: 65.1 and 62.8."""
    assert one_lemma_one_concept(**TABLE_8) == pytest.approx(
        {"ba_all": 0.651220781, "f1_all": 0.628116949, "ba_sl": 0.5, "f1_sl": 0.695061484}
    )


def test_one_lemma_one_concept_is_a_rule_on_lemmas():
    """The same as deciding pairs by a distance that only knows lemmas."""
    category = np.repeat(np.arange(4, dtype=np.uint8), [30, 8, 25, 31])
    by_lemma = figures((category % 2).astype(np.float32), category, 0.5)
    for score in baseline_scores(category):
        assert score.value == pytest.approx(by_lemma[score.metric.removeprefix("spcd/1l1c/")].value)
