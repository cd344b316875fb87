"""The files of a search in the ledger.

<n>.json             the nth point, written before its first run
<n>-<seed>.stopped.json   a run that the search ended early: its development scores by step
outcome.json         the search's state at the end of its last execution
<n>.confirmed.json   the result of the nth point's confirmation
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import quote

from orchestration.ledger.notes import note_as, note_if_there, read_in_order, sealed
from orchestration.ledger.storage import Storage, kept

REMEDY = (
    "the file as the search wrote it; put it back from a copy, or delete the search's folder: it begins anew, and "
    "its finished runs are kept"
)
LOOK_AGAIN = "without this file the search looks itself whether something is left to run: delete it"
SEARCH = re.compile(r"[0-9a-f]{16}")
STOPPED = re.compile(r"([0-9]+)-([0-9]+)\.stopped\.json")
OUTCOME = "outcome.json"
CONFIRMED = re.compile(r"(0|[1-9][0-9]{0,8})\.confirmed\.json")
CONFIRM_AGAIN = "without this file the confirmation is not spoken of; `semray confirm` writes it again: delete it"


@dataclass(frozen=True, kw_only=True)
class SearchOutcome:
    """The state of a search at the end of its last execution.

    trials, budget: as requested. ended: nothing of it is left to run. best, point: number and values of the best
    point; None and {} without one. table: digest of all points with the results of their runs.
    """

    arm: str
    trials: int
    budget: int
    ended: bool
    best: int | None
    point: Mapping[str, Any]
    table: str


@dataclass(frozen=True, kw_only=True)
class Confirmed:
    """The result of a confirmation: a point against the arm that the search started from. confirmed_at: in UTC."""

    treatment: str
    control: str
    metric: str
    verdict: str
    exploratory: bool
    seeds: int
    confirmed_at: str


@dataclass(frozen=True)
class Points:
    """The files of one search of a study. search: its id.

    Methods that write raise StudyError as `kept`; methods that read raise LedgerError for a damaged file.
    """

    storage: Storage
    study: str
    search: str

    def suggest(self, number: int, point: Mapping[str, Any]) -> None:
        """Record the `number`th point before its first run; a resumed search suggests a recorded one again."""
        with kept(self.storage.url), suppress(FileExistsError):
            self._seal(f"{number}.json", point, self.storage.create)

    def suggested(self) -> list[dict[str, Any]]:
        """All points in order. Raises LedgerError if one before the last is missing."""
        return [point for _, point in read_in_order(self.storage, self._folder, REMEDY)]

    def stop(self, number: int, seed: int, looks: Mapping[int, float]) -> None:
        """Record that a point's run was ended early, with its development scores by step."""
        with kept(self.storage.url):
            self._seal(f"{number}-{seed}.stopped.json", looks, self.storage.write)

    def stopped(self) -> dict[tuple[int, int], dict[int, float]]:
        """The runs that were ended early: (number of the point, seed) -> step -> score."""
        return {
            (number, seed): note_as(self.storage, place, REMEDY, _looks)
            for (number, seed), place in self._notes(STOPPED)
        }

    def keep_outcome(self, outcome: SearchOutcome) -> None:
        """Record the state of the search, replacing the one before."""
        with kept(self.storage.url):
            self._seal(OUTCOME, asdict(outcome), self.storage.write)

    def outcome(self) -> SearchOutcome | None:
        """The recorded state of the search; None before its first execution has ended."""
        place = f"{self._folder}/{OUTCOME}"
        return note_if_there(self.storage, place, LOOK_AGAIN, lambda body: SearchOutcome(**body))

    def confirm(self, number: int, result: Confirmed) -> None:
        """Record the result of a point's confirmation, replacing an earlier one."""
        with kept(self.storage.url):
            self._seal(f"{number}.confirmed.json", asdict(result), self.storage.write)

    def confirmed(self) -> dict[int, Confirmed]:
        """The results of confirmations, by the number of the point."""
        return {
            number: note_as(self.storage, place, CONFIRM_AGAIN, lambda body: Confirmed(**body))
            for (number,), place in self._notes(CONFIRMED)
        }

    @property
    def _folder(self) -> str:
        return f"{_of_study(self.study)}/{self.search}"

    def _seal(self, name: str, body: Mapping[Any, Any], write: Callable[[str, bytes], None]) -> None:
        place = f"{self._folder}/{name}"
        write(place, sealed(body, place))

    def _notes(self, pattern: re.Pattern[str]) -> Iterator[tuple[tuple[int, ...], str]]:
        """The files whose names match: the numbers in the name, and the place."""
        for name in self.storage.children(self._folder):
            if match := pattern.fullmatch(name):
                yield tuple(map(int, match.groups())), f"{self._folder}/{name}"


def _looks(body: Mapping[str, Any]) -> dict[int, float]:
    return {int(step): float(score) for step, score in body.items()}


def searches(storage: Storage, study: str) -> list[str]:
    """The ids of a study's searches, one for each space, arm and data that it ever declared."""
    return [name for name in storage.children(_of_study(study)) if SEARCH.fullmatch(name)]


def _of_study(study: str) -> str:
    return f".searches/{quote(study, safe='')}"
