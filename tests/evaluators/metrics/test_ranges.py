"""Ranges as the definitions of the figures give them."""

import pytest

from evaluators.metrics.ranges import range_of


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
def test_range(metric, limits):
    assert range_of(metric) == limits
