"""Checks the values of a document against annotated types. All mistakes are gathered and raised together.

pydantic decides what fits, strictly: no text for a number, no 1 for true, no true for 1. The messages are ours:
each says what the field's type accepts, the nearest name, and how YAML read the text if that is the cause.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
import typing
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError

from corpora.store.errors import CorpusError
from corpora.store.fields import choices, field_types, others_in, plain_types, unwrapped, with_others, words
from orchestration.reading.document import Document, Mistake, Place
from orchestration.reading.limits import MISTAKES
from orchestration.study.errors import StudyError
from orchestration.study.names import meant, names_accepted

WRONG: Any = object()  # a check returns this in place of a value whose mistake it has recorded


class Checker:
    """Checks one document. A method records a mistake and returns WRONG, or leaves the wrong field out.

    given: top-level keys whose values come from another document; their mistakes name that document.
    """

    def __init__(self, document: Document, given: Mapping[Place, Document] | None = None) -> None:
        self.document, self.given = document, given or {}
        self.problems = [(document, problem) for problem in document.problems]

    def refuse(self, place: Place, accepted: str, says: str = "") -> None:
        """Record a mistake at a place. says: what is wrong, where the value alone does not show it."""
        source = self._source(place)
        what = f"{source.field(place)} {says}" if says else source.found(place)
        self.problems.append((source, Mistake(source.line(place), what.strip(), accepted)))
        if len(self.problems) >= MISTAKES:
            self.finish()

    def finish(self) -> None:
        """Raise StudyError with the recorded mistakes, in the order of the file; do nothing if there are none."""
        if self.problems:
            ordered = sorted(dict.fromkeys(self.problems), key=lambda problem: problem[1].line)
            unshown = len(ordered) - MISTAKES
            raise StudyError(
                "\n".join(source.message(problem) for source, problem in ordered[:MISTAKES])
                + (f"\nand {unshown} more mistakes" if unshown > 0 else "")
            )

    def _source(self, place: Place) -> Document:
        """The document in which a person wrote the value at a place."""
        return self.given.get(place[:1], self.document)

    def name(self, place: Place, names: Iterable[str], hint: str = "") -> bool:
        """Whether the text at a place is one of these names; a mistake is recorded if it is not."""
        value, known = self.document.at(place), list(names)
        if value in known:
            return True
        self.refuse(place, names_accepted(str(value), known) + hint)
        return False

    def refuse_duplicates(self, place: Place, values: Sequence[Any]) -> None:
        """Record every entry of a list that repeats an earlier one."""
        first_index: dict[Any, int] = {}
        for index, value in enumerate(values):
            if first_index.setdefault(value, index) != index:
                self.refuse((*place, index), f"each only once; entry {first_index[value]} is {value} too")

    def value(self, kind: Any, place: Place) -> Any:
        """The value at a place, converted to `kind`, or WRONG."""
        try:
            text = json.dumps(self.document.at(place), default=str)
            return _type_adapter(kind).validate_json(text, strict=True)
        except ValidationError as error:
            wrong_elements = {_list_steps(kind, detail["loc"]) for detail in error.errors()}
            for steps in sorted(wrong_elements):
                self._refuse_misfit(_element_kind(kind, steps), (*place, *steps))
            return WRONG

    def block(self, kind: type, place: Place) -> dict[str, Any]:
        """The valid fields of the data class `kind` in the mapping at a place.

        If the class also takes keys that are no fields, those are included.
        """
        fields, others = dict(field_types(kind)), others_in(kind)
        if others is not None:
            del fields[others[0]]
        given = self.mapping(place)
        if given is WRONG:
            return {}
        values = {}
        for key in given:
            here = (*place, key)
            if key not in fields and others is not None:
                values[key] = self.value(others[1], here)
            elif key not in fields:
                self.refuse(here, names_accepted(key, list(fields)))
            elif (block := _block_kind(fields[key], given[key])) is not None:
                values[key] = self.build(block, here)
            elif (block := _block_of_each(fields[key], given[key])) is not None:
                values[key] = self.build_each(block, here)
            else:
                values[key] = self.value(fields[key], here)
        return {key: value for key, value in values.items() if value is not WRONG}

    def build(self, kind: type, place: Place) -> Any:
        """An instance of the data class, built from the mapping at a place, or WRONG."""
        before = len(self.problems)
        instance = self.construct(kind, self.block(kind, place), [place])
        return instance if len(self.problems) == before else WRONG

    def build_each(self, kind: type, place: Place) -> Any:
        """One instance for each mapping in the list or mapping at a place, or WRONG if any is wrong."""
        given = self.document.at(place)
        steps = range(len(given)) if isinstance(given, list) else given
        instances = {step: self.build(kind, (*place, step)) for step in steps}
        if any(instance is WRONG for instance in instances.values()):
            return WRONG
        return tuple(instances.values()) if isinstance(given, list) else instances

    def construct(self, kind: type, values: Mapping[str, Any], places: Sequence[Place]) -> Any:
        """`kind(**values)`, or WRONG. places: the mappings that gave the values; the last one overrides.

        A missing field without a default is a mistake. An error that the class raises (a range, two fields that
        exclude each other) is recorded at the first field it names; the class is then tried without that field,
        so that one mistake hides no other. A field gets one message only.
        """
        attempt = dict(values)
        given = [self.document.at(place) for place in places if self.document.holds(place)]
        reported = {key for mapping in given if isinstance(mapping, dict) for key in mapping} - attempt.keys()
        self.refuse_missing(kind, places)
        while all(field.name in attempt for field in dataclasses.fields(kind) if _required(field)):
            try:
                instance = kind(**with_others(kind, attempt))
            except (ValueError, CorpusError) as error:
                blamed, accepted = _parse_error(str(error), _names_to_blame(kind, attempt, str(error)))
                if reported.isdisjoint(blamed):
                    self._refuse_together(places, blamed[0] if blamed else "", accepted)
                if not blamed or blamed[0] not in attempt:
                    return WRONG
                reported.add(blamed[0])
                del attempt[blamed[0]]
            else:
                return WRONG if reported else instance
        return WRONG

    def refuse_missing(self, kind: type, places: Sequence[Place]) -> None:
        """Record each field without a default that no mapping at these places gives; the last place is named."""
        given = [self.document.at(place) for place in places if self.document.holds(place)]
        if not all(isinstance(mapping, dict | None) for mapping in given):
            return  # `mapping` has recorded this
        written = {key for mapping in given if mapping for key in mapping}
        for field in dataclasses.fields(kind):
            if _required(field) and field.name not in written:
                self.refuse((*places[-1], field.name), words(field_types(kind)[field.name]))

    def _refuse_together(self, places: Sequence[Place], field: str, accepted: str) -> None:
        """Record an error of the class at a field ("": at the block), in the last mapping that gives the field."""
        if field:
            owner = next((place for place in reversed(places) if self.document.holds((*place, field))), places[-1])
            self.refuse((*owner, field), accepted)
        else:
            self.refuse(places[-1], accepted, says="cannot stand as it is")

    def mapping(self, place: Place) -> Any:
        """The mapping at a place (empty if nothing is written there), or WRONG."""
        given = self.document.at(place) if self.document.holds(place) else None
        if given is None:
            return {}
        if isinstance(given, dict):
            return given
        self.refuse(place, "a mapping: `name: value` on lines of its own, or {name: value}")
        return WRONG

    def number_hint(self, place: Place) -> str:
        """How to write the first number in the list or mapping at a place that YAML read as text; "" if none."""
        given = self.document.at(place)
        entries = given.items() if isinstance(given, dict) else enumerate(given) if isinstance(given, list) else ()
        spellings = (
            _number_spelling(value, self.document.plain((*place, step)) is None, whole=False)
            for step, value in entries
            if isinstance(value, str)
        )
        return next(filter(None, spellings), "")

    def _refuse_misfit(self, kind: Any, place: Place) -> None:
        value = self.document.at(place)
        options = choices(kind)
        literal = all(one is type(None) or typing.get_origin(one) is typing.Literal for one in plain_types(kind))
        accepted = names_accepted(str(value), options) if options and literal else words(kind)
        if options and not literal:
            accepted += meant(str(value), options)
        if isinstance(value, float) and not math.isfinite(value):
            accepted = "a finite number"
        self.refuse(place, accepted + _spelling_hint(value, self._source(place).plain(place), kind))


@cache  # one a kind of field; making an adapter takes longer than checking a value
def _type_adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind, config=ConfigDict(allow_inf_nan=False))


def needs_any(kind: type) -> bool:
    """Whether a data class has a field without a default."""
    return any(map(_required, dataclasses.fields(kind)))


def _required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _block_kind(kind: Any, given: Any) -> type | None:
    """The data class to build a field from, if the field's type accepts only that one for the given value."""
    members = set(plain_types(kind))
    if given is not None:
        members.discard(type(None))
    if isinstance(given, dict):
        members = {one for one in members if dataclasses.is_dataclass(one)}
    only = members.pop() if len(members) == 1 else None
    return only if isinstance(only, type) and dataclasses.is_dataclass(only) else None


