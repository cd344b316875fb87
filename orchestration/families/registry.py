"""The model families by name. Each is a file of this package; what it may be asked stands in contract.py."""

from __future__ import annotations

import importlib
from dataclasses import asdict
from typing import Any

from orchestration.families.contract import Family

FAMILIES = {
    "cale": "orchestration.families.cale",
    "concept": "orchestration.families.concept",
    "defsent": "orchestration.families.defsent",
    "difficulty": "orchestration.families.difficulty",
    "frozen": "orchestration.families.frozen",
    "san": "orchestration.families.san",
}

COMMANDS = {"san-generate": "orchestration.families.san_generate"}  # of one family alone; `contract.OwnCommand`


def family(name: str) -> Family:
    """The family of that name; KeyError for a name that `FAMILIES` does not hold."""
    return importlib.import_module(FAMILIES[name]).FAMILY


def as_plain(settings: Any) -> dict[str, Any]:
    """A settings or data object as plain JSON types."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(settings).items()}
