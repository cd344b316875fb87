"""The driver's side of pooled lanes: assigns jobs to lanes, and handles the lanes' answers."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from corpora.store.errors import last_line
from orchestration.lanes.bodies import Problem
from orchestration.lanes.cluster import room_words
from orchestration.lanes.events import (
    Event,
    LaneReady,
    Outcome,
    Preparing,
    RunLooked,
    RunMoved,
    RunStarted,
    Waiting,
)
from orchestration.lanes.lane import LaneState, Lease
from orchestration.lanes.leases import Found, leased
from orchestration.lanes.pooled.commits import Commits, nothing_more
from orchestration.lanes.pooled.desk import Desk
from orchestration.lanes.pooled.queued import Held, JobSource, Queued, due
from orchestration.lanes.pooled.slots import Slot, Slots
from orchestration.lanes.waits import (
    ELSEWHERE_SECONDS,
    POLL_SECONDS,
    Elsewhere,
    Stillness,
    place_of,
    stalled_words,
    still_words,
    unasked_words,
)
from orchestration.study.errors import StudyError
from orchestration.study.run import Job, Run

if TYPE_CHECKING:
    from orchestration.ledger.ledger import Ledger

ASKING_SECONDS = 600.0  # how long an idle source may ask for nothing, or `stall_minutes` if longer
LEDGER_THREADS = 32  # for requests to a remote ledger: 64 lanes with runs of 10 s need some 180 a second
HEAR_SECONDS = 0.02  # how often to look for their answers


class Pool:
    """Lanes of one kind, and the queue of their jobs.

    start: see `Slots`. lease_seconds: how long a lane may not answer. stall_seconds: how long its answers may show
    no progress. growing: the cluster may get room for more lanes. afterwards: see `Commits`.
    """

    def __init__(
        self,
        start: Callable[[str], Any],
        ledger: Ledger,
        on_event: Callable[[Event], None],
        stop: threading.Event,
        *,
        lease_seconds: float,
        stall_seconds: float,
        growing: bool = False,
        afterwards: Callable[[Run], None] = nothing_more,
    ) -> None:
        self.ledger, self.on_event, self.stop = ledger, on_event, stop
        self.lease_seconds, self.stall_seconds, self.growing = lease_seconds, stall_seconds, growing
        self.elsewhere = Elsewhere(ledger, on_event)
        self.source: JobSource | None = None
        self.unasked = Stillness()  # how long the source has asked for nothing while no job runs
        self.tries, self.more = 1, False
        self.queue: deque[Queued] = deque()
        self.slots = Slots(start, ledger.url)
        self.desk = Desk(LEDGER_THREADS if ledger.remote else 0)
        self.commits = Commits(ledger, self.desk, self.queue, on_event, afterwards)

    def run(
        self,
        jobs: Sequence[Job],
        *,
        lanes: int,
        tries: int,
        source: JobSource | None = None,
        more: bool = False,
    ) -> Outcome:
        """Work until every run is committed or given up and the source has no more jobs, or until asked to stop.

        more: other jobs may follow; the lanes are kept for them until `close`, unless asked to stop.
        """
        self.source, self.tries, self.more = source, tries, more
        self._queue(jobs)
        kept = False
        try:
            self._listen(0.0)  # notices lanes that died since the last jobs
            if (lacking := lanes - len(self.slots) - len(self.slots.given_up)) > 0:
                self.on_event(Preparing(what=f"importing what runs need, in {lanes} lane{'s' * (lanes > 1)}"))
                self.slots.open(lacking)
            while self._expecting() and not self.stop.is_set():
                self.desk.hear()
                self._hand_out()
                self._grow()
                self._listen(HEAR_SECONDS if self.desk.busy else POLL_SECONDS)
                self._look_after()
                self._end_if_unasked()
            self.desk.finish()
            stopped = self._expecting()
            if stopped:
                self.slots.wind_down()
            kept = more and not stopped
        finally:
            if not kept:
                self.close()
        return self.commits.outcome(stopped=stopped)

    def close(self) -> None:
        """Commit staged results, then end all lanes."""
        for slot in list(self.slots):
            if slot.held:
                self.commits.take_staged(slot.held)
            self.slots.give_back([slot])
        self.desk.close()

    def _queue(self, jobs: Sequence[Job]) -> None:
        self.queue.extend(Queued(job.runs, self.tries) for job in jobs)

    @property
    def _asking(self) -> bool:
        """True if more jobs may come from the source."""
        return self.source is not None and self.source.bell is not None

    def _expecting(self) -> bool:
        """True if there is work, or more may come."""
        return self._asking or bool(self.queue) or self.desk.busy or any(slot.held for slot in self.slots)

    # Jobs to lanes

    def _hand_out(self) -> None:
        """Look up the next jobs in the ledger, one for each idle lane."""
        for slot in self.slots:
            self._serve(slot)

    def _serve(self, slot: Slot) -> None:
        while slot.ready and slot.idle and not self.stop.is_set() and (queued := due(self.queue)):
            slot.promised = True
            self.desk.do(slot, partial(leased, queued.runs, self.ledger), partial(self._begin, slot, queued))

    def _begin(self, slot: Slot, queued: Queued, found: Found) -> None:
        """Give a job, once looked up, to its lane, or put it back into the queue."""
        slot.promised = False
        owing = {run.id for run in found.left}
        for run in queued.runs:
            if run.id not in owing:
                self.commits.found(run)
        queued.runs = found.left
        if any(self.elsewhere.tell(run, found.elsewhere.get(run.id)) for run in found.left):
            queued.not_before = time.monotonic() + ELSEWHERE_SECONDS
            self.queue.append(queued)
        elif found.left and (self.stop.is_set() or slot not in self.slots):  # a lane that died meanwhile
            self.queue.appendleft(queued)
        elif found.left:
            self._assign(slot, queued, found)

    def _assign(self, slot: Slot, queued: Queued, found: Found) -> None:
        slot.held = Held(queued, dict(found.attempts), found.lacking)
        slot.work = slot.actor.work.remote(Lease(job=Job(runs=queued.runs), attempts=found.attempts))
        slot.polled = time.monotonic()
        for run in queued.runs:
            self.on_event(RunStarted(run=run, lane=slot.number, attempt=found.attempts[run.id]))

    def _grow(self) -> None:
        """While runs wait, request as many further lanes as are busy, at least one; later give idle lanes back.

        Pending lanes make an autoscaler start machines, and use room that other studies leave. Once no run waits
        and none can come, idle lanes are given back, so that the autoscaler can end machines. Idle lanes are kept
        if further jobs may come, except on a growing cluster, where each might hold a machine.
        """
        idle = [slot for slot in self.slots if slot.idle]
        busy = len(self.slots) - len(idle)
        may_come = self._asking or (self.more and not self.growing)
        if self.growing and self.queue:
            pending = len(idle) + len(self.slots.given_up)
            self.slots.open(max(0, min(len(self.queue), max(1, busy)) - pending))
        elif busy and not self.queue and not may_come:
            self.slots.give_back(idle)  # if none is busy, `run` ends anyway

    # Answers of lanes

    def _listen(self, seconds: float) -> None:
        """Handle all answers that have come; wait up to `seconds` for the first.

        All are taken in one call, since each look goes through all lanes.
        """
        import ray

        owners = {ref: slot for slot in self.slots for ref in slot.outstanding()}
        bell = self.source.bell if self.source else None
        awaited = [*owners, bell] if bell is not None else list(owners)
        if not awaited:
            self.stop.wait(seconds)
            return
        first, others = ray.wait(awaited, num_returns=1, timeout=seconds)
        more = ray.wait(others, num_returns=len(others), timeout=0)[0] if first and others else []
        for ref in [*first, *more]:
            if self.source and ref == bell:
                self._queue(self.source.jobs())
            elif ref in (slot := owners[ref]).outstanding():  # else an answer before it ended that lane
                self._hear(slot, ref)

    def _hear(self, slot: Slot, ref: Any) -> None:
        """Handle one answer of a lane: that it is ready, its state, or the end of its job."""
        import ray

        try:
            answer = ray.get(ref)
        except ray.exceptions.RayError as error:
            self._bury(slot, error)
            return
        if ref == slot.starting:
            self.slots.welcome(slot)
            self.on_event(LaneReady(lane=slot.number, seconds=time.monotonic() - slot.opened))
        elif ref == slot.poll:
            slot.poll = None
            if slot.held:
                self._take(slot.held, answer)
                self._drop_unwanted(slot, slot.held)
                self._end_if_still(slot, slot.held, answer)
        else:
            self._end_work(slot, answer)

    def _take(self, held: Held, state: LaneState) -> None:
        """Commit what a lane has staged, and pass its progress on as events."""
        runs = {run.id: run for run in held.owed()}
        self.commits.take(held, state)
        if state.moving and state.moving[0] in held.attempts:
            run = runs[state.moving[0]]
            self.on_event(RunMoved(run=run, progress=state.moving[1]))
            for look in state.looks:
                self.on_event(RunLooked(run=run, progress=look))

    def _end_work(self, slot: Slot, state: LaneState) -> None:
        """A lane's job has ended: give the lane its next job or replace it, then handle the results."""
        held, slot.held, slot.work = slot.held, None, None
        assert held is not None
        if state.problem:
            self.slots.replace(slot)
        else:
            self._serve(slot)
        self._take(held, state)
        if state.problem:
            self.commits.fail(held, state.problem)
        if state.dropped:
            assert self.source is not None, "lanes drop what a source no longer wants"
            self.commits.let_go(held, self.source.given_up)

    def _drop_unwanted(self, slot: Slot, held: Held) -> None:
        for run in held.owed():
            if self.source and not self.source.wanted(run.id):
                slot.drop(run.id)

    # Lanes, and a source, that make no progress

    def _look_after(self) -> None:
        """Poll busy lanes; replace those that do not answer."""
        import ray

        if self.slots.none_starts():
            self.on_event(Waiting(what=f"no lane is ready yet; {room_words()}"))
        now = time.monotonic()
        for slot in [slot for slot in self.slots if slot.held]:
            if slot.poll is None and now - slot.polled >= POLL_SECONDS:
                slot.ask()
            elif slot.poll is not None and now - slot.polled > self.lease_seconds:
                answered, _ = ray.wait([slot.poll], timeout=0)  # this process may have been asleep itself
                if not answered:
                    message = f"its lane was silent for {self.lease_seconds:g} s"
                    self._lose(slot, message, message)

    def _bury(self, slot: Slot, error: Exception) -> None:
        """Handle the death of a lane's process, whether it was at work, idle or not ready yet."""
        if slot.ready:
            self._lose(slot, "its lane died (killed, out of memory, or its machine went away)", str(error))
        elif not self.slots.start_again(slot, error):
            self.on_event(Waiting(what=f"lane {slot.number} does not start: {last_line(error)}"))

    def _lose(self, slot: Slot, message: str, details: str) -> None:
        self.slots.replace(slot)
        if slot.held:
            self.commits.take_staged(slot.held)
            self.commits.fail(slot.held, Problem(message=message, traceback=details, final=False))

    def _end_if_still(self, slot: Slot, held: Held, state: LaneState) -> None:
        """Replace a lane that answers but has made no progress for `stall_seconds`."""
        if state.problem or not (owed := held.owed()):
            return  # its job is over
        seconds = held.still.hear(repr((state.moving, sorted(state.staged))))
        place = place_of(state.moving[1] if state.moving else None)
        if seconds >= self.stall_seconds:
            self._lose(slot, stalled_words("its lane", self.stall_seconds, place), slot.stack())
        elif held.still.worth_a_word(self.stall_seconds):
            self.on_event(Waiting(what=still_words(owed[0], seconds, place, self.stall_seconds)))

    def _end_if_unasked(self) -> None:
        """Raise StudyError if the source has asked for nothing for too long while no job runs."""
        idle = not self.queue and not self.desk.busy and all(slot.ready and not slot.held for slot in self.slots)
        if not idle:
            self.unasked = Stillness()
            return
        limit = max(self.stall_seconds, ASKING_SECONDS)
        if self.unasked.hear("nothing asked for") >= limit:
            raise StudyError(unasked_words(limit))
