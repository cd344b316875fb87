"""What the workers of all groups of a launch tell their driver, and are told by it."""

from __future__ import annotations

import asyncio
import time
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ray.util.placement_group import PlacementGroup

    from trainers.engine.world import Progress

Sign = tuple[str, float, int]  # where a worker was last, for how many seconds, and the number of this sign
_Mark = tuple[str, float, int]  # the same, with the moment instead of the seconds


class Board:
    """Where rank 0 of a group writes how far its run is, for the driver to read, and hears that it is to stop."""

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
        """What was written since the last call."""
        fresh, self._progress = self._progress, {}
        return fresh

    def begin(self, run_id: str, rank: int, placement: PlacementGroup | None) -> None:
        """A worker has started, in what Ray has kept for its group: what that was ended for lies behind it."""
        self._placements[run_id] = placement
        self._ended.discard(run_id)
        self._said.pop((run_id, rank), None)
        self.sign(run_id, rank, "at its start")

    def end(self, run_id: str) -> None:
        """Have the workers of a run's group end themselves."""
        self._ended.add(run_id)

    def ended(self, run_id: str) -> bool:
        return run_id in self._ended

    def placement(self, run_id: str) -> PlacementGroup | None:
        """What the newest group of a run was given, whether it still has it or not."""
        return self._placements.get(run_id)

    def sign(self, run_id: str, rank: int, words: str, news: str = "") -> None:
        """A worker has come so far; news: all that it says. To say the same again is to come no further."""
        if self._said.get((run_id, rank)) != (words, news):
            self._said[run_id, rank] = words, news
            self._signs.setdefault(run_id, {})[rank] = (words, time.monotonic(), next(self._numbers))

    def signs(self) -> dict[str, dict[int, Sign]]:
        """Run id -> rank -> where that worker was last."""
        now = time.monotonic()
        return {
            run_id: {rank: (words, now - at, number) for rank, (words, at, number) in ranks.items()}
            for run_id, ranks in self._signs.items()
        }

    def stop(self) -> None:
        """Let the running step of every group end, and the group with it, its checkpoint saved."""
        self._stop.set()

    async def stopped(self) -> bool:
        """True, as soon as `stop` has been called; until then there is no answer."""
        return await self._stop.wait()
