"""Attention alone over a step's sentences: by kernels that trainings in bf16 use, in rectangles, and padded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

import numpy as np
import torch
import torch.nn.functional as F
from made_up import corpus
from torch import Tensor

from card.bench import Bench, Figure, replayed
from trainers.encoders import encoder as encoders_module
from trainers.encoders import flash
from trainers.encoders.encoder import Encoder, slack_of
from trainers.encoders.flash import attention_at_once
from trainers.encoders.packed_texts import PackedTexts
from trainers.encoders.packing import Rectangle, fused_attention
from trainers.encoders.tokens import Tokens, groups

RATE = 0.1
SLACKS = (64, 512, 2048, 8192)  # padding cells of a rectangle
PASSES = (8192, 32_768)  # tokens
Way = Callable[[Tensor], Tensor]  # queries, keys and values (M, 3, H, d) -> what is mixed, of any shape


def attention(bench: Bench) -> Iterator[Figure]:
    """One layer's, forward and back, without the rest of the layer and without the time to ask for it."""
    for shape, batch in product(bench.sizes.shapes, bench.sizes.batches):
        tokens = _tokens(bench, shape, batch)
        rows, padded = (_rows(bench, shape, cells) for cells in (len(tokens.ids), len(tokens) * tokens.lengths[0]))
        where, usual = f"{shape}, {len(tokens)} texts", 0.0
        ways = [(*way, rows) for way in _ways(bench, tokens).items()]
        for name, way, given in (*ways, ("padded, torch's choice", _padded(bench, tokens), padded)):
            spent = replayed(bench, _step(way, given))
            usual = usual or spent
            beside = "" if spent is usual else f"{spent / usual:.1f} x as long"
            yield Figure(f"{where}: {name}", 1e6 * spent, "µs a layer", beside)


def _ways(bench: Bench, tokens: Tokens) -> dict[str, Way]:
    """Without padding around. The first is what trainings in bf16 use on this device."""
    device = torch.device(bench.device)
    found: dict[str, Way] = {}
    if bench.on_card:
        texts = PackedTexts.of(tokens.lengths, device)
        found["short texts' kernel"] = lambda rows: attention_at_once(rows, texts, scaling=0.125, dropout=RATE)
        found["flash attention"] = lambda rows: flash._Flash.apply(rows, texts, 0.125, RATE)
    layout = [Rectangle.of(group, device) for group in groups(tokens, slack=slack_of(device))]
    module = torch.nn.Module().train()
    found["in rectangles"] = lambda rows: fused_attention(
        module, rows.flatten(1)[None], heads=rows.shape[2], scaling=0.125, dropout=RATE, layout=layout
    )
    return found


def _padded(bench: Bench, tokens: Tokens) -> Way:
    """Over queries, keys and values (N · T, 3, H, d) that are padded already."""
    longest = int(tokens.lengths[0])
    there = torch.from_numpy(np.arange(longest) < tokens.lengths[:, None]).to(bench.device)  # (N, T)

    def way(rows: Tensor) -> Tensor:
        query, key, value = rows.unflatten(0, there.shape).permute(2, 0, 3, 1, 4)  # (N, H, T, d) each
        return F.scaled_dot_product_attention(
            query, key, value, attn_mask=there[:, None, None], dropout_p=RATE, scale=0.125
        )

    return way


def _step(way: Way, rows: Tensor) -> Callable[[], None]:
    def step() -> None:
        mixed = way(rows)
        torch.autograd.grad(mixed, rows, torch.ones_like(mixed))

    return step


def _tokens(bench: Bench, shape: str, batch: int) -> Tokens:
    """Of a step of SimCSE: each sentence twice, longest first."""
    encoder = Encoder.load(bench.backbone(shape), max_length=bench.sizes.pieces)
    return encoder.tokenise(2 * list(corpus(max(bench.sizes.batches)).sentences[:batch])).longest_first()[0]


def _rows(bench: Bench, shape: str, count: int) -> Tensor:
    _, width, heads = bench.sizes.shapes[shape]
    dtype = torch.bfloat16 if bench.on_card else torch.float32
    rows = torch.randn(count, 3, heads, width // heads, device=bench.device, dtype=dtype)
    return rows.requires_grad_()


def cuts(bench: Bench) -> Iterator[Figure]:
    """In fp32, a step's texts in fewer rectangles with more padding, and in fewer passes: what that is worth."""
    names = ("SLACK_OF_GPU", "PASS_OF_GPU") if bench.on_card else ("SLACK", "PASS")
    usual = [getattr(encoders_module, name) for name in names]
    try:
        for shape, batch in product(bench.sizes.shapes, bench.sizes.batches):
            encoder = Encoder.load(bench.backbone(shape), max_length=bench.sizes.pieces)
            encoder.to(bench.device).train()
            tokens = encoder.tokenise(list(corpus(2 * batch).sentences[:]))

            def step(encoder: Encoder = encoder, tokens: Tokens = tokens) -> None:
                encoder(tokens).sum().backward()
                encoder.zero_grad()

            for chosen in product(SLACKS, PASSES):
                for name, value in zip(names, chosen, strict=True):
                    setattr(encoders_module, name, value)
                where = f"{shape}, {2 * batch} texts, {chosen[0]} cells of padding, passes of {chosen[1]}"
                yield Figure(where, 1000 * bench.seconds(step, 3), "ms")
    finally:
        for name, value in zip(names, usual, strict=True):
            setattr(encoders_module, name, value)
