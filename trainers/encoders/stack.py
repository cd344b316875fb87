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

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from types import SimpleNamespace
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from trainers.encoders.encoder import Encoder
from trainers.encoders.packing import PACKED, Rectangle
from trainers.encoders.stacked_layers import Areas, LayerNoise, StackedLayer, drawn_noise, flops_of
from trainers.engine.lockstep import Ask, in_lockstep
from trainers.engine.meter import part_of
from trainers.engine.shortage import OutOfMemory, Shortage, shortage_told
from trainers.engine.world import World

T = TypeVar("T")


def fit_together(fits: Sequence[Callable[[World], T]], worlds: Sequence[World]) -> list[T | Exception]:
    """What each training returns or raises in its world, their encoders' layers run together.

    Each trains one encoder that runs packed; one that ends, or fails, leaves the others to go on. ValueError for
    an encoder that cannot take part.
    """
    size, steps, lighter = len(fits), [0] * len(fits), _lighter(len(fits))
    at_work = set(range(size))

    def seated(ask: Ask, place: int, fit: Callable[[World], T], world: World) -> T:
        def spent(flops: float, seconds: float) -> None:
            steps[place] += 1
            world.spent(flops, seconds / len(at_work))  # each sees the time of all

        def so_far() -> Mapping[str, float]:
            return part_of(world.so_far(), seat.share)

        seat = Member(ask, lighter, lambda: steps[place] / sum(steps) if any(steps) else 1 / size)
        try:
            return fit(replace(world, seat=seat, spent=spent, so_far=so_far))
        finally:
            at_work.discard(place)

    torch.set_num_threads(worlds[0].threads)
    works = [
        partial(seated, place=place, fit=fit, world=world)
        for place, (fit, world) in enumerate(zip(fits, worlds, strict=True))
    ]
    return in_lockstep(works, _Stack(worlds[0], lighter).serve)


def _lighter(size: int) -> str:
    """The setting by which less than a stack of so many is in memory at a time."""
    if size == 1:
        return "resources.runs_per_stack = 1 with train.micro_batch: auto"
    return f"resources.runs_per_stack = {size // 2}"


# One encoder of a stack


@dataclass(frozen=True, eq=False)
class _Pass:
    """What an encoder asks for: its layers, over the states of a pass that runs packed.

    states (M, D). every: what each layer gives is wanted, not the last alone.
    """

    layers: Sequence[Any]
    states: Tensor
    layout: Sequence[Rectangle]
    noise: Sequence[LayerNoise]
    every: bool

    @property
    def kind(self) -> Hashable:
        """What passes have in common that run as one: how many layers there are, and where those drop anything."""
        first = self.noise[0]
        return len(self.layers), first.mixed is None, first.output is None, first.attention[0] is None


class _Backward:
    """What an encoder asks for when its loss has sent gradients to all that the layers gave."""


class Member:
    """An encoder's place in a stack (`trainers.engine.world.Seat`)."""

    def __init__(self, ask: Ask, lighter: str, share: Callable[[], float]) -> None:
        self.lighter, self._ask, self._share, self._flops = lighter, ask, share, 0.0
        self._embedded: list[tuple[Tensor, Tensor]] = []  # what embeddings gave, and the leaf that took its place

    @property
    def share(self) -> float:
        """By the steps that each of the stack has taken until now."""
        return self._share()

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
        self._flops += flops_of(layers[0], leaf.shape[1], layout) * len(layers)
        noise = [drawn_noise(layer, leaf, layout) for layer in layers]
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


# All encoders of a stack


class _Stack:
    """Answers what the encoders ask: layers as soon as any asks for them, gradients when all do.

    lighter: the setting of a smaller stack, for one that finds too little memory.
    """

    def __init__(self, world: World, lighter: str) -> None:
        self._device, self._half = torch.device(world.device).type, world.precision == "bf16"
        self._lighter = lighter
        self._layers: dict[tuple[int, ...], list[StackedLayer]] = {}  # of a step, by who takes part
        self._given: list[tuple[Tensor, Sequence[Tensor]]] = []  # (K, M, D), and the leaf that each has of it

    def serve(self, waiting: Mapping[int, Any]) -> Mapping[int, Any]:
        try:
            with shortage_told():
                return self._answers(waiting)
        except Shortage as short:
            raise OutOfMemory(
                f"the device has no memory for a step of {len(waiting)} encoders: {short}"
                f"\n  accepted: {self._lighter}; or a smaller train.batch_size or train.max_length"
            ) from None

    def _answers(self, waiting: Mapping[int, Any]) -> Mapping[int, Any]:
        asked = {place: request for place, request in waiting.items() if isinstance(request, _Pass)}
        if not asked:
            self._backward()
            return dict.fromkeys(waiting)
        alike: dict[Hashable, dict[int, _Pass]] = {}
        for place, one in asked.items():
            alike.setdefault(one.kind, {})[place] = one
        given: dict[int, list[Tensor]] = {}
        with torch.autocast(self._device, torch.bfloat16, enabled=self._half):
            for some in alike.values():
                given |= zip(some, self._forward(tuple(some), list(some.values())), strict=True)
        return given

    def _forward(self, who: tuple[int, ...], asked: Sequence[_Pass]) -> list[list[Tensor]]:
        """Leaves with what each layer gave each encoder, or the last alone, (1, M_k, D)."""
        if who not in self._layers:
            self._layers[who] = [
                StackedLayer.of(same) for same in zip(*(one.layers for one in asked), strict=True)
            ]
        states = pad_sequence([one.states for one in asked], batch_first=True)  # (K, M, D)
        areas = Areas.of([one.layout for one in asked], [len(one.states) for one in asked])
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
