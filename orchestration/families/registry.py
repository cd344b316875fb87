"""The model families by name. Each is a file of this package; contract.py describes their interface.

Other packages can bring families: each names one, as `module:FAMILY`, under the entry point `semray.families`.
Name and version of the package are part of the ids of its runs.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, get_args, get_origin

from corpora.store.fields import field_types, unwrapped
from corpora.store.packages import package_of
from orchestration.families.contract import Family
from orchestration.study.errors import StudyError

if TYPE_CHECKING:
    from trainers.engine.world import Precision

FAMILIES = {
    "cale": "orchestration.families.cale",
    "command": "orchestration.families.command",
    "concept": "orchestration.families.concept",
    "defsent": "orchestration.families.defsent",
    "difficulty": "orchestration.families.difficulty",
    "frozen": "orchestration.families.frozen",
    "san": "orchestration.families.san",
    "sentence_transformers": "orchestration.families.sentence_transformers",
}
WRITTEN = {"scored_elsewhere": "orchestration.families.judged_table"}  # families of studies that a command writes

WITH_HEADROOM = ("difficulty",)  # the families with a `headroom`, listed here so that --help imports none
COMMANDS = {  # commands of a single family; `contract.OwnCommand`
    "mlm-train": "orchestration.families.mlm_train",
    "san-generate": "orchestration.families.san_generate",
}


GROUP = "semray.families"

# Classes of values that a run's record, which is JSON, can hold (a union's own class stands beside its members)
IN_JSON = (str, int, float, NoneType, list, tuple, Mapping, UnionType)


def names() -> tuple[str, ...]:
    """All families that a study may name: those of this package, then those of other packages."""
    return (*FAMILIES, *(name for name in _installed() if name not in FAMILIES | WRITTEN))


def family(name: str) -> Family:
    """The family of that name. StudyError if there is none here, or it cannot be used."""
    if home := (FAMILIES | WRITTEN).get(name):
        if others := _installed().get(name):
            raise StudyError(
                f"family = {name}: {' and '.join(map(package_of, others))}: one of that name is semray's own\n"
                "  accepted: that package not installed, or with another name for its family"
            )
        found: Family = importlib.import_module(home).FAMILY
        return found
    return _loaded(name)


def package(name: str) -> str:
    """Name and version of the package that brings a family; "" for a family of this package."""
    return "" if name in FAMILIES | WRITTEN else package_of(_point(name))


def defining(name: str, settings: Any, precision: Precision) -> dict[str, Any]:
    """The settings of an arm that can change its model, and the package whose code reads them."""
    brought, of = package(name), family(name)
    half = of.in_bf16(settings) if precision == "bf16" else {}
    return {**of.defining(settings), **half, **({"package": brought} if brought else {})}


@cache
def _installed() -> Mapping[str, tuple[EntryPoint, ...]]:
    """The entry points of families in installed packages, by name; several packages may use the same name."""
    found: dict[str, tuple[EntryPoint, ...]] = {}
    for point in sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value)):
        found[point.name] = (*found.get(point.name, ()), point)
    return found


def _point(name: str) -> EntryPoint:
    offered = _installed().get(name, ())
    if not offered:  # such as that of a run in a ledger which another machine filled
        raise StudyError(
            f"family = {name}: no package here brings it\n  accepted: the package that does, installed"
        )
    if len(offered) > 1:
        raise StudyError(
            f"family = {name}: {' and '.join(map(package_of, offered))} both bring one of that name"
            "\n  accepted: one of these packages installed"
        )
    return offered[0]


@cache
def _loaded(name: str) -> Family:
    point = _point(name)
    brought = f"family = {name}: {package_of(point)}, {point.value}:"
    try:
        made = point.load()
    except (Exception, SystemExit) as error:
        raise StudyError(
            f"{brought} cannot be imported ({type(error).__name__}: {error})\n  accepted: a package that is whole"
        ) from error
    lacking = [member for member in vars(Family) if not member.startswith("_") and not hasattr(made, member)]
    if lacking:
        raise StudyError(
            f"{brought} lacks {', '.join(sorted(lacking))}\n"
            "  accepted: an EncoderFamily, or all that contract.Family asks for"
        )
    for block in (made.settings, made.data):
        if not (isinstance(block, type) and is_dataclass(block)):
            raise StudyError(
                f"{brought} {block!r} is no data class\n  accepted: settings and data as data classes"
            )
        for field, kind in field_types(block).items():
            if unheld := _not_in_json(kind):
                raise StudyError(
                    f"{brought} {block.__name__}.{field} is a {unheld.__name__}\n  accepted: str (for a path too),"
                    " a number, true or false, or a list or mapping of these, which a run's record can hold"
                )
    return made


def _not_in_json(kind: Any) -> type | None:
    """The first class in an annotation whose values JSON has no form for; None where it holds all of them."""
    base, _ = unwrapped(kind)
    own = get_origin(base) or base
    if isinstance(own, type) and is_dataclass(own):
        inner = tuple(field_types(own).values())
    elif isinstance(own, type) and own not in (Any, Sequence) and not issubclass(own, IN_JSON):
        return own
    else:
        inner = get_args(base)
    return next((found for one in inner if (found := _not_in_json(one))), None)


def as_plain(settings: Any) -> dict[str, Any]:
    """A settings or data object as plain JSON types."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(settings).items()}
