"""What a card does with this code, in one go and without a network: is it right there, and how near its limit?

    python benchmarks/gpu.py [--minutes 9] [--tiny]

No section begins once the minutes are over; what was left out is said. Encoders have random weights, which cost
what trained ones do. Results go to results/gpu-<card>.md. Without a card all runs on the CPU in sizes of seconds:
that tells whether the script works and nothing of speed, so nothing is kept.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from steps import Clock, train_with_peer
from tables import save

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from made_up import corpus  # noqa: E402
from ragged_attention import ragged, ragged_attention  # noqa: E402

from orchestration.study.names import slug  # noqa: E402
from semray.testing import tiny_backbone  # noqa: E402
from trainers.encoders import encoder as encoders_module  # noqa: E402
from trainers.encoders.encoder import Encoder, slack_of  # noqa: E402
from trainers.encoders.packing import Rectangle, packed_attention  # noqa: E402
from trainers.encoders.tokens import Tokens, groups  # noqa: E402
from trainers.engine.loop import reset_process  # noqa: E402
from trainers.engine.meter import Meter, peak  # noqa: E402
from trainers.engine.world import GROUP, Precision, Progress, World  # noqa: E402
from trainers.san.settings import Settings  # noqa: E402
from trainers.san.training import fit  # noqa: E402

EPOCH = 1_000_000  # sentences of unsupervised SimCSE
BARS = {64: 130.0, 512: 81.0}  # seconds of that epoch on an H200, by batch
LONGEST = 8  # of what a step asks for, shown
CONTRACT = "tests/orchestration/families/test_contract.py"
SLACKS = (64, 512, 2048, 8192)  # padding cells of a rectangle
PASSES = (8192, 32_768)  # tokens
TOGETHER = 300.0  # seconds that lanes wait for each other
_gate: list[Any] = []  # of this process, where it is one of several lanes


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """How much is measured. shapes: layers, width, heads. lanes: processes that share the device.

    vocabulary: rows of the word table, which costs a step its gradient and its update.
    """

    shapes: Mapping[str, tuple[int, int, int]]
    vocabulary: int
    batches: tuple[int, ...]
    steps: int
    sentences: int
    lanes: tuple[int, ...]
    pieces: int  # at most, of a sentence
    stacks: tuple[int, ...]  # encoders that train as one
    longest: int  # tokens of a text, where gradients of attention are compared


CARD = Sizes(
    shapes={"MiniLM": (6, 384, 12), "BERT-base": (12, 768, 12)},
    vocabulary=30_522,
    batches=(64, 512),
    steps=200,
    sentences=200_000,
    lanes=(1, 2, 4),
    pieces=32,
    stacks=(2, 4, 8, 16),
    longest=512,
)
TINY = Sizes(
    shapes={"tiny": (2, 32, 4)},
    vocabulary=200,
    batches=(8,),
    steps=4,
    sentences=64,
    lanes=(1,),
    pieces=32,
    stacks=(2,),
    longest=64,
)


@dataclass(frozen=True)
class Figure:
    """One row of the results."""

    what: str
    figure: float | str
    unit: str
    beside: str = ""


@dataclass(frozen=True, kw_only=True)
class Bench:
    """Where everything is measured. device: "cuda:0" or "cpu"."""

    device: str
    sizes: Sizes
    folder: Path

    @property
    def on_card(self) -> bool:
        return self.device != "cpu"

    def backbone(self, shape: str) -> Path:
        """The folder of a BERT of this shape."""
        place = self.folder / shape
        if not place.exists():
            layers, width, heads = self.sizes.shapes[shape]
            tiny_backbone(place, layers=layers, width=width, heads=heads, vocabulary=self.sizes.vocabulary)
        return place

    def seconds(self, act: Callable[[], object], times: int = 5) -> float:
        """Of one call, the median, the first left out."""
        spent = []
        for _ in range(times + 1):
            self.wait()
            began = time.perf_counter()
            act()
            self.wait()
            spent.append(time.perf_counter() - began)
        return median(spent[1:])

    def wait(self) -> None:
        if self.on_card:
            torch.cuda.synchronize()


def trained(
    bench: Bench,
    shape: str,
    batch: int,
    precision: Precision,
    *,
    steps: int = 0,
    hear: Callable[[Progress], None] = lambda _: None,
    **given: Any,
) -> tuple[Any, list[Progress], np.ndarray, dict[str, float]]:
    """SimCSE's steps: the encoder, its curve, wall seconds of each step, and what it cost. hear: after each."""
    clock, meter = Clock(), Meter(bench.device, precision)

    def report(progress: Progress) -> None:
        clock.tick()
        hear(progress)

    steps = steps or bench.sizes.steps
    settings = Settings(batch_size=batch, steps=steps, max_length=bench.sizes.pieces, learning_rate=1e-5, **given)
    world = World(device=bench.device, precision=precision, report=report, spent=meter.add)
    rows = corpus(max(bench.sizes.sentences, batch))
    encoder, curve = fit(settings, bench.backbone(shape), rows, 0, world)
    return encoder, curve, clock.durations()[:, 0], meter.take()


