"""The driver's side of pooled lanes: one queue of jobs, long-lived actors, and the commits."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import count, filterfalse, islice
from typing import TYPE_CHECKING, Any, Protocol

from orchestration.lanes.desk import Desk
from orchestration.lanes.events import (
    Event,
    LaneReady,
    Outcome,
    Preparing,
    RunFailed,
    RunFinished,
    RunLooked,
    RunMoved,
    RunStarted,
    Waiting,
)
from orchestration.lanes.lane import Lane, LaneState, Lease, Problem, variables_of
from orchestration.lanes.waits import (
    POLL_SECONDS,
    Elsewhere,
    Stillness,
    place_of,
    stalled_words,
    still_words,
    unasked_words,
)
from orchestration.ledger.ledger import run_of
from orchestration.study.errors import StudyError
from orchestration.study.run import Body, Job, Run

if TYPE_CHECKING:
    from orchestration.ledger.drivers import Driver
    from orchestration.ledger.ledger import Failure, Ledger

START_SECONDS = 600.0  # for the first lane to be ready: a cluster may have to start machines
START_TRIES = 3  # of every lane in a row, none being ready
STACK_SECONDS = 10.0  # for a lane that stands still to say where
WIND_DOWN_SECONDS = 30.0  # for the running steps to end after the driver was asked to stop
ASKING_SECONDS = 600.0  # for a source to ask while nothing is under way, or `stall_minutes` if longer
LEDGER_THREADS = 32  # where the ledger is remote: 64 lanes with runs of 10 s ask it some 180 things a second
HEAR_SECONDS = 0.02  # how often to look what came of those
ELSEWHERE_SECONDS = 5.0  # how often to look whether another driver has done a run that this one needs too


class JobSource(Protocol):
    """Where jobs come from while a pool works. bell: a Ray reference, ready when there are some; None: no more."""

    @property
    def bell(self) -> Any: ...

    def jobs(self) -> Sequence[Job]:
        """The jobs for which the bell rang."""
        ...

    def wanted(self, run_id: str) -> bool:
        """Whether a run that was asked for is still of use."""
        ...


@dataclass(frozen=True)
class LaneKind:
    """What all lanes of a pool have in common; but for memory, in bytes, the fields are those of `Lane`."""

    body: Body | str
    warm: tuple[str, ...]
    gpus: float
    threads: int
    checkpoint_every: int
    memory: int = 0
    models: bool = True

    def start(self, url: str) -> Any:
        """A new actor. DeepSpeed chooses its accelerator when it is imported, and would take a GPU that is not the
        lane's."""
        import ray

        remote: Any = ray.remote  # its types do not know every option
        variables = variables_of(self.threads, self.gpus) | {"DS_ACCELERATOR": "cuda" if self.gpus else "cpu"}
        actor = remote(
            num_cpus=self.threads,
            num_gpus=self.gpus,
            memory=self.memory or None,
            max_restarts=0,
            max_task_retries=0,
            concurrency_groups={"poll": 1},
            runtime_env={"env_vars": variables},
        )(Lane)
        return actor.remote(url=url, **{name: value for name, value in vars(self).items() if name != "memory"})


@dataclass
class _Task:
    """A job in the queue: the runs it still lacks, how often it may be tried, and when it is worth looking at."""

    runs: tuple[Run, ...]
    tries: int
    not_before: float = 0.0


@dataclass(frozen=True)
class _Found:
    """What the ledger says of a task's runs, and their attempt numbers if they may begin.

    left: those that owe something. lacking: which entries each of them owes. elsewhere: who else is at them.
    """

    left: tuple[Run, ...]
    lacking: dict[str, set[str]]
    elsewhere: dict[str, Driver]
    attempts: dict[str, int]


@dataclass(eq=False)
class _Held:
    """A task that a lane is at, with the attempt numbers of its runs that are not finished yet.

    lacking: the entries that each of those still owes. coming: those that are being committed; then: what is to be
    done when none is. still: for how long its lane has said the same.
    """

    task: _Task
    attempts: dict[str, int]
    lacking: dict[str, set[str]]
    coming: set[str] = field(default_factory=set)
    then: list[Callable[[], None]] = field(default_factory=list)
    still: Stillness = field(default_factory=Stillness)

    def owed(self) -> tuple[Run, ...]:
        return tuple(run for run in self.task.runs if run.id in self.attempts)


