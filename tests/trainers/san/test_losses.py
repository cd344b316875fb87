"""HiNCE, BML and the losses on lists against numbers of an independent numpy script in float64, and what defines them."""

from __future__ import annotations

from math import log

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from trainers.losses import cosines, info_nce_directed, paired_cosines
from trainers.san.losses import bidirectional_margin, hince
from trainers.san.ranking import CODE_EPS, jensen_shannon, list_mle, list_net, negative_entropy


def rows(*values: list[float]) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


A = rows([1, 0, 0], [0, 1, 0], [0, 0, 1])
B = rows([0.9, 0.1, 0], [0.2, 0.8, 0.1], [0, 0.3, 0.7])
C = rows([0.8, 0.5, 0.1], [0.4, 0.6, 0.5], [0.3, 0.2, 0.5])
D = rows([0.5, 0.5, 0], [0, 0.5, 0.5], [0.5, 0, 0.5])
E = rows([0.95, 0.05, 0.02], [0.6, 0.5, 0.6], [0.1, 0.25, 0.8])
T = rows([1, 0.3, 0.6], [0.2, 0.9, 0.5], [0.4, 0.1, 0.8])
S = rows([0.9, 0.5, 0.2], [0.3, 1, 0.6], [0.7, 0.2, 0.4])
S2 = rows([1, 0, -0.5], [0.3, 1, 0.6], [0.7, 0.2, 0.4])
OFF_DIAGONAL = ~torch.eye(3, dtype=torch.bool)

vectors = arrays(np.float64, (5, 4), elements=st.floats(-2, 2, width=32)).filter(
    lambda values: (np.linalg.norm(values, axis=1) > 0.1).all()
)
lists = arrays(np.float64, (4, 6), elements=st.floats(-5, 5, width=32))


def close(value: float) -> object:
    return pytest.approx(value, abs=1e-6)


def test_info_nce():
    assert info_nce_directed(A, B, temperature=0.5).item() == close(0.340661072)
    assert info_nce_directed(A, B, temperature=0.1).item() == close(0.001530466)


@pytest.mark.parametrize(
    ("tau", "tau_negative", "expected"),
    [(0.5, 0.8, 0.832214775), (0.05, 0.08, 0.000134320), (0.05, 0.05, 0.0539614)],
)
def test_hince(tau: float, tau_negative: float, expected: float):
    assert hince(A, B, C, tau=tau, tau_negative=tau_negative).item() == close(expected)


def test_hince_with_its_own_negative_weighted_and_beside_hard_negatives():
    assert hince(A, B, C, tau=0.5, tau_negative=0.8, own_weight=log(2)).item() == close(0.989462829)
    assert hince(A, B, C, tau=0.5, tau_negative=0.8, hard=D).item() == close(1.296325067)


def test_margin_in_both_directions():
    gaps = paired_cosines(A, E) - paired_cosines(A, B)
    assert gaps.tolist() == [close(0.004513479), close(-0.455413742), close(0.028613174)]
    assert bidirectional_margin(A, B, E, alpha=0.1, beta=0.3).item() == close(0.129513465)


def test_no_margin_loss_between_alpha_and_beta():
    """Δ = cos 60° - cos 45° = -0.2071, which lies in [-0.3, -0.1]."""
    anchor, near, soft = rows([1, 0]), rows([1, 1]), rows([1, 3**0.5])
    assert bidirectional_margin(anchor, near, soft, alpha=0.1, beta=0.3).item() == 0


def test_list_mle():
    assert list_mle(T, S).item() == close(1.527558039)
    assert list_mle(T / 0.05, S / 0.05).item() == close(4.002730072)
    assert list_mle(T / 0.05, S2 / 0.05).item() == close(5.335141231)
    assert list_mle(T / 0.05, S2 / 0.05, eps=CODE_EPS).item() == close(7.975350340)


def test_list_net():
    assert list_net(T, S, keep=OFF_DIAGONAL).item() == close(0.698522072)
    assert list_net(T / 0.025, S / 0.05, keep=OFF_DIAGONAL).item() == close(2.001686070)


def test_consistency_and_what_the_code_has_instead():
    forward, backward = cosines(A, B) / 0.5, cosines(B, A) / 0.5
    assert jensen_shannon(forward, backward).item() == close(0.004593158)
    assert negative_entropy(forward, backward).item() == close(-0.789464679)
    assert jensen_shannon(forward, forward).item() == close(0)


@given(vectors, vectors, vectors)
def test_without_a_negative_that_counts_it_is_info_nce(a: np.ndarray, b: np.ndarray, c: np.ndarray):
    x, y, n = map(torch.from_numpy, (a, b, c))
    plain = info_nce_directed(x, y, temperature=0.1).item()
    none = hince(x, y, n, tau=0.1, tau_negative=0.2, keep_negatives=torch.zeros(5, 5, dtype=torch.bool))
    assert none.item() == pytest.approx(plain, abs=1e-9)
    assert hince(x, y, n, tau=0.1, tau_negative=0.2).item() >= plain - 1e-9


