"""Checks values against a field's annotation: `steps: Annotated[int, Gt(0)]`, `mode: Literal["a", "b"]`.

A text in an annotation describes the field in messages. Readers of files check values against these annotations;
`check_fields` does it for data classes that Python code creates.
"""

from __future__ import annotations

import dataclasses
import re
import types
import typing
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, Union

from annotated_types import Ge, Gt, Le, Lt, MinLen, Predicate

NAME_AT_MOST = 100  # characters: two such names and a figure still fit on a line
NAME = (
    f"a name: 1 to {NAME_AT_MOST} characters that all show, from left to right, with no blank at either end, "
    "accents as one sign with their letters (NFC)"
)
MARKS_AT_MOST = 3  # above or below one letter; more would cover the lines around it
# Invisible characters that Unicode calls printable: fillers, the empty Braille cell, variation selectors
UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)


def is_name(text: str) -> bool:
    """Whether a text can name an arm or a claim: see NAME.

    Letters written from right to left are refused, as the difference of two such arms would be shown reversed. So
    are texts that look like another name: a separate accent, or an invisible character.
    """
    straight = not any(unicodedata.bidirectional(one) in {"R", "AL", "AN"} for one in text)
    shows = text.isprintable() and not UNSEEN.search(text) and unicodedata.is_normalized("NFC", text)
    marks = "".join("m" if unicodedata.category(one).startswith("M") else "." for one in text)
    covered = marks.startswith("m") or "m" * (MARKS_AT_MOST + 1) in marks
    return 0 < len(text) <= NAME_AT_MOST and text == text.strip() and shows and straight and not covered


Made = TypeVar("Made")
Text = Annotated[str, MinLen(1)]
Name = Annotated[str, Predicate(is_name), NAME]


@dataclasses.dataclass(frozen=True)
class Others:
    """Marks the one field of a data class, a mapping, that takes all keys without a field. kind: the type of its
    values."""

    kind: Any


Count = Annotated[int, Ge(1)]
LENGTH_AT_MOST = 1_000_000  # tokens: no model reads longer texts at once. Two are special, as a rule
Length = Annotated[int, Ge(3), Le(LENGTH_AT_MOST), f"a whole number from 3 to {LENGTH_AT_MOST:,}"]
Positive = Annotated[float, Gt(0)]
NotNegative = Annotated[float, Ge(0)]


def check_fields(made: Any, block: str, error: type[Exception] = ValueError) -> None:
    """Raise `error`, naming every field of a data class whose value its annotation does not accept.

    This checks ranges, choices and that numbers are numbers, but not that texts are texts.
    """
    own: type = type(made)
    values = ((name, kind, getattr(made, name)) for name, kind in field_types(own).items())
    wrong = [
        f"{block}.{name} = {value!r}\n  accepted: {words(kind)}"
        for name, kind, value in values
        if not accepts(kind, value)
    ]
    if wrong:
        raise error("\n".join(wrong))


def accepts(kind: Any, value: Any) -> bool:
    """Whether a value is within the ranges and choices of an annotation."""
    base, bounds = unwrapped(kind)
    origin = typing.get_origin(base)
    if origin in (Union, types.UnionType):
        return any(accepts(member, value) for member in typing.get_args(base))
    if value is None or base is type(None):
        return value is None and base in (type(None), Any)
    if origin is Literal:
        return value in typing.get_args(base)
    if origin is tuple:
        return all(accepts(typing.get_args(base)[0], one) for one in value)
    if base in (int, float) and not isinstance(value, int | float):
        return False
    return all(WITHIN[type(bound)](bound, value) for bound in bounds if type(bound) in WITHIN)


WITHIN: Mapping[type, Callable[[Any, Any], bool]] = {
    Gt: lambda bound, value: value > bound.gt,
    Ge: lambda bound, value: value >= bound.ge,
    Lt: lambda bound, value: value < bound.lt,
    Le: lambda bound, value: value <= bound.le,
}


@cache
def field_types(kind: type) -> Mapping[str, Any]:
    """The annotation of every field of a data class, with its constraints."""
    hints = typing.get_type_hints(kind, include_extras=True)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


