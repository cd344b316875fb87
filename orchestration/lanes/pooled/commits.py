"""Commits what lanes have staged, records failures, and puts runs back into the queue."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from orchestration.lanes.events import Event, Outcome, RunFailed, RunFinished
from orchestration.lanes.pooled.queued import Held, Queued
from orchestration.study.errors import StudyError
from orchestration.study.run import run_of

if TYPE_CHECKING:
    from orchestration.lanes.bodies import Problem
    from orchestration.lanes.lane import LaneState
    from orchestration.lanes.pooled.desk import Desk
    from orchestration.ledger.failures import Failure
    from orchestration.ledger.ledger import Ledger
    from orchestration.study.run import Run


def nothing_more(run: Run) -> None:
    """Do nothing: what follows a run that was executed, as a rule."""


class Commits:
    """Collects the outcomes of a pool's runs.

    queue: the pool's, for runs that must be looked up again. afterwards: called at the desk for each run that was
    executed, before the event of its end.
    """

    def __init__(
        self,
        ledger: Ledger,
        desk: Desk,
        queue: deque[Queued],
        on_event: Callable[[Event], None],
        afterwards: Callable[[Run], None],
    ) -> None:
        self.ledger, self.desk, self.queue, self.on_event = ledger, desk, queue, on_event
        self.afterwards = afterwards
        self._finished: list[str] = []
        self._failed: dict[str, Failure] = {}

    def outcome(self, *, stopped: bool) -> Outcome:
        """The outcome since the last call."""
        outcome = Outcome(finished=tuple(self._finished), failed=self._failed, stopped=stopped)
        self._finished, self._failed = [], {}
        return outcome

    def take(self, held: Held, state: LaneState) -> None:
        """Commit what a lane reports as staged."""
        runs = {run.id: run for run in held.owed()}
        for (entry, attempt), seconds in state.staged.items():
            if held.attempts.get(run_of(entry)) == attempt and entry in held.lacking[run_of(entry)]:
                self._commit(held, runs[run_of(entry)], entry, seconds, is_staged=True)

    def take_staged(self, held: Held) -> None:
        """Commit what the ledger holds as staged, for a lane that no longer answers."""
        for run in held.owed():
            for entry in run.entries:
                if entry in held.lacking[run.id]:
                    self._commit(held, run, entry, 0.0, is_staged=False)

    def finish(self, run: Run, seconds: float) -> None:
        """A run's last result is in the ledger: delete its checkpoints and lease there, then report it."""

        def end() -> None:
            self.afterwards(run)  # before the lease ends: who waits for that looks at the model then
            self.ledger.forget(run.id)

        self._report(run, seconds, end)

    def found(self, run: Run) -> None:
        """A run was in the ledger already; another driver may be scoring it on more tasks."""
        self._report(run, 0.0, partial(self.ledger.forget_unless_held, run.id))

    def _report(self, run: Run, seconds: float, end: Callable[[], None]) -> None:
        def report(_: None) -> None:
            self._finished.append(run.id)
            self.on_event(RunFinished(run=run, seconds=seconds))

        self.desk.do(run.id, end, report)

    def fail(self, held: Held, problem: Problem) -> None:
        """Once a job's commits are done, record its unfinished runs as failed, and queue those with tries left.

        A run that another driver has taken over did not fail; it is queued, to wait for that driver.
        """
        if held.coming:
            held.then.append(partial(self.fail, held, problem))
            return

        def record() -> dict[str, Failure | None]:
            return {run.id: self._record(run, held.attempts[run.id], problem) for run in held.owed()}

        self.desk.do((held, ""), record, partial(self._tell_failed, held, problem))

    def let_go(self, held: Held, again: Callable[[str], bool]) -> None:
        """Delete what the ledger keeps of runs that were given up, then queue those that are to be executed anew.

        again: whether a run is, by its id.
        """

        def queue(run: Run, _: None) -> None:
            if again(run.id):
                self.queue.append(Queued((run,), held.queued.tries))

        for run in held.owed():
            self.desk.do(run.id, partial(self.ledger.forget_unless_held, run.id), partial(queue, run))

    def _commit(self, held: Held, run: Run, entry: str, seconds: float, *, is_staged: bool) -> None:
        """Commit an entry of a run; with the last one the run is finished. is_staged: known to be staged."""
        if run.id not in held.attempts or entry in held.coming:
            return
        held.coming.add(entry)
        attempt = held.attempts[run.id]

        def commit() -> bool | None:
            if not is_staged and not self.ledger.staged(entry, attempt):
                return None
            try:
                return self.ledger.commit(entry, attempt) or self.ledger.has(entry)
            except FileNotFoundError:
                raise StudyError(_not_shared(self.ledger.url, run)) from None

        self.desk.do((held, run.id), commit, partial(self._committed, held, run, entry, seconds))

    def _committed(self, held: Held, run: Run, entry: str, seconds: float, is_there: bool | None) -> None:
        """is_there: whether the ledger has the entry now; None when nothing was staged."""
        held.coming.discard(entry)
        if is_there is False and run.id in held.attempts:
            del held.attempts[run.id]  # another driver has leased it meanwhile: queue it, to wait for that one
            self.queue.append(Queued((run,), held.queued.tries))
        elif is_there and run.id in held.attempts:
            held.lacking[run.id].discard(entry)
            if not held.lacking[run.id]:
                del held.attempts[run.id]
                self.finish(run, seconds)
        while held.then and not held.coming:
            held.then.pop(0)()

    def _record(self, run: Run, attempt: int, problem: Problem) -> Failure | None:
        if self.ledger.holds(run) or self.ledger.held_elsewhere(run.id):
            return None  # this process was asleep, and another driver has leased or finished it
        own = problem.of(run.id)
        return self.ledger.fail(run, attempt, own.message, own.traceback, final=own.final)

    def _tell_failed(self, held: Held, problem: Problem, recorded: dict[str, Failure | None]) -> None:
        again = []
        for run in held.owed():
            failure = recorded[run.id]
            if failure is None:
                del held.attempts[run.id]
                self.queue.append(Queued((run,), held.queued.tries))
                continue
            retrying = held.queued.tries > 1 and not problem.of(run.id).final
            if retrying:
                again.append(run)
            else:
                self._failed[run.id] = failure
            self.on_event(RunFailed(run=run, message=failure.error, retrying=retrying))
        if again:
            self.queue.append(Queued(tuple(again), held.queued.tries - 1))


def _not_shared(url: str, run: Run) -> str:
    return (
        f"ledger {url}: a lane has staged a result of {run.label} in it, and from here there is none to be seen\n"
        f"  accepted: a ledger that all machines share; `semray doctor` says whether they do"
    )
