"""A pass through an encoder's layers as two CUDA graphs, forward and back, and what graphs of a training share.

Weights are copied to bf16 within a graph, and it leaves gradients of parameters where the optimiser looks for
them, so that neither costs the processor anything. `trainers.encoders.graphs` decides which graph runs.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

import torch
from torch import Tensor, nn

from trainers.encoders.packed_texts import PackedTexts
from trainers.engine.bf16_copies import Bf16Copy, copy_all, in_place, parts
from trainers.engine.flat_parameters import FlatParameters

Act = Callable[[], None]


@dataclass(frozen=True)
class Shape:
    """What a graph is captured for. rates: of all dropouts, in order."""

    rows: int
    texts: int
    longest: int
    every: bool
    rates: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Weights:
    """Leaves that stand for a body's trained parameters in all graphs of a training.

    places: where the leaves go, first those of `halves`. halves: bf16 copies. others: what shares the memory of a
    parameter without a copy; a parameter itself may belong to another stream than a capture's. flats: of all these
    parameters.
    """

    places: Sequence[Bf16Copy]
    halves: Sequence[Tensor]
    others: Sequence[Tensor]
    flats: Sequence[FlatParameters]

    @staticmethod
    def of(body: Any, copies: Sequence[Bf16Copy], flats: Sequence[FlatParameters]) -> Weights:
        each = [torch.cat([weight.detach() for weight in copy.weights]) for copy in copies]
        copied = {id(weight) for copy in copies for weight in copy.weights}
        without = {id(parameter) for flat in flats for parameter in flat.parts} - copied
        others = [
            Bf16Copy(module, name, [one])
            for module in body.modules()
            for name, one in module._parameters.items()
            if id(one) in without
        ]
        return Weights(
            [*copies, *others],
            [one.to(torch.bfloat16).requires_grad_() for one in each],
            [place.weights[0].detach().requires_grad_() for place in others],
            flats,
        )

    @property
    def leaves(self) -> list[Tensor]:
        return [*self.halves, *self.others]

    @cached_property
    def parameters(self) -> list[nn.Parameter]:
        return [weight for place in self.places for weight in place.weights]

    @property
    def anchor(self) -> nn.Parameter | None:
        """A parameter, by which a pass is known to have gradients; None where nothing is trained."""
        return next(iter(self.parameters), None)

    @cached_property
    def rows(self) -> list[list[int]]:
        """Of each parameter of each place."""
        return [[len(weight) for weight in place.weights] for place in self.places]

    def copy(self) -> None:
        """Make all copies anew, in place."""
        each = parts([half.data for half in self.halves], self.rows[: len(self.halves)])
        copy_all(each, [weight.data for weight in self.parameters[: len(each)]])

    def by_parameter(self, gradients: Sequence[Tensor]) -> list[Tensor]:
        """Gradients of the leaves as gradients of `parameters`."""
        return parts(gradients, self.rows)


@dataclass(eq=False)
class PassSlot:
    """Room for one pass between its forward and its backward; a step with several passes has several.

    Its graphs share memory, as no two of them are in use at a time. flat: the gradients of each of weights.flats;
    gradients: of each of weights.parameters, within them. user: returns the pass that is on its way, None if there
    is none.
    """

    weights: Weights
    graphs: dict[Shape, Graph] = field(default_factory=dict)
    pool: Any = field(default_factory=lambda: torch.cuda.graph_pool_handle())
    user: Callable[[], object | None] = field(default=lambda: None)

    def __post_init__(self) -> None:
        flats = self.weights.flats
        self.flat = [torch.zeros_like(flat.whole) for flat in flats]
        views = {
            id(part): view
            for flat, gradient in zip(flats, self.flat, strict=True)
            for part, view in zip(flat.parts, flat.views(gradient), strict=True)
        }
        assert len(views) == len(self.weights.parameters), "a parameter stands in two places, or in none"
        self.gradients = [views[id(parameter)] for parameter in self.weights.parameters]

    @property
    def free(self) -> bool:
        return self.user() is None

    def clear(self) -> None:
        """Forget all graphs, which refer to this slot, and their memory."""
        self.graphs.clear()
        self.pool = torch.cuda.graph_pool_handle()

    def hand_over(self) -> None:
        """Leave all gradients where the optimiser looks for them, or add them to what is there."""
        for flat, gradient in zip(self.weights.flats, self.flat, strict=True):
            flat.add(gradient)

    def keep_earlier(self) -> None:
        """Copy gradients that an earlier pass of the same step has left here, before they are written anew."""
        for flat, gradient in zip(self.weights.flats, self.flat, strict=True):
            flat.keep(gradient)


class Graph:
    """A pass of one shape, captured forward and back."""

    def __init__(self, body: Any, shape: Shape, width: int, slot: PassSlot) -> None:
        weights = slot.weights
        device = body.device
        self.slot = slot
        self.words = torch.zeros(1, shape.rows, width, device=device, requires_grad=True)
        self.positions = torch.zeros(1, shape.rows, dtype=torch.long, device=device)
        steps = torch.arange(0, (shape.texts + 1) * shape.longest, shape.longest, dtype=torch.int32, device=device)
        self.steps = steps
        self.texts = PackedTexts(steps.clamp(max=shape.rows), shape.longest)
        self.states = list[Tensor]()  # of the last layer, or of every one
        self.given = list[Tensor]()  # their gradients

        def forward() -> None:
            weights.copy()
            with (
                torch.enable_grad(),
                torch.autocast(device.type, torch.bfloat16, cache_enabled=False),  # no copy outlives a capture
                in_place(weights.places, weights.leaves),
            ):
                out = body(
                    inputs_embeds=self.words,
                    position_ids=self.positions,
                    output_hidden_states=shape.every,
                    layout=(),
                    texts=self.texts,
                )
            self.states = list(out.hidden_states) if shape.every else [out.last_hidden_state]

        def backward() -> None:
            asked = [self.words, *weights.leaves]
            self.of_words, *found = torch.autograd.grad(self.states, asked, self.given)
            each = list(zip(slot.gradients, weights.by_parameter(found), strict=True))
            for kind in (torch.bfloat16, torch.float32):  # of several at once torch copies one by one
                alike = [(to, one) for to, one in each if one.dtype == kind]
                copy_all([to for to, _ in alike], [one for _, one in alike])

        with aside(device):  # libraries set themselves up when first called, which cannot be captured
            forward()
            self.given = [torch.zeros_like(one) for one in self.states]
            backward()
            self.states = []  # what is held of this graph would tie the leaves to this stream
            self.forward, self.backward = captured(forward, slot.pool), captured(backward, slot.pool)
        self.states = [one.detach() for one in self.states]

    def take(self, positions: Tensor, texts: PackedTexts) -> None:
        """Put in the positions (1, M) and texts of the pass that comes; the rows behind are texts of their own."""
        rows, count = positions.shape[1], len(texts.begins)
        self.positions[:, :rows].copy_(positions)
        begins = self.texts.begins
        begins[:count].copy_(texts.begins)
        if count < len(begins):
            torch.add(self.steps[1 : len(begins) - count + 1], rows, out=begins[count:])
            begins[count:].clamp_(max=self.words.shape[1])


def captured(act: Act, pool: Any) -> Act:
    """Capture as a graph what `act` asks of the card, without doing it. -> what does it."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool, capture_error_mode="thread_local"):  # a thread makes the next batch
        act()
    return graph.replay


