"""Checks values of a document against annotated types, and gathers every mistake before any is raised.

pydantic decides what fits, strictly: no text for a number, no 1 for true, no true for 1. The words are ours: each
message says what the field's type accepts, the nearest name, and what YAML made of what was written.
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

WRONG: Any = object()  # what a check gives in place of a value that it has reported


class Checker:
    """A document under examination. What a method cannot vouch for it reports and leaves out.

    given: what was taken from another document, by its place of one step; mistakes in it are told of that one.
    """

    def __init__(self, document: Document, given: Mapping[Place, Document] | None = None) -> None:
        self.document, self.given = document, given or {}
        self.problems = [(document, problem) for problem in document.problems]

    def refuse(self, place: Place, accepted: str, says: str = "") -> None:
        """Report a place. says: what is wrong with it, where its value does not tell."""
        source = self._source(place)
        found = f"{source.field(place)} {says}" if says else source.found(place)
        self.problems.append((source, Mistake(source.line(place), found.strip(), accepted)))
        if len(self.problems) >= MISTAKES:
            self.finish()

    def finish(self) -> None:
        """StudyError with what was reported, in the order of the file."""
        if self.problems:
            ordered = sorted(dict.fromkeys(self.problems), key=lambda problem: problem[1].line)
            more = len(ordered) - MISTAKES
            raise StudyError(
                "\n".join(source.told(problem) for source, problem in ordered[:MISTAKES])
                + (f"\nand {more} more mistakes" if more > 0 else "")
            )

    def _source(self, place: Place) -> Document:
        """Where a person wrote what is at a place."""
        return self.given.get(place[:1], self.document)

    def name(self, place: Place, names: Iterable[str], hint: str = "") -> bool:
        """Is the text at a place one of these names?"""
        value, known = self.document.at(place), list(names)
        if value in known:
            return True
        self.refuse(place, names_accepted(str(value), known) + hint)
        return False

    def different(self, place: Place, values: Sequence[Any]) -> None:
        """Report the entries of a list that stand in it twice."""
        first: dict[Any, int] = {}
        for index, value in enumerate(values):
            if first.setdefault(value, index) != index:
                self.refuse((*place, index), f"each only once; entry {first[value]} is {value} too")

    def value(self, kind: Any, place: Place) -> Any:
        """The value at a place as `kind`, or WRONG."""
        try:
            text = json.dumps(self.document.at(place), default=str)
            return _adapter(kind).validate_json(text, strict=True)
        except ValidationError as error:
            within = {_inside(kind, detail["loc"]) for detail in error.errors()}
            for steps in sorted(within):
                self._misfit(_narrowed(kind, steps), (*place, *steps))
            return WRONG

    def block(self, kind: type, place: Place) -> dict[str, Any]:
        """The fields of the data class `kind` that a mapping gives, without those that are wrong.

        Keys that a class takes beside its fields stay among them.
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
                values[key] = self.built(block, here)
            elif (block := _block_of_each(fields[key], given[key])) is not None:
                values[key] = self.each(block, here)
            else:
                values[key] = self.value(fields[key], here)
        return {key: value for key, value in values.items() if value is not WRONG}

    def built(self, kind: type, place: Place) -> Any:
        """The data class made of the mapping at a place, or WRONG."""
        before = len(self.problems)
        made = self.made(kind, self.block(kind, place), [place])
        return made if len(self.problems) == before else WRONG

    def each(self, kind: type, place: Place) -> Any:
        """The data classes made of the mappings in a list or a mapping at a place, or WRONG."""
        given = self.document.at(place)
        steps = range(len(given)) if isinstance(given, list) else given
        made = {step: self.built(kind, (*place, step)) for step in steps}
        if any(one is WRONG for one in made.values()):
            return WRONG
        return tuple(made.values()) if isinstance(given, list) else made

    def made(self, kind: type, values: Mapping[str, Any], places: Sequence[Place]) -> Any:
        """`kind(**values)`, or WRONG. places: the mappings that gave the values, the strongest last.

        A field without a default must be given. An error of the class itself (a range, two fields that do not go
        together) is laid at the first field it names; that field is then left out and the class tried again, so
        that one mistake hides no other. What is said of a field that was reported already would only repeat it.
        """
        trial = dict(values)
        given = [self.document.at(place) for place in places if self.document.holds(place)]
        reported = {key for mapping in given if isinstance(mapping, dict) for key in mapping} - trial.keys()
        self.needed(kind, places)
        while all(field.name in trial for field in dataclasses.fields(kind) if _required(field)):
            try:
                made = kind(**with_others(kind, trial))
            except (ValueError, CorpusError) as error:
                blamed, accepted = _said(str(error), _nameable(kind, trial, str(error)))
                if reported.isdisjoint(blamed):
                    self._refuse_together(places, blamed[0] if blamed else "", accepted)
                if not blamed or blamed[0] not in trial:
                    return WRONG
                reported.add(blamed[0])
                del trial[blamed[0]]
            else:
                return WRONG if reported else made
        return WRONG

    def needed(self, kind: type, places: Sequence[Place]) -> None:
        """Report the fields without a default that none of the mappings at these places gives, at the last of
        them."""
        given = [self.document.at(place) for place in places if self.document.holds(place)]
        if not all(isinstance(mapping, dict | None) for mapping in given):
            return  # that was reported
        written = {key for mapping in given if mapping for key in mapping}
        for field in dataclasses.fields(kind):
            if _required(field) and field.name not in written:
                self.refuse((*places[-1], field.name), words(field_types(kind)[field.name]))

    def _refuse_together(self, places: Sequence[Place], field: str, accepted: str) -> None:
        """Lay a mistake of a whole block at a field, in the strongest mapping that gives it; "" for none."""
        if field:
            owner = next((place for place in reversed(places) if self.document.holds((*place, field))), places[-1])
            self.refuse((*owner, field), accepted)
        else:
            self.refuse(places[-1], accepted, says="cannot stand as it is")

    def mapping(self, place: Place) -> Any:
        """The mapping at a place, empty where nothing is written there, or WRONG."""
        given = self.document.at(place) if self.document.holds(place) else None
        if given is None:
            return {}
        if isinstance(given, dict):
            return given
        self.refuse(place, "a mapping: `name: value` on lines of its own, or {name: value}")
        return WRONG

    def read_as_text(self, place: Place) -> str:
        """What to write for the first number in the list or mapping at a place that YAML read as text; else ""."""
        given = self.document.at(place)
        inside = given.items() if isinstance(given, dict) else enumerate(given) if isinstance(given, list) else ()
        told = (
            _mended_number(value, self.document.plain((*place, step)) is None, whole=False)
            for step, value in inside
            if isinstance(value, str)
        )
        return next(filter(None, told), "")

    def _misfit(self, kind: Any, place: Place) -> None:
        value = self.document.at(place)
        among = choices(kind)
        alone = all(one is type(None) or typing.get_origin(one) is typing.Literal for one in plain_types(kind))
        accepted = names_accepted(str(value), among) if among and alone else words(kind)
        if among and not alone:
            accepted += meant(str(value), among)
        if isinstance(value, float) and not math.isfinite(value):
            accepted = "a finite number"
        self.refuse(place, accepted + _mended(value, self._source(place).plain(place), kind))