# Sections


def limits(bench: Bench) -> Iterator[Figure]:
    """One large product of matrices."""
    precisions: tuple[Precision, ...] = ("bf16", "fp32") if bench.on_card else ("fp32",)
    for precision in precisions:
        yield Figure(f"limit, {precision}", peak(bench.device, precision) / 1e12, "TFLOP/s")


def tests(bench: Bench) -> Iterator[Figure]:
    """The contract of every family, on the card."""
    if not bench.on_card:
        yield Figure("family contract", "not run without a card", "")
        return
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-m", "not long", "-p", "no:cacheprovider", CONTRACT]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | {"SEMRAY_TEST_DEVICE": bench.device}, capture_output=True, text=True
    )
    if done.returncode:
        print(done.stdout[-6000:], done.stderr[-2000:], file=sys.stderr, flush=True)
    yield Figure("family contract", (done.stdout.strip().splitlines() or ["no word"])[-1], "")


def precisions(bench: Bench) -> Iterator[Figure]:
    """The same seed in both: how far the figures part; and twice in one: whether they part at all."""
    shape, batch = next(iter(bench.sizes.shapes)), bench.sizes.batches[0]
    texts = list(corpus(256).sentences[:])
    found, runs = {}, dict[str, Precision](fp32="fp32", again="fp32", bf16="bf16")
    for name, precision in runs.items():
        encoder, curve, _, _ = trained(bench, shape, batch, precision, steps=min(20, bench.sizes.steps))
        found[name] = encoder.readers["texts"](texts), [one.loss for one in curve]
    for name in ("again", "bf16"):
        apart = 1 - (found[name][0] * found["fp32"][0]).sum(1).mean()
        yield Figure(f"{name} against fp32: mean 1 - cosine of vectors", float(apart), "")
        losses = max(abs(a - b) for a, b in zip(found[name][1], found["fp32"][1], strict=True))
        yield Figure(f"{name} against fp32: largest difference of a loss", losses, "")


def training(bench: Bench) -> Iterator[Figure]:
    """SimCSE's steps beside sentence-transformers, and an epoch of a million sentences from them."""
    for shape in bench.sizes.shapes:
        for batch in bench.sizes.batches:
            precision: Precision = "bf16" if bench.on_card else "fp32"
            _, _, steps, cost = trained(bench, shape, batch, precision)
            ours, theirs = 2 * batch / median(steps), 2 * batch / median(_apart(bench, peer, shape, batch))
            where = f"{shape}, batch {batch}, {precision}"
            yield Figure(f"{where}: texts a second", ours, "1/s", f"{ours / theirs:.2f} x sentence-transformers")
            yield Figure(f"{where}: sentence-transformers", theirs, "1/s")
            share = f"{cost['peak_share']:.1%} of the limit"
            yield Figure(f"{where}: reached", cost["flops_per_second"] / 1e12, "TFLOP/s", share)
            bar = f"bar {BARS[batch]:.0f} s on an H200" if batch in BARS and shape == "BERT-base" else ""
            yield Figure(f"{where}: SimCSE epoch of {EPOCH:,}", EPOCH / batch * median(steps), "s", bar)


