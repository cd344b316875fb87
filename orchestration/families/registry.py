"""The model families by name. Each is a file of this package; what it may be asked stands in contract.py."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from orchestration.families.contract import Family

if TYPE_CHECKING:
    from orchestration.study.run import Job, Result
    from trainers.engine.world import World

FAMILIES = {
    "cale": "orchestration.families.cale",
    "concept": "orchestration.families.concept",
    "defsent": "orchestration.families.defsent",
    "difficulty": "orchestration.families.difficulty",
    "frozen": "orchestration.families.frozen",
    "san": "orchestration.families.san",
}


def family(name: str) -> Family:
    """The family of that name; KeyError for a name that `FAMILIES` does not hold."""
    return importlib.import_module(FAMILIES[name]).FAMILY


def execute(job: Job, world: World) -> Iterator[Result]:
    """The one run body: train and score the runs of a job. Free of Ray: tests, lanes and worker groups share
    it."""
    yield from family(job.runs[0].family).execute(job, world)


def as_plain(settings: Any) -> dict[str, Any]:
    """A settings or data object as plain JSON types."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(settings).items()}
