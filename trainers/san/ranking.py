"""Losses on lists: how a student ranks the sentences of a batch, against how its teachers do.

A list is a row of cosines over a temperature, (b, N): b anchors, each with the same N candidates. keep (b, N) bool
leaves candidates out of a row.
"""

from __future__ import annotations

import torch
from torch import Tensor

OUT = -1e30  # a logit that weighs nothing, and has a finite gradient where -inf has none
CODE_EPS = 1e-7  # what RankCSE's code adds inside the logarithm of ListMLE, and clamps probabilities at


def list_mle(teacher: Tensor, student: Tensor, *, keep: Tensor | None = None, eps: float = 0.0) -> Tensor:
    """Minus the log-likelihood, under the student, of the order that the teacher gives.

        π = candidates by falling teacher value, equal ones in the order of their places
        loss = mean over i of  Σ_k [ log Σ_{l≥k} exp S_iπ(l) - S_iπ(k) ]

    Exact: by a cumulative log-sum-exp from the end. eps: as the code has it, the row's maximum is subtracted and
    eps added inside the logarithm, which changes whatever lies more than 16 below the maximum. Returns a scalar.
    Source: RankCSE, ListMLE. Departure: the code breaks ties at random.
    """
    if keep is not None:
        teacher, student = teacher.masked_fill(~keep, -torch.inf), student.masked_fill(~keep, OUT)
    order = teacher.argsort(dim=1, descending=True, stable=True)
    scores = student.gather(1, order)  # (b, N), what is left out last
    if eps:
        scores = scores - scores.amax(1, keepdim=True)
        rest = (scores.exp().flip(1).cumsum(1).flip(1) + eps).log()
    else:
        rest = scores.flip(1).logcumsumexp(1).flip(1)
    terms = rest - scores
    if keep is not None:
        terms = terms.masked_fill(~keep.gather(1, order), 0.0)
    return terms.sum(1).mean()


def list_net(teacher: Tensor, student: Tensor, *, keep: Tensor | None = None) -> Tensor:
    """Cross-entropy of the student's distribution over a list under the teacher's. Returns a scalar.

        loss = mean over i of  -Σ_j softmax(T_i)_j log softmax(S_i)_j      over the candidates that are kept

    Source: RankCSE, ListNet, which leaves each anchor's own second view out: by `keep`.
    """
    if keep is not None:
        teacher, student = teacher.masked_fill(~keep, OUT), student.masked_fill(~keep, OUT)
    terms = teacher.softmax(1) * student.log_softmax(1)
    if keep is not None:
        terms = terms.masked_fill(~keep, 0.0)
    return -terms.sum(1).mean()


def jensen_shannon(forward: Tensor, backward: Tensor) -> Tensor:
    """How far apart the rankings from first to second view and back are. (b, N), (b, N) logits -> scalar.

        P, Q = softmax of each row;  M = (P + Q) / 2
        loss = mean over i of  ½ KL(P_i ‖ M_i) + ½ KL(Q_i ‖ M_i)

    Source: RankCSE, ranking consistency. Probabilities are clamped at 1e-7 before the logarithms, as in its code.
    """
    p, q = _probabilities(forward), _probabilities(backward)
    middle = (p + q) / 2
    divergence = p * (p / middle).log() + q * (q / middle).log()
    return divergence.sum(1).mean() / 2


def negative_entropy(forward: Tensor, backward: Tensor) -> Tensor:
    """What RankCSE's code has in the place of `jensen_shannon`: -½ (H(P) + H(Q)) - 1e-7.

    It clamps log M from below at 1e-7, and log M is never above 0: the term maximises entropy.
    """
    p, q = _probabilities(forward), _probabilities(backward)
    return (p * (p.log() - CODE_EPS) + q * (q.log() - CODE_EPS)).sum(1).mean() / 2


def _probabilities(logits: Tensor) -> Tensor:
    return logits.softmax(1).clamp_min(CODE_EPS)