def test_hince_counts_what_is_kept_alone():
    """In plain numpy: all three blocks of logits, each mask over its own."""
    drawn = np.random.default_rng(4)
    x, y, n, c = drawn.normal(size=(4, 6, 5))
    keep, keep_negatives = drawn.random((2, 6, 6)) < 0.6
    np.fill_diagonal(keep, True)
    x, y, n, c = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (x, y, n, c))
    near, far, push = x @ y.T / 0.3, x @ n.T / 0.5 + 0.7 * np.eye(6), x @ c.T / 0.3
    kept = np.where(keep, np.exp(near), 0) + np.where(keep_negatives, np.exp(far), 0) + np.exp(push)
    expected = (np.log(kept.sum(1)) - near.diagonal()).mean()
    masks = {"keep": torch.from_numpy(keep), "keep_negatives": torch.from_numpy(keep_negatives)}
    x, y, n, c = map(torch.from_numpy, (x, y, n, c))
    loss = hince(x, y, n, tau=0.3, tau_negative=0.5, own_weight=0.7, hard=c, **masks)
    assert loss.item() == pytest.approx(expected, abs=1e-9)


@given(vectors, vectors, vectors, st.permutations(range(5)), st.floats(0.1, 9))
def test_hince_knows_neither_lengths_nor_order(a: np.ndarray, b: np.ndarray, c: np.ndarray, order, factor):
    x, y, n = map(torch.from_numpy, (a, b, c))
    loss = hince(x, y, n, tau=0.3, tau_negative=0.5, own_weight=0.7).item()
    moved = hince(factor * x[order], y[order], n[order] / factor, tau=0.3, tau_negative=0.5, own_weight=0.7)
    assert moved.item() == pytest.approx(loss, abs=1e-9)


@given(vectors, vectors, vectors)
def test_at_one_temperature_an_aligned_negative_is_a_hard_one(a: np.ndarray, b: np.ndarray, c: np.ndarray):
    """Supervised SimCSE's logits, [cos(Z, Z') | cos(Z, C)] / τ, with label i."""
    x, y, n = map(torch.from_numpy, (a, b, c))
    logits = torch.cat([cosines(x, y), cosines(x, n)], dim=1) / 0.05
    expected = torch.nn.functional.cross_entropy(logits, torch.arange(5)).item()
    assert hince(x, y, n, tau=0.05, tau_negative=0.05).item() == pytest.approx(expected, abs=1e-9)


def test_shares_of_a_batch_have_the_mean_loss_of_the_whole():
    generator = torch.Generator().manual_seed(3)
    x, y, n = (torch.randn(8, 5, generator=generator, dtype=torch.float64) for _ in range(3))
    keep = torch.rand(8, 8, generator=generator) < 0.8
    keep.fill_diagonal_(True)
    scale = {"tau": 0.05, "tau_negative": 0.08, "own_weight": 0.3}
    whole = hince(x, y, n, keep=keep, keep_negatives=keep.T, **scale)
    halves = [
        hince(x[part], y, n, keep=keep[part], keep_negatives=keep.T[part], own=torch.arange(8)[part], **scale)
        for part in (slice(0, 4), slice(4, 8))
    ]
    assert (sum(halves) / 2).item() == pytest.approx(whole.item(), abs=1e-12)


@given(lists, lists)
def test_a_left_out_candidate_is_as_if_it_had_never_been(teacher: np.ndarray, student: np.ndarray):
    t, s = torch.from_numpy(teacher), torch.from_numpy(student).requires_grad_()
    keep = torch.ones(4, 6, dtype=torch.bool)
    keep[:, [1, 4]] = False
    for loss in (list_mle, list_net):
        left = loss(t, s, keep=keep)
        assert left.item() == pytest.approx(loss(t[:, [0, 2, 3, 5]], s[:, [0, 2, 3, 5]]).item(), abs=1e-9)
        (gradient,) = torch.autograd.grad(left, s)
        assert torch.isfinite(gradient).all()
        assert gradient[:, [1, 4]].abs().max() == 0


@given(lists)
def test_the_best_order_is_the_teachers(values: np.ndarray):
    """A student that ranks as the teacher does, with growing certainty, is never surprised."""
    ranks = torch.from_numpy(values).argsort(dim=1).argsort(dim=1).double()
    assert list_mle(ranks, 50 * ranks).item() == pytest.approx(0, abs=1e-9)
    assert list_mle(ranks, -ranks).item() > list_mle(ranks, ranks).item()
