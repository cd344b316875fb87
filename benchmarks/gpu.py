"""What a card does with this code, in one go and without a network: is it right there, and how near its limit?

    python benchmarks/gpu.py [--minutes 8] [--tiny] [--only training,profile]

No section begins once the minutes are over; what was left out is said. Encoders have random weights, which cost
what trained ones do. Results go to results/gpu-<card>.md; with --only, those of other sections are kept there.
Without a card all runs on the CPU in sizes of seconds: that tells whether the script works and nothing of speed,
so nothing is kept.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import re
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch
from tables import RESULTS, save

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from card import attention, generation, right, together, training, update
from card.bench import CARD, TINY, Bench, Figure

from corpora.store.errors import kind_and_first_line
from trainers.engine.memory import set_cublas_workspace

SECTIONS: Mapping[str, Callable[[Bench], Iterator[Figure]]] = {
    "limits": training.limits,
    "training": training.training,
    "attention": attention.attention,
    "profile": training.profile,
    "update": update.update,
    "tests": right.tests,
    "encoders": together.encoders,
    "precision": right.precisions,
    "generation": generation.generation,
    "lanes": together.shared,
    "parts": together.parts,
    "cuts": attention.cuts,
    "adapters": together.adapters,
}


Found = tuple[list[dict[str, Any]], list[str], list[str]]


def measured(
    bench: Bench, minutes: float, only: Collection[str] = SECTIONS, keep: Callable[[Found], None] = lambda _: None
) -> Found:
    """The rows of these sections, as far as they fit into the minutes, the names of those that did not, and what
    failed.

    A section that fails takes no other's figures with it, nor does one in which all of this is ended: a card may
    be at hand once. keep: what was found so far, after each section.
    """
    rows: list[dict[str, Any]] = []
    left, failed, began = list[str](), list[str](), time.monotonic()
    for name, section in SECTIONS.items():
        if name not in only:
            continue
        if time.monotonic() - began > 60 * minutes:
            left.append(name)
            continue
        try:
            bench.release()  # other processes of a section, too, need what the sections before it had
            for one in section(bench):
                rows.append(
                    {"section": name, "what": one.what, "figure": one.figure, "unit": one.unit, "": one.beside}
                )
                told = f"{one.what}: {one.figure} {one.unit} {one.beside}".rstrip()
                print(f"{time.monotonic() - began:6.1f} s  {name:10} {told}", flush=True)
        except Exception as error:  # noqa: BLE001  it is told here and in the notes
            traceback.print_exc()
            failed.append(f"{name} ({kind_and_first_line(error)})")
        keep((rows, left, failed))
    return rows, left, failed


def main(arguments: list[str] | None = None) -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--minutes", type=float, default=8.0, help="no section begins later")
    options.add_argument("--tiny", action="store_true", help="on a card too, sizes of seconds")
    options.add_argument("--only", default=",".join(SECTIONS), help="sections, by commas", metavar="SECTIONS")
    given = options.parse_args(arguments)
    only = given.only.split(",")
    if strangers := set(only) - SECTIONS.keys():
        options.error(f"--only {','.join(sorted(strangers))}: accepted are {', '.join(SECTIONS)}")
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "0")  # of several cards one: the peer's trainer would take all
    device = "cuda:0" if torch.cuda.is_available() else "cpu"
    if torch.version.cuda is None and not given.tiny and shutil.which("nvidia-smi"):
        print(
            "a card is here, and torch is its build without CUDA: `make clean`, then `make gpu`", file=sys.stderr
        )
        return 1
    if device != "cpu":
        set_cublas_workspace(torch.device(device))  # before the first product, or cuBLAS does not read it
    tiny = given.tiny or device == "cpu"
    with tempfile.TemporaryDirectory() as place:
        bench = Bench(device=device, sizes=TINY if tiny else CARD, folder=Path(place))
        kept = device != "cpu" and not tiny
        earlier = kept_of(SECTIONS.keys() - only) if kept else []
        found = measured(bench, given.minutes, only, partial(keep_quietly, earlier) if kept else lambda _: None)
    if kept:
        keep(earlier, found)
    elif device == "cpu":
        print("there is no card here: all of this ran on the CPU in sizes of seconds, and nothing is kept")
    else:
        print("tiny sizes: nothing is kept")
    return bool(found[2])


def name_of_results() -> str:
    return "gpu-" + re.sub(r"[^a-z0-9]+", "-", torch.cuda.get_device_name(0).lower())


def kept_of(sections: Collection[str]) -> list[dict[str, Any]]:
    """The rows of these sections that were kept before on such a card."""
    place = RESULTS / f"{name_of_results()}.json"
    rows = json.loads(place.read_text())["rows"] if place.exists() else []
    return [row for row in rows if row["section"] in sections]


def keep_quietly(earlier: list[dict[str, Any]], found: Found) -> None:
    if found[0]:
        with contextlib.redirect_stdout(io.StringIO()):
            keep(earlier, found)


def keep(earlier: list[dict[str, Any]], found: Found) -> None:
    """Print and write the table of what was found, beside what was kept of other sections."""
    (own, left, failed), order = found, list(SECTIONS)
    rows = sorted([*earlier, *own], key=lambda row: order.index(row["section"]))
    before = ", ".join(dict.fromkeys(row["section"] for row in earlier))
    card = torch.cuda.get_device_name(0)
    notes = [
        f"{card}, {torch.cuda.get_device_properties(0).total_memory / 2**30:.0f} GiB, CUDA {torch.version.cuda}.",
        f"Medians of up to {CARD.steps} steps, sentences of 6 to 24 words, random weights; wall time.",
        "TFLOP/s of linear layers and attention in a median step, against one large product on the same card.",
        *([f"Of an earlier run: {before}."] if before else []),
        *([f"Left out for want of time: {', '.join(left)}."] if left else []),
        *([f"Failed: {'; '.join(failed)}."] if failed else []),
    ]
    save(name_of_results(), f"On a card: {card}", rows, notes, packages=("torch", "deepspeed", "transformers"))


if __name__ == "__main__":
    sys.exit(main())
