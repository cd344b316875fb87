"""SNCSE: sentences in two templates, and their negations kept at a distance that is neither small nor large."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainers.san.hosts.rows import Rows, contrast
from trainers.san.losses import bidirectional_margin

if TYPE_CHECKING:
    from torch import Tensor

    from trainers.san.batches import SanBatch
    from trainers.san.settings import Settings


def terms(rows: Rows, batch: SanBatch, settings: Settings) -> dict[str, Tensor]:
    """InfoNCE or HiNCE, and λ BML. Source: SNCSE; SAN, equation 4."""
    assert rows.soft is not None
    margin = bidirectional_margin(
        rows.anchor, rows.second, rows.soft, alpha=settings.bml_alpha, beta=settings.bml_beta
    )
    return {**contrast(rows, batch, settings), "bml": settings.bml_weight * margin}