def others_in(kind: type) -> tuple[str, Any] | None:
    """The field that takes all other keys, and the type of its values; None if a class has no such field."""
    for name, annotation in field_types(kind).items():
        for bound in unwrapped(annotation)[1]:
            if isinstance(bound, Others):
                return name, bound.kind
    return None


def with_others(kind: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a data class from flat values; keys without a field go into its field for others."""
    others, own = others_in(kind), field_types(kind)
    if others is None:
        return dict(values)
    known = {name: value for name, value in values.items() if name in own}
    return {**known, others[0]: {name: value for name, value in values.items() if name not in own}}


def flat(made: Any) -> dict[str, Any]:
    """The fields of a data class as a file writes them: the keys of its field for others beside them.

    Keys of its mappings are there too, by the name of both: `loss.scale` for loss = {"scale": 20.0}.
    """
    kind: type = type(made)
    own, others = {name: getattr(made, name) for name in field_types(kind)}, others_in(kind)
    if others is not None:
        return {**own, **own.pop(others[0])}
    mappings = {name: value for name, value in own.items() if isinstance(value, Mapping)}
    return own | {f"{name}.{key}": one for name, value in mappings.items() for key, one in value.items()}


def changed(made: Made, given: Mapping[str, Any]) -> Made:
    """A copy of the data class with other values for some of the names of `flat`."""
    if others_in(type(made)) is not None:
        values = with_others(type(made), {**flat(made), **given})
    else:
        values = {name: value for name, value in given.items() if "." not in name}
        for name in (name for name in given if "." in name):
            field, key = name.split(".", 1)
            values[field] = {**values.get(field, getattr(made, field)), key: given[name]}
    return dataclasses.replace(made, **values)  # type: ignore[type-var]  # what is made is a data class


def words(kind: Any) -> str:
    """The values that a type accepts, in words: "a number above 0 or null"."""
    base, bounds = unwrapped(kind)
    description = next((bound for bound in bounds if isinstance(bound, str)), None)
    if description:
        return description
    origin = typing.get_origin(base)
    if base is int or base is float:
        return ("a whole number" if base is int else "a number") + _range(bounds)
    if origin is Literal:
        return ", ".join(map(str, typing.get_args(base)))
    if origin in (Union, types.UnionType):
        return " or ".join(words(member) for member in typing.get_args(base))
    if origin in (list, tuple):
        return "a list of " + re.sub("^a (whole )?number", r"\1numbers", words(typing.get_args(base)[0]))
    if dataclasses.is_dataclass(base):
        return "a mapping with " + ", ".join(field.name for field in dataclasses.fields(base))
    plain = {bool: "true or false", str: "text", Path: "a path", type(None): "null"}
    return plain.get(base, "a mapping" if origin in (dict, Mapping) else str(base))


def unwrapped(kind: Any) -> tuple[Any, tuple[Any, ...]]:
    """A type without its `Annotated`, and its annotations."""
    if typing.get_origin(kind) is typing.Annotated:
        return typing.get_args(kind)[0], typing.get_args(kind)[1:]
    return kind, ()


def _range(bounds: Iterable[Any]) -> str:
    phrases = {Gt: "above {}", Ge: "from {}", Lt: "below {}", Le: "up to {}"}
    limits = [(phrases[type(b)], type(b).__name__.lower(), b) for b in bounds if type(b) in phrases]
    return "".join(" " + phrase.format(getattr(bound, name)) for phrase, name, bound in limits)


def plain_types(kind: Any) -> list[Any]:
    """The plain types that a value may have: the members of a union, without constraints."""
    base, _ = unwrapped(kind)
    if typing.get_origin(base) in (Union, types.UnionType):
        return [plain for member in typing.get_args(base) for plain in plain_types(member)]
    return [base]


def choices(kind: Any) -> list[str]:
    return [
        str(choice)
        for member in plain_types(kind)
        if typing.get_origin(member) is Literal
        for choice in typing.get_args(member)
    ]
