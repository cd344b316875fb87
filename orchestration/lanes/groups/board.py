"""The actor through which the workers of a launch's groups and their driver exchange progress and requests."""

from __future__ import annotations

import asyncio
import time
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ray.util.placement_group import PlacementGroup

    from trainers.engine.world import Progress

Sign = tuple[str, float, int]  # a worker's last place in words, the seconds since then, and a serial number
_Mark = tuple[str, float, int]  # the same, with the moment instead of the seconds


class Board:
    """Holds the progress of runs, signs of life of workers, and the driver's requests to end groups or to stop."""

    def __init__(self) -> None:
        self._progress: dict[str, Progress] = {}
        self._signs: dict[str, dict[int, _Mark]] = {}
        self._said: dict[tuple[str, int], tuple[str, str]] = {}
        self._numbers = count()
        self._ended: set[str] = set()
        self._placements: dict[str, PlacementGroup | None] = {}
        self._stop = asyncio.Event()

    def write(self, run_id: str, progress: Progress) -> None:
        self._progress[run_id] = progress

    def read(self) -> dict[str, Progress]:
        """The progress of runs written since the last call."""
        fresh, self._progress = self._progress, {}
        return fresh

    def begin(self, run_id: str, rank: int, placement: PlacementGroup | None) -> None:
        """A worker has started within this placement group; an earlier request to end the group is void."""
        self._placements[run_id] = placement
        self._ended.discard(run_id)
        self._said.pop((run_id, rank), None)
        self.sign(run_id, rank, "at its start")

    def end(self, run_id: str) -> None:
        """Request that the workers of a run's group exit."""
        self._ended.add(run_id)

    def ended(self, run_id: str) -> bool:
        return run_id in self._ended

    def placement(self, run_id: str) -> PlacementGroup | None:
        """The placement group of a run's newest group, whether it still exists or not."""
        return self._placements.get(run_id)

    def sign(self, run_id: str, rank: int, words: str, news: str = "") -> None:
        """A worker reports its place, with details in `news`. Repeating both counts as no progress."""
        if self._said.get((run_id, rank)) != (words, news):
            self._said[run_id, rank] = words, news
            self._signs.setdefault(run_id, {})[rank] = (words, time.monotonic(), next(self._numbers))

    def signs(self) -> dict[str, dict[int, Sign]]:
        """Run id -> rank -> the worker's last sign."""
        now = time.monotonic()
        return {
            run_id: {rank: (words, now - at, number) for rank, (words, at, number) in ranks.items()}
            for run_id, ranks in self._signs.items()
        }

    def stop(self) -> None:
        """Request that every group ends after its running step, with a checkpoint."""
        self._stop.set()

    async def stopped(self) -> bool:
        """Wait until `stop` is called, then return True."""
        return await self._stop.wait()
