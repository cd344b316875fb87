"""From a lane's staging into the ledger: what is committed, what failed, and what goes back to the queue."""

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


class Commits:
    """What comes of the runs of a pool. queue: the pool's, where a run goes that is to be looked at once more."""

    def __init__(
        self, ledger: Ledger, desk: Desk, queue: deque[Queued], on_event: Callable[[Event], None]
    ) -> None:
        self.ledger, self.desk, self.queue, self.on_event = ledger, desk, queue, on_event
        self._finished: list[str] = []
        self._failed: dict[str, Failure] = {}

    def outcome(self, *, stopped: bool) -> Outcome:
        """What has come since the last call."""
        outcome = Outcome(finished=tuple(self._finished), failed=self._failed, stopped=stopped)
        self._finished, self._failed = [], {}
        return outcome

    def take(self, held: Held, state: LaneState) -> None:
        """Commit what a lane says that it has staged."""
        runs = {run.id: run for run in held.owed()}
        for (entry, attempt), seconds in state.staged.items():
            if held.attempts.get(run_of(entry)) == attempt and entry in held.lacking[run_of(entry)]:
                self._commit(held, runs[run_of(entry)], entry, seconds, is_staged=True)

    def take_staged(self, held: Held) -> None:
        """Commit by what lies in the ledger's staging, for a lane that cannot be asked any more."""
        for run in held.owed():
            for entry in run.entries:
                if entry in held.lacking[run.id]:
                    self._commit(held, run, entry, 0.0, is_staged=False)

    def finish(self, run: Run, seconds: float) -> None:
        """Nothing of it stays but its entries: a lane that was paused may have written checkpoints since."""

        def tell(_: None) -> None:
            self._finished.append(run.id)
            self.on_event(RunFinished(run=run, seconds=seconds))

        self.desk.do(run.id, partial(self.ledger.forget, run.id), tell)

    def fail(self, held: Held, problem: Problem) -> None:
        """Record the runs that a job still owes once its commits are done, and queue them while they may be tried.

        Those that another driver has taken over did not fail: what comes of them there is waited for.
        """
        if held.coming:
            held.then.append(partial(self.fail, held, problem))
            return

        def record() -> dict[str, Failure | None]:
            return {run.id: self._record(run, held.attempts[run.id], problem) for run in held.owed()}

        self.desk.do((held, ""), record, partial(self._tell_failed, held, problem))

    def let_go(self, held: Held) -> None:
        """Nothing stays of runs that were given up."""
        for run in held.owed():
            self.desk.do(run.id, partial(self.ledger.forget_unless_held, run.id), lambda _: None)

    def _commit(self, held: Held, run: Run, entry: str, seconds: float, *, is_staged: bool) -> None:
        """One entry of a run into the ledger; with its last, the run is finished. is_staged: that is known."""
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
            del held.attempts[run.id]  # another driver has leased it meanwhile: wait for what comes of that
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
            return None  # this process was away, and another driver leased it meanwhile
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