def _block_of_each(kind: Any, given: Any) -> type | None:
    """The data class of every entry, if the field accepts a list or mapping of one and such was given."""
    if not isinstance(given, list | dict):
        return None
    origins, place = ((tuple,), 0) if isinstance(given, list) else ((dict, Mapping), 1)
    kinds = [typing.get_args(one)[place] for one in plain_types(kind) if typing.get_origin(one) in origins]
    return next((one for one in kinds if isinstance(one, type) and dataclasses.is_dataclass(one)), None)


def _names_to_blame(kind: type, values: Mapping[str, Any], text: str) -> set[str]:
    """The names that an error may blame: the fields and, if the class takes other keys, the error's first word."""
    first = re.match(r"\w+", text)
    return {*field_types(kind), *values, *([first[0]] if first and others_in(kind) else [])}


def _parse_error(text: str, fields: Collection[str]) -> tuple[list[str], str]:
    """Parse an error of a data class into the fields it blames and what it says would be accepted.

    It reads both `steps: above 0` and `train.steps = 0; accepted: above 0`.
    """
    blame, *after = re.split(r"accepted[^:]*:", text, maxsplit=1)
    names = (word.strip(".").rpartition(".")[2] for word in re.findall(r"[\w.]+", blame))
    blamed = [name for name in names if name in fields]
    accepted = after[0] if after else blame.removeprefix(blamed[0] if blamed else "").lstrip(" :")
    return blamed, accepted.strip().splitlines()[0]


