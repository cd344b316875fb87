"""The `semray` command line. Results go to stdout, progress to stderr.

Exit codes: 0 done, 1 some runs failed or are left, 2 the request was wrong, 130 interrupted.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import io
import os
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from orchestration.commands.streams import lead_nowhere, open_streams

MODULES = {  # command -> its module in orchestration/commands, in the order of a day's work
    "init": "init",
    "doctor": "machine",
    "plan": "plan_words",
    "headroom": "headroom",
    "convert": "convert",
    "run": "run_study",
    "status": "show",
    "reproducible": "reproducible",
    "noise": "noise",
    "search": "search",
    "confirm": "search",
    "report": "show",
    "why": "show",
    "gate": "gate",
    "check-claim": "check_claim",
    "judge": "judge",
    "ui": "ui",
    "export": "entries",
    "verify": "show",
    "ls": "ls",
    "prune": "prune",
    "audit": "entries",
    "set-aside": "entries",
    "sync": "publish",
}

INTERRUPTED = 130

# The garbage collector runs after so many new objects. A large study has millions of lasting objects and hardly a
# cycle: Python's own threshold of 700 costs a tenth of a command's time (benchmarks/large_studies.py).
NEW_OBJECTS = 50_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. Errors for people are printed without a traceback."""
    gc.set_threshold(NEW_OBJECTS)
    open_streams()
    try:
        return _answered(arguments)
    except KeyboardInterrupt:  # which may come before anything is imported
        print("stopped; finished runs are kept, the same command goes on from here", file=sys.stderr)
        return INTERRUPTED


def _answered(arguments: Sequence[str] | None) -> int:
    options = parser().parse_args(arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):  # letters that the terminal's encoding lacks
        sys.stdout.reconfigure(errors="backslashreplace")
    from orchestration.commands.waiting import doing

    with doing("importing"):
        from orchestration.commands.terminal import WRONG_REQUEST, fitted, width_of
        from orchestration.study.errors import StudyError, refusals_as_study_errors
        from orchestration.study.names import printable
    try:
        with refusals_as_study_errors("standard output"):
            code = _execute(options)
            sys.stdout.flush()  # reports a full disk here, not when the process ends
        return code
    except StudyError as error:
        _give_up_stdout()
        print(fitted(printable(str(error), keep="\n"), width_of(sys.stderr)), file=sys.stderr)
        return WRONG_REQUEST


def _give_up_stdout() -> None:
    """Redirect stdout to /dev/null if it takes no more output; else Python would fail again at its exit."""
    try:
        sys.stdout.flush()
    except OSError:
        lead_nowhere(sys.stdout.fileno())


def _execute(options: argparse.Namespace) -> int:
    """Run the command and return its exit code. StudyError if it needs packages of the extra `train`."""
    from orchestration.commands.waiting import doing
    from orchestration.study.errors import StudyError
    from orchestration.study.extras import missing_packages, needs_train

    try:
        os.getcwd()
    except FileNotFoundError:
        raise StudyError("the folder that this was called in is gone\n  accepted: one that is there") from None

    command = options.command if options.command in MODULES else "own"
    try:
        with doing("importing"):
            module = importlib.import_module(f"orchestration.commands.{MODULES.get(command, command)}")
        code: int = getattr(module, command.replace("-", "_"))(options)
        return code
    except ModuleNotFoundError as error:
        if not missing_packages():
            raise
        raise needs_train(f"semray {options.command}", str(error.name)) from None


def parser() -> argparse.ArgumentParser:
    """The parser of all commands with their options."""
    from orchestration.commands.accepted import CommandLine
    from orchestration.commands.words import add_all

    words = CommandLine(
        prog="semray",
        usage="semray COMMAND ...   (semray COMMAND --help says more)",
        description="Is this sentence-encoder recipe really better? Studies over paired seeds, with verdicts.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    words.add_argument("--version", action=_Version)
    commands = words.add_subparsers(
        dest="command", required=True, metavar="COMMAND", prog="semray", help=argparse.SUPPRESS
    )
    words.epilog = _grouped(add_all(commands))
    return words


def _grouped(groups: Mapping[str, Mapping[str, str]]) -> str:
    """All commands with their summaries, by group, as wide as the terminal."""
    width = shutil.get_terminal_size().columns
    wide = max(len(name) for summaries in groups.values() for name in summaries) + 4
    lines = []
    for group, summaries in groups.items():
        lines.append(f"{group}:")
        for name, summary in summaries.items():
            text = textwrap.wrap(summary, max(width - wide - 2, 30))
            lines += [f"  {name:{wide - 2}}{text[0]}", *(f"{'':{wide}}{more}" for more in text[1:])]
    return "\n".join([*lines, "", "Start with: semray plan quickstart (in a checkout), or semray init study NAME"])


class _Version(argparse.Action):
    """Prints the version. It is looked up only when asked for, as that takes a while."""

    def __init__(self, option_strings: Sequence[str], dest: str) -> None:
        super().__init__(option_strings, dest, nargs=0, help="print the version")

    def __call__(self, parser: argparse.ArgumentParser, *rest: Any) -> None:
        from importlib.metadata import version

        print(f"semray {version('semray')}")
        parser.exit()


if __name__ == "__main__":
    sys.exit(main())
