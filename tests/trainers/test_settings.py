"""Every number that a family's `train:` block may hold has a range, and a value outside of it is refused."""

from __future__ import annotations

import importlib
import pkgutil
import types
import typing
from collections.abc import Iterator
from typing import Any

import pytest
from annotated_types import Ge, Gt, Le, Lt

import trainers
from corpora.store.fields import field_types, unwrapped

FAMILIES = [
    one.name
    for one in pkgutil.iter_modules(trainers.__path__)
    if one.ispkg and importlib.util.find_spec(f"trainers.{one.name}.settings")
]
NEEDED: dict[str, dict[str, Any]] = {"command": {"train": False}}  # what an arm cannot do without
ANY = {("san", "own_weight")}  # a log-weight: any number has a meaning


def settings_of(family: str) -> type[Any]:
    return importlib.import_module(f"trainers.{family}.settings").Settings


def numbers(kind: Any) -> Iterator[tuple[Any, ...]]:
    """The bounds of every member of a field's type that is a number."""
    base, bounds = unwrapped(kind)
    if typing.get_origin(base) in (typing.Union, types.UnionType):
        for member in typing.get_args(base):
            yield from numbers(member)
    elif typing.get_origin(base) is tuple:
        yield from numbers(typing.get_args(base)[0])
    elif base in (int, float):
        yield tuple(bound for bound in bounds if isinstance(bound, Ge | Gt | Le | Lt))


def outside(bound: Ge | Gt | Le | Lt) -> Any:
    """A value that a bound keeps out."""
    limit = next(iter(vars(bound).values())) if hasattr(bound, "__dict__") else getattr(bound, bound.__slots__[0])
    return {Ge: limit - 1, Gt: limit, Le: limit + 1, Lt: limit}[type(bound)]


CASES = [
    (family, name, bounds)
    for family in FAMILIES
    for name, kind in field_types(settings_of(family)).items()
    if name != "run"  # of a command: its words are anybody's
    for bounds in numbers(kind)
]


@pytest.mark.parametrize(("family", "name", "bounds"), CASES, ids=[f"{one}-{name}" for one, name, _ in CASES])
def test_a_number_outside_its_range_is_refused(family: str, name: str, bounds: tuple[Any, ...]) -> None:
    assert bounds or (family, name) in ANY
    of = settings_of(family)
    listed = typing.get_origin(unwrapped(field_types(of)[name])[0]) is tuple
    for bound in bounds:
        value = outside(bound)
        with pytest.raises(ValueError, match=rf"train\.{name} = .*\n  accepted: "):
            of(**NEEDED.get(family, {}), **{name: (value,) if listed else value})
