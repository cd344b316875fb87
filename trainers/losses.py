"""Losses as pure functions: tensors in, a scalar out; in float32 at least, whatever the encoder ran in."""

from __future__ import annotations

from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

Reduction = Literal["mean", "sum"]
SHORTEST = 1e-12  # of a row that can be made as long as 1


def cosines(a: Tensor, b: Tensor) -> Tensor:
    """Cosine of every row of a with every row of b, in float32 or wider. (B, D), (C, D) -> (B, C)."""
    return unit(a) @ unit(b).T


def paired_cosines(a: Tensor, b: Tensor) -> Tensor:
    """Cosine of each row of a with the same row of b, in float32 or wider. (B, D), (B, D) -> (B,)."""
    return (unit(a) * unit(b)).sum(dim=-1)


def unit(rows: Tensor) -> Tensor:
    """Rows of length 1, in float32 or wider: at τ = 0.01 logits reach ±100, too coarse for half precision."""
    wide = rows.double() if rows.dtype == torch.float64 else rows.float()
    if rows.device.type == "cpu":
        return F.normalize(wide, dim=-1, eps=SHORTEST)
    units: Tensor = _Unit.apply(wide)
    return units


class _Unit(torch.autograd.Function):
    """The rows that `F.normalize` gives. Its gradient asks a card for thirteen kernels, and this one for four.

    u = x / ‖x‖,    ∂x = (∂u - u · ⟨∂u, u⟩) / ‖x‖

    Of a row of a length between 0 and SHORTEST the gradient is another than torch's, and as large.
    """

    @staticmethod
    def forward(ctx: Any, rows: Tensor) -> Tensor:
        lengths = torch.linalg.vector_norm(rows, dim=-1, keepdim=True).clamp_min(SHORTEST)
        units = rows / lengths
        ctx.save_for_backward(units, lengths)
        return units

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        units, lengths = ctx.saved_tensors
        along = (gradient * units).sum(-1, keepdim=True)
        return torch.addcmul(gradient, units, along, value=-1) / lengths


def info_nce_directed(
    queries: Tensor,
    candidates: Tensor,
    *,
    temperature: float,
    keep: Tensor | None = None,
    own: Tensor | None = None,
) -> Tensor:
    """Tell each query's own candidate from all others.

        S_ij = cos(q_i, c_j) / τ
        loss = mean over i of  logsumexp_{j: keep_ij} S_ij - S_i,own(i)

    queries (b, D), candidates (B, D), keep (b, B) bool, own (b,) column of each query's candidate (default: its
    row). With b < B a worker scores its rows against the candidates of all. Returns a scalar.
    """
    scores = cosines(queries, candidates) / temperature  # (b, B)
    if keep is not None:
        scores = scores.masked_fill(~keep, -torch.inf)
    own = torch.arange(len(queries), device=scores.device) if own is None else own
    return F.cross_entropy(scores, own)


def info_nce(left: Tensor, right: Tensor, *, temperature: float, keep: Tensor | None = None) -> Tensor:
    """Mean of both directions of `info_nce_directed`. (B, D), (B, D), keep (B, B) -> scalar."""
    forward = info_nce_directed(left, right, temperature=temperature, keep=keep)
    backward = info_nce_directed(right, left, temperature=temperature, keep=None if keep is None else keep.T)
    return (forward + backward) / 2


def unified_info_nce(
    queries: Tensor,
    candidates: Tensor,
    negatives: Tensor,
    owner: Tensor,
    *,
    temperature: float,
    keep: Tensor | None = None,
    own: Tensor | None = None,
) -> Tensor:
    """`info_nce_directed` with hard negatives in the denominator of the query they were made for, and no other.

    queries (b, D), candidates (B, D), negatives (N, D), owner (N,) the query of each negative, keep (b, B).
    """
    mine = owner[None, :] == torch.arange(len(queries), device=queries.device)[:, None]  # (b, N)
    return info_nce_against(queries, candidates, negatives, mine, temperature=temperature, keep=keep, own=own)


