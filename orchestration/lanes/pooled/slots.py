"""The lanes of a pool as processes: how one is started, replaced, asked where it stands, and given back."""

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

START_TRIES = 3  # of a lane in a row
STACK_SECONDS = 10.0  # for a lane that stands still to say where


def start(kind: LaneKind, url: str) -> Any:
    """A new lane's actor. DeepSpeed chooses its accelerator when it is imported, and would take a GPU that is not
    the lane's."""
    import ray

    remote: Any = ray.remote  # its types do not know every option
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
    """A lane as the driver sees it. opened, polled: when it was started, and last asked how far it is.

    promised: a job for it is being looked up. starting, work, poll: answers that are awaited from it; life: one
    that comes with its end alone.
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
        """Whatever it is at breaks off when it dies. To look at an answer more takes the driver time."""
        at = next((ref for ref in (self.starting, self.work) if ref is not None), self.life)
        return [ref for ref in (at, self.poll) if ref is not None]

    def ask(self) -> None:
        """Have it say how far it is; the answer is `poll`."""
        self.polled = time.monotonic()
        self.poll = self.actor.state.options(concurrency_group="poll").remote()

    def drop(self, run_id: str) -> None:
        """Have it give a run up."""
        self.actor.drop.options(concurrency_group="poll").remote(run_id)

    def stack(self) -> str:
        """The calls that it is in, for the log; "" where it cannot say."""
        import ray

        with suppress(ray.exceptions.RayError):
            return ray.get(self.actor.stack.options(concurrency_group="poll").remote(), timeout=STACK_SECONDS)
        return ""


class Slots:
    """The lanes of one kind that a pool has, each under a number of its own.

    start: gives the actor of a new one, with the ledger at a URL. given_up: the numbers of those that died in
    every start, and are none any more.
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
        """Start so many more, under the lowest numbers that are free."""
        taken = {slot.number for slot in self._slots} | self.given_up
        self._slots += [self._start(number) for number in islice(filterfalse(taken.__contains__, count()), lanes)]

    def welcome(self, slot: Slot) -> None:
        """One has become ready."""
        slot.starting = None
        del self._false_starts[slot.number]

    def start_again(self, slot: Slot, error: Exception) -> bool:
        """Replace one that died before it was ready. False where it has too often, and is given up.

        StudyError where it was the last.
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
        """True once where none has been ready for `SAID_SECONDS`, whatever became of each meanwhile.

        StudyError where that has lasted too long.
        """
        if any(slot.ready for slot in self._slots):
            self._none_ready = Stillness()
        elif self._none_ready.hear("none is ready") > START_SECONDS:
            raise StudyError(_no_lane(f"none was ready after {START_SECONDS:.0f} s"))
        return self._none_ready.worth_a_word(2 * SAID_SECONDS)

    def replace(self, slot: Slot) -> None:
        """End a lane's process, whatever state it is in, and start another in its place."""
        import ray

        ray.kill(slot.actor)
        slot.starting = slot.work = slot.poll = slot.life = None  # nobody waits for its answers any more
        self._slots[self._slots.index(slot)] = self._start(slot.number)

    def give_back(self, slots: Sequence[Slot]) -> None:
        import ray

        for slot in slots:
            ray.kill(slot.actor)
            self._slots.remove(slot)

    def wind_down(self) -> None:
        """Let running steps end and checkpoints be written. Another signal, or too long a wait, ends this."""
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
