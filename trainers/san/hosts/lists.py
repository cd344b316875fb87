"""The losses on lists that RankCSE and RLRD share: the student's rows against a teacher's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from trainers.engine.transfers import moved, moved_together
from trainers.losses import cosines
from trainers.san.ranking import CODE_EPS, list_mle, list_net

if TYPE_CHECKING:
    from trainers.san.batches import SanBatch
    from trainers.san.hosts.rows import Rows
    from trainers.san.settings import Settings


def against_views(rows: Rows, teacher: Tensor, batch: SanBatch, settings: Settings, *, tau: float) -> Tensor:
    """ListMLE or ListNet over the second views. teacher (B, B) cosines; tau: the student's -> scalar."""
    student = cosines(rows.anchor, rows.all_second) / tau
    own = moved(batch.own, student.device)
    keep = torch.ones_like(student, dtype=torch.bool)
    if settings.rank_loss == "listnet":
        keep[torch.arange(len(own), device=own.device), own] = False  # 1 in every teacher's list
    return _loss(teacher[own] / settings.teacher_tau, student, keep, settings)


def against_negatives(rows: Rows, teacher: Tensor, batch: SanBatch, settings: Settings) -> Tensor:
    """ListMLE+SAN: the same over the aligned negatives of the batch, an anchor's own among them.

    Source: SAN, equation 5. Departure: the student is divided by its own τ2, as in the code; the paper prints τ3.
    """
    assert rows.all_negative is not None
    student = cosines(rows.anchor, rows.all_negative) / settings.tau_negative
    own, keep = moved_together([batch.own, batch.keep_negatives], student.device)
    return _loss(teacher[own] / settings.tau3, student, keep, settings)


def mixed(shares: Sequence[float | Tensor], lists: Sequence[Tensor]) -> Tensor:
    """The lists of several teachers as one, each at its share. -> (B, B)."""
    return torch.stack([share * one for share, one in zip(shares, lists, strict=True)]).sum(0)


def _loss(teacher: Tensor, student: Tensor, keep: Tensor, settings: Settings) -> Tensor:
    if settings.rank_loss == "listnet":
        loss = list_net(teacher, student, keep=keep)
    else:
        eps = CODE_EPS if settings.conform == "authors" else 0.0
        loss = list_mle(teacher, student, keep=keep, eps=eps)
    return loss / student.shape[1] if settings.rank_normalise == "items" else loss
