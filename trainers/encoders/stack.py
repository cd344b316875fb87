"""Encoders of one architecture trained as one: the layers of all run as one batch, over stacked weights (K, …).

Everything else of a step is each encoder's own, as if it trained alone: texts, embeddings, dropout, readout, loss,
clipping, optimiser, checkpoints. Of K encoders a layer asks a GPU for as much as of one, so that small backbones
fill a large card.

    forward   each embeds its texts and draws its dropout, (1, M_k, D); then the layers of all, (K, M, D), where
              what a text has fewer tokens than the longest is padding that no text attends to; then each its loss
    backward  each down to what the layers gave; then the layers of all; then each its embeddings

Sums are the same sums as alone, rounded in another order: `tests/trainers/encoders/test_stack.py` bounds by how
much.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from types import SimpleNamespace
from typing import Any, TypeVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from trainers.encoders.encoder import Encoder
from trainers.encoders.packing import PACKED, Rectangle
from trainers.engine.lockstep import Ask, in_lockstep
from trainers.engine.shortage import OutOfMemory, Shortage, shortage_told
from trainers.engine.transfers import moved
from trainers.engine.world import World

T = TypeVar("T")


def fit_together(fits: Sequence[Callable[[World], T]], worlds: Sequence[World]) -> list[T | Exception]:
    """What each training returns or raises in its world, their encoders' layers run together.

    Each trains one encoder that runs packed; one that ends, or fails, leaves the others to go on. ValueError for
    an encoder that cannot take part.
    """
    size = len(fits)

    def seated(ask: Ask, fit: Callable[[World], T], world: World) -> T:
        def spent(flops: float, seconds: float) -> None:
            world.spent(flops, seconds / size)  # each sees the time of all

        return fit(replace(world, seat=Member(ask), spent=spent))

    torch.set_num_threads(worlds[0].threads)
    works = [partial(seated, fit=fit, world=world) for fit, world in zip(fits, worlds, strict=True)]
    return in_lockstep(works, _Stack(worlds[0]).serve)


# One encoder of a stack


@dataclass(frozen=True, eq=False)
class _Noise:
    """What a layer's dropouts multiply by, None for nothing dropped: attention (n, H, T, T) of each rectangle of
    the layout, the others (M, D)."""

    attention: Sequence[Tensor | None]
    mixed: Tensor | None
    output: Tensor | None


@dataclass(frozen=True, eq=False)
class _Pass:
    """What an encoder asks for: its layers, over the states of a pass that runs packed.

    states (M, D). every: what each layer gives is wanted, not the last alone.
    """

    layers: Sequence[Any]
    states: Tensor
    layout: Sequence[Rectangle]
    noise: Sequence[_Noise]
    every: bool


class _Backward:
    """What an encoder asks for when its loss has sent gradients to all that the layers gave."""


class Member:
    """An encoder's place in a stack (`trainers.engine.world.Seat`)."""

    def __init__(self, ask: Ask) -> None:
        self._ask, self._flops = ask, 0.0
        self._embedded: list[tuple[Tensor, Tensor]] = []  # what embeddings gave, and the leaf that took its place

    @contextmanager
    def joined(self, model: nn.Module) -> Iterator[None]:
        """Within, the model's encoder has its layers run by the stack, wherever there are gradients."""
        encoder = next(module for module in model.modules() if isinstance(module, Encoder))
        if not encoder.packed:
            raise ValueError(refusal(encoder.backbone.config.model_type))
        encoder.running = partial(self._run, encoder.backbone)
        try:
            yield
        finally:
            encoder.running = None

    def backward(self) -> None:
        """What is left of a step's backward pass, when the loss has had its own."""
        self._ask(_Backward())
        reached = [
            (states, leaf.grad)
            for states, leaf in self._embedded
            if states.requires_grad and leaf.grad is not None
        ]
        self._embedded.clear()
        _back_through(reached)

    def flops(self) -> float:
        """Of the layers since the last call, counted as `trainers.engine.meter.counting` does."""
        found, self._flops = self._flops, 0.0
        return found

    def _run(
        self,
        backbone: Any,
        *,
        inputs_embeds: Tensor,
        position_ids: Tensor,
        output_hidden_states: bool,
        layout: Sequence[Rectangle],
    ) -> Any:
        """What the backbone gives for a pass, each of its states a leaf for `backward` to go on from."""
        states = backbone.embeddings(inputs_embeds=inputs_embeds, position_ids=position_ids)
        if hasattr(backbone, "embeddings_project"):
            states = backbone.embeddings_project(states)
        leaf, layers = states.detach().requires_grad_(), backbone.encoder.layer
        self._embedded.append((states, leaf))
        self._flops += _flops(layers[0], leaf.shape[1], layout) * len(layers)
        noise = [_drawn(layer, leaf, layout) for layer in layers]
        given = self._ask(_Pass(layers, leaf[0], layout, noise, output_hidden_states))
        every = (leaf, *given) if output_hidden_states else None
        return SimpleNamespace(last_hidden_state=given[-1], hidden_states=every)


