"""Attention on a card: without padding, by our own and by torch's over ragged rows, and padded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product

import numpy as np
import torch
from made_up import corpus
from ragged_attention import ragged, ragged_attention

from card.bench import Bench, Figure, apart
from corpora.store.errors import first_line
from trainers.encoders import encoder as encoders_module
from trainers.encoders.encoder import Encoder, slack_of
from trainers.encoders.packing import Rectangle, packed_attention
from trainers.encoders.tokens import Tokens, groups
from trainers.engine.process import reset_process
from trainers.engine.world import World

SLACKS = (64, 512, 2048, 8192)  # padding cells of a rectangle
PASSES = (8192, 32_768)  # tokens


def unpadded(bench: Bench) -> Iterator[Figure]:
    """Texts of unequal length: without padding, by our attention and by torch's over ragged rows, and padded."""
    found, failed = apart(bench, attentions)
    yield from found
    if failed is not None:
        raise failed


def attentions(bench: Bench) -> tuple[list[Figure], Exception | None]:
    """In a process that a lane's settings reach before its first product: later ones come too late for cuBLAS.

    What was found until something failed, and the failure.
    """
    reset_process(0, World(device=bench.device))
    found = list[Figure]()
    try:
        for shape in bench.sizes.shapes:
            found += _passes(bench, shape)
        for shape in bench.sizes.shapes:
            found += _ragged_passes(bench, shape)
            found += _repeats(bench, shape)
    except Exception as error:  # noqa: BLE001  it is raised where the figures are told
        return found, error
    return found, None


def _passes(bench: Bench, shape: str) -> Iterator[Figure]:
    """Over sentences, forward and back as in training, and forward alone as in use: without padding and with."""
    encoder, acts = _sentences(bench, shape)
    packed, packed_read = map(bench.seconds, acts)
    encoder.backbone.set_attn_implementation("sdpa")
    padded, padded_read = map(bench.seconds, acts)
    yield Figure(f"{shape}: unpadded pass", 1000 * packed, "ms", f"{padded / packed:.2f} x as fast as padded")
    gain = f"{padded_read / packed_read:.2f} x as fast as padded"
    yield Figure(f"{shape}: unpadded, forward alone", 1000 * packed_read, "ms", gain)


def _ragged_passes(bench: Bench, shape: str) -> Iterator[Figure]:
    """The same by torch's attention."""
    _, acts = _sentences(bench, shape)
    packed, packed_read = map(bench.seconds, acts)
    with ragged():
        torchs, torchs_read = map(bench.seconds, acts)
        enforced = _enforced(bench, lambda: 1000 * bench.seconds(acts[0]))
    yield Figure(f"{shape}: ragged pass", 1000 * torchs, "ms", f"{packed / torchs:.2f} x as fast as unpadded")
    yield Figure(f"{shape}: ragged pass, determinism enforced", enforced, "ms")
    gain = f"{packed_read / torchs_read:.2f} x as fast as unpadded"
    yield Figure(f"{shape}: ragged, forward alone", 1000 * torchs_read, "ms", gain)


def _sentences(bench: Bench, shape: str) -> tuple[Encoder, Sequence[Callable[[], None]]]:
    """An encoder, and what it does with a large step's sentences: a pass as in training, and one as in use."""
    encoder = Encoder.load(bench.backbone(shape), max_length=bench.sizes.pieces, precision=bench.precision)
    encoder.to(bench.device).train()
    tokens = encoder.tokenise(list(corpus(2 * max(bench.sizes.batches)).sentences[:]))

    def read() -> None:
        encoder.embed(tokens)

    return encoder, (_step(bench, encoder, tokens), read)


