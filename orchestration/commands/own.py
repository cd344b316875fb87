"""Commands of single families, such as making data: work in shards, done by as many workers as fit."""

from __future__ import annotations

import importlib
import json
import sys
from argparse import ArgumentParser, Namespace
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
    from orchestration.lanes.cluster import RunShare
    from orchestration.lanes.shard_pool import write_shards

    if options.workers is not None and options.workers < 1:
        raise StudyError(f"--workers {options.workers}\n  accepted: a whole number of at least 1")
    if not 0 <= options.gpus < float("inf"):
        raise StudyError(f"--gpus {options.gpus}\n  accepted: a number from 0")
    try:
        work = command(options.command).work_of(options)
        write_shards(
            work.pending,
            work.writer(),
            share=RunShare(cpus=1, gpus=options.gpus),
            workers=options.workers,
            on_written=lambda shard: print(work.written, file=sys.stderr),
        )
        content, words = work.outcome()
    except CorpusError as error:
        raise StudyError(str(error)) from error
    print(json.dumps(content, indent=1) if options.json else words)
    return DONE