@cache  # as many as there are kinds of fields; to make one takes longer than to check a value
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind, config=ConfigDict(allow_inf_nan=False))


def needs_any(kind: type) -> bool:
    """Whether a data class has a field that must be given."""
    return any(map(_required, dataclasses.fields(kind)))


def _required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _block_kind(kind: Any, given: Any) -> type | None:
    """The data class that a field is made of, where nothing else is accepted of what was given."""
    members = set(plain_types(kind))
    if given is not None:
        members.discard(type(None))
    if isinstance(given, dict):
        members = {one for one in members if dataclasses.is_dataclass(one)}
    alone = members.pop() if len(members) == 1 else None
    return alone if isinstance(alone, type) and dataclasses.is_dataclass(alone) else None


def _block_of_each(kind: Any, given: Any) -> type | None:
    """The data class that every entry of a list or a mapping is made of, where a field accepts such."""
    if not isinstance(given, list | dict):
        return None
    origins, place = ((tuple,), 0) if isinstance(given, list) else ((dict, Mapping), 1)
    kinds = [typing.get_args(one)[place] for one in plain_types(kind) if typing.get_origin(one) in origins]
    return next((one for one in kinds if isinstance(one, type) and dataclasses.is_dataclass(one)), None)


def _nameable(kind: type, values: Mapping[str, Any], text: str) -> set[str]:
    """The names that an error of a class may blame: its fields and, where it takes others, its first word."""
    first = re.match(r"\w+", text)
    return {*field_types(kind), *values, *([first[0]] if first and others_in(kind) else [])}


def _said(text: str, fields: Collection[str]) -> tuple[list[str], str]:
    """The fields that an error of a data class blames, and what it says would be accepted.

    Both `steps: above 0` and `train.steps = 0; accepted: above 0` are understood.
    """
    blame, *told = re.split(r"accepted[^:]*:", text, maxsplit=1)
    names = (word.strip(".").rpartition(".")[2] for word in re.findall(r"[\w.]+", blame))
    blamed = [name for name in names if name in fields]
    accepted = told[0] if told else blame.removeprefix(blamed[0] if blamed else "").lstrip(" :")
    return blamed, accepted.strip().splitlines()[0]


def _inside(kind: Any, location: tuple[int | str, ...]) -> tuple[int, ...]:
    """The steps of a pydantic location that lead into the elements of a list."""
    steps: list[int] = []
    for step in location:
        base, _ = unwrapped(kind)
        if not isinstance(step, int) or typing.get_origin(base) not in (list, tuple):
            break
        steps.append(step)
        kind = typing.get_args(base)[0]
    return tuple(steps)


def _narrowed(kind: Any, steps: tuple[int, ...]) -> Any:
    for _ in steps:
        kind = typing.get_args(unwrapped(kind)[0])[0]
    return kind


def _mended(value: Any, plain: str | None, kind: Any) -> str:
    """What to write instead where YAML read another thing than was meant; "" where that is not the cause."""
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
        return _mended_number(value, plain is None, whole=float not in members)
    return ""


def _mended_number(text: str, quoted: bool, *, whole: bool) -> str:
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
