"""HiNCE and the bidirectional margin loss as pure functions; ranking against teachers: trainers.san.ranking."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from trainers.losses import cosines, paired_cosines


def hince(
    anchors: Tensor,
    positives: Tensor,
    negatives: Tensor,
    *,
    tau: float,
    tau_negative: float,
    own_weight: float = 0.0,
    hard: Tensor | None = None,
    keep: Tensor | None = None,
    keep_negatives: Tensor | None = None,
    own: Tensor | None = None,
) -> Tensor:
    """Tell each anchor's second view from those of the others, from hard negatives and from aligned negatives.

        near = cos(anchors, positives) / tau     far = cos(anchors, negatives) / tau_negative
        far_i,own(i) += own_weight               push = cos(anchors, hard) / tau
        loss = mean over i of  -log( exp near_i,own(i) / Σ_j (exp near_ij + exp far_ij + exp push_ij) )

    anchors (b, D); positives, negatives, hard (B, D), of all workers; own (b,) each anchor's place among the B
    (default: its row). keep, keep_negatives (b, B) bool: which cells of near and far count; a row's own positive
    must. With tau_negative = tau an aligned negative is a hard one. Returns a scalar.
    Source: SAN, equation 2; `hard`: the contradictions of supervised SimCSE.
    Departures: a mean where the paper sums; j from 1 where it prints 0; near against the second views where it
    prints h_j. All three are what the authors' code does.
    """
    own = torch.arange(len(anchors), device=anchors.device) if own is None else own
    near = cosines(anchors, positives) / tau  # (b, B)
    far = cosines(anchors, negatives) / tau_negative  # (b, B)
    if own_weight:
        far = far + own_weight * F.one_hot(own, far.shape[1])
    if keep is not None:
        near = near.masked_fill(~keep, -torch.inf)
    if keep_negatives is not None:
        far = far.masked_fill(~keep_negatives, -torch.inf)
    push = () if hard is None else (cosines(anchors, hard) / tau,)
    return F.cross_entropy(torch.cat([near, *push, far], dim=1), own)


def bidirectional_margin(anchors: Tensor, positives: Tensor, soft: Tensor, *, alpha: float, beta: float) -> Tensor:
    """Keep a negated sentence less similar than the second view, by alpha at least and by beta at most.

        Δ = cos(anchor, soft) - cos(anchor, positive)
        loss = mean of  max(0, Δ + alpha) + max(0, -Δ - beta)          which is 0 while -beta ≤ Δ ≤ -alpha

    anchors, positives, soft (b, D). Returns a scalar. Source: SNCSE, BML.
    """
    gap = paired_cosines(anchors, soft) - paired_cosines(anchors, positives)  # (b,)
    return (F.relu(gap + alpha) + F.relu(-gap - beta)).mean()
