"""Golden numbers of the adapters and their loss, worked out in plain numpy; here reached by the stacked code."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from trainers.difficulty.adapters import (
    CACHED_PAIRS,
    Mix,
    corrections,
    pair_heads,
    pair_layout,
    pair_scores,
    sentence_layout,
    sentence_vectors,
    working,
)
from trainers.difficulty.data import hard_ce
from trainers.difficulty.stack_arithmetic import (
    Layout,
    anchor_loss,
    batch_rows,
    clip_rows_,
    layer_norm,
    rank_loss,
    squared_error,
)
from trainers.engine.streams import torch_stream

D = torch.float64


def close(found: Tensor, expected: object) -> None:
    torch.testing.assert_close(found, torch.tensor(expected, dtype=D), atol=1e-6, rtol=0)


def filled(layout: Layout, values: dict[str, object]) -> dict[str, Tensor]:
    """A stack of one with these parameters; the rest zero."""
    views = layout.views(torch.zeros(1, layout.size, dtype=D))
    for name, value in values.items():
        views[name].copy_(torch.tensor(value, dtype=D))
    return views


W = [[1, 0.5, 0], [0, 1, -0.5], [0.3, 0, 1]]


def test_pair_scores_gated_and_ungated() -> None:
    residual = torch.tensor([[0.2, -0.3, 0.5, 0.1, 0.4, -0.2], [-0.5, 0.2, 0.1, 0.3, -0.1, 0.6]], dtype=D)
    hardness = torch.tensor([[0.1, 0.4, -0.2, 0.3, 0.2, 0.1], [0.6, -0.1, 0.3, -0.4, 0.2, 0.5]], dtype=D)
    p = filled(pair_layout(3, 3, 2), {
        "working.w": torch.tensor(W, dtype=D).T.tolist(), "working.b": [0.1, 0, -0.1],
        "norm.gain": [1, 1, 1], "heads.w1": torch.cat([residual, hardness]).T.tolist(),
        "heads.b1": [0.05, -0.1, 0, 0.2], "residual.w2": [0.7, -0.9], "residual.b2": [0.1],
        "hardness.w2": [-0.8, 1.1], "hardness.b2": [-0.3],
    })  # fmt: skip
    xa = torch.tensor([[[1, 0.2, -0.3], [0.1, 0.9, 0.4]]], dtype=D)
    xb = torch.tensor([[[0.8, -0.1, 0.5], [0.2, 1.0, 0.3]]], dtype=D)
    anchor = torch.cosine_similarity(xa, xb, dim=-1)
    delta, c = pair_heads(p, working(p, xa), working(p, xb))
    close(anchor[0], [0.6247123232, 0.9882824421])
    close(delta[0], [0.5468510999, -0.6464342041])
    close(c[0], [0.3697468989, 0.6567084796])
    gamma = torch.tensor([[0.25]], dtype=D)
    close(pair_scores(anchor, delta, c, gamma, torch.zeros(1, 1))[0], [0.7614250981, 0.8266738911])
    close(pair_scores(anchor, delta, c, gamma, torch.ones(1, 1))[0], [0.6752614478, 0.8821527362])


@pytest.mark.parametrize("gated", [True, False])
def test_corrections_of_many_pairs_are_those_of_the_heads(gated: bool) -> None:
    layout, draw = pair_layout(12, 8, 4), torch.Generator().manual_seed(0)
    p = layout.views(torch.randn(1, layout.size, generator=draw))
    h = working(p, torch.randn(1, 50, 12, generator=draw))[0]
    a, b = (torch.randint(50, (CACHED_PAIRS + 77,), generator=draw) for _ in range(2))
    delta, c = pair_heads(p, h[a][None], h[b][None])
    torch.testing.assert_close(corrections(p, h, a, b, gated=gated), (c * delta if gated else delta)[0])
    assert not len(corrections(p, h, a[:0], b[:0], gated=gated))


def test_sentence_scale_and_interpolation() -> None:
    scale = torch.tensor([[0.3, 0.1, -0.4, 0.8], [-0.2, 0.5, 0.2, -0.6]], dtype=D)
    complexity = torch.tensor([[0.5, -0.2, 0.3], [0.1, 0.4, -0.6]], dtype=D)
    p = filled(sentence_layout(3, 3, 2), {
        "working.w": torch.eye(3).tolist(), "norm.gain": [1, 1, 1],
        "heads.w1": torch.cat([scale[:, :3], complexity]).T.tolist(), "heads.b1": [0.1, 0, 0, 0.1],
        "scale.c": scale[:, 3].tolist(),
        "scale.w2": torch.tensor([[0.5, -0.3], [0.2, 0.7], [-0.6, 0.4]]).T.tolist(), "scale.b2": [0, 0.1, -0.1],
        "complexity.w2": [0.9, -0.7], "complexity.b2": [0.2],
    })  # fmt: skip
    x = torch.tensor([[[0.6, -0.8, 0.1], [0.2, 0.3, 0.9]]], dtype=D)
    zero, one = torch.zeros(1, 1, dtype=D), torch.ones(1, 1, dtype=D)
    order = torch.tensor([[0, 1]])

    def adapted(keep: Tensor, add: Tensor) -> tuple[Tensor, Tensor]:
        mix = Mix(own=one, shuffled=zero, learned=zero, constant=zero, alpha0=0.2 * one, keep=keep, add=add)
        return sentence_vectors(p, x, torch.nn.functional.normalize(x, dim=-1), order, mix)

    u, c = adapted(zero, one)
    close(c[0], [0.7203255168, 0.5879383572])
    close(u[0], [[0.6469856037, -0.7536910971, 0.115582692], [-0.4990540865, -0.3157592979, 0.8069950957]])
    h = layer_norm(x, torch.ones(1, 3, dtype=D), torch.zeros(1, 3, dtype=D))
    expected = torch.tensor([[1.066212737, 1.026049703, 0.9047647333], [0.9928587323, 1.005115509, 0.9880009763]])
    ratio = (u / h)[0] / expected  # u has the direction of alpha h, and unit length
    torch.testing.assert_close(ratio, ratio[:, :1].expand(-1, 3), atol=1e-6, rtol=0)
    blended, _ = adapted(0.75 * one, 0.25 * one)
    close(blended[0], [[0.6097731511, -0.7857801545, 0.1035676248], [0.03286067824, 0.1680137043, 0.9852368096]])


def test_loss_terms() -> None:
    s, y = torch.tensor([[0.9, 0.2, 0.55, 0.4]], dtype=D), torch.tensor([[1, 0, 0.5, 0.5]], dtype=D)
    c, c_bar = torch.tensor([[0.2, 0.7, 0.5, 0.4]], dtype=D), torch.tensor([[0.1, 0.9, 0.5, 0]], dtype=D)
    u = torch.tensor([[[1, 0], [0.6, 0.8], [0, 1], [1, 1]]], dtype=D)
    x_hat = torch.tensor([[[1, 0], [1, 0], [0, 2], [1, 0]]], dtype=D)
    mse, rank = squared_error(s, y), rank_loss(s, y, 0.05)
    anchor, hard = anchor_loss(u, x_hat), squared_error(c, c_bar)
    for found, expected in ((mse, 0.015625), (rank, 0.004003818251), (anchor, 0.1732233047), (hard, 0.0525)):
        close(found, [expected])
    pair = mse + 0.1 * rank + 0.5 * hard
    close(pair, [0.04227538183])
    close(pair + 0.05 * anchor, [0.05093654706])


def test_rank_loss_counts_strict_orders_alone() -> None:
    """Equal gold makes no pair: one order of two rows has softplus(0) = log 2 when scores tie, ties have 0."""
    scores = torch.zeros(2, 2)
    found = rank_loss(scores, torch.tensor([[1.0, 0.0], [1.0, 1.0]]), 0.05)
    torch.testing.assert_close(found, torch.tensor([math.log(2), 0.0]))


def test_each_model_is_clipped_by_its_own_norm() -> None:
    gradients = torch.tensor([[3, 0, 0, 4, 0], [0.1, 0.2, 0.2, 0, 0.4]], dtype=D)
    before = gradients.clone()
    norms = clip_rows_(gradients)
    close(norms, [5.0, 0.5])
    close(gradients[0] / 5, (before[0] / 5 * 0.19999996).tolist())
    torch.testing.assert_close(gradients[1], before[1])


def test_hard_ce_maps() -> None:
    ce, cos = np.array([0.9, 0.1, 0.55]), np.array([0.6, 0.4, -0.2])
    np.testing.assert_allclose(hard_ce(ce, cos, "half"), [0.1, 0.6, 0.15], atol=1e-9)
    np.testing.assert_allclose(hard_ce(ce, cos, "identity"), [0.3, 0.3, 0.75], atol=1e-9)


def test_batches_pass_over_every_row_before_any_returns() -> None:
    rows = batch_rows(10, steps=7, batch_size=4, generator=torch_stream(3, "data"))
    flat = rows.flatten().tolist()
    assert rows.shape == (7, 4)
    for start in range(0, 20, 10):
        assert sorted(flat[start : start + 10]) == list(range(10))


def test_rows_are_padded_to_whole_vectors() -> None:
    layout = pair_layout(5, 3, 2)
    assert layout.size % 16 == 0
    views = layout.views(torch.arange(2.0 * layout.size).view(2, -1))
    assert sum(view[0].numel() for view in views.values()) <= layout.size
    assert torch.equal(views["working.w"][1].flatten(), torch.arange(15.0) + layout.size)