def cuts(bench: Bench) -> Iterator[Figure]:
    """A step's texts in fewer rectangles with more padding, and in fewer passes: what that is worth here."""
    names = ("SLACK_OF_GPU", "PASS_OF_GPU") if bench.on_card else ("SLACK", "PASS")
    usual = [getattr(encoders_module, name) for name in names]
    try:
        for shape, batch in product(bench.sizes.shapes, bench.sizes.batches):
            act = _step_of(bench, shape, 2 * batch)
            for chosen in product(SLACKS, PASSES):
                for name, value in zip(names, chosen, strict=True):
                    setattr(encoders_module, name, value)
                where = f"{shape}, {2 * batch} texts, {chosen[0]} cells of padding, passes of {chosen[1]}"
                yield Figure(where, 1000 * bench.seconds(act), "ms")
    finally:
        for name, value in zip(names, usual, strict=True):
            setattr(encoders_module, name, value)


def compiled(bench: Bench) -> Iterator[Figure]:
    """Padded rectangles through torch.compile, which takes minutes to do so."""
    if not bench.on_card:
        yield Figure("padded and compiled", "not run without a card", "")
        return
    for shape in bench.sizes.shapes:
        act = _step_of(bench, shape, 2 * max(bench.sizes.batches), padded=True, compiled=True)
        yield Figure(f"{shape}: padded and compiled", 1000 * bench.seconds(act), "ms")


def _step_of(
    bench: Bench, shape: str, texts: int, *, padded: bool = False, compiled: bool = False
) -> Callable[[], None]:
    """Forward and back over so many sentences, as in training."""
    encoder = Encoder.load(bench.backbone(shape), max_length=bench.sizes.pieces)
    encoder.to(bench.device).train()
    if padded:
        encoder.backbone.set_attn_implementation("sdpa")
    if compiled:
        encoder.backbone.compile(dynamic=True)
    return _step(bench, encoder, encoder.tokenise(list(corpus(texts).sentences[:])))


def _step(bench: Bench, encoder: Encoder, tokens: Tokens) -> Callable[[], None]:
    """Forward and back as in training."""

    def step() -> None:
        with torch.autocast(torch.device(bench.device).type, torch.bfloat16, enabled=bench.on_card):
            encoder(tokens).sum().backward()
        encoder.zero_grad()

    return step


def _repeats(bench: Bench, shape: str) -> Iterator[Figure]:
    """Attention alone over texts of several blocks of keys, ten times with one seed: how far gradients part."""
    _, width, heads = bench.sizes.shapes[shape]
    lengths = np.arange(bench.sizes.longest, bench.sizes.longest // 2, -16)
    cut = groups(Tokens(np.zeros(lengths.sum(), np.int64), lengths), slack=slack_of(torch.device(bench.device)))
    layout = [Rectangle.of(group, 0, torch.device(bench.device)) for group in cut]
    precision = torch.bfloat16 if bench.on_card else torch.float32

    def gradients(attend: Callable[..., tuple[torch.Tensor, None]]) -> torch.Tensor:
        torch.manual_seed(0)
        size = (3, 1, int(lengths.sum()), heads, width // heads)
        rows = torch.randn(size, device=bench.device, dtype=precision).requires_grad_()
        query, key, value = rows.transpose(2, 3)
        scaling = (width // heads) ** -0.5
        mixed, _ = attend(torch.nn.Module(), query, key, value, None, scaling=scaling, dropout=0.1, layout=layout)
        (gradient,) = torch.autograd.grad(mixed.sum(), rows)
        return gradient

    def apart(attend: Callable[..., tuple[torch.Tensor, None]]) -> float:
        first = gradients(attend)
        return max(float((gradients(attend) - first).abs().max() / first.abs().max()) for _ in range(9))

    what, unit = "ten passes of one seed apart", "of the largest gradient"
    yield Figure(f"{shape}: unpadded, {what}", apart(packed_attention), unit)
    yield Figure(f"{shape}: ragged, {what}", apart(ragged_attention), unit)
    enforced = _enforced(bench, lambda: apart(ragged_attention))
    yield Figure(f"{shape}: ragged, determinism enforced, {what}", enforced, unit)


def _enforced(bench: Bench, act: Callable[[], float]) -> float | str:
    """What is measured where torch refuses whatever is not deterministic, or its refusal."""
    torch.use_deterministic_algorithms(True)
    try:
        return act()
    except RuntimeError as refusal:
        return first_line(refusal)
    finally:
        reset_process(0, World(device=bench.device))
