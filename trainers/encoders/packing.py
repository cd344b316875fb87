"""Runs texts of different lengths in one pass without padding: only attention needs to know where a text ends.

Everything else in a transformer treats tokens one by one, so a step's texts run as one row of M tokens; only
attention cuts the row into padded rectangles. This saves padding in every matrix product, and the many passes of
padded batches, each of which writes a full set of weight gradients.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from trainers.encoders.cpu_products import attending, in_attention
from trainers.encoders.dropout import Drop, dropped
from trainers.encoders.flash import attends, attention_at_once
from trainers.encoders.packed_texts import PackedTexts, begins_of
from trainers.encoders.tokens import Group
from trainers.engine.transfers import moved_together

ATTENTION = "semray_packed"
# Architectures whose layers look at other tokens in attention only, through transformers' attention interface, and
# that take positions as an argument. Others run in padded rectangles.
PACKED = frozenset({"bert", "camembert", "electra", "roberta", "xlm-roberta"})
FROM_PADDING = frozenset({"camembert", "roberta", "xlm-roberta"})  # their positions start after the padding id
LANES = 16 if torch.backends.cpu.get_cpu_capability() == "AVX512" else 8  # float32 numbers of an instruction


@dataclass(frozen=True, eq=False)
class Rectangle:
    """A group of texts of a pass, on its device: the m tokens of n texts as n × T cells.

    places (n · T,): the token of each cell. cells (m,): the cells that hold one. mask (n, T). dropped: the dropout
    applied to attention (n, H, T, T) in training, None for `dropout`.
    """

    places: Tensor
    cells: Tensor
    mask: Tensor
    dropped: Drop | None = None

    @staticmethod
    def of(group: Group, device: torch.device) -> Rectangle:
        """The rectangle of a group whose tokens are counted from the first of its pass."""
        places, cells, mask = moved_together(_cells_of(group, 0), device)
        return Rectangle(places, cells, mask)

    @property
    def full(self) -> bool:
        return len(self.cells) == len(self.places)

    def padded(self, rows: Tensor) -> Tensor:
        """Arrange its tokens as a rectangle. (m, D) -> (n, T, D); padding gets arbitrary rows, no gradient."""
        return regathered(rows, self.places - self.places[0], self.cells).view(*self.mask.shape, -1)


def register() -> None:
    """Make packed attention known to transformers under the name ATTENTION."""
    from transformers import AttentionInterface

    AttentionInterface.register(ATTENTION, packed_attention)


def padded_kind(folder: Path) -> str | None:
    """The model_type of a backbone that runs in padded rectangles; None for one that runs packed."""
    kind: str = json.loads((folder / "config.json").read_text()).get("model_type", "")
    return None if kind in PACKED else kind


def first_position(config: Any) -> int:
    """The position of a text's first token, by the configuration of its backbone."""
    return config.pad_token_id + 1 if config.model_type in FROM_PADDING else 0


def laid_out(
    part: Sequence[Group], begin: int, first: int, device: torch.device
) -> tuple[Tensor, PackedTexts, list[Rectangle]]:
    """A pass, on its device in one copy: the position of each token within its text, (1, M), texts and rectangles.

    begin: the first token of the pass. first: the position of a text's first token.
    """
    lengths = np.concatenate([group.mask.sum(1) for group in part])
    own = first + np.concatenate([np.nonzero(group.mask)[1] for group in part])
    cells = [array for group in part for array in _cells_of(group, begin)]
    positions, begins, *rest = moved_together([own, begins_of(lengths), *cells], device)
    areas = [Rectangle(*three) for three in zip(rest[::3], rest[1::3], rest[2::3], strict=True)]
    return positions[None], PackedTexts(begins, int(lengths.max())), areas


def _cells_of(group: Group, begin: int) -> list[np.ndarray]:
    """Of a group in a pass whose first token is `begin`: a rectangle's `places`, `cells` and `mask`."""
    return [group.places.ravel() - begin, np.flatnonzero(group.mask), group.mask]


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
    texts: PackedTexts | None = None,
    **_: Any,
) -> tuple[Tensor, None]:
    """Attention within each text of a packed row. query, key, value (1, H, M, d) -> (1, M, H, d).

    layout covers the M tokens in order, and so do texts, by which a card attends to them at once where it can.
    """
    rate = dropout if module.training else 0.0
    if texts is not None and _at_once(query, layout):
        rows = torch.stack([one.squeeze(0).transpose(0, 1) for one in (query, key, value)], 1)
        return attention_at_once(rows, texts, scaling=scaling, dropout=rate)[None], None
    query, key, value = map(in_attention, (query, key, value))
    moves = _moves(tuple(layout), query.shape[1], query.dtype)
    return _attended(module, moves, moves.cut(query, key, value), layout, scaling, dropout), None