@contextmanager
def aside(device: torch.device) -> Iterator[None]:
    """On a stream of its own, as a capture is, and without drawing from torch's random numbers."""
    usual, own = torch.cuda.current_stream(device), _stream_of(device)
    own.wait_stream(usual)
    try:
        with torch.random.fork_rng([device]), torch.cuda.stream(own):
            yield
    finally:
        usual.wait_stream(own)


@cache
def _stream_of(device: torch.device) -> torch.cuda.Stream:
    """One for all captures: cuBLAS keeps memory for each stream that it has met."""
    return torch.cuda.Stream(device)


def passed(graph: Graph, words: Tensor) -> tuple[Tensor, ...]:
    """Run a graph over word embeddings (1, M, E) of no more rows than its shape has. -> states (1, M, D) each."""
    states: tuple[Tensor, ...] = _Pass.apply(graph, words, graph.slot.weights.anchor)
    return states


class _Use:
    """Of a slot, by one pass."""


class _Pass(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, graph: Graph, words: Tensor, anchor: Tensor | None) -> tuple[Tensor, ...]:
        rows = words.shape[1]
        graph.words.detach()[:, :rows].copy_(words)
        graph.forward()
        ctx.graph, ctx.use = graph, _Use()
        graph.slot.user = weakref.ref(ctx.use)
        return tuple([one[:, :rows].clone() for one in graph.states])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, Tensor, None]:
        graph, rows = ctx.graph, gradients[0].shape[1]
        slot = graph.slot
        assert slot.user() is ctx.use, "a pass goes back once"
        for own, gradient in zip(graph.given, gradients, strict=True):
            own[:, :rows].copy_(gradient)
            own[:, rows:].zero_()
        slot.keep_earlier()
        graph.backward()
        slot.hand_over()
        slot.user = lambda: None
        return None, graph.of_words[:, :rows].clone(), None
