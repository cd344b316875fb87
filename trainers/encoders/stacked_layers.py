"""The layers of K encoders as one batch of arithmetic over stacked weights; `stack.py` decides when they run.

BERT-like layers only. States (K, M, D) hold the tokens of every encoder; attention stays within each text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from trainers.encoders.cpu_products import attending, in_attention
from trainers.encoders.dropout import draw, made_up_for
from trainers.encoders.packing import Rectangle, softmax
from trainers.engine.transfers import moved


@dataclass(frozen=True, eq=False)
class LayerNoise:
    """The factors of a layer's dropouts, None for an inactive one: attention (n, H, T, T) of each rectangle of the
    layout, the others (M, D)."""

    attention: Sequence[Tensor | None]
    mixed: Tensor | None
    output: Tensor | None


def drawn_noise(layer: Any, states: Tensor, layout: Sequence[Rectangle]) -> LayerNoise:
    """Draw a layer's dropout factors of a pass as the layer itself would. states: (1, M, D)."""
    attention = layer.attention.self
    half = torch.is_autocast_enabled(states.device.type)
    kind = torch.bfloat16 if half else states.dtype  # the outputs of linear layers; attention scores are float32
    heads = attention.num_attention_heads

    def scores(area: Rectangle) -> Tensor | None:
        texts, longest = area.mask.shape
        return _kept(attention.dropout, states.new_empty(texts, heads, longest, longest))

    return LayerNoise(
        [scores(area) for area in layout],
        _kept(layer.attention.output.dropout, states.new_empty(states.shape[1:], dtype=kind)),
        _kept(layer.output.dropout, states.new_empty(states.shape[1:], dtype=kind)),
    )


def _kept(site: nn.Dropout, noise: Tensor) -> Tensor | None:
    """The factors of one dropout; on a GPU drawn by torch's own dropout and in float32, as that scales there."""
    if not site.training or not site.p:
        return None
    if noise.device.type == "cpu":
        return draw(noise, site.p)
    return F.dropout(torch.ones_like(noise), site.p).ne(0).float().mul_(made_up_for(site.p))


def flops_of(layers: Sequence[Any]) -> Callable[[int, Sequence[Rectangle]], float]:
    """A function from a pass's tokens and rectangles to its operations in these layers, which are all alike.

    Floating-point operations, forward and backward. Modules are searched once, not for each pass.
    """
    linear = [module for module in layers[0].modules() if isinstance(module, nn.Linear)]
    products = sum(each.in_features * each.out_features * (2 + each.weight.requires_grad) for each in linear)
    width = layers[0].attention.self.all_head_size

    def flops(tokens: int, layout: Sequence[Rectangle]) -> float:
        cells = sum(texts * longest**2 for texts, longest in (area.mask.shape for area in layout))
        return len(layers) * (2.0 * tokens * products + 2.0 * cells * width * 6)

    return flops


@dataclass(frozen=True, eq=False)
class _Linear:
    """weight (K, I, O), bias (K, 1, O)."""

    weight: Tensor
    bias: Tensor

    @staticmethod
    def of(each: Sequence[Sequence[Any]]) -> _Linear:
        """Stack K encoders' layers; each is one linear layer, or several whose outputs are concatenated."""
        weight = torch.stack([torch.cat([layer.weight for layer in own]) for own in each])
        bias = torch.stack([torch.cat([layer.bias for layer in own]) for own in each])
        return _Linear(weight.transpose(1, 2), bias[:, None])

    def __call__(self, rows: Tensor) -> Tensor:
        return torch.baddbmm(self.bias, rows, self.weight)  # (K, M, I) -> (K, M, O)