def info_nce_against(
    queries: Tensor,
    candidates: Tensor,
    negatives: Tensor,
    keep_negatives: Tensor,
    *,
    temperature: float,
    keep: Tensor | None = None,
    own: Tensor | None = None,
) -> Tensor:
    """`info_nce_directed` with more negatives in the denominator: for each query those that its row keeps.

    queries (b, D), candidates (B, D), negatives (N, D), keep_negatives (b, N) bool, keep (b, B).
    """
    scores = cosines(queries, candidates) / temperature  # (b, B)
    if keep is not None:
        scores = scores.masked_fill(~keep, -torch.inf)
    hard = cosines(queries, negatives) / temperature  # (b, N)
    hard = hard.masked_fill(~keep_negatives, -torch.inf)
    rows = torch.arange(len(queries), device=scores.device)
    return F.cross_entropy(torch.cat([scores, hard], dim=1), rows if own is None else own)


def hard_negative_bce(
    scores: Tensor,
    *,
    margin: float,
    temperature: float,
    reduction: Reduction = "mean",
    count: int | None = None,
) -> Tensor:
    """Push hard negatives below an absolute cosine: softplus((s - m) / τ), i.e. BCE with target 0.

    scores (N,) are cosines of a term with what does not define it. The slope per negative is at most 1/τ and
    is 0.5/τ at s = m. An absolute threshold, not a gap to the positive: it is this form that spreads the space
    out. count replaces N in the mean (the number over all workers). No negatives: a zero that keeps the graph.
    """
    return _reduced(F.softplus((scores - margin) / temperature), reduction, count)


def hard_negative_gap(
    scores: Tensor,
    positives: Tensor,
    *,
    margin: float,
    temperature: float,
    reduction: Reduction = "mean",
    count: int | None = None,
) -> Tensor:
    """Push hard negatives a margin below their own positive: softplus((s⁻ - s⁺ + m) / τ).

    scores, positives (N,): the cosine of each negative and that of the positive pair it was made from.
    """
    return _reduced(F.softplus((scores - positives + margin) / temperature), reduction, count)


def positive_bce(
    positives: Tensor,
    *,
    margin: float,
    temperature: float,
    reduction: Reduction = "mean",
    count: int | None = None,
) -> Tensor:
    """Pull positives above the cosine that negatives are pushed below: softplus(-(s⁺ - m) / τ). (N,) -> scalar."""
    return _reduced(F.softplus(-(positives - margin) / temperature), reduction, count)


def contrastive_distance(cosines: Tensor, same: Tensor, *, margin: float, count: int | None = None) -> Tensor:
    """Draw pairs of one concept together, and others apart until their distance is the margin.

        d = 1 - cos
        loss = mean of  ½ d²                    where the pair is the same
                        ½ max(0, margin - d)²   where it is not

    cosines, same (N,). count replaces N in the mean (the number over all workers). Returns a scalar.
    Source: CALE, section 4; Hadsell et al. 2006.
    Departure: the paper prints cos where this has d (`contrastive_printed`). As printed, pairs of one concept are
    driven to cos = 0 and others up to cos = margin, against its own words ("minimum distance", "maximise
    similarity"), against Hadsell's loss and against that of sentence-transformers, which are on distances.
    """
    distances = 1 - cosines
    return _reduced(_contrastive(distances, same, margin), "mean", count)


def contrastive_printed(cosines: Tensor, same: Tensor, *, margin: float, count: int | None = None) -> Tensor:
    """`contrastive_distance` as CALE prints it, with cos in the place of the distance: to show what that does."""
    return _reduced(_contrastive(cosines, same, margin), "mean", count)


def _contrastive(values: Tensor, same: Tensor, margin: float) -> Tensor:
    return torch.where(same, values, F.relu(margin - values)).square() / 2


def _reduced(losses: Tensor, reduction: Reduction, count: int | None) -> Tensor:
    if reduction == "sum":
        return losses.sum()
    return losses.sum() / max(1, len(losses) if count is None else count)
