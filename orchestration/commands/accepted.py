"""Types of command-line options. A wrong value is refused with what would be accepted and exit code 2."""

from __future__ import annotations

import argparse
import math
import os
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NoReturn, TypeVar

T = TypeVar("T", int, float)
ACCEPTED = "\n  accepted: "
A_PLACE = "a folder, or a URL such as s3://bucket/ledger"


class CommandLine(argparse.ArgumentParser):
    """An argument parser whose errors on values say what would be accepted.

    Errors on missing or unknown options follow the usage of the command that was called.
    """

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.register("type", int, a_whole_number)
        self.register("type", float, a_number)

    def error(self, message: str) -> NoReturn:
        """Print the error and exit with code 2."""
        if ACCEPTED not in message:
            super().error(message)
        from orchestration.study.names import printable

        option, _, problem = message.removeprefix("argument ").partition(": ")
        print(printable(f"{option} {problem}", keep="\n"), file=sys.stderr)
        raise SystemExit(2)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Like argparse, but a command refuses unknown arguments itself, so that its usage is printed."""
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse a value that is no choice; of every option an empty one, as what it asks for would be skipped."""
        if action.choices is not None and value not in action.choices:
            from orchestration.study.names import names_accepted

            names = [str(choice) for choice in action.choices]
            raise argparse.ArgumentError(action, str(refused(str(value), names_accepted(str(value), names))))
        if isinstance(value, str) and not value.strip():  # of an unset shell variable, as a rule
            wanted = f"{action.metavar or action.dest.upper()}, which is not empty"
            raise argparse.ArgumentError(action, str(refused(value, wanted)))


def refused(text: str, accepted: str) -> argparse.ArgumentTypeError:
    """The error for a value that is not accepted."""
    return argparse.ArgumentTypeError(f"{text if text.strip() else repr(text)}{ACCEPTED}{accepted}")


def a_whole_number(text: str) -> int:
    return _read(int, text, "a whole number")


def at_least_one(text: str) -> int:
    accepted = "a whole number of at least 1"
    if not text.isdecimal() or (number := _read(int, text, accepted)) < 1:
        raise refused(text, accepted)
    return number


def a_port(text: str) -> int:
    accepted = "a port, from 1 to 65535"
    if not text.isdecimal() or not 1 <= (number := _read(int, text, accepted)) <= 65535:
        raise refused(text, accepted)
    return number


def a_number(text: str) -> float:
    return _read(float, text, "a number")


def a_figure(text: str) -> float:
    return _read(float, text, "a number such as 76.25 or .7625")


def a_price(text: str) -> float:
    price = _read(float, text, accepted := "a number above 0, the price of an hour")
    if price <= 0:
        raise refused(text, accepted)
    return price


def a_path(text: str) -> str:
    """A path to write. An empty one is refused: it comes from an empty shell variable."""
    if not text.strip():
        raise refused(text, "a path")
    return text


def a_place(text: str) -> str:
    """The place of a ledger, with `~` expanded, which no shell does in `--ledger=~/ledger` or a file of variables.

    Refused: `memory:`, which no other process can see, and a URL that names nothing.
    """
    if not text.strip() or text.startswith("memory:") or re.fullmatch(r"\w+://+", text):
        raise refused(text, A_PLACE)
    if slip := re.fullmatch(r"(s3|gs|gcs|az|abfs|abfss|file):/?([^/].*)", text):
        raise refused(text, f"{slip[1]}://{slip[2]}, or a folder")
    return os.path.expanduser(text)


def _read(kind: Callable[[str], T], text: str, accepted: str) -> T:
    """The text as a finite number of this kind."""
    with suppress(ValueError, OverflowError):
        if math.isfinite(number := kind(text)):
            return number
    raise refused(text, accepted)
