"""Flags of a family's own command that are fields of a data class: types, choices and defaults are the field's."""

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


def add_fields(command: argparse.ArgumentParser, of: type, told: Mapping[str, str]) -> None:
    """A flag for each of these fields, whose own default holds where it is not given. told: what it is for."""
    for name, what in told.items():
        kind = field_types(of)[name]
        found = choices(kind)
        accepted: dict[str, Any] = {"choices": found} if found else {"type": plain_types(kind)[0]}
        default = getattr(of, name)
        shown = f"{default:g}" if isinstance(default, float) else str(default)
        said = what if default is None else f"{what} (default: {shown})"
        command.add_argument(f"--{name.replace('_', '-')}", default=argparse.SUPPRESS, help=said, **accepted)


def add_precision(command: argparse.ArgumentParser, told: str) -> None:
    """The flag of what arithmetic is done in. told: what it is part of."""
    command.add_argument(
        "--precision",
        choices=get_args(Precision),
        help=f"{told} (default: bf16 where the device is fast at it)",
    )


def made(of: type[T], given: Mapping[str, Any], **others: Any) -> T:
    """The data class of the flags that were given. StudyError names the flag whose value is not accepted."""
    own = {one.name for one in fields(of)}  # type: ignore[arg-type]  # whoever asks has a data class
    try:
        return of(**{name: value for name, value in given.items() if name in own}, **others)
    except ValueError as error:
        place, _, accepted = str(error).partition("accepted: ")
        field = re.split(r":| =", place)[0].rpartition(".")[2].strip()
        flag = f"--{field.replace('_', '-')}"
        raise StudyError(f"{flag} {given.get(field, '')}\n  accepted: {accepted}") from error
