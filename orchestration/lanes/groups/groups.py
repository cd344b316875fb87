"""Executes runs of several workers, or of hours: one Ray Train worker group per run.

    groups.py   the driver's side: starts groups, commits their results
    fit.py      a Ray task for each run: sets up Ray Train and waits for it
    worker.py   the code of every worker of a group
    board.py    an actor through which workers report progress to the driver

A group that loses a worker is restarted as a whole and continues from its last checkpoint, as does a group that
another driver starts for the run later. Every start has its own attempt number. Results come through the ledger's
staging area, not from `fit`.
"""

from __future__ import annotations

import time
import traceback
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any

from orchestration.lanes.cluster import RunShare, room_words, started_in
from orchestration.lanes.events import Event, Outcome, RunFailed, RunFinished, RunMoved, RunStarted, Waiting
from orchestration.lanes.groups.board import Board, Sign
from orchestration.lanes.groups.fit import fit, give_back
from orchestration.lanes.groups.worker import GroupKind
from orchestration.lanes.leases import looked_up
from orchestration.lanes.waits import (
    AFTER_STEP,
    ELSEWHERE_SECONDS,
    POLL_SECONDS,
    SAID_SECONDS,
    START_SECONDS,
    WIND_DOWN_SECONDS,
    Elsewhere,
    Stillness,
    stalled_words,
    still_words,
)
from orchestration.study.errors import StudyError
from orchestration.study.run import Body, Run

if TYPE_CHECKING:
    import threading

    from orchestration.ledger.failures import Failure
    from orchestration.ledger.ledger import Ledger
    from orchestration.study.blocks import Resources

GIVE_BACK_SECONDS = 10.0  # wait for a cancelled group that found no room
KEEP_SECONDS = 10.0  # how often to look in a remote ledger for what a group has staged while it trains


@dataclass
class _Group:
    """The worker group of a run. before: the run's newest attempt when it was started. began: that moment.

    has_begun: a worker of it has started. still: how long its workers have made no progress. ended: its workers
    were told to end. given_up: the task that waits for them was cancelled. told: a message said that it waits for
    room. trains: its rank 0 was at a step when it was last heard. kept: when its results were last looked for.
    """

    run: Run
    before: int
    began: float
    has_begun: bool = False
    still: Stillness = field(default_factory=Stillness)
    ended: bool = False
    told: bool = False
    given_up: bool = False
    trains: bool = False
    kept: float = 0.0