@dataclass(frozen=True, eq=False)
class _Norm:
    """gain and bias (K, 1, D)."""

    gain: Tensor
    bias: Tensor
    eps: float

    @staticmethod
    def of(each: Sequence[Any]) -> _Norm:
        gains, biases = ([getattr(one, name) for one in each] for name in ("weight", "bias"))
        return _Norm(torch.stack(gains)[:, None], torch.stack(biases)[:, None], each[0].eps)

    def __call__(self, rows: Tensor) -> Tensor:
        return torch.addcmul(self.bias, F.layer_norm(rows, rows.shape[-1:], eps=self.eps), self.gain)


@dataclass(frozen=True, eq=False)
class StackedLayer:
    """One BERT-like layer of K encoders."""

    projections: _Linear
    mixed: _Linear
    mixed_norm: _Norm
    wide: _Linear
    narrow: _Linear
    output_norm: _Norm
    activation: Callable[[Tensor], Tensor]
    heads: int
    scaling: float

    @staticmethod
    def of(same: Sequence[Any]) -> StackedLayer:
        first = same[0].attention.self
        projections = [
            [own.attention.self.query, own.attention.self.key, own.attention.self.value] for own in same
        ]
        return StackedLayer(
            projections=_Linear.of(projections),
            mixed=_Linear.of([[own.attention.output.dense] for own in same]),
            mixed_norm=_Norm.of([own.attention.output.LayerNorm for own in same]),
            wide=_Linear.of([[own.intermediate.dense] for own in same]),
            narrow=_Linear.of([[own.output.dense] for own in same]),
            output_norm=_Norm.of([own.output.LayerNorm for own in same]),
            activation=same[0].intermediate.intermediate_act_fn,
            heads=first.num_attention_heads,
            scaling=first.scaling,
        )

    def run(self, states: Tensor, areas: Areas, noise: Sequence[LayerNoise]) -> Tensor:
        """(K, M, D) -> (K, M, D)."""
        mixed = self._attention(self.projections(states), areas, [one.attention for one in noise])
        states = self.mixed_norm(_times(self.mixed(mixed), [one.mixed for one in noise]) + states)
        rows = self.narrow(self.activation(self.wide(states)))
        return self.output_norm(_times(rows, [one.output for one in noise]) + states)

    def _attention(self, rows: Tensor, areas: Areas, noise: Sequence[Sequence[Tensor | None]]) -> Tensor:
        """Attention within each text. Queries, keys and values side by side (K, M, 3 D) -> (K, M, D)."""
        count, longest, width = len(rows), rows.shape[1], rows.shape[2] // 3
        tokens = in_attention(rows).reshape(count * longest, 3, self.heads, width // self.heads)
        parts = []
        with attending(rows.device):
            for area, picked in zip(areas.each, _Cut.apply(areas, tokens), strict=True):
                cells = picked.view(*area.mask.shape, *tokens.shape[1:])
                q, k, v = cells.permute(2, 0, 3, 1, 4)  # (n, H, T, d) each
                scores = (q @ k.transpose(-1, -2)) * self.scaling
                if not area.full:
                    scores = scores.masked_fill(~area.mask[:, None, None, :], -torch.inf)
                # on a GPU autocast computes the softmax in float32, which the noise has too
                chances = softmax(scores) if scores.device.type == "cpu" else scores.softmax(-1)
                if (kept := area.noise(noise)) is not None:
                    chances = chances * kept
                parts.append((chances @ v).transpose(1, 2).flatten(0, 1))  # (n · T, H, d)
        return areas.joined(parts).view(count, longest, width)


def _times(rows: Tensor, noise: Sequence[Tensor | None]) -> Tensor:
    """Multiply rows (K, M, D) by each encoder's dropout factors (M_k, D); rows beyond M_k are padding."""
    if all(factors is None for factors in noise):
        return rows
    assert all(factors is not None for factors in noise), "encoders of a stack drop at the same places"
    return (rows * pad_sequence([own for own in noise if own is not None], batch_first=True)).to(rows.dtype)


class _Cut(torch.autograd.Function):
    """Gather the cells of all areas, (K · M, …) -> n · T × … each. Gradients of padding cells are dropped.

    The backward pass gathers too: a deterministic scatter on a GPU would add the shared padding rows one by one.
    """

    @staticmethod
    def forward(ctx: Any, areas: Areas, rows: Tensor) -> tuple[Tensor, ...]:
        ctx.areas = areas
        return tuple(rows.index_select(0, area.places) for area in areas.each)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, Tensor]:
        return None, ctx.areas.joined(gradients)