def refusal(kind: str) -> str:
    """Why a backbone of this model_type has no place in a stack."""
    *others, last = sorted(PACKED)
    return (
        f"resources.runs_per_stack: {kind} runs in padded rectangles"
        f"\n  accepted: 1; more with {', '.join(others)} or {last}"
    )


def _drawn(layer: Any, states: Tensor, layout: Sequence[Rectangle]) -> _Noise:
    """A layer's dropout of a pass, drawn as the layer itself would. states: (1, M, D)."""
    attention = layer.attention.self
    half = torch.is_autocast_enabled(states.device.type)
    kind = torch.bfloat16 if half else states.dtype  # what a linear layer gives; scores are float32 always
    heads = attention.num_attention_heads

    def scores(area: Rectangle) -> Tensor | None:
        texts, longest = area.mask.shape
        return _kept(attention.dropout, states.new_ones(texts, heads, longest, longest))

    ones = states.new_ones(states.shape[1:], dtype=kind)
    return _Noise(
        [scores(area) for area in layout],
        _kept(layer.attention.output.dropout, ones),
        _kept(layer.output.dropout, ones),
    )


def _kept(site: nn.Dropout, ones: Tensor) -> Tensor | None:
    return F.dropout(ones, site.p) if site.training and site.p else None


def _flops(layer: Any, tokens: int, layout: Sequence[Rectangle]) -> float:
    """Of one layer, forward and back."""
    linear = [module for module in layer.modules() if isinstance(module, nn.Linear)]
    learnt = sum(one.in_features * one.out_features * (2 + one.weight.requires_grad) for one in linear)
    cells = sum(texts * longest**2 for texts, longest in (area.mask.shape for area in layout))
    return 2.0 * tokens * learnt + 2.0 * cells * layer.attention.self.all_head_size * 6


# All encoders of a stack


class _Stack:
    """Answers what the encoders ask: layers as soon as any asks for them, gradients when all do."""

    def __init__(self, world: World) -> None:
        self._device, self._half = torch.device(world.device).type, world.precision == "bf16"
        self._layers: dict[tuple[int, ...], list[_Layer]] = {}  # of a step, by who takes part
        self._given: list[tuple[Tensor, Sequence[Tensor]]] = []  # (K, M, D), and the leaf that each has of it

    def serve(self, waiting: Mapping[int, Any]) -> Mapping[int, Any]:
        asked = {place: request for place, request in waiting.items() if isinstance(request, _Pass)}
        if not asked:
            self._backward()
            return dict.fromkeys(waiting)
        try:
            with shortage_told(), torch.autocast(self._device, torch.bfloat16, enabled=self._half):
                return dict(zip(asked, self._forward(tuple(asked), list(asked.values())), strict=True))
        except Shortage as short:
            raise OutOfMemory(
                f"the device has no memory for a step of {len(asked)} encoders: {short}"
                "\n  accepted: a smaller resources.runs_per_stack, or a smaller train.batch_size"
            ) from None

    def _forward(self, who: tuple[int, ...], asked: Sequence[_Pass]) -> list[list[Tensor]]:
        """Leaves with what each layer gave each encoder, or the last alone, (1, M_k, D)."""
        if who not in self._layers:
            self._layers[who] = [_Layer.of(same) for same in zip(*(one.layers for one in asked), strict=True)]
        states = pad_sequence([one.states for one in asked], batch_first=True)  # (K, M, D)
        areas = _Areas.of([one.layout for one in asked], [len(one.states) for one in asked])
        found: list[list[Tensor]] = [[] for _ in asked]
        layers, every = self._layers[who], any(one.every for one in asked)
        for layer, noise in zip(layers, zip(*(one.noise for one in asked), strict=True), strict=True):
            states = layer.run(states, areas, noise)
            if not every and layer is not layers[-1]:
                continue
            leaves = [
                row[: len(one.states)].detach().requires_grad_() for row, one in zip(states, asked, strict=True)
            ]
            self._given.append((states, leaves))
            for own, leaf in zip(found, leaves, strict=True):
                own.append(leaf[None])
        return found

    def _backward(self) -> None:
        """From what the losses sent back, the gradients of all layers and of what went into the first."""
        reached = [
            (states, pad_sequence([_gradient(leaf) for leaf in leaves], batch_first=True))
            for states, leaves in self._given
            if any(leaf.grad is not None for leaf in leaves)
        ]
        self._given.clear()
        self._layers.clear()
        _back_through(reached)


