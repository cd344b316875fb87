"""Losses against numbers worked out in float64 elsewhere (numpy; torch and scikit-learn agree), and what defines them."""

from __future__ import annotations

from math import log

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from trainers import losses
from trainers.concept.batches import keep_mask

Q = torch.tensor([[1, 0], [0, 1], [1, 1]], dtype=torch.float64)
C = torch.tensor([[1, 0.5], [0.2, 1], [1, 2]], dtype=torch.float64)
IDS = [["s1"], ["s2"], ["s1", "s3"]]
KEEP = torch.from_numpy(keep_mask(IDS))

vectors = arrays(np.float64, (5, 4), elements=st.floats(-2, 2, width=32)).filter(
    lambda rows: (np.linalg.norm(rows, axis=1) > 0.1).all()
)


def test_info_nce_in_both_directions():
    forward = losses.info_nce_directed(Q, C, temperature=0.5)
    backward = losses.info_nce_directed(C, Q, temperature=0.5)
    assert forward.item() == pytest.approx(0.771104345, abs=1e-6)
    assert backward.item() == pytest.approx(0.803742939, abs=1e-6)
    assert losses.info_nce(Q, C, temperature=0.5).item() == pytest.approx(0.787423642, abs=1e-6)


def test_rows_that_share_a_concept_are_no_negatives():
    assert KEEP.tolist() == [[True, True, False], [True, True, True], [False, True, True]]
    forward = losses.info_nce_directed(Q, C, temperature=0.5, keep=KEEP)
    backward = losses.info_nce_directed(C, Q, temperature=0.5, keep=KEEP.T)
    assert forward.item() == pytest.approx(0.528797442, abs=1e-6)
    assert backward.item() == pytest.approx(0.550536331, abs=1e-6)
    assert losses.info_nce(Q, C, temperature=0.5, keep=KEEP).item() == pytest.approx(0.539666887, abs=1e-6)


def test_hard_negative_bce_of_the_valid_scores():
    scores = torch.tensor([0.9, 0.2, -0.1, 0.6], dtype=torch.float64)  # the invalid fourth is never formed
    loss = losses.hard_negative_bce(scores, margin=0.2, temperature=0.05)
    assert loss.item() == pytest.approx(5.673989776, abs=1e-6)
    assert 0.5 * loss.item() == pytest.approx(2.836994888, abs=1e-6)


def test_no_negatives_is_a_zero_that_keeps_the_graph():
    weight = torch.ones(2, requires_grad=True)
    loss = losses.hard_negative_bce(weight[:0], margin=0.2, temperature=0.05)
    loss.backward()
    assert loss.item() == 0.0
    assert weight.grad is not None
    assert weight.grad.tolist() == [0.0, 0.0]


def test_unified_counts_negatives_in_their_own_row_only():
    negatives = torch.tensor([[1, 0.4], [1, 1], [0, 1]], dtype=torch.float64)
    forward = losses.unified_info_nce(Q, C, negatives, torch.tensor([0, 1, 1]), temperature=0.5, keep=KEEP)
    backward = losses.info_nce_directed(C, Q, temperature=0.5, keep=KEEP.T)
    assert forward.item() == pytest.approx(0.920020119, abs=1e-6)
    assert ((forward + backward) / 2).item() == pytest.approx(0.735278225, abs=1e-6)


def test_the_slope_at_the_margin_is_half_over_temperature():
    score = torch.tensor([0.2], dtype=torch.float64, requires_grad=True)
    loss = losses.hard_negative_bce(score, margin=0.2, temperature=0.05)
    loss.backward()
    assert loss.item() == pytest.approx(log(2), abs=1e-12)
    assert score.grad is not None
    assert score.grad.item() == pytest.approx(0.5 / 0.05, abs=1e-9)


def test_relative_and_positive_forms_by_hand():
    """softplus((0.5 - 0.7 + 0.2) / τ) = ln 2; softplus(-(0.7 - 0.2) / 0.5) = ln(1 + e⁻¹)."""
    s, p = torch.tensor([0.5], dtype=torch.float64), torch.tensor([0.7], dtype=torch.float64)
    assert losses.hard_negative_gap(s, p, margin=0.2, temperature=0.05).item() == pytest.approx(log(2), abs=1e-9)
    pulled = losses.positive_bce(p, margin=0.2, temperature=0.5).item()
    assert pulled == pytest.approx(np.log1p(np.exp(-1)), abs=1e-12)


def test_sum_is_the_mean_times_the_number():
    scores = torch.linspace(-1, 1, 7, dtype=torch.float64)
    mean = losses.hard_negative_bce(scores, margin=0.1, temperature=0.3)
    total = losses.hard_negative_bce(scores, margin=0.1, temperature=0.3, reduction="sum")
    assert total.item() == pytest.approx(7 * mean.item())


@given(vectors, vectors)
def test_a_mask_that_keeps_all_changes_nothing(left: np.ndarray, right: np.ndarray):
    q, c = torch.from_numpy(left), torch.from_numpy(right)
    plain = losses.info_nce(q, c, temperature=0.1)
    kept = losses.info_nce(q, c, temperature=0.1, keep=torch.ones(5, 5, dtype=torch.bool))
    assert torch.equal(plain, kept)


