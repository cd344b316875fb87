"""A layer of K encoders as one batch of arithmetic over stacked weights; when each runs, `stack.py` says.

Layers of BERT's kind alone. States (K, M, D) hold the tokens of every encoder; attention sees those of each text.
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
    """What a layer's dropouts multiply by, None for nothing dropped: attention (n, H, T, T) of each rectangle of
    the layout, the others (M, D)."""

    attention: Sequence[Tensor | None]
    mixed: Tensor | None
    output: Tensor | None


def drawn_noise(layer: Any, states: Tensor, layout: Sequence[Rectangle]) -> LayerNoise:
    """A layer's dropout of a pass, drawn as the layer itself would. states: (1, M, D)."""
    attention = layer.attention.self
    half = torch.is_autocast_enabled(states.device.type)
    kind = torch.bfloat16 if half else states.dtype  # what a linear layer gives; scores are float32 always
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
    """On a card by torch's own dropout, in float32, in which that makes up for what is dropped."""
    if not site.training or not site.p:
        return None
    if noise.device.type == "cpu":
        return draw(noise, site.p)
    return F.dropout(torch.ones_like(noise), site.p).ne(0).float().mul_(made_up_for(site.p))


def flops_of(layer: Any, tokens: int, layout: Sequence[Rectangle]) -> float:
    """Floating-point operations of one layer over so many tokens, forward and back."""
    linear = [module for module in layer.modules() if isinstance(module, nn.Linear)]
    learnt = sum(one.in_features * one.out_features * (2 + one.weight.requires_grad) for one in linear)
    cells = sum(texts * longest**2 for texts, longest in (area.mask.shape for area in layout))
    return 2.0 * tokens * learnt + 2.0 * cells * layer.attention.self.all_head_size * 6


@dataclass(frozen=True, eq=False)
class _Linear:
    """weight (K, I, O), bias (K, 1, O)."""

    weight: Tensor
    bias: Tensor

    @staticmethod
    def of(each: Sequence[Sequence[Any]]) -> _Linear:
        """Of K encoders' layers, each one linear layer or several over the same input, laid side by side."""
        weight = torch.stack([torch.cat([one.weight for one in own]) for own in each])
        bias = torch.stack([torch.cat([one.bias for one in own]) for own in each])
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
    """One layer of BERT's kind, of K encoders."""

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
                # a GPU's in float32, by its autocast: so is the noise
                chances = softmax(scores) if scores.device.type == "cpu" else scores.softmax(-1)
                if (kept := area.noise(noise)) is not None:
                    chances = chances * kept
                parts.append((chances @ v).transpose(1, 2).flatten(0, 1))  # (n · T, H, d)
        return areas.joined(parts).view(count, longest, width)


def _times(rows: Tensor, noise: Sequence[Tensor | None]) -> Tensor:
    """Dropout of K encoders, each of its own M_k rows; what lies beyond them is padding."""
    if all(one is None for one in noise):
        return rows
    assert all(one is not None for one in noise), "encoders of a stack drop at the same places"
    return (rows * pad_sequence([one for one in noise if one is not None], batch_first=True)).to(rows.dtype)


class _Cut(torch.autograd.Function):
    """The cells of all areas, (K · M, …) -> n · T × … of each. The gradient of a cell in padding does not count.

    Gathered both ways: a card that is to be deterministic adds up what padding shares one by one.
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
    """The i-th rectangles of all encoders that have one, laid one below the other, n × T.

    places (n · T,): row of each cell among the K · M. cells: those that hold a token. mask (n, T). of: the
    encoders, and the place of each one's rectangle in its layout.
    """

    places: Tensor
    cells: Tensor
    mask: Tensor
    full: bool
    of: Sequence[tuple[int, int]]

    def noise(self, each: Sequence[Sequence[Tensor | None]]) -> Tensor | None:
        """(n, H, T, T) from what each encoder drew for its own rectangle; padding drops out."""
        own = [drawn for encoder, place in self.of if (drawn := each[encoder][place]) is not None]
        if not own:
            return None
        longest = self.mask.shape[1]
        return torch.cat([
            one if one.shape[-1] == longest else F.pad(one, (0, longest - one.shape[-1]) * 2) for one in own
        ])  # fmt: skip


@dataclass(frozen=True, eq=False)
class Areas:
    """How attention sees the rows of K encoders. order (K · M,): where each row's answer is among all areas', of
    padding behind them."""

    each: Sequence[_Area]
    order: Tensor

    def joined(self, parts: Sequence[Tensor]) -> Tensor:
        """The rows of all encoders from the cells of all areas: n · T × … of each -> (K · M, …)."""
        found = [
            cells if area.full else cells.index_select(0, area.cells)
            for area, cells in zip(self.each, parts, strict=True)
        ]
        padding = parts[0].new_zeros(1, *parts[0].shape[1:])  # what one encoder broke stays its own
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
    """Rectangles one below the other, each as wide as the widest. offsets: of each one's rows among all."""
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
