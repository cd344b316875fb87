"""The points that a search suggested, in order: one file each, written before the point's first run.

And the runs that it ended early: one file each, with the development scores up to there by step. And what the
search had come to when it was last asked for, and what confirmations of its points came to.
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
    """What a search had come to when it was last asked for.

    trials, budget: what it was asked for. ended: nothing was left of it to be run. best, point: the best point;
    None and {} without one. table: digest of all points with what their runs came to.
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
    """What came of a point that was put to the test against what the search began with. confirmed_at: in UTC."""

    treatment: str
    control: str
    metric: str
    verdict: str
    exploratory: bool
    seeds: int
    confirmed_at: str


@dataclass(frozen=True)
class Points:
    """One search of a study, by its id: its points and what came of them. What is written is StudyError as `kept`.

    A file that is damaged is LedgerError.
    """

    storage: Storage
    study: str
    search: str

    def suggest(self, number: int, point: Mapping[str, Any]) -> None:
        """Write down which point is tried as the `number`th, before its first run.

        One that is there already stays: a search that goes on suggests it again.
        """
        with kept(self.storage.url), suppress(FileExistsError):
            self._seal(f"{number}.json", point, self.storage.create)

    def suggested(self) -> list[dict[str, Any]]:
        """All points, in the order of their numbers. LedgerError where one is missing before others."""
        return [point for _, point in read_in_order(self.storage, self._folder, REMEDY)]

    def stop(self, number: int, seed: int, looks: Mapping[int, float]) -> None:
        """Write down that a point's run was ended early, with its development scores by step."""
        with kept(self.storage.url):
            self._seal(f"{number}-{seed}.stopped.json", looks, self.storage.write)

    def stopped(self) -> dict[tuple[int, int], dict[int, float]]:
        """The runs that were ended early: (number of the point, seed) -> step -> score."""
        return {
            (number, seed): note_as(self.storage, place, REMEDY, _looks)
            for (number, seed), place in self._notes(STOPPED)
        }

    def keep_outcome(self, outcome: SearchOutcome) -> None:
        """Write down what the search has come to, in place of what it had come to before."""
        with kept(self.storage.url):
            self._seal(OUTCOME, asdict(outcome), self.storage.write)

    def outcome(self) -> SearchOutcome | None:
        """What the search had come to when it was last asked for; None before that."""
        place = f"{self._folder}/{OUTCOME}"
        return note_if_there(self.storage, place, LOOK_AGAIN, lambda body: SearchOutcome(**body))

    def confirm(self, number: int, told: Confirmed) -> None:
        """Write down what the confirmation of a point came to, in place of what an earlier one did."""
        with kept(self.storage.url):
            self._seal(f"{number}.confirmed.json", asdict(told), self.storage.write)

    def confirmed(self) -> dict[int, Confirmed]:
        """Number of the point -> what its confirmation came to."""
        return {
            number: note_as(self.storage, place, CONFIRM_AGAIN, lambda told: Confirmed(**told))
            for (number,), place in self._notes(CONFIRMED)
        }

    @property
    def _folder(self) -> str:
        return f"{_of_study(self.study)}/{self.search}"

    def _seal(self, name: str, body: Mapping[Any, Any], write: Callable[[str, bytes], None]) -> None:
        place = f"{self._folder}/{name}"
        write(place, sealed(body, place))

    def _notes(self, named: re.Pattern[str]) -> Iterator[tuple[tuple[int, ...], str]]:
        """The files that are named so: the numbers in the name, and the place."""
        for name in self.storage.children(self._folder):
            if match := named.fullmatch(name):
                yield tuple(map(int, match.groups())), f"{self._folder}/{name}"


def _looks(told: Mapping[str, Any]) -> dict[int, float]:
    return {int(step): float(score) for step, score in told.items()}


def searches(storage: Storage, study: str) -> list[str]:
    """The ids of a study's searches: of every space, arm and data that it was declared with."""
    return [name for name in storage.children(_of_study(study)) if SEARCH.fullmatch(name)]


def _of_study(study: str) -> str:
    return f".searches/{quote(study, safe='')}"
