"""Texts of different lengths in one pass without padding: only attention needs to know where a text ends.

Everything else in a transformer treats tokens one by one, so a step's texts run as one row of M tokens; attention
alone cuts the row into padded rectangles. Against padded batches this saves the padding in every matrix product
and the passes that would otherwise each write a full set of weight gradients.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from trainers.encoders.tokens import Group
from trainers.engine.transfers import moved

ATTENTION = "semray_packed"
# Architectures whose layers look at other tokens in attention only, through transformers' attention interface, and
# that take positions as an argument. Others run in padded rectangles.
PACKED = frozenset({"bert", "camembert", "electra", "roberta", "xlm-roberta"})
FROM_PADDING = frozenset({"camembert", "roberta", "xlm-roberta"})  # their positions start after the padding id


@dataclass(frozen=True, eq=False)
class Rectangle:
    """A group of a pass on its device: the m tokens of n texts as n × T cells.

    places (n · T,): token of each cell. cells (m,): the cells that hold one. mask (n, T). dropout (n,): the rate
    of the attention of each text, None for the module's.
    """

    places: Tensor
    cells: Tensor
    mask: Tensor
    dropout: Tensor | None = None

    @staticmethod
    def of(group: Group, begin: int, device: torch.device) -> Rectangle:
        """The rectangle of a group in a pass whose first token is `begin`."""
        return Rectangle(
            moved(group.places.ravel() - begin, device),
            moved(np.flatnonzero(group.mask), device),
            moved(group.mask, device),
        )

    @property
    def full(self) -> bool:
        return len(self.cells) == len(self.places)

    def padded(self, rows: Tensor) -> Tensor:
        """The rectangle of a row of tokens. (M, ...) -> (n, T, ...); what stands in padding is arbitrary."""
        return rows.index_select(0, self.places).view(*self.mask.shape, *rows.shape[1:])


def register() -> None:
    """Make packed attention known to transformers under the name ATTENTION."""
    from transformers import AttentionInterface

    AttentionInterface.register(ATTENTION, packed_attention)


def positions(part: Sequence[Group], first: int) -> np.ndarray:
    """Position of each token within its text, counted from `first`. -> (M,) int64."""
    return first + np.concatenate([np.nonzero(group.mask)[1] for group in part])


def packed_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    scaling: float,
    dropout: float = 0.0,
    layout: Sequence[Rectangle],
    **_: Any,
) -> tuple[Tensor, None]:
    """Attention within each text of a packed row. query, key, value (1, H, M, d) -> (1, M, H, d).

    layout covers the M tokens in order.
    """
    tokens = torch.stack([query[0], key[0], value[0]]).permute(2, 0, 1, 3)  # (M, 3, H, d)
    parts = []
    for area in layout:
        q, k, v = area.padded(tokens).permute(2, 0, 3, 1, 4)  # (n, H, T, d) each
        scores = (q @ k.transpose(-1, -2)) * scaling  # (n, H, T, T)
        if not area.full:
            scores = scores.masked_fill(~area.mask[:, None, None, :], -torch.inf)
        mixed = _dropped(scores.softmax(-1), dropout, area.dropout, module.training) @ v
        cells = mixed.transpose(1, 2).flatten(0, 1)  # (n · T, H, d)
        parts.append(cells if area.full else cells.index_select(0, area.cells))
    return torch.cat(parts)[None], None


def _dropped(chances: Tensor, rate: float, rates: Tensor | None, training: bool) -> Tensor:
    """Attention (n, H, T, T) after dropout, of one rate or of one for each text."""
    if rates is None:
        return F.dropout(chances, rate, training)
    return dropout_by_row(chances, rates[:, None, None, None]) if training else chances


def dropout_by_row(values: Tensor, rates: Tensor) -> Tensor:
    """Dropout at rates below 1 that broadcast against the values, in the values' own precision."""
    scale = (torch.rand(values.shape, device=values.device) >= rates) / (1 - rates)
    return values * scale.to(values.dtype)