def fused_attention(
    module: nn.Module,
    rows: Tensor,
    *,
    heads: int,
    scaling: float,
    dropout: float,
    layout: Sequence[Rectangle],
    texts: PackedTexts | None = None,
) -> Tensor:
    """As `packed_attention`, for concatenated queries, keys and values. (1, M, 3 · D) -> (1, M, H, d)."""
    rate = dropout if module.training else 0.0
    parts = rows[0].view(rows.shape[1], 3, heads, -1)
    if texts is not None and _at_once(parts, layout):
        return attention_at_once(parts, texts, scaling=scaling, dropout=rate)[None]
    rows = in_attention(rows)
    moves = _moves(tuple(layout), heads, rows.dtype)
    return _attended(module, moves, moves.cut_fused(rows), layout, scaling, dropout)


def _at_once(rows: Tensor, layout: Sequence[Rectangle]) -> bool:
    """rows (…, d). A rectangle with a dropout of its own needs its scores."""
    return attends(rows.device, rows.dtype, rows.shape[-1]) and all(area.dropped is None for area in layout)


def _attended(
    module: nn.Module,
    moves: _Moves,
    cut: Sequence[Sequence[Tensor]],
    layout: Sequence[Rectangle],
    scaling: float,
    dropout: float,
) -> Tensor:
    """cut: queries, keys and values of each rectangle, (n · H, T, d) each. -> (1, M, H, d)."""
    mixed = []
    with attending(layout[0].mask.device):
        for area, bar, q, k, v in zip(layout, moves.bars, *cut, strict=True):
            scores: Tensor = _Scores.apply(q, k)  # (n · H, T, T)
            scores = scores.view(len(area.mask), -1, *scores.shape[1:])  # (n, H, T, T)
            scores = scores * scaling if bar is None else torch.add(bar, scores, alpha=scaling)
            chances = dropped(softmax(scores), dropout, area.dropped, module.training)
            mixed.append(torch.bmm(chances.flatten(0, 1), v))
    return moves.joined(mixed)[None]


def softmax(scores: Tensor) -> Tensor:
    """Softmax over the last dimension in the scores' precision: GPU autocast would convert to float32 and back.

    A CPU computes LANES exponentials at once, but handles shorter rows number by number, and terms give short
    rows. They are padded with -inf, whose exponential is 0.
    """
    columns = scores.shape[-1]
    if scores.device.type != "cpu" or columns >= LANES:
        return scores.softmax(-1, dtype=scores.dtype)
    return F.pad(scores, (0, LANES - columns), value=-torch.inf).softmax(-1)[..., :columns]


