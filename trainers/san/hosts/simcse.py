"""SimCSE: a sentence and itself under another dropout, or a premise and what it entails and contradicts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainers.san.hosts.rows import Rows, contrast

if TYPE_CHECKING:
    from torch import Tensor

    from trainers.san.batches import SanBatch
    from trainers.san.settings import Settings


def terms(rows: Rows, batch: SanBatch, settings: Settings) -> dict[str, Tensor]:
    """InfoNCE, or HiNCE. Source: SimCSE, unsupervised and supervised; SAN, equations 2 and 3."""
    return contrast(rows, batch, settings)
