"""Trains K encoders of one architecture together: their layers run as one batch, over stacked weights (K, …).

Everything else of a step each encoder does alone: texts, embeddings, dropout, readout, loss, clipping, optimiser,
checkpoints. A stacked layer costs a GPU as many launches as one encoder's layer, so that small backbones fill a
large GPU.

    forward   each encoder embeds its texts and draws its dropout, (1, M_k, D); then the stacked layers run,
              (K, M, D), with rows of padding for encoders that have fewer tokens; then each computes its loss
    backward  each encoder from its loss to the layers' outputs; then the stacked layers; then each its embeddings

Results equal those of training alone but for the order of rounding: `tests/trainers/encoders/test_stack.py` bounds
the difference.
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
from trainers.encoders.packed_texts import PackedTexts
from trainers.encoders.packing import PACKED, Rectangle
from trainers.encoders.stacked_layers import Areas, LayerNoise, StackedLayer, drawn_noise, flops_of
from trainers.engine.lockstep import Ask, in_lockstep
from trainers.engine.meter import part_of
from trainers.engine.shortage import OutOfMemory, Shortage, raising_shortage
from trainers.engine.world import World

T = TypeVar("T")


def fit_together(fits: Sequence[Callable[[World], T]], worlds: Sequence[World]) -> list[T | Exception]:
    """Run the trainings, each in its world, encoders' layers stacked; return what each returned or raised.

    Each trains one packed encoder; when one ends or fails, the others go on. Returns a ValueError for an encoder
    that does not run packed.
    """
    size, steps, lighter = len(fits), [0] * len(fits), _lighter(len(fits))
    at_work = set(range(size))

    def seated(ask: Ask, place: int, fit: Callable[[World], T], world: World) -> T:
        def spent(flops: float, seconds: float) -> None:
            steps[place] += 1
            world.spent(flops, seconds / len(at_work))  # each one's seconds include the work for all

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
    """The setting that needs less memory than a stack of this size."""
    if size == 1:
        return "resources.runs_per_stack = 1 with train.micro_batch: auto"
    return f"resources.runs_per_stack = {size // 2}"


# One encoder of a stack


@dataclass(frozen=True, eq=False)
class _Pass:
    """An encoder's request to run its layers over the states (M, D) of a packed pass.

    every: return the output of every layer, not of the last alone.
    """

    layers: Sequence[Any]
    states: Tensor
    layout: Sequence[Rectangle]
    noise: Sequence[LayerNoise]
    every: bool

    @property
    def kind(self) -> Hashable:
        """Equal for passes that can run together: the number of layers, and which dropouts are active."""
        first = self.noise[0]
        return len(self.layers), first.mixed is None, first.output is None, first.attention[0] is None


class _Backward:
    """An encoder's request to continue backwards through the layers, once its loss has been back-propagated."""


class Member:
    """An encoder's place in a stack (`trainers.engine.world.Seat`)."""

    def __init__(self, ask: Ask, lighter: str, share: Callable[[], float]) -> None:
        self.lighter, self._ask, self._share, self._flops = lighter, ask, share, 0.0
        # outputs of embeddings, and the leaves that replaced them
        self._embedded: list[tuple[Tensor, Tensor]] = []

    @property
    def share(self) -> float:
        """This encoder's fraction of all steps that the stack's encoders have taken until now."""
        return self._share()

    @contextmanager
    def joined(self, model: nn.Module) -> Iterator[None]:
        """Until the block ends, let the stack run the layers of the model's encoder in training."""
        encoder = next(module for module in model.modules() if isinstance(module, Encoder))
        if not encoder.packed:
            raise ValueError(refusal(encoder.backbone.config.model_type))
        encoder.running = partial(self._run, encoder.backbone, flops_of(encoder.backbone.encoder.layer))
        try:
            yield
        finally:
            encoder.running = None

    def backward(self) -> None:
        """Continue a step's backward pass from the layers' outputs, through the layers and the embeddings."""
        self._ask(_Backward())
        reached = [
            (states, leaf.grad)
            for states, leaf in self._embedded
            if states.requires_grad and leaf.grad is not None
        ]
        self._embedded.clear()
        _back_through(reached)

    def flops(self) -> float:
        """Operations of the layers since the last call, counted as in `trainers.engine.meter.counting`."""
        found, self._flops = self._flops, 0.0
        return found

    def _run(
        self,
        backbone: Any,
        flops: Callable[[int, Sequence[Rectangle]], float],
        *,
        inputs_embeds: Tensor,
        position_ids: Tensor,
        output_hidden_states: bool,
        layout: Sequence[Rectangle],
        texts: PackedTexts,
    ) -> Any:
        """Return what the backbone would for a pass; each state is a leaf, from which `backward` continues."""
        states = backbone.embeddings(inputs_embeds=inputs_embeds, position_ids=position_ids)
        if hasattr(backbone, "embeddings_project"):
            states = backbone.embeddings_project(states)
        leaf, layers = states.detach().requires_grad_(), backbone.encoder.layer
        self._embedded.append((states, leaf))
        self._flops += flops(leaf.shape[1], layout)
        noise = [drawn_noise(layer, leaf, layout) for layer in layers]
        given = self._ask(_Pass(layers, leaf[0], layout, noise, output_hidden_states))
        every = (leaf, *given) if output_hidden_states else None
        return SimpleNamespace(last_hidden_state=given[-1], hidden_states=every)


