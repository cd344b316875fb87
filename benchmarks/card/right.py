"""Whether what runs on a card is right: the contract of every family, and figures of one seed side by side."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from made_up import corpus

from card.bench import Bench, Figure, trained
from trainers.engine.world import Precision

ROOT = Path(__file__).resolve().parents[2]
LIMIT, EACH = 240, 100  # seconds of all tests and of one: what it waits for on a card may never come
CONTRACT = "tests/orchestration/families/test_contract.py"
ON_CARD = ("encoders/test_on_card.py", "encoders/test_short_texts.py", "engine/test_transfers.py")
# A stack draws other dropout than a run alone does in bf16 (docs/studies.md)
HOLDS = {
    "fp32": (CONTRACT, *(f"tests/trainers/{own}" for own in ON_CARD)),
    "bf16": (CONTRACT, "-k", "not stack_trains"),
}


def tests(bench: Bench) -> Iterator[Figure]:
    """The contract of every family, on the card, in either precision."""
    if not bench.on_card:
        yield Figure("family contract", "not run without a card", "")
        return
    command = [sys.executable, "-m", "pytest", "-q", "-m", "not long", "-p", "no:cacheprovider"]
    # By a signal no wait in torch's own code ends. As settings, which a pytest without the plugin passes over.
    command += ["-o", f"timeout={EACH}", "-o", "timeout_method=thread"]
    command += ["-n", "6"] if importlib.util.find_spec("xdist") else []
    with ThreadPoolExecutor(len(HOLDS)) as threads:
        held = dict(zip(HOLDS, threads.map(partial(_held, bench, command), HOLDS), strict=True))
    for precision, (last, _) in held.items():
        yield Figure(f"family contract, {precision}", last, "")
    broken = [precision for precision, (_, broke) in held.items() if broke]
    if broken:
        raise RuntimeError(f"the contract does not hold on this card in {' and '.join(broken)}")


def _held(bench: Bench, command: Sequence[str], precision: str) -> tuple[str, bool]:
    """The last line of the tests in this precision, and whether one of them failed."""
    told = os.environ | {"SEMRAY_TEST_DEVICE": bench.device, "SEMRAY_TEST_PRECISION": precision}
    done = subprocess.run(
        [*command, *HOLDS[precision]],
        cwd=ROOT,
        env=told,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    if done.returncode:
        print(done.stdout[-6000:], done.stderr[-6000:], file=sys.stderr, flush=True)
    return (done.stdout.strip().splitlines() or ["no word"])[-1], bool(done.returncode)


def precisions(bench: Bench) -> Iterator[Figure]:
    """The same seed in both: how far the figures part; and twice in one: whether they part at all.

    Without dropout, of which each draws its own.
    """
    shape, batch = next(iter(bench.sizes.shapes)), bench.sizes.batches[0]
    texts = list(corpus(256).sentences[:])
    found, runs = {}, dict[str, Precision](fp32="fp32", again="fp32", bf16="bf16")
    for name, precision in runs.items():
        steps = min(20, bench.sizes.steps)
        encoder, curve, _, _ = trained(bench, shape, batch, precision, steps=steps, p1=0.0)
        found[name] = encoder.readers["texts"](texts), [one.loss for one in curve]
    for name in ("again", "bf16"):
        apart = 1 - (found[name][0] * found["fp32"][0]).sum(1).mean()
        yield Figure(f"{name} against fp32: mean 1 - cosine of vectors", float(apart), "")
        losses = max(abs(a - b) for a, b in zip(found[name][1], found["fp32"][1], strict=True))
        yield Figure(f"{name} against fp32: largest difference of a loss", losses, "")
