"""Ranges as the definitions of the figures give them."""

import pytest

from evaluators.metrics.ranges import range_of, range_of_ours


@pytest.mark.parametrize(
    ("metric", "limits"),
    [
        ("t2d/recall@10", (0, 1)),
        ("stress/negate/auc", (0, 1)),
        ("sts/STS12/spearman", (-1, 1)),
        ("cosimlex/en/st1_pearson", (-1, 1)),
        ("spcd/dist_mean_dc_dl", (0, 2)),
        ("spcd/dist_spread", (-2, 2)),
        ("space/gap", (-2, 2)),
        ("spcd/acc_dc_sl", (0, 1)),
        ("d2w/top3", (0, 1)),
        ("space/wup_all", (-1, 1)),
        ("space/silhouette_concept", (-1, 1)),
        ("geometry/effective_rank", None),
    ],
)
def test_range_of_a_figure_of_ours(metric, limits):
    assert range_of_ours(metric) == limits


@pytest.mark.parametrize(
    ("metric", "limits"),
    [
        ("scores/accuracy", (0, 1)),
        ("dev/scores/balanced_accuracy", (0, 1)),
        ("scores/test_recall@10", (0, 1)),
        ("mrr_at_10", (0, 1)),
        ("macro_f1", (0, 1)),
        ("eval_accuracy", (0, 1)),
        ("scores/cosine_spearman", (-1, 1)),
        ("scores/edit_dist", None),
        ("scores/gain", None),
        ("scores/gap", None),
        ("lin", None),
        ("scores/accuracy_gap", None),
        ("scores/seconds_to_accuracy", None),
        ("scores/test", None),
    ],
)
def test_range_of_a_figure_of_somebodys_own(metric, limits):
    """What its name means to everybody; a word of one's own may mean anything."""
    assert range_of(metric) == limits