@dataclass(frozen=True, eq=False)
class _Area:
    """The i-th rectangles of all encoders that have one, concatenated to n × T cells.

    places (n · T,): the row of each cell among the K · M. cells: the cells that hold a token. mask (n, T). of: the
    encoders, and the index of each one's rectangle in its layout.
    """

    places: Tensor
    cells: Tensor
    mask: Tensor
    full: bool
    of: Sequence[tuple[int, int]]

    def noise(self, each: Sequence[Sequence[Tensor | None]]) -> Tensor | None:
        """Dropout factors (n, H, T, T) from those that each encoder drew for its rectangle; 0 in padding."""
        own = [drawn for encoder, place in self.of if (drawn := each[encoder][place]) is not None]
        if not own:
            return None
        longest = self.mask.shape[1]
        return torch.cat([
            one if one.shape[-1] == longest else F.pad(one, (0, longest - one.shape[-1]) * 2) for one in own
        ])  # fmt: skip


@dataclass(frozen=True, eq=False)
class Areas:
    """The rectangles of attention over the rows of K encoders.

    order (K · M,): the index of each row's token among the tokens of all areas; padding rows point behind the
    last.
    """

    each: Sequence[_Area]
    order: Tensor

    def joined(self, parts: Sequence[Tensor]) -> Tensor:
        """Gather the rows of all encoders from the cells of all areas: n · T × … each -> (K · M, …)."""
        found = [
            cells if area.full else cells.index_select(0, area.cells)
            for area, cells in zip(self.each, parts, strict=True)
        ]
        padding = parts[0].new_zeros(1, *parts[0].shape[1:])  # zeros: one encoder's nan must not reach the others
        return torch.cat([*found, padding]).index_select(0, self.order)

    @staticmethod
    def of(layouts: Sequence[Sequence[Rectangle]], lengths: Sequence[int]) -> Areas:
        longest, order = max(lengths), np.full((len(layouts), max(lengths)), sum(lengths))
        device, answered, begun, areas = layouts[0][0].places.device, 0, [0] * len(layouts), []
        for place in range(max(map(len, layouts))):
            of = [(encoder, place) for encoder, layout in enumerate(layouts) if place < len(layout)]
            own = [layouts[encoder][place] for encoder, _ in of]
            areas.append(_laid(own, of, [encoder * longest for encoder, _ in of]))
            for (encoder, _), rectangle in zip(of, own, strict=True):
                count, begin = len(rectangle.cells), begun[encoder]
                order[encoder, begin : begin + count] = answered + np.arange(count)
                answered, begun[encoder] = answered + count, begin + count
        return Areas(areas, moved(order.ravel(), device))


def _laid(own: Sequence[Rectangle], of: Sequence[tuple[int, int]], offsets: Sequence[int]) -> _Area:
    """Concatenate rectangles, padded to the widest. offsets: where each encoder's rows begin among the K · M."""
    shapes = [(one.mask.shape[0], one.mask.shape[1]) for one in own]
    width, above, places, cells, masks = max(columns for _, columns in shapes), 0, [], [], []
    for one, (texts, columns), offset in zip(own, shapes, offsets, strict=True):
        wider = (0, width - columns)
        places.append(F.pad(one.places.view(texts, columns) + offset, wider, value=offset).flatten())
        masks.append(F.pad(one.mask, wider))
        cells.append((one.cells // columns + above) * width + one.cells % columns)
        above += texts
    found = torch.cat(cells)
    return _Area(torch.cat(places), found, torch.cat(masks), len(found) == above * width, of)
