"""Layers asked of a card one kernel at a time, and all at once as CUDA graphs: what a step's asking costs.

Graphs want one shape for ever, so all texts are of full length here, and padded. One by one weights are copied to
bf16 as trainings do it, at once; a graph has a copy of its own for each, which costs it nothing to ask for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn

from card.bench import Bench, Figure
from trainers.encoders.encoder import Encoder
from trainers.engine.bf16_copies import bf16_copies, with_bf16_copies


def graphs(bench: Bench) -> Iterator[Figure]:
    """Forward and back over as many full texts as a step of SimCSE has."""
    for shape, batch in product(bench.sizes.shapes, bench.sizes.batches):
        layers, words = _layers(bench, shape, 2 * batch)
        where = f"{shape}, {2 * batch} texts of {bench.sizes.pieces}"
        copies = [copy for one in layers.modules() if isinstance(one, nn.Linear) for copy in bf16_copies(one)]
        learnt = [words, *layers.parameters()]
        apart = bench.seconds(_step(bench, with_bf16_copies(layers, copies), words, learnt))
        yield Figure(f"{where}: one by one", 1000 * apart, "ms")
        if not bench.on_card:
            yield Figure(f"{where}: as graphs", "not run without a card", "")
            continue
        with _half(bench):
            captured: Any = torch.cuda.make_graphed_callables(layers, (words,))
        together = bench.seconds(_step(bench, captured, words, learnt))
        yield Figure(f"{where}: as graphs", 1000 * together, "ms", f"{apart / together:.2f} x as fast")


class _Layers(nn.Module):
    """Word embeddings (N, T, D) -> states (N, T, D)."""

    def __init__(self, backbone: Any) -> None:
        super().__init__()
        self.backbone = backbone

    def forward(self, words: Tensor) -> Tensor:
        states: Tensor = self.backbone(inputs_embeds=words).last_hidden_state
        return states


def _layers(bench: Bench, shape: str, texts: int) -> tuple[_Layers, Tensor]:
    encoder = Encoder.load(bench.backbone(shape), max_length=bench.sizes.pieces).to(bench.device).train()
    encoder.backbone.set_attn_implementation("sdpa")
    encoder.backbone.get_input_embeddings().requires_grad_(False)  # words come from outside
    size = (texts, bench.sizes.pieces, encoder.width)
    return _Layers(encoder.backbone), torch.randn(size, device=bench.device, requires_grad=True)


def _step(
    bench: Bench, layers: Callable[[Tensor], Tensor], words: Tensor, learnt: Sequence[Tensor]
) -> Callable[[], None]:
    """Forward and back; gradients are those of a step alone, as in training: to add them up is not part of it."""

    def step() -> None:
        with _half(bench):
            layers(words).sum().backward()
        for one in learnt:
            one.grad = None

    return step


def _half(bench: Bench) -> torch.autocast:
    """Without copies of weights that outlive a capture."""
    return torch.autocast(torch.device(bench.device).type, torch.bfloat16, cache_enabled=False)