def refusal(kind: str) -> str:
    """The message for a backbone of this model_type, which cannot be stacked."""
    *others, last = sorted(PACKED)
    return (
        f"resources.runs_per_stack: {kind} runs in padded rectangles"
        f"\n  accepted: 1; more with {', '.join(others)} or {last}"
    )


# All encoders of a stack


class _Stack:
    """Serves the encoders' requests: layers as soon as one encoder asks for them, gradients once all do.

    lighter: the setting of a smaller stack, for the message when memory runs out.
    """

    def __init__(self, world: World, lighter: str) -> None:
        self._device, self._half = torch.device(world.device).type, world.precision == "bf16"
        self._lighter = lighter
        # of this step, by the places of the encoders that take part
        self._layers: dict[tuple[int, ...], list[StackedLayer]] = {}
        # outputs (K, M, D), and each encoder's leaf of them
        self._given: list[tuple[Tensor, Sequence[Tensor]]] = []

    def serve(self, waiting: Mapping[int, Any]) -> Mapping[int, Any]:
        try:
            with raising_shortage():
                return self._answers(waiting)
        except Shortage as short:
            raise OutOfMemory(
                f"the device has no memory for a step of {len(waiting)} encoders: {short}"
                f"\n  accepted: {self._lighter}; or a smaller train.batch_size or train.max_length"
            ) from None

    def _answers(self, waiting: Mapping[int, Any]) -> Mapping[int, Any]:
        passes = {place: request for place, request in waiting.items() if isinstance(request, _Pass)}
        if not passes:
            self._backward()
            return dict.fromkeys(waiting)
        by_kind: dict[Hashable, dict[int, _Pass]] = {}
        for place, request in passes.items():
            by_kind.setdefault(request.kind, {})[place] = request
        answers: dict[int, list[Tensor]] = {}
        with torch.autocast(self._device, torch.bfloat16, enabled=self._half):
            for alike in by_kind.values():
                answers |= zip(alike, self._forward(tuple(alike), list(alike.values())), strict=True)
        return answers

    def _forward(self, places: tuple[int, ...], passes: Sequence[_Pass]) -> list[list[Tensor]]:
        """For each encoder a leaf (1, M_k, D) with the output of each layer, or of the last alone."""
        if places not in self._layers:
            self._layers[places] = [
                StackedLayer.of(same) for same in zip(*(each.layers for each in passes), strict=True)
            ]
        states = pad_sequence([each.states for each in passes], batch_first=True)  # (K, M, D)
        areas = Areas.of([each.layout for each in passes], [len(each.states) for each in passes])
        outputs: list[list[Tensor]] = [[] for _ in passes]
        layers, every = self._layers[places], any(each.every for each in passes)
        for layer, noise in zip(layers, zip(*(each.noise for each in passes), strict=True), strict=True):
            states = layer.run(states, areas, noise)
            if not every and layer is not layers[-1]:
                continue
            leaves = [
                row[: len(each.states)].detach().requires_grad_() for row, each in zip(states, passes, strict=True)
            ]
            self._given.append((states, leaves))
            for own, leaf in zip(outputs, leaves, strict=True):
                own.append(leaf[None])
        return outputs

    def _backward(self) -> None:
        """Back-propagate from the leaves' gradients through all layers, down to the inputs of the first."""
        reached = [
            (states, pad_sequence([_gradient(leaf) for leaf in leaves], batch_first=True))
            for states, leaves in self._given
            if any(leaf.grad is not None for leaf in leaves)
        ]
        self._given.clear()
        self._layers.clear()
        _back_through(reached)


def _back_through(reached: Sequence[tuple[Tensor, Tensor]]) -> None:
    """Back-propagate these (tensor, gradient) pairs in one backward pass."""
    if reached:
        torch.autograd.backward([tensor for tensor, _ in reached], [gradient for _, gradient in reached])


def _gradient(leaf: Tensor) -> Tensor:
    return torch.zeros_like(leaf) if leaf.grad is None else leaf.grad
