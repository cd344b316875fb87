"""An encoder that runs as graphs outside of a training, and the gradients of its parameters by name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import Tensor

from trainers.encoders.encoder import Encoder
from trainers.encoders.graphs import Graphs
from trainers.engine.flat_groups import FlatGroups


@contextmanager
def as_graphs(encoder: Encoder, device: str) -> Iterator[Graphs]:
    own, flat = Graphs(encoder, encoder.bf16_copies(device)), FlatGroups([{"params": list(encoder.parameters())}])
    with own.joined(encoder):
        flat.join(own.parameters)
        own.take(flat.flats)
        try:
            yield own
        finally:
            flat.separate()


def clear(encoder: Encoder, own: Graphs | None) -> None:
    """Remove all gradients. own: the graphs that it runs as."""
    encoder.zero_grad()
    if own is not None and own._weights is not None:
        for flat in own._weights.flats:
            flat.whole.grad = None


def gradients_by_name(encoder: Encoder, own: Graphs | None) -> dict[str, Tensor]:
    """Copies of those that there are."""
    flats = own._weights.flats if own is not None and own._weights is not None else ()
    found = {
        id(part): view
        for flat in flats
        if flat.whole.grad is not None
        for part, view in zip(flat.parts, flat.views(flat.whole.grad), strict=True)
    }
    each = {name: found.get(id(one), one.grad) for name, one in encoder.named_parameters()}
    return {name: gradient.clone() for name, gradient in each.items() if gradient is not None}
