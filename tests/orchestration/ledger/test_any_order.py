"""Whatever the order of leases, results, commits and crashes: each entry is there once, and unchanged."""

from __future__ import annotations

import tempfile
import uuid

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from evaluators.metrics.scores import Score
from orchestration.ledger.ledger import Ledger
from orchestration.study.run import Scored, Trained, run_of
from tests.ledger_runs import make_run


class LedgerMachine(RuleBasedStateMachine):
    """A driver leases, its lanes stage, it commits; it may die between any two steps, and lanes may wake up late."""

    url_prefix = "local"

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.ledger = Ledger(self.folder.name if self.url_prefix == "local" else f"memory://{uuid.uuid4().hex}")
        self.runs = [make_run(seed) for seed in range(2)]
        self.leased: dict[str, list[int]] = {run.id: [] for run in self.runs}
        self.staged: set[tuple[str, int]] = set()
        self.entries: dict[str, int] = {}  # entry -> the attempt that must stay

    def teardown(self) -> None:
        self.folder.cleanup()

    runs_by = st.sampled_from([0, 1])

    @rule(which=runs_by)
    def lease(self, which: int) -> None:
        run = self.runs[which]
        attempt = self.ledger.lease(run.id)
        assert attempt > max(self.leased[run.id], default=0)
        self.leased[run.id].append(attempt)

    @rule(which=runs_by, trained=st.booleans(), data=st.data())
    def stage(self, which: int, trained: bool, data: st.DataObject) -> None:
        run = self.runs[which]
        entry = run.id if trained else run.entry("t2d")
        fresh = [attempt for attempt in self.leased[run.id] if (entry, attempt) not in self.staged]
        if fresh:
            attempt = data.draw(st.sampled_from(fresh))
            score = Score(metric="t2d/attempt", value=attempt)
            self.ledger.stage(
                Trained(run=run) if trained else Scored(run=run, task="t2d", scores=[score]), attempt
            )
            self.staged.add((entry, attempt))

    @precondition(lambda self: self.staged)
    @rule(data=st.data())
    def commit(self, data: st.DataObject) -> None:
        entry, attempt = data.draw(st.sampled_from(sorted(self.staged)))
        expected = entry not in self.entries and attempt == max(self.leased[run_of(entry)])
        assert self.ledger.commit(entry, attempt) == expected
        self.staged.remove((entry, attempt))
        if expected:
            self.entries[entry] = attempt

    @rule()
    def crash(self) -> None:
        """The driver dies and comes again: what was whole and not in the ledger is adopted, newest first."""
        self.ledger = Ledger(self.ledger.url)
        with self.ledger.drive("study") as adopted:
            pass
        orphans: dict[str, int] = {}
        for entry, attempt in sorted(self.staged):
            if entry not in self.entries:
                orphans[entry] = attempt
        assert sorted(adopted) == sorted(orphans)
        self.entries.update(orphans)
        self.staged.clear()

    @invariant()
    def every_entry_is_there_once_and_unchanged(self) -> None:
        assert self.ledger.entries() == set(self.entries)
        for entry, attempt in self.entries.items():
            assert self.ledger.audit(entry) is None
            trained = run_of(entry) == entry
            record = self.ledger.training(entry) if trained else self.ledger.scores(entry)
            assert record.attempt == attempt
            assert trained or record.metrics["t2d/attempt"].value == attempt


class MemoryLedgerMachine(LedgerMachine):
    url_prefix = "memory"


quick = settings(max_examples=40, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck))
TestLocalOrders = LedgerMachine.TestCase
TestLocalOrders.settings = quick
TestMemoryOrders = MemoryLedgerMachine.TestCase
TestMemoryOrders.settings = quick
