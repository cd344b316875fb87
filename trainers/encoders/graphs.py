"""Runs an encoder's layers on a card as CUDA graphs: all that a pass asks of the card is asked at once.

For a step's short texts a processor takes several times as long to ask for a pass's kernels, one after another,
as the card to compute them (`benchmarks/gpu.py`, section `profile`). A graph is asked for by one call. It repeats
what it was captured from, with the same memory: inputs and gradients are copied to and from its own, and a pass is
padded to one of few shapes, with up to an eighth more tokens, in texts of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from trainers.encoders.captured_pass import Graph, PassSlot, Shape, Weights, passed
from trainers.encoders.dropout import Site
from trainers.encoders.encoder import Encoder
from trainers.encoders.flash import attends
from trainers.encoders.packed_texts import PackedTexts
from trainers.encoders.stacked_layers import flops_of
from trainers.engine.bf16_copies import Bf16Copy, trained
from trainers.engine.flat_parameters import FlatParameters
from trainers.engine.meter import counting
from trainers.engine.shortage import Shortage, give_back_memory, raising_shortage

if TYPE_CHECKING:
    from trainers.encoders.packing import Rectangle
    from trainers.engine.world import World

FEWEST = 64  # rows and texts of a shape are multiples of this
SHORTEST = 16  # tokens for which a shape's longest text has room, at least; above that a power of 2
EIGHTHS = 8
MOST = 64  # graphs of a slot: each holds inputs, outputs and gradients of its shape; parts of a batch have many


def graphs_of(encoder: Encoder, world: World) -> Graphs | None:
    """Graphs for an encoder; None where it does not train as they need it.

    That is on a card of today, in bf16, with one worker, packed, and with dropout that depends on nothing but its
    rate.
    """
    alone = world.size == 1 and not world.zero_stage and world.seat is None
    if not (alone and encoder.packed and world.precision == "bf16"):
        return None
    config = encoder.backbone.config
    width = config.hidden_size // config.num_attention_heads
    asked = any(isinstance(site, Site) and site.asked is not None for site in encoder.backbone.modules())
    if asked or not attends(torch.device(world.device), torch.bfloat16, width):
        return None
    return Graphs(encoder, encoder.bf16_copies(world.device))


class Graphs:
    """Runs the passes of one encoder in training, in place of its backbone."""

    def __init__(self, encoder: Encoder, copies: Sequence[Bf16Copy]) -> None:
        self._body = encoder.backbone
        self._encoder = encoder
        self._copies = trained(copies)
        self._sites = [site for site in self._body.modules() if isinstance(site, nn.Dropout)]
        self._weights: Weights | None = None  # made by `take`
        self._slots: list[PassSlot] = []
        self._flops, self._flops_of = 0.0, flops_of(self._body.encoder.layer)

    @contextmanager
    def joined(self, model: nn.Module) -> Iterator[None]:
        """Until the block ends, run all passes of training."""
        self._encoder.running = self
        try:
            yield
        finally:
            self._encoder.running = None
            self.forget()
            self._weights = None

    def forget(self) -> bool:
        """Give back the memory of all graphs, which are captured anew when needed. -> whether there were any."""
        found = any(slot.graphs for slot in self._slots)
        for slot in self._slots:
            slot.clear()
        self._slots.clear()
        return found

    @property
    def parameters(self) -> list[nn.Parameter]:
        """Those that graphs give gradients to; words are looked up outside of them."""
        words = self._body.get_input_embeddings().weight
        return [one for one in self._body.parameters() if one.requires_grad and one is not words]

    def take(self, flats: Sequence[FlatParameters]) -> None:
        """Give gradients to these, of all `parameters`. To be called before the first pass, on its device."""
        self._weights = Weights.of(self._body, self._copies, flats)

    def flops(self) -> float:
        """Operations of the passes since the last call, less what hooks have counted of captures."""
        found, self._flops = self._flops, 0.0
        return found

    def __call__(
        self,
        *,
        inputs_embeds: Tensor,
        position_ids: Tensor,
        output_hidden_states: bool,
        layout: Sequence[Rectangle],
        texts: PackedTexts,
    ) -> Any:
        """Return what the backbone would for a pass (1, M, E)."""
        assert self._weights is not None, "no pass before `take`"
        if torch.is_grad_enabled():  # what is read without gradients is read again with them
            self._flops += self._flops_of(inputs_embeds.shape[1], layout)
        rates = tuple(site.p if site.training else 0.0 for site in self._sites)
        shape = _shape(inputs_embeds.shape[1], len(texts.begins) - 1, texts.longest, output_hidden_states, rates)
        slot = next((slot for slot in self._slots if slot.free), None)
        if slot is None:
            slot = PassSlot(self._weights)
            self._slots.append(slot)
        graph = slot.graphs.pop(shape, None) or self._captured(shape, inputs_embeds.shape[-1], slot)
        slot.graphs[shape] = graph  # the one that was used last is last
        graph.take(position_ids, texts)
        states = passed(graph, inputs_embeds)
        return SimpleNamespace(last_hidden_state=states[-1], hidden_states=states)

    def _captured(self, shape: Shape, width: int, slot: PassSlot) -> Graph:
        """A graph for a new shape. If there is no room for it, all graphs that are not in use make some."""
        if len(slot.graphs) == MOST:
            del slot.graphs[next(iter(slot.graphs))]
        slot.keep_earlier()  # a pass is tried before it is captured
        with suppress(Shortage), raising_shortage():
            return self._tried(shape, width, slot)
        for own in self._slots:
            if own.free:
                own.clear()
        give_back_memory()
        return self._tried(shape, width, slot)

    def _tried(self, shape: Shape, width: int, slot: PassSlot) -> Graph:
        with counting(self._body) as counted:
            try:
                return Graph(self._body, shape, width, slot)
            finally:
                self._flops -= counted()


def _shape(rows: int, texts: int, longest: int, every: bool, rates: tuple[float, ...]) -> Shape:
    """The smallest shape in which a pass finds room, and texts of no more than `longest` for all rows besides."""
    room = max(SHORTEST, 1 << (longest - 1).bit_length())
    padded = _rounded(rows)
    return Shape(padded, _rounded(texts + -(-(padded - rows) // room)), room, every, rates)


def _rounded(count: int) -> int:
    step = max(FEWEST, (1 << (count.bit_length() - 1)) // EIGHTHS)
    return -(-count // step) * step