def _back_through(reached: Sequence[tuple[Tensor, Tensor]]) -> None:
    """Send each gradient on from the tensor that it reached, all in one pass."""
    if reached:
        torch.autograd.backward([one for one, _ in reached], [gradient for _, gradient in reached])


def _gradient(leaf: Tensor) -> Tensor:
    return torch.zeros_like(leaf) if leaf.grad is None else leaf.grad


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
class _Layer:
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
    def of(same: Sequence[Any]) -> _Layer:
        first = same[0].attention.self
        projections = [
            [own.attention.self.query, own.attention.self.key, own.attention.self.value] for own in same
        ]
        return _Layer(
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

    def run(self, states: Tensor, areas: _Areas, noise: Sequence[_Noise]) -> Tensor:
        """(K, M, D) -> (K, M, D)."""
        mixed = self._attention(self.projections(states), areas, [one.attention for one in noise])
        states = self.mixed_norm(_times(self.mixed(mixed), [one.mixed for one in noise]) + states)
        rows = self.narrow(self.activation(self.wide(states)))
        return self.output_norm(_times(rows, [one.output for one in noise]) + states)

    def _attention(self, rows: Tensor, areas: _Areas, noise: Sequence[Sequence[Tensor | None]]) -> Tensor:
        """Attention within each text. Queries, keys and values side by side (K, M, 3 D) -> (K, M, D)."""
        count, longest, width = len(rows), rows.shape[1], rows.shape[2] // 3
        tokens = rows.reshape(count * longest, 3, self.heads, width // self.heads)
        parts = []
        for area in areas.each:
            picked = tokens.index_select(0, area.places).view(*area.mask.shape, *tokens.shape[1:])
            q, k, v = picked.permute(2, 0, 3, 1, 4)  # (n, H, T, d) each
            scores = (q @ k.transpose(-1, -2)) * self.scaling
            if not area.full:
                scores = scores.masked_fill(~area.mask[:, None, None, :], -torch.inf)
            chances = scores.softmax(-1)
            if (kept := area.noise(noise)) is not None:
                chances = chances * kept
            cells = (chances @ v).transpose(1, 2).flatten(0, 1)  # (n · T, H, d)
            parts.append(cells if area.full else cells.index_select(0, area.cells))
        parts.append(parts[0].new_zeros(1, *tokens.shape[2:]))  # of padding: what one encoder broke stays its own
        return torch.cat(parts).index_select(0, areas.order).view(count, longest, width)


def _times(rows: Tensor, noise: Sequence[Tensor | None]) -> Tensor:
    """Dropout of K encoders, each of its own M_k rows; what lies beyond them is padding."""
    if all(one is None for one in noise):
        return rows
    assert all(one is not None for one in noise), "encoders of a stack drop at the same places"
    return rows * pad_sequence([one for one in noise if one is not None], batch_first=True)


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
class _Areas:
    """How attention sees the rows of K encoders. order (K · M,): where each row's answer is among all areas', of
    padding behind them."""

    each: Sequence[_Area]
    order: Tensor

    @staticmethod
    def of(layouts: Sequence[Sequence[Rectangle]], lengths: Sequence[int]) -> _Areas:
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
        return _Areas(areas, moved(order.ravel(), device))


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