@dataclass(eq=False)
class _Slot:
    """A lane as the driver sees it. opened, polled: when it was started, and last asked how far it is.

    promised: a task for it is being looked up.
    """

    number: int
    actor: Any
    starting: Any
    opened: float
    polled: float = 0.0
    held: _Held | None = None
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
        return [ref for ref in (self.starting, self.work, self.poll) if ref is not None]


class Pool:
    """Some lanes of one kind, and what has come out of them so far.

    lease_seconds, stall_seconds: how long a lane may say nothing, and nothing new. growing: there may be room for
    more later.
    """

    def __init__(
        self,
        kind: LaneKind,
        ledger: Ledger,
        on_event: Callable[[Event], None],
        stop: threading.Event,
        *,
        lease_seconds: float,
        stall_seconds: float,
        growing: bool = False,
    ) -> None:
        self.kind, self.ledger, self.on_event, self.stop = kind, ledger, on_event, stop
        self.lease_seconds, self.stall_seconds, self.growing = lease_seconds, stall_seconds, growing
        self.elsewhere = Elsewhere(ledger, on_event)
        self.desk = Desk(LEDGER_THREADS if ledger.remote else 0)
        self.source: JobSource | None = None
        self.unasked = Stillness()  # of the source, while nothing else is under way
        self.tries, self.more = 1, False
        self.queue: deque[_Task] = deque()
        self.slots: list[_Slot] = []
        self.false_starts: Counter[int] = Counter()  # by the lane's number, since a lane was last ready
        self.finished: list[str] = []
        self.failed: dict[str, Failure] = {}

    def run(
        self,
        jobs: Sequence[Job],
        *,
        lanes: int,
        tries: int,
        source: JobSource | None = None,
        more: bool = False,
    ) -> Outcome:
        """Work until every run is in the ledger or given up and the source has no more, or until asked to stop.

        more: other jobs may follow; unless asked to stop, the lanes are kept for them, until `close`.
        """
        self.source, self.tries, self.more = source, tries, more
        self.finished, self.failed = [], {}
        self._queue(jobs)
        kept = False
        try:
            if (lacking := lanes - len(self.slots)) > 0:
                self.on_event(Preparing(what=f"importing what runs need, in {lanes} lane{'s' * (lanes > 1)}"))
                self._open_more(lacking)
            while self._expecting() and not self.stop.is_set():
                self.desk.hear()
                self._hand_out()
                self._grow()
                self._listen()
                self._look_after()
                self._end_if_unasked()
            self.desk.finish()
            stopped = self._expecting()
            if stopped:
                self._wind_down()
            kept = more and not stopped
        finally:
            if not kept:
                self.close()
        return Outcome(finished=tuple(self.finished), failed=self.failed, stopped=stopped)

    def _queue(self, jobs: Sequence[Job]) -> None:
        self.queue.extend(_Task(job.runs, self.tries) for job in jobs)

    def _expecting(self) -> bool:
        """Whether there is work, or more may come."""
        bell = self.source is not None and self.source.bell is not None
        return bell or bool(self.queue) or self.desk.busy or any(slot.held for slot in self.slots)

    # Lanes

    def _open(self, number: int) -> _Slot:
        actor = self.kind.start(self.ledger.url)
        return _Slot(number=number, actor=actor, starting=actor.pid.remote(), opened=time.monotonic())

    def _grow(self) -> None:
        """While runs wait, ask for as many lanes more as are at work, and one at least; later give back the idle.

        What finds no room yet is what an autoscaler goes by; and another study may end and leave some. Once no run
        waits and none can come it must not start machines any more, and may end those that have nothing to do.
        """
        idle = [slot for slot in self.slots if slot.idle]
        busy = len(self.slots) - len(idle)
        if self.growing and self.queue:
            more = max(0, min(len(self.queue), max(1, busy)) - len(idle))
            self._open_more(more)
        elif busy and not self.queue and not self._may_come():
            self._give_back(idle)  # where none is busy, all is done

    def _open_more(self, lanes: int) -> None:
        taken = {slot.number for slot in self.slots}
        self.slots += [self._open(number) for number in islice(filterfalse(taken.__contains__, count()), lanes)]

    def _may_come(self) -> bool:
        """Whether idle lanes are kept for later jobs. On a cluster that grows each might hold a machine."""
        asking = self.source is not None and self.source.bell is not None
        return asking or (self.more and not self.growing)

    def _give_back(self, slots: Sequence[_Slot]) -> None:
        import ray

        for slot in slots:
            ray.kill(slot.actor)
            self.slots.remove(slot)

    def _replace(self, slot: _Slot) -> None:
        """End a lane's process, whatever state it is in, and start another in its place."""
        import ray

        ray.kill(slot.actor)
        slot.starting = slot.work = slot.poll = None  # nobody waits for its answers any more
        self.slots[self.slots.index(slot)] = self._open(slot.number)

    def _wind_down(self) -> None:
        """Let running steps end and checkpoints be written. Another signal, or too long a wait, ends this."""
        import ray

        busy = [slot for slot in self.slots if slot.held]
        for slot in busy:
            slot.actor.stop.options(concurrency_group="poll").remote()
        ray.wait([slot.work for slot in busy], num_returns=len(busy), timeout=WIND_DOWN_SECONDS)

    def close(self) -> None:
        """Commit what lies finished, then end all lanes."""
        import ray

        for slot in self.slots:
            if slot.held:
                self._commit_staged(slot.held)
            ray.kill(slot.actor)
        self.slots = []
        self.desk.close()

    def _look_after(self) -> None:
        """Ask busy lanes how far they are; replace those that do not answer."""
        import ray

        now = time.monotonic()
        if all(not slot.ready and now - slot.opened > START_SECONDS for slot in self.slots):
            raise StudyError(_no_lane(f"none was ready after {START_SECONDS:.0f} s"))
        for slot in [slot for slot in self.slots if slot.held]:
            if slot.poll is None and now - slot.polled >= POLL_SECONDS:
                slot.polled = now
                slot.poll = slot.actor.state.options(concurrency_group="poll").remote()
            elif slot.poll is not None and now - slot.polled > self.lease_seconds:
                answered, _ = ray.wait([slot.poll], timeout=0)  # it may be this process that was away
                if not answered:
                    message = f"its lane was silent for {self.lease_seconds:g} s"
                    self._lose(slot, message, message)

    def _end_if_unasked(self) -> None:
        """A source that asks for nothing, with nothing that it asked for under way, waits for what never comes."""
        idle = not self.queue and not self.desk.busy and all(slot.ready and not slot.held for slot in self.slots)
        seconds = self.unasked.hear("idle" if idle else f"at work at {time.monotonic()}")
        limit = max(self.stall_seconds, ASKING_SECONDS)
        if seconds >= limit:
            raise StudyError(unasked_words(limit))

    # Work

    def _hand_out(self) -> None:
        """Have the next tasks looked up, one for each lane that has nothing to do."""
        for slot in self.slots:
            self._serve(slot)

    def _serve(self, slot: _Slot) -> None:
        while slot.ready and slot.idle and (task := self._due()):
            slot.promised = True
            self.desk.do(slot, partial(self._look_up, task.runs), partial(self._begin, slot, task))

    def _due(self) -> _Task | None:
        """The next task that is worth looking at now."""
        for _ in range(len(self.queue)):
            task = self.queue.popleft()
            if time.monotonic() >= task.not_before:
                return task
            self.queue.append(task)
        return None

    def _look_up(self, runs: Sequence[Run]) -> _Found:
        """Lease what is not done and nobody else is at."""
        held = self.ledger.held(runs)
        left = tuple(run.remaining(held) for run in runs if run.lacking(held))
        elsewhere = {run.id: other for run in left if (other := self.ledger.held_elsewhere(run.id))}
        attempts = {} if elsewhere else {run.id: self.ledger.lease(run.id) for run in left}
        return _Found(left, {run.id: set(run.lacking(held)) for run in left}, elsewhere, attempts)

    def _begin(self, slot: _Slot, task: _Task, found: _Found) -> None:
        """Give a task to the lane that it was looked up for, or back to the queue."""
        slot.promised = False
        owing = {run.id for run in found.left}
        for run in task.runs:
            if run.id not in owing:
                self._finish(run, 0.0)
        task.runs = found.left
        if any(self.elsewhere.tell(run, found.elsewhere.get(run.id)) for run in found.left):
            task.not_before = time.monotonic() + ELSEWHERE_SECONDS
            self.queue.append(task)
        elif found.left and (self.stop.is_set() or slot not in self.slots):  # a lane that died meanwhile
            self.queue.appendleft(task)
        elif found.left:
            self._assign(slot, task, found)

    def _assign(self, slot: _Slot, task: _Task, found: _Found) -> None:
        slot.held = _Held(task, dict(found.attempts), found.lacking)
        slot.work = slot.actor.work.remote(Lease(job=Job(runs=task.runs), attempts=found.attempts))
        slot.polled = time.monotonic()
        for run in task.runs:
            self.on_event(RunStarted(run=run, lane=slot.number, attempt=found.attempts[run.id]))

    def _listen(self) -> None:
        """Take all answers of lanes that are there, waiting for the first until it is time to ask again.

        To look which are there takes as long as there are lanes, however many have answered.
        """
        import ray

        owners = {ref: slot for slot in self.slots for ref in slot.outstanding()}
        bell = self.source.bell if self.source else None
        awaited = [*owners, bell] if bell is not None else list(owners)
        seconds = HEAR_SECONDS if self.desk.busy else POLL_SECONDS
        if not awaited:
            self.stop.wait(seconds)
            return
        first, others = ray.wait(awaited, num_returns=1, timeout=seconds)
        more = ray.wait(others, num_returns=len(others), timeout=0)[0] if first and others else []
        for ref in [*first, *more]:
            if self.source and ref == bell:
                self._queue(self.source.jobs())
            elif ref in (slot := owners[ref]).outstanding():  # else what came before it ended that lane
                self._hear(slot, ref)

    def _hear(self, slot: _Slot, ref: Any) -> None:
        """One answer of a lane: that it is ready, how far it is, or what came of its work."""
        import ray

        try:
            answer = ray.get(ref)
        except ray.exceptions.RayError as error:
            self._bury(slot, error)
            return
        if ref == slot.starting:
            self._welcome(slot)
        elif ref == slot.poll:
            slot.poll = None
            if slot.held:
                self._take(slot.held, answer)
                self._drop_unwanted(slot, slot.held)
                self._end_if_still(slot, slot.held, answer)
        else:
            self._end_work(slot, answer)

    def _welcome(self, slot: _Slot) -> None:
        slot.starting = None
        self.false_starts.clear()
        self.on_event(LaneReady(lane=slot.number, seconds=time.monotonic() - slot.opened))

    def _bury(self, slot: _Slot, error: Exception) -> None:
        """The lane's process died, at work or before it was ready."""
        if slot.ready:
            self._lose(slot, "its lane died (killed, out of memory, or its machine went away)", str(error))
            return
        if not any(other.ready for other in self.slots):
            self.false_starts[slot.number] += 1
            if all(self.false_starts[one.number] >= START_TRIES for one in self.slots):
                raise StudyError(_no_lane(str(error)))
        self._replace(slot)

    def _lose(self, slot: _Slot, message: str, details: str) -> None:
        self._replace(slot)
        if slot.held:
            self._commit_staged(slot.held)
            self._fail(slot.held, Problem(message=message, traceback=details, final=False))

    def _end_if_still(self, slot: _Slot, held: _Held, state: LaneState) -> None:
        """Replace a lane that answers and comes no further: its run waits for what will not happen."""
        if state.problem or not (owed := held.owed()):
            return  # its job is over
        seconds = held.still.hear(repr((state.moving, sorted(state.staged))))
        place = place_of(state.moving[1] if state.moving else None)
        if seconds >= self.stall_seconds:
            stack = self._stack(slot)
            self._lose(slot, stalled_words("its lane", self.stall_seconds, place), stack)
        elif held.still.worth_a_word(self.stall_seconds):
            self.on_event(Waiting(what=still_words(owed[0], seconds, place, self.stall_seconds)))

    def _stack(self, slot: _Slot) -> str:
        """The calls that a lane is in, for the log; "" where it cannot say."""
        import ray

        with suppress(ray.exceptions.RayError):
            return ray.get(slot.actor.stack.options(concurrency_group="poll").remote(), timeout=STACK_SECONDS)
        return ""

    def _end_work(self, slot: _Slot, state: LaneState) -> None:
        """A lane has done its job, or failed at it: let it go on, then see to the results."""
        held, slot.held, slot.work = slot.held, None, None
        assert held is not None
        if state.problem:
            self._replace(slot)
        else:
            self._serve(slot)
        self._take(held, state)
        if state.problem:
            self._fail(held, state.problem)
        if state.dropped:
            for run in held.owed():
                self.desk.do(run.id, partial(self._let_go, run.id), lambda _: None)

    def _let_go(self, run_id: str) -> None:
        """Nothing stays of a run that was given up. What another driver has by now is not this lane's to end."""
        if not self.ledger.held_elsewhere(run_id):
            self.ledger.forget(run_id)

    def _drop_unwanted(self, slot: _Slot, held: _Held) -> None:
        for run in held.owed():
            if self.source and not self.source.wanted(run.id):
                slot.actor.drop.options(concurrency_group="poll").remote(run.id)

    # Results

    def _take(self, held: _Held, state: LaneState) -> None:
        """Commit what a lane has staged, and pass on where it is."""
        runs = {run.id: run for run in held.owed()}
        for (entry, attempt), seconds in state.staged.items():
            if held.attempts.get(run_of(entry)) == attempt and entry in held.lacking[run_of(entry)]:
                self._commit(held, runs[run_of(entry)], entry, seconds, is_staged=True)
        if state.moving and state.moving[0] in held.attempts:
            run = runs[state.moving[0]]
            self.on_event(RunMoved(run=run, progress=state.moving[1]))
            for look in state.looks:
                self.on_event(RunLooked(run=run, progress=look))

    def _commit_staged(self, held: _Held) -> None:
        """Commit by what lies in the ledger's staging, for a lane that cannot be asked any more."""
        for run in held.owed():
            for entry in run.entries:
                if entry in held.lacking[run.id]:
                    self._commit(held, run, entry, 0.0, is_staged=False)

    def _commit(self, held: _Held, run: Run, entry: str, seconds: float, *, is_staged: bool) -> None:
        """One entry of a run into the ledger; with its last, the run is finished. is_staged: that is known."""
        if run.id not in held.attempts or entry in held.coming:
            return
        held.coming.add(entry)
        attempt = held.attempts[run.id]

        def commit() -> bool | None:
            if not is_staged and not self.ledger.staged(entry, attempt):
                return None
            return self.ledger.commit(entry, attempt) or self.ledger.has(entry)

        self.desk.do((held, run.id), commit, partial(self._committed, held, run, entry, seconds))

    def _committed(self, held: _Held, run: Run, entry: str, seconds: float, is_there: bool | None) -> None:
        """is_there: whether the ledger has the entry now; None when nothing was staged."""
        held.coming.discard(entry)
        if is_there is False and run.id in held.attempts:
            del held.attempts[run.id]  # another driver has leased it meanwhile: wait for what comes of that
            self.queue.append(_Task((run,), held.task.tries))
        elif is_there and run.id in held.attempts:
            held.lacking[run.id].discard(entry)
            if not held.lacking[run.id]:
                del held.attempts[run.id]
                self._finish(run, seconds)
        while held.then and not held.coming:
            held.then.pop(0)()

    def _finish(self, run: Run, seconds: float) -> None:
        """Nothing of it stays but its entries: a lane that was paused may have written checkpoints since."""

        def tell(_: None) -> None:
            self.finished.append(run.id)
            self.on_event(RunFinished(run=run, seconds=seconds))

        self.desk.do(run.id, partial(self.ledger.forget, run.id), tell)

    def _fail(self, held: _Held, problem: Problem) -> None:
        """Record the runs that a job still owes once its commits are done, and queue them while they may be tried.

        Those that another driver has taken over did not fail: what comes of them there is waited for.
        """
        if held.coming:
            held.then.append(partial(self._fail, held, problem))
            return

        def record() -> dict[str, Failure | None]:
            return {run.id: self._record(run, held.attempts[run.id], problem) for run in held.owed()}

        self.desk.do((held, ""), record, partial(self._failed, held, problem))

    def _record(self, run: Run, attempt: int, problem: Problem) -> Failure | None:
        if self.ledger.holds(run) or self.ledger.held_elsewhere(run.id):
            return None  # this process was away, and another driver leased it meanwhile
        return self.ledger.fail(run, attempt, problem.message, problem.traceback, final=problem.final)

    def _failed(self, held: _Held, problem: Problem, recorded: dict[str, Failure | None]) -> None:
        retrying = held.task.tries > 1 and not problem.final
        for run in held.owed():
            failure = recorded[run.id]
            if failure is None:
                del held.attempts[run.id]
                self.queue.append(_Task((run,), held.task.tries))
                continue
            if not retrying:
                self.failed[run.id] = failure
            self.on_event(RunFailed(run=run, message=failure.error, retrying=retrying))
        if retrying and held.attempts:
            self.queue.append(_Task(held.owed(), held.task.tries - 1))


def _no_lane(why: str) -> str:
    last = (why.strip() or "it died without a word").splitlines()[-1]
    return (
        f"no lane could be started: {last}\n"
        f"  accepted: a machine or cluster with room for one; `semray doctor` and `ray status` say what there is"
    )