def profile(bench: Bench) -> Iterator[Figure]:
    """What a step asks the device for, how long that is at work on it, and what of it takes longest.

    A step that is much longer than its work waits for the processor, which asks.
    """
    from torch.autograd import DeviceType
    from torch.profiler import ProfilerActivity

    on, kind = (
        (ProfilerActivity.CPU, DeviceType.CPU) if not bench.on_card else (ProfilerActivity.CUDA, DeviceType.CUDA)
    )
    precision: Precision = "bf16" if bench.on_card else "fp32"
    steps = min(20, bench.sizes.steps)
    watched = steps // 2
    for shape, batch in product(bench.sizes.shapes, bench.sizes.batches):
        usual = median(trained(bench, shape, batch, precision, steps=steps)[2])
        found = torch.profiler.profile(activities=[on], acc_events=True)

        def begin(progress: Progress, found: torch.profiler.profile = found) -> None:
            if progress.step == steps - watched:
                bench.wait()
                found.start()
            if progress.step == steps:
                bench.wait()
                found.stop()

        trained(bench, shape, batch, precision, steps=steps, hear=begin)
        events = [one for one in found.key_averages() if not one.is_user_annotation]  # which span others
        asked = [one for one in events if one.device_type == kind and _own_time(one, kind)]
        asked.sort(key=lambda one: _own_time(one, kind), reverse=True)
        where, busy = f"{shape}, batch {batch}, {precision}", sum(_own_time(one, kind) for one in asked) / watched
        yield Figure(f"{where}: asked of the device", sum(one.count for one in asked) / watched, "a step")
        yield Figure(f"{where}: at work", busy / 1000, "ms a step", f"{busy / 1e6 / usual:.0%} of a step")
        for one in asked[:LONGEST]:
            each = f"{one.count / watched:g} a step"
            yield Figure(f"{where}: {one.key[:60]}", _own_time(one, kind) / watched / 1000, "ms a step", each)


def _own_time(event: Any, kind: Any) -> float:
    """Microseconds of an event itself, of all times that it came."""
    return float(event.self_cpu_time_total if kind.name == "CPU" else event.self_device_time_total)


def _apart(bench: Bench, act: Callable[..., Any], *given: Any) -> Any:
    """On a card in a process of its own, as whoever uses it alone would run it; else here."""
    if not bench.on_card:
        return act(bench, *given)
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
        return process.submit(act, bench, *given).result()


