"""Commands of single families, such as making data: work in shards, done by as many workers as fit."""

from __future__ import annotations

import importlib
import json
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from orchestration.families.registry import COMMANDS
from orchestration.study.errors import StudyError

if TYPE_CHECKING:
    from orchestration.families.contract import OwnCommand


def command(word: str) -> OwnCommand:
    return cast("OwnCommand", importlib.import_module(COMMANDS[word]))


def add_arguments(parser: ArgumentParser, word: str) -> None:
    """Add the family's own options, and those of all work in shards."""
    command(word).add_arguments(parser)
    parser.add_argument("--workers", type=int, help="at a time (default: as many as fit)")
    parser.add_argument("--gpus", type=float, default=0.0, help="of each worker (default: 0)")
    parser.add_argument("--json", action="store_true", help="print JSON for programs")


def own(options: Namespace) -> int:
    """Write the pending shards, then print the outcome."""
    from corpora.store.errors import CorpusError
    from orchestration.commands.terminal import DONE
    from orchestration.commands.waiting import doing
    from orchestration.lanes.cluster import RunShare
    from orchestration.lanes.shard_pool import write_shards

    if options.workers is not None and options.workers < 1:
        raise StudyError(f"--workers {options.workers}\n  accepted: a whole number of at least 1")
    if not 0 <= options.gpus < float("inf"):
        raise StudyError(f"--gpus {options.gpus}\n  accepted: a number from 0")
    try:
        with doing("reading the sentences"):
            work = command(options.command).work_of(options)
        write_shards(
            sorted(work.pending),
            work.writer(),
            share=RunShare(cpus=1, gpus=options.gpus),
            workers=options.workers,
            on_written=lambda shard: print(work.written, file=sys.stderr),
            on_moved=_pace(work.unit, sum(work.pending.values())),
        )
        content, words = work.outcome()
    except CorpusError as error:
        raise StudyError(str(error)) from error
    print(json.dumps(content, indent=1) if options.json else words)
    return DONE


def _pace(unit: str, many: int) -> Callable[[int], None]:
    """A function that prints how many units are done, and from its second call on the rate and the time left.

    What is done when it is first called took loading too, or another day.
    """
    from orchestration.lanes.progress import duration

    first: tuple[float, int] | None = None

    def show(done: int) -> None:
        nonlocal first
        words, now = f"{done:,} of {many:,} {unit}", time.monotonic()
        if first is None:
            first = now, done
        elif done > first[1]:
            rate = (done - first[1]) / (now - first[0])
            words += f", {rate:,.3g} a second, {duration((many - done) / rate)} left"
        print(words, file=sys.stderr, flush=True)

    return show
