"""Flags of a family's own command that are made from a data class's fields: types, choices and defaults."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar, get_args

from corpora.store.fields import choices, field_types, plain_types
from orchestration.study.errors import StudyError
from trainers.engine.world import Precision

T = TypeVar("T")


def add_fields(command: argparse.ArgumentParser, of: type, texts: Mapping[str, str]) -> None:
    """Add a flag for each of these fields, with the field's default. texts: field -> help text."""
    for name, text in texts.items():
        kind = field_types(of)[name]
        found = choices(kind)
        accepted: dict[str, Any] = {"choices": found} if found else {"type": plain_types(kind)[0]}
        default = getattr(of, name)
        shown = f"{default:g}" if isinstance(default, float) else str(default)
        help_text = text if default is None else f"{text} (default: {shown})"
        command.add_argument(f"--{name.replace('_', '-')}", default=argparse.SUPPRESS, help=help_text, **accepted)


def add_precision(command: argparse.ArgumentParser, text: str) -> None:
    """Add the flag of the arithmetic's precision. text: the beginning of its help."""
    command.add_argument(
        "--precision",
        choices=get_args(Precision),
        help=f"{text} (default: bf16 where the device is fast at it)",
    )


def made(of: type[T], given: Mapping[str, Any], **others: Any) -> T:
    """The data class with the given flags. Raises StudyError naming a flag whose value is not accepted."""
    own = {field.name for field in fields(of)}  # type: ignore[arg-type]  # callers pass a data class
    try:
        return of(**{name: value for name, value in given.items() if name in own}, **others)
    except ValueError as error:
        place, _, accepted = str(error).partition("accepted: ")
        field = re.split(r":| =", place)[0].rpartition(".")[2].strip()
        flag = f"--{field.replace('_', '-')}"
        raise StudyError(f"{flag} {given.get(field, '')}\n  accepted: {accepted}") from error
