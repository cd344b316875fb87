"""Results of executing one run twice: does a seed determine the outcome, as pairing by seed assumes?

.repeats/<run id>.json      one file for each run that was repeated, with the last repetition
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Literal

from orchestration.ledger.notes import note_as, sealed
from orchestration.ledger.storage import Storage

FOLDER = ".repeats"
REMEDY = "the file as `semray reproducible` wrote it; delete it, and try the arm again"


@dataclass(frozen=True, kw_only=True)
class Reproduction:
    """The comparison of two executions of one run. metric, difference: where scores or items differ most.

    difference: None if only one of the two has the figure, or one of its items.
    """

    run: str
    label: str
    outcome: Literal["same bits", "same to 1e-6", "different"]
    metric: str = ""
    difference: float | None = 0.0

    @property
    def words(self) -> str:
        """The result as a sentence, for reports."""
        said = f"{self.label}, run twice"
        if self.outcome == "same bits":
            return f"{said}: the same bits"
        if self.difference is None:
            apart = f"only one of the two has {self.metric}, or one of its items"
        else:
            apart = f"{self.metric} differs by {self.difference:.2g}"
        if self.outcome == "same to 1e-6":
            return f"{said}: the same to 1e-6 ({apart})"
        return f"{said}, is NOT reproducible: {apart}; equal seeds pair less than they should"


def write(storage: Storage, repeat: Reproduction) -> None:
    """Record a repetition, replacing an earlier one of the same run."""
    place = f"{FOLDER}/{repeat.run}.json"
    storage.write(place, sealed(asdict(repeat), place))


def read(storage: Storage, runs: Sequence[str]) -> Iterator[Reproduction]:
    """The recorded repetitions of these runs. Raises LedgerError for a damaged file."""
    there = set(storage.children(FOLDER))
    return (read_one(storage, run) for run in dict.fromkeys(runs) if f"{run}.json" in there)


def read_one(storage: Storage, run: str) -> Reproduction:
    """The repetition of this run, which must be recorded. Raises LedgerError for a damaged file."""
    return note_as(storage, f"{FOLDER}/{run}.json", REMEDY, partial(_reproduction, run))


def _reproduction(run: str, note: Mapping[str, Any]) -> Reproduction:
    difference = note["difference"]
    repeat = Reproduction(**{**note, "difference": None if difference is None else float(difference)})
    if repeat.run != run:
        raise ValueError(f"it tells of run {repeat.run}")
    return repeat
