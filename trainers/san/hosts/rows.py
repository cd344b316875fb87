"""What a step has encoded, by column, and the term that all hosts begin with."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from torch import Tensor

from trainers.engine.gathering import gathered
from trainers.engine.transfers import moved_together
from trainers.losses import info_nce_directed
from trainers.san.losses import hince

if TYPE_CHECKING:
    from trainers.engine.world import World
    from trainers.san.batches import SanBatch
    from trainers.san.settings import Settings


class Rows(NamedTuple):
    """This worker's rows of a column, (b, H); of `all_*` those of all workers, (B, H)."""

    anchor: Tensor
    second: Tensor
    all_second: Tensor
    soft: Tensor | None = None
    all_contradiction: Tensor | None = None
    all_negative: Tensor | None = None

    @staticmethod
    def of(states: Tensor, batch: SanBatch, world: World) -> Rows:
        """From the states of a batch's texts, column by column."""
        column = dict(zip(batch.columns, states.chunk(len(batch.columns)), strict=True))
        every = {
            f"all_{name}": gathered(column[name], world)
            for name in ("second", "contradiction", "negative")
            if name in column
        }
        return Rows(column["anchor"], column["second"], soft=column.get("soft"), **every)


def contrast(rows: Rows, batch: SanBatch, settings: Settings) -> dict[str, Tensor]:
    """InfoNCE over second views, or HiNCE where there are negatives; each by its name."""
    arrays = [batch.own, batch.keep, batch.keep_negatives]
    own, keep, keep_negatives = moved_together(arrays, rows.anchor.device)
    if rows.all_negative is not None:
        loss = hince(
            rows.anchor,
            rows.all_second,
            rows.all_negative,
            tau=settings.tau1,
            tau_negative=settings.tau_negative,
            own_weight=settings.own_weight,
            hard=rows.all_contradiction,
            keep=keep,
            keep_negatives=keep_negatives,
            own=own,
        )
        return {"hince": loss}
    if rows.all_contradiction is not None:  # as supervised SimCSE has them: at the temperature of the views
        hard = hince(
            rows.anchor, rows.all_second, rows.all_contradiction, tau=settings.tau1, tau_negative=settings.tau1,
            keep=keep, own=own,
        )  # fmt: skip
        return {"info_nce": hard}
    return {
        "info_nce": info_nce_directed(rows.anchor, rows.all_second, temperature=settings.tau1, keep=keep, own=own)
    }