def peer(bench: Bench, shape: str, batch: int) -> np.ndarray:
    """Wall seconds of the steps of sentence-transformers over the same encoder, sentences and loss."""
    from datasets import Dataset
    from sentence_transformers import SentenceTransformer, models
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    for name in GROUP:
        os.environ.pop(name, None)  # left by steps of ours: its trainer would look for other workers
    if bench.on_card:
        os.environ.pop("TOKENIZERS_PARALLELISM", None)  # ours too: it would have all cores
    body = models.Transformer(str(bench.backbone(shape)), max_seq_length=bench.sizes.pieces)
    pooled = models.Pooling(body.get_embedding_dimension(), pooling_mode="cls")
    model = SentenceTransformer(modules=[body, pooled], device=bench.device, trust_remote_code=False)
    steps = bench.sizes.steps
    rows = list(corpus(max(bench.sizes.sentences, batch)).sentences[:])
    rows = (rows * (1 + steps * batch // len(rows)))[: steps * batch]
    data, loss = Dataset.from_dict({"anchor": rows, "positive": rows}), MultipleNegativesRankingLoss(model)
    own = {"use_cpu": not bench.on_card, "bf16": bench.on_card}
    return train_with_peer(model, data, loss, steps=steps, batch=batch, seed=0, **own)[:, 0]


def unpadded(bench: Bench) -> Iterator[Figure]:
    """Texts of unequal length: without padding, by our attention and by torch's over ragged rows, and padded."""
    yield from _apart(bench, attentions)


def attentions(bench: Bench) -> list[Figure]:
    """In a process that a lane's settings reach before its first product: later ones come too late for cuBLAS."""
    reset_process(0, World(device=bench.device))
    return [one for shape in bench.sizes.shapes for one in (*_passes(bench, shape), *_repeats(bench, shape))]


def _passes(bench: Bench, shape: str) -> Iterator[Figure]:
    """Over sentences: forward and back as in training, and forward alone as in use."""
    precision: Precision = "bf16" if bench.on_card else "fp32"
    encoder = Encoder.load(bench.backbone(shape), max_length=bench.sizes.pieces, precision=precision)
    encoder.to(bench.device).train()
    tokens = encoder.tokenise(list(corpus(2 * max(bench.sizes.batches)).sentences[:]))

    def step() -> None:
        with torch.autocast(torch.device(bench.device).type, torch.bfloat16, enabled=bench.on_card):
            encoder(tokens).sum().backward()
        encoder.zero_grad()

    def read() -> None:
        encoder.embed(tokens)

    packed, packed_read = bench.seconds(step), bench.seconds(read)
    with ragged():
        torchs, torchs_read = bench.seconds(step), bench.seconds(read)
        enforced = _enforced(bench, lambda: 1000 * bench.seconds(step))
    encoder.backbone.set_attn_implementation("sdpa")
    padded, padded_read = bench.seconds(step), bench.seconds(read)
    yield Figure(f"{shape}: unpadded pass", 1000 * packed, "ms", f"{padded / packed:.2f} x as fast as padded")
    yield Figure(f"{shape}: ragged pass", 1000 * torchs, "ms", f"{packed / torchs:.2f} x as fast as unpadded")
    yield Figure(f"{shape}: ragged pass, determinism enforced", enforced, "ms")
    gain = f"{padded_read / packed_read:.2f} x as fast as padded"
    yield Figure(f"{shape}: unpadded, forward alone", 1000 * packed_read, "ms", gain)
    gain = f"{packed_read / torchs_read:.2f} x as fast as unpadded"
    yield Figure(f"{shape}: ragged, forward alone", 1000 * torchs_read, "ms", gain)


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
    tokens = encoder.tokenise(list(corpus(texts).sentences[:]))

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
        return str(refusal).splitlines()[0]
    finally:
        reset_process(0, World(device=bench.device))


def parts(bench: Bench) -> Iterator[Figure]:
    """A batch in parts: what the second reading costs, and what it saves."""
    shape, batch = next(iter(bench.sizes.shapes)), bench.sizes.batches[-1]
    for size in (None, batch // 2):
        if bench.on_card:
            torch.cuda.reset_peak_memory_stats()
        steps = trained(bench, shape, batch, "fp32", steps=min(20, bench.sizes.steps), micro_batch=size)[2]
        held = f"{torch.cuda.max_memory_allocated() / 2**30:.2f} GiB" if bench.on_card else ""
        name = "whole" if size is None else f"{size} texts at a time"
        yield Figure(f"{shape}, batch {batch}, {name}", 1000 * median(steps), "ms a step", held)


def adapters(bench: Bench) -> Iterator[Figure]:
    """Arms and seeds of small adapters as one stack, against one after another."""
    import stacked_adapters as stacked

    contestants = {"loop": stacked.plain_loop, "stack": stacked.one_stack}
    if not bench.on_card:
        stacked.STEPS, stacked.ROUNDS = 2, 1
    for shape in stacked.SHAPES[: None if bench.on_card else 1]:
        spent = stacked.milliseconds(contestants, shape, stacked.made_up_task(), bench.device)
        gain = f"{spent['loop'] / spent['stack']:.1f} x as fast as one by one"
        yield Figure(f"stacked adapters {shape}", spent["stack"], "ms a step of each", gain)


def encoders(bench: Bench) -> Iterator[Figure]:
    """Seeds of one arm as a stack of encoders, against one after another: from how many on it pays."""
    import stacked_encoders as stacked

    precision: Precision = "bf16" if bench.on_card else "fp32"
    world = World(device=bench.device, precision=precision)
    steps = min(24, bench.sizes.steps)
    batch = bench.sizes.batches[0]
    settings = Settings(batch_size=batch, steps=steps, max_length=bench.sizes.pieces, learning_rate=1e-5)
    rows = corpus(max(64, batch))
    for shape in bench.sizes.shapes:
        act = partial(fit, settings, bench.backbone(shape), rows)
        alone = median(stacked.one_by_one(act, world, range(2))[:, 0])
        for size in bench.sizes.stacks:
            each = median(stacked.as_a_stack(act, world, range(size))[:, 0])
            gain = f"{alone / each:.2f} x as fast as one by one"
            yield Figure(
                f"{shape}, batch {batch}, {size} encoders stacked", 1000 * each, "ms a step of each", gain
            )


def shared(bench: Bench) -> Iterator[Figure]:
    """Lanes on one device, each with its share of the memory: what all of them do together, begun together."""
    for lanes in bench.sizes.lanes:
        if not bench.on_card:
            rates = [_lane(bench, lanes)]
        else:
            spawn = multiprocessing.get_context("spawn")
            gate = spawn.Barrier(lanes)
            with ProcessPoolExecutor(lanes, mp_context=spawn, initializer=_gated, initargs=(gate,)) as processes:
                rates = [one.result() for one in [processes.submit(_lane, bench, lanes) for _ in range(lanes)]]
        yield Figure(f"{lanes} lane{'s' * (lanes > 1)} on the device", sum(rates), "texts a second")


def _gated(gate: Any) -> None:
    _gate.append(gate)


def _lane(bench: Bench, lanes: int) -> float:
    if bench.on_card:
        torch.cuda.set_per_process_memory_fraction(1 / lanes)
    shape, batch = next(iter(bench.sizes.shapes)), bench.sizes.batches[0]

    def begin(progress: Progress) -> None:
        if progress.step == 2 and _gate:
            _gate[0].wait(TOGETHER)

    steps = trained(bench, shape, batch, "bf16" if bench.on_card else "fp32", hear=begin)[2]
    return 2 * batch / median(steps)


def generation(bench: Bench) -> Iterator[Figure]:
    """Aligned negatives by a masked language model of each shape."""
    from transformers import AutoTokenizer, BertConfig, BertForMaskedLM

    from corpora.san.generate import Rewriter, rows
    from corpora.san.lexicon import resolver
    from corpora.san.recipe import SetRecipe
    from corpora.sources import wordnet
    from corpora.sources.wordnet_files import WordnetFiles
    from tests.corpora.conftest import SMALL_EXCEPTIONS, small_entries, write_wordnet
    from trainers.san.masked_model import MaskedModel

    (bench.folder / "wordnet").mkdir(exist_ok=True)
    write_wordnet(bench.folder / "wordnet", small_entries(), SMALL_EXCEPTIONS)
    resolve = resolver(wordnet=wordnet.read(WordnetFiles(bench.folder / "wordnet")))
    texts = list(corpus(min(bench.sizes.sentences, 4096)).sentences[:])
    for shape in bench.sizes.shapes:
        place = bench.folder / f"{shape}-masked"
        tokenizer = AutoTokenizer.from_pretrained(
            bench.backbone(shape), local_files_only=True, trust_remote_code=False
        )
        tokenizer.save_pretrained(place)
        config = BertConfig.from_pretrained(bench.backbone(shape), trust_remote_code=False)
        BertForMaskedLM(config).save_pretrained(place)
        precision: Precision = "bf16" if bench.on_card else "fp32"
        generator = MaskedModel.load(str(place), resolve, device=bench.device, precision=precision)
        using = Rewriter(generator=generator, recipe=SetRecipe(), negate=lambda given: [""] * len(given))
        taken = bench.seconds(partial(rows, using, texts), times=1)
        yield Figure(f"aligned negatives by a masked {shape}", len(texts) / taken, "sentences a second")


SECTIONS: Mapping[str, Callable[[Bench], Iterator[Figure]]] = {
    "limits": limits,
    "training": training,
    "profile": profile,
    "precision": precisions,
    "attention": unpadded,
    "cuts": cuts,
    "parts": parts,
    "adapters": adapters,
    "encoders": encoders,
    "lanes": shared,
    "generation": generation,
    "tests": tests,
    "compiled": compiled,
}


Found = tuple[list[dict[str, Any]], list[str], list[str]]


def measured(bench: Bench, minutes: float, keep: Callable[[Found], None] = lambda _: None) -> Found:
    """The rows of all sections that fit into the minutes, the names of those that did not, and what failed.

    A section that fails takes no other's figures with it, nor does one in which all of this is ended: a card may
    be at hand once. keep: what was found so far, after each section.
    """
    rows: list[dict[str, Any]] = []
    left, failed, began = list[str](), list[str](), time.monotonic()
    for name, section in SECTIONS.items():
        if time.monotonic() - began > 60 * minutes:
            left.append(name)
            continue
        try:
            for one in section(bench):
                rows.append(
                    {"section": name, "what": one.what, "figure": one.figure, "unit": one.unit, "": one.beside}
                )
                told = f"{one.what}: {one.figure} {one.unit} {one.beside}".rstrip()
                print(f"{time.monotonic() - began:6.1f} s  {name:10} {told}", flush=True)
        except Exception as error:  # noqa: BLE001  it is told here and in the notes
            traceback.print_exc()
            failed.append(f"{name} ({type(error).__name__}: {next(iter(str(error).splitlines()), '')})")
        keep((rows, left, failed))
    return rows, left, failed


def main(arguments: list[str] | None = None) -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--minutes", type=float, default=8.0, help="no section begins later")
    options.add_argument("--tiny", action="store_true", help="on a card too, sizes of seconds")
    given = options.parse_args(arguments)
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "0")  # of several cards one: the peer's trainer would take all
    device = "cuda:0" if torch.cuda.is_available() else "cpu"
    tiny = given.tiny or device == "cpu"
    with tempfile.TemporaryDirectory() as place:
        bench = Bench(device=device, sizes=TINY if tiny else CARD, folder=Path(place))
        kept = device != "cpu" and not tiny
        found = measured(bench, given.minutes, keep_quietly if kept else lambda _: None)
    if kept:
        keep(found)
    elif device == "cpu":
        print("there is no card here: all of this ran on the CPU in sizes of seconds, and nothing is kept")
    else:
        print("tiny sizes: nothing is kept")
    return bool(found[2])


def keep_quietly(found: Found) -> None:
    if found[0]:
        with contextlib.redirect_stdout(io.StringIO()):
            keep(found)


def keep(found: Found) -> None:
    """Print and write the table of what was found."""
    rows, left, failed = found
    card = torch.cuda.get_device_name(0)
    notes = [
        f"{card}, {torch.cuda.get_device_properties(0).total_memory / 2**30:.0f} GiB, CUDA {torch.version.cuda}.",
        f"Medians of {CARD.steps} steps, sentences of 6 to 24 words, random weights; wall time.",
        "TFLOP/s of linear layers alone, against one large product on the same card.",
        "Ragged: without padding too, but with torch's attention over texts of unequal length.",
        *([f"Left out for want of time: {', '.join(left)}."] if left else []),
        *([f"Failed: {'; '.join(failed)}."] if failed else []),
    ]
    save(f"gpu-{slug(card)}", f"On a card: {card}", rows, notes, packages=("torch", "deepspeed", "transformers"))


if __name__ == "__main__":
    sys.exit(main())
