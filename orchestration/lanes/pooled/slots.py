"""The lanes of a pool as processes: starts, replaces, polls and ends them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count, filterfalse, islice
from typing import TYPE_CHECKING, Any

from corpora.store.errors import last_line
from orchestration.lanes.lane import Lane, LaneKind, variables_of
from orchestration.lanes.waits import SAID_SECONDS, START_SECONDS, WIND_DOWN_SECONDS, Stillness
from orchestration.study.errors import StudyError

if TYPE_CHECKING:
    from orchestration.lanes.pooled.queued import Held

START_TRIES = 3  # failed starts in a row after which a lane is given up
STACK_SECONDS = 10.0  # wait for the stack of a lane that makes no progress


def start(kind: LaneKind, url: str) -> Any:
    """Start a lane and return its actor.

    DS_ACCELERATOR keeps DeepSpeed, at its import, from taking a GPU that is not the lane's.
    """
    import ray

    remote: Any = ray.remote  # its type hints lack some options
    variables = variables_of(kind.threads, kind.gpus) | {"DS_ACCELERATOR": "cuda" if kind.gpus else "cpu"}
    actor = remote(
        num_cpus=kind.threads,
        num_gpus=kind.gpus,
        memory=kind.memory or None,
        max_restarts=0,
        max_task_retries=0,
        concurrency_groups={"poll": 1, "live": 1},
        runtime_env={"env_vars": variables},
    )(Lane)
    return actor.remote(url, kind)


@dataclass(eq=False)
class Slot:
    """The driver's view of a lane. opened, polled: when it was started, and last polled.

    held: its job. promised: a job for it is being looked up. starting, work, poll: references to answers awaited
    from it; life: one that comes only when it dies.
    """

    number: int
    actor: Any
    starting: Any
    life: Any
    opened: float
    polled: float = 0.0
    held: Held | None = None
    promised: bool = False
    work: Any = None
    poll: Any = None

    @property
    def ready(self) -> bool:
        return self.starting is None

    @property
    def idle(self) -> bool:
        return self.held is None and not self.promised

    def outstanding(self) -> list[Any]:
        """The answers to wait for; `life` only while idle, as a running call also fails when the lane dies."""
        call = next((ref for ref in (self.starting, self.work) if ref is not None), self.life)
        return [ref for ref in (call, self.poll) if ref is not None]

    def ask(self) -> None:
        """Request its state; the answer comes to `poll`."""
        self.polled = time.monotonic()
        self.poll = self.actor.state.options(concurrency_group="poll").remote()

    def drop(self, run_id: str) -> None:
        """Tell it to give a run up."""
        self.actor.drop.options(concurrency_group="poll").remote(run_id)

    def stack(self) -> str:
        """The stack of its job, for the log; "" if it does not answer."""
        import ray

        with suppress(ray.exceptions.RayError):
            return ray.get(self.actor.stack.options(concurrency_group="poll").remote(), timeout=STACK_SECONDS)
        return ""


class Slots:
    """The lanes of a pool, each with a number.

    start: starts a lane for the ledger at a URL and returns its actor. given_up: the numbers of lanes that died in
    START_TRIES starts and were not replaced.
    """

    def __init__(self, start: Callable[[str], Any], url: str) -> None:
        self._actor, self._url = start, url
        self._slots: list[Slot] = []
        self.given_up: set[int] = set()
        self._false_starts: Counter[int] = Counter()  # by the lane's number, since it was last ready
        self._none_ready = Stillness()

    def __iter__(self) -> Iterator[Slot]:
        return iter(self._slots)

    def __len__(self) -> int:
        return len(self._slots)

    def open(self, lanes: int) -> None:
        """Start so many further lanes, with the lowest free numbers."""
        taken = {slot.number for slot in self._slots} | self.given_up
        self._slots += [self._start(number) for number in islice(filterfalse(taken.__contains__, count()), lanes)]

    def welcome(self, slot: Slot) -> None:
        """Mark a lane as ready."""
        slot.starting = None
        del self._false_starts[slot.number]

    def start_again(self, slot: Slot, error: Exception) -> bool:
        """Replace a lane that died before it was ready. Return False if it did so too often and is given up.

        Raises StudyError if it was the last lane.
        """
        self._false_starts[slot.number] += 1
        if self._false_starts[slot.number] < START_TRIES:
            self.replace(slot)
            return True
        self.give_back([slot])
        self.given_up.add(slot.number)
        if not self._slots:
            raise StudyError(_no_lane(last_line(error)))
        return False

    def none_starts(self) -> bool:
        """Return True, once, when no lane has been ready for `SAID_SECONDS`, even if some were restarted.

        Raises StudyError after `START_SECONDS`.
        """
        if any(slot.ready for slot in self._slots):
            self._none_ready = Stillness()
        elif self._none_ready.hear("none is ready") > START_SECONDS:
            raise StudyError(_no_lane(f"none was ready after {START_SECONDS:.0f} s"))
        return self._none_ready.worth_a_word(2 * SAID_SECONDS)

    def replace(self, slot: Slot) -> None:
        """Kill a lane's process and start another with its number."""
        import ray

        ray.kill(slot.actor)
        slot.starting = slot.work = slot.poll = slot.life = None  # its answers are ignored from now on
        self._slots[self._slots.index(slot)] = self._start(slot.number)

    def give_back(self, slots: Sequence[Slot]) -> None:
        import ray

        for slot in slots:
            ray.kill(slot.actor)
            self._slots.remove(slot)

    def wind_down(self) -> None:
        """Wait until running steps have ended and checkpoints are written, up to `WIND_DOWN_SECONDS`."""
        import ray

        busy = [slot for slot in self._slots if slot.held]
        for slot in busy:
            slot.actor.stop.options(concurrency_group="poll").remote()
        ray.wait([slot.work for slot in busy], num_returns=len(busy), timeout=WIND_DOWN_SECONDS)

    def _start(self, number: int) -> Slot:
        actor = self._actor(self._url)
        return Slot(
            number=number,
            actor=actor,
            starting=actor.pid.remote(),
            life=actor.live.options(concurrency_group="live").remote(),
            opened=time.monotonic(),
        )


def _no_lane(why: str) -> str:
    return (
        f"no lane could be started: {why}\n"
        f"  accepted: the same command once more, where one has room; `semray doctor` and `ray status` say what "
        f"there is"
    )