@given(vectors, vectors, st.permutations(range(5)))
def test_the_order_of_rows_does_not_matter(left: np.ndarray, right: np.ndarray, order: list[int]):
    q, c, keep = (
        torch.from_numpy(left),
        torch.from_numpy(right),
        torch.from_numpy(keep_mask([[0], [1], [0, 2], [3], [2]])),
    )
    once = losses.info_nce(q, c, temperature=0.1, keep=keep)
    again = losses.info_nce(q[order], c[order], temperature=0.1, keep=keep[order][:, order])
    assert again.item() == pytest.approx(once.item(), abs=1e-9)


@given(vectors, vectors)
def test_rows_split_among_workers_average_to_the_whole(left: np.ndarray, right: np.ndarray):
    q, c, keep = (
        torch.from_numpy(left),
        torch.from_numpy(right),
        torch.from_numpy(keep_mask([[0], [0], [1], [2], [1]])),
    )
    whole = losses.info_nce_directed(q, c, temperature=0.1, keep=keep)
    parts = [
        losses.info_nce_directed(q[[row]], c, temperature=0.1, keep=keep[[row]], own=torch.tensor([row]))
        for row in range(5)
    ]
    assert torch.stack(parts).mean().item() == pytest.approx(whole.item(), abs=1e-9)


@given(st.integers(2, 9))
def test_equal_rows_cannot_be_told_apart(n: int):
    rows = torch.ones(n, 3, dtype=torch.float64)
    assert losses.info_nce(rows, rows, temperature=0.05).item() == pytest.approx(log(n), abs=1e-9)


@given(st.lists(st.lists(st.integers(0, 6), max_size=4), min_size=1, max_size=8))
def test_keep_mask_against_its_definition(ids: list[list[int]]):
    expected = [[i == j or not set(a) & set(b) for j, b in enumerate(ids)] for i, a in enumerate(ids)]
    assert keep_mask(ids).tolist() == expected
    assert keep_mask([np.array(row, np.int32) for row in ids]).tolist() == expected


@given(vectors, vectors)
def test_on_a_card_rows_of_length_1_and_their_gradient_are_torchs_own(rows: np.ndarray, gradient: np.ndarray):
    found, expected = (torch.from_numpy(rows.copy()).requires_grad_() for _ in range(2))
    ours, torchs = losses._Unit.apply(found), torch.nn.functional.normalize(expected, dim=-1)
    assert torch.equal(ours, torchs)
    for units in (ours, torchs):
        units.backward(torch.from_numpy(gradient))
    torch.testing.assert_close(found.grad, expected.grad, rtol=1e-9, atol=1e-9)


def test_on_a_card_a_row_without_length_stays_one_and_has_a_gradient():
    rows = torch.zeros(1, 3, requires_grad=True)
    units = losses._Unit.apply(rows)
    units.backward(torch.tensor([[1.0, -2.0, 0.0]]))
    assert units.tolist() == [[0.0, 0.0, 0.0]]
    assert rows.grad is not None
    assert torch.equal(rows.grad, torch.tensor([[1.0, -2.0, 0.0]]) / losses.SHORTEST)


def test_half_precision_rows_are_scored_in_float32():
    rows = torch.randn(4, 8, generator=torch.Generator().manual_seed(0)).bfloat16()
    assert losses.info_nce(rows, rows, temperature=0.01).dtype == torch.float32
    assert losses.paired_cosines(rows, rows).dtype == torch.float32


COSINES = torch.tensor([0.9, 0.2, 0.5, 0.1], dtype=torch.float64)
SAME = torch.tensor([True, True, False, False])


def test_contrastive_by_hand():
    """Distances .1 and .8 of one concept, .5 (.2 inside the margin .7) and .9 of others: ½(.01 + .64 + .04) / 4.

    As printed the cosines stand in their place: ½(.81 + .04 + .04 + .36) / 4.
    """
    assert losses.contrastive_distance(COSINES, SAME, margin=0.7).item() == pytest.approx(0.08625, abs=1e-9)
    assert losses.contrastive_printed(COSINES, SAME, margin=0.7).item() == pytest.approx(0.15625, abs=1e-9)
    whole = losses.contrastive_distance(COSINES, SAME, margin=0.7, count=8).item()
    assert whole == pytest.approx(0.08625 / 2, abs=1e-9)


@pytest.mark.parametrize(("printed", "same_rises", "other_falls"), [(False, True, True), (True, False, False)])
def test_where_the_contrastive_losses_drive_pairs(printed: bool, same_rises: bool, other_falls: bool):
    """On distances pairs of one concept close up and near others part; the print does the opposite of both."""
    cosines = COSINES[[0, 2]].clone().requires_grad_()
    formula = losses.contrastive_printed if printed else losses.contrastive_distance
    formula(cosines, SAME[[0, 2]], margin=0.7).backward()
    assert cosines.grad is not None
    same, other = (-cosines.grad).tolist()  # where a step of descent moves each cosine
    assert (same > 0, other < 0) == (same_rises, other_falls)


def test_pairs_beyond_the_margin_cost_nothing():
    far = torch.tensor([0.3, -0.5], dtype=torch.float64, requires_grad=True)  # distances .7 and 1.5
    loss = losses.contrastive_distance(far, torch.tensor([False, False]), margin=0.7)
    loss.backward()
    assert loss.item() == pytest.approx(0, abs=1e-12)
    assert far.grad is not None
    assert far.grad.abs().max().item() == pytest.approx(0, abs=1e-12)