class Groups:
    """The worker groups of a launch, and their outcomes so far. threads: per worker. afterwards: see `Lanes`."""

    def __init__(
        self,
        ledger: Ledger,
        resources: Resources,
        on_event: Callable[[Event], None],
        *,
        body: Body,
        threads: int,
        afterwards: Callable[[Run], None],
    ) -> None:
        import ray

        remote: Any = ray.remote
        self.ledger, self.resources, self.on_event, self.afterwards = ledger, resources, on_event, afterwards
        self.kind = GroupKind(
            body=body,
            url=ledger.url,
            driver=ledger.driver,
            threads=threads,
            gpus=resources.gpus_per_worker,
            memory=resources.memory_per_worker,
            retries=resources.retries,
            checkpoint_every=resources.checkpoint_every,
            folder=started_in(),
        )
        self.elsewhere = Elsewhere(ledger, on_event)
        self.board = remote(num_cpus=0, max_restarts=-1, max_task_retries=-1)(Board).remote()
        self.fit = remote(num_cpus=0, max_retries=resources.retries)(fit)
        self.queue: deque[Run] = deque()
        self.not_before: dict[str, float] = {}  # run id -> when to look again whether another driver is at it
        self.groups: dict[Any, _Group] = {}
        self.numbers = count()
        self.finished: list[str] = []
        self.failed: dict[str, Failure] = {}
        self.stood_still: dict[str, str] = {}  # run id -> the message about its lack of progress
        self.at_work = time.monotonic()  # when a group last had a worker

    def run(self, runs: Sequence[Run], lanes: int, stop: threading.Event, *, growing: bool = False) -> Outcome:
        """Execute every run in a worker group of its own, at most `lanes` at a time. See `Lanes.run`.

        growing: the cluster may get more room. While runs wait, as many further groups are requested as are at
        work, since pending requests make an autoscaler start machines.
        """
        self.queue.extend(runs)
        try:
            while (self.queue or self.groups) and not stop.is_set():
                self._fill(max(lanes, 2 * self._begun) if growing else lanes)
                self._listen(stop)
            stopped = bool(self.queue or self.groups)
            if stopped:
                self._wind_down()
        finally:
            self._close()
        return Outcome(finished=tuple(self.finished), failed=self.failed, stopped=stopped)

    def _fill(self, most: int) -> None:
        """Start groups while there are fewer than so many, of runs that no other driver is working on."""
        for _ in range(len(self.queue)):
            if len(self.groups) >= most:
                return
            run = self.queue.popleft()
            if time.monotonic() < self.not_before.get(run.id, 0.0):
                self.queue.append(run)
                continue
            found = looked_up([run], self.ledger)
            if not found.left:
                self._found(run)
            elif self.elsewhere.tell(run, found.elsewhere.get(run.id)):
                self.not_before[run.id] = time.monotonic() + ELSEWHERE_SECONDS
                self.queue.append(run)
            else:
                self._start(found.left[0])

    @property
    def _begun(self) -> int:
        return sum(group.has_begun for group in self.groups.values())

    def _wind_down(self) -> None:
        """Wait until running steps have ended and checkpoints are written, up to `WIND_DOWN_SECONDS`."""
        import ray

        self.board.stop.remote()
        ray.wait(list(self.groups), num_returns=len(self.groups), timeout=WIND_DOWN_SECONDS)

    def _close(self) -> None:
        """Commit staged results, then end all groups."""
        import ray

        for group in self.groups.values():
            self._commit(group)
        _, at_work = ray.wait(list(self.groups), num_returns=len(self.groups), timeout=0)
        waiting = [task for task in at_work if not self.groups[task].has_begun]
        for task in waiting:  # cancelled without force, a task releases the resources reserved for its group
            ray.cancel(task)
        if waiting:
            ray.wait(waiting, num_returns=len(waiting), timeout=GIVE_BACK_SECONDS)
        _, at_work = ray.wait(list(self.groups), num_returns=len(self.groups), timeout=0)
        for task in at_work:  # looked up again: cancelling a finished task can abort this process inside Ray
            ray.cancel(task, force=True)
        ray.kill(self.board)

    def _start(self, run: Run) -> None:
        self.ledger.still_driving()
        before = self.ledger.newest(run.id)
        task = self.fit.remote(self.kind, run, before, self.board)
        self.groups[task] = _Group(run, before, time.monotonic())
        self.on_event(RunStarted(run=run, lane=next(self.numbers), attempt=before + 1))

    def _listen(self, stop: threading.Event) -> None:
        import ray

        if not self.groups:
            stop.wait(POLL_SECONDS)
            return
        done, _ = ray.wait(list(self.groups), num_returns=1, timeout=POLL_SECONDS)
        self._read_board()
        self._end_still()
        for group in self.groups.values():
            if not (self.ledger.remote and group.trains) or time.monotonic() - group.kept >= KEEP_SECONDS:
                self._keep(group)
        for task in done:
            group = self.groups.pop(task)
            error: Exception = RuntimeError("its worker group ended without a result")
            try:
                ray.get(task)
            except ray.exceptions.RayError as raised:
                error = raised
                give_back(self.board, group.run.id)
            if not self._commit(group):
                self._fail(group, error)

    def _read_board(self) -> None:
        """Pass the runs' progress on as events. A board that died is restarted empty, which loses one reading."""
        import ray

        runs = {group.run.id: group.run for group in self.groups.values()}
        with suppress(ray.exceptions.RayError):
            for run_id, progress in ray.get(self.board.read.remote(), timeout=POLL_SECONDS).items():
                if run_id in runs:
                    self.on_event(RunMoved(run=runs[run_id], progress=progress))

    def _end_still(self) -> None:
        """End groups whose workers have all made no progress for too long, as when they wait for one another.

        Their processes exit, which Ray Train takes for a failure: the group is restarted from its last checkpoint,
        or the run fails with a message about where its workers stood.
        """
        import ray

        try:
            signs = ray.get(self.board.signs.remote(), timeout=POLL_SECONDS)
        except ray.exceptions.RayError:
            return
        for task, group in self.groups.items():
            ranks = signs.get(group.run.id, {})
            group.has_begun |= bool(ranks)
            if group.has_begun:
                self._look_after(task, group, ranks)
        self._look_for_room()

    def _look_after(self, task: Any, group: _Group, ranks: Mapping[int, Sign]) -> None:
        import ray

        run, limit = group.run, self.resources.stall_seconds
        group.trains = 0 in ranks and ranks[0][0].startswith(AFTER_STEP)
        seconds = group.still.hear(repr(sorted(number for _, _, number in ranks.values())))
        if group.ended and seconds < limit:
            group.ended = False  # it was restarted
        elif group.ended and seconds >= limit + START_SECONDS:
            self.stood_still[run.id] += f"; it was not started again: {self._asked(run)}"
            ray.cancel(task, force=group.given_up)  # first without force, so that it releases its resources
            group.still, group.given_up = Stillness(), True
        elif not group.ended and seconds >= limit:
            group.ended = True
            self.stood_still[run.id] = stalled_words("its worker group", limit, _places(ranks))
            self.on_event(Waiting(what=f"{run.label}: {self.stood_still[run.id]}; its workers are ended"))
            self.board.end.remote(run.id)
        elif group.still.worth_a_word(limit):
            self.on_event(Waiting(what=still_words(run, seconds, _places(ranks), limit)))

    def _look_for_room(self) -> None:
        """Announce what groups without a worker wait for. Raises StudyError if all groups have waited too long.

        While another group is at work, a group may wait without limit.
        """
        now = time.monotonic()
        for group in self.groups.values():
            if not group.has_begun and not group.told and now - group.began > SAID_SECONDS:
                group.told = True
                self.on_event(
                    Waiting(what=f"{group.run.label}: no worker has begun yet; {self._asked(group.run)}")
                )
        if self._begun:
            self.at_work = now
        elif now - max(self.at_work, *(group.began for group in self.groups.values())) > START_SECONDS:
            run = next(iter(self.groups.values())).run
            raise StudyError(
                f"{run.label}: no worker has begun in {START_SECONDS:.0f} s; {self._asked(run)}\n"
                f"  accepted: a cluster with as much, or a moment when it is free; fewer `workers_per_run`, other "
                f"`gpus_per_run`, less `memory_gib_per_run`"
            )

    def _asked(self, run: Run) -> str:
        """The resources that a run's group needs, and those that Ray has, in words."""
        share = RunShare(cpus=self.kind.threads, gpus=self.kind.gpus, memory=self.kind.memory)
        return f"{run.world_size} workers with {share.words} each were asked for; {room_words()}"

    def _commit(self, group: _Group) -> bool:
        """Commit what a group has staged. True if its run is then finished, even if the group fails later."""
        self._keep(group)
        if not self.ledger.holds(group.run):
            return False
        if self.ledger.leases(group.run.id):
            self._finish(group.run, time.monotonic() - group.began)
        else:
            self._found(group.run)
        return True

    def _keep(self, group: _Group) -> None:
        """Commit what the newest attempt of a group has staged, so that a later attempt need not train again."""
        group.kept = time.monotonic()
        attempt = self.ledger.newest(group.run.id)
        for entry in self.ledger.lacking(group.run):
            if attempt > group.before and self.ledger.staged(entry, attempt):
                self.ledger.commit(entry, attempt)

    def _finish(self, run: Run, seconds: float) -> None:
        self.afterwards(run)
        self.ledger.forget(run.id)
        self._report(run, seconds)

    def _found(self, run: Run) -> None:
        """Another driver has finished a run; one may be scoring it on more tasks."""
        self.ledger.forget_unless_held(run.id)
        self._report(run, 0.0)

    def _report(self, run: Run, seconds: float) -> None:
        self.finished.append(run.id)
        self.on_event(RunFinished(run=run, seconds=seconds))

    def _fail(self, group: _Group, error: Exception) -> None:
        """Report a group's failure; record it, unless its workers did.

        A run whose newest attempt is another driver's is queued, whatever became of that since.
        """
        if self.ledger.newest(group.run.id) > group.before and not self.ledger.leases(group.run.id):
            self.queue.append(group.run)
            return
        failure = self.ledger.failure(group.run.id)
        if failure is None or failure.attempt <= group.before:
            message = self.stood_still.get(group.run.id) or str(error).strip() or type(error).__name__
            last = message.splitlines()[-1]
            attempt = self.ledger.newest(group.run.id)
            failure = self.ledger.fail(group.run, attempt, last, "".join(traceback.format_exception(error)))
        self.failed[group.run.id] = failure
        self.on_event(RunFailed(run=group.run, message=failure.error, retrying=False))


def _places(ranks: Mapping[int, Sign]) -> str:
    signs = sorted(ranks.items())
    return ", ".join(f"rank {rank} {words} ({seconds:.0f} s ago)" for rank, (words, seconds, _) in signs)