def _list_steps(kind: Any, location: tuple[int | str, ...]) -> tuple[int, ...]:
    """The steps of a pydantic location that lead into the elements of a list."""
    steps: list[int] = []
    for step in location:
        base, _ = unwrapped(kind)
        if not isinstance(step, int) or typing.get_origin(base) not in (list, tuple):
            break
        steps.append(step)
        kind = typing.get_args(base)[0]
    return tuple(steps)


def _element_kind(kind: Any, steps: tuple[int, ...]) -> Any:
    for _ in steps:
        kind = typing.get_args(unwrapped(kind)[0])[0]
    return kind


def _spelling_hint(value: Any, plain: str | None, kind: Any) -> str:
    """What to write instead, if YAML read another type than the author meant; else ""."""
    members = plain_types(kind)
    named = str in members or choices(kind)
    if isinstance(value, bool) and plain and plain.lower() not in {"true", "false"} and named:
        return f"; YAML reads {plain} as {str(value).lower()}, write '{plain}'"
    if isinstance(value, int | float) and str in members:
        return f"; write '{plain}' in quotes" if plain else ""
    if isinstance(value, dict) and str in members and [*value.values()] == [None]:
        name = next(iter(value))
        return f'; YAML reads a colon at its end, or braces, as a mapping: write {name}, or "{{{name}}}" in quotes'
    if isinstance(value, str) and bool in members and value.lower() in {"true", "false"}:
        return f"; write {value.lower()} without quotes"
    if isinstance(value, str) and (int in members or float in members):
        return _number_spelling(value, plain is None, whole=float not in members)
    return ""


def _number_spelling(text: str, quoted: bool, *, whole: bool) -> str:
    try:
        number = float(text)
    except ValueError:
        return ""
    if not math.isfinite(number) or (whole and not number.is_integer()):
        return ""
    mantissa, _, exponent = text.lower().partition("e")
    if whole:
        spelling = str(int(number))
    elif exponent:
        spelling = f"{mantissa if '.' in mantissa else mantissa + '.0'}e{int(exponent):+d}"
    else:
        spelling = text
    return f"; without quotes: {spelling}" if quoted else f"; YAML reads {text} as text, write {spelling}"