@dataclass(frozen=True, eq=False)
class _Moves:
    """Index tables between a packed row and its rectangles, for the vectors of all heads at once.

    The row has M · H places, a vector per token and head; the rectangles have R cells, ordered as (n, H, T).
    there (R,): the place of each cell. back (M · H,): the cell of each place. held (R, 1): 1 for a cell that holds
    a token, 0 for padding; None if there is no padding. shapes: n · H and T of each rectangle. bars (n, 1, 1, T):
    added to scores to mask padding, None for a rectangle without padding.
    """

    there: Tensor
    back: Tensor
    held: Tensor | None
    shapes: Sequence[tuple[int, int]]
    bars: Sequence[Tensor | None]
    heads: int

    def cut(self, *several: Tensor) -> list[list[Tensor]]:
        """Cut each tensor (1, H, M, d) into (n · H, T, d) for each rectangle; padding holds arbitrary vectors."""
        rows = [tensor.squeeze(0).transpose(0, 1).reshape(-1, tensor.shape[-1]) for tensor in several]
        sizes = [blocks * length for blocks, length in self.shapes]
        taken = [regathered(each, self.there, self.back) for each in rows]
        every = [cells.split(sizes) if len(sizes) > 1 else (cells,) for cells in taken]
        return [[part.view(*shape, -1) for part, shape in zip(parts, self.shapes, strict=True)] for parts in every]

    def cut_fused(self, rows: Tensor) -> list[Sequence[Tensor]]:
        """As `cut`, for concatenated queries, keys and values (1, M, 3 · H · d), in one gather."""
        rectangles = len(self.shapes)
        cells = _CutFused.apply(self, rows.view(-1, rows.shape[-1] // (3 * self.heads)))
        parts = [part.view(*shape, -1) for part, shape in zip(cells, 3 * list(self.shapes), strict=True)]
        return [parts[begin : begin + rectangles] for begin in range(0, 3 * rectangles, rectangles)]

    @cached_property
    def fused_there(self) -> Tensor:
        """The place of each cell of queries, then keys, then values, in their concatenated row. (3 · R,)."""
        part = torch.arange(0, 3 * self.heads, self.heads, device=self.there.device)[:, None]
        return (self.there + self.there // self.heads * (2 * self.heads) + part).flatten()

    @cached_property
    def fused_back(self) -> Tensor:
        """The cell of each of those places. (M · 3 · H,)."""
        part = torch.arange(3, device=self.back.device)[:, None] * len(self.there)
        return (self.back.view(-1, 1, self.heads) + part).flatten()

    def joined(self, parts: Sequence[Tensor]) -> Tensor:
        """The reverse of `cut`: (n · H, T, d) for each rectangle -> (M, H, d)."""
        cells = [part.flatten(0, 1) for part in parts]
        rows: Tensor = _Return.apply(self, torch.cat(cells) if len(cells) > 1 else cells[0])
        return rows.view(-1, self.heads, rows.shape[-1])


@lru_cache(maxsize=1)  # all layers of a pass share one layout
def _moves(layout: tuple[Rectangle, ...], heads: int, dtype: torch.dtype) -> _Moves:
    there, back, held, shapes, bars, cells = [], [], [], [], [], 0
    for area in layout:
        texts, length = area.mask.shape
        head = torch.arange(heads, device=area.mask.device)
        there.append((area.places.view(texts, 1, length) * heads + head[:, None]).flatten())
        text, place = area.cells[:, None] // length, area.cells[:, None] % length  # (m, 1)
        back.append((cells + (text * heads + head) * length + place).flatten())
        shapes.append((texts * heads, length))
        padding = ~area.mask[:, None]  # (n, 1, T)
        held.append(area.mask[:, None].expand(-1, heads, -1).reshape(-1, 1).to(dtype))
        bar = torch.zeros(padding.shape, dtype=dtype, device=padding.device).masked_fill_(padding, -torch.inf)
        bars.append(None if area.full else bar[:, None])
        cells += texts * heads * length
    padded = any(bar is not None for bar in bars)
    return _Moves(torch.cat(there), torch.cat(back), torch.cat(held) if padded else None, shapes, bars, heads)


def regathered(rows: Tensor, there: Tensor, back: Tensor) -> Tensor:
    """rows[there], whose gradient is gathered too, not scattered. (m, D), (c,) -> (c, D).

    back (m,): the place in `there` of each row; if a row has several places, the one whose gradient is used.
    """
    taken: Tensor = _Regather.apply(rows, there, back)
    return taken


class _Regather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, there: Tensor, back: Tensor) -> Tensor:
        ctx.back = back
        return rows.index_select(0, there)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return gradient.index_select(0, ctx.back), None, None


class _CutFused(torch.autograd.Function):
    """Gather the cells of queries, keys and values of each rectangle at once, and their gradients too."""

    @staticmethod
    def forward(ctx: Any, moves: _Moves, rows: Tensor) -> tuple[Tensor, ...]:
        ctx.moves = moves
        return rows.index_select(0, moves.fused_there).split(
            [blocks * length for blocks, length in moves.shapes] * 3
        )

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, Tensor]:
        return None, torch.cat(gradients).index_select(0, ctx.moves.fused_back)


class _Scores(torch.autograd.Function):
    """Queries times transposed keys, (n · H, T, d) each -> (n · H, T, T).

    torch's own backward pass would transpose the keys' gradient back with a copy; this one needs none.
    """

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor) -> Tensor:
        ctx.save_for_backward(query, key)
        return torch.bmm(query, key.transpose(1, 2))

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None]:
        (query, key), (asks, answers) = ctx.saved_tensors, ctx.needs_input_grad
        return (
            torch.bmm(gradient, key) if asks else None,
            torch.bmm(gradient.transpose(1, 2), query) if answers else None,
        )


class _Return(torch.autograd.Function):
    """Gather rows from cells. Padding gets no gradient.

    The backward pass gathers, too: for a deterministic scatter a GPU sorts the places each time.
    """

    @staticmethod
    def forward(ctx: Any, moves: _Moves, cells: Tensor) -> Tensor:
        ctx.moves = moves
        return cells.index_select(0, moves.back)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, Tensor]:
        cells = gradient.index_select(0, ctx.moves.there)
        # a product, as masked_fill by rows takes a CPU several times as long
        return None, cells if ctx.moves.held is None else cells.mul_(ctx.moves.held)
