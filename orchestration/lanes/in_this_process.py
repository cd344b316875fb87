"""Runs one after another in this process: what lanes and their driver do, where none is worth starting.

What they cost is not counted: of scores that were made elsewhere it would be the time of reading them.
"""

from __future__ import annotations

from collections.abc import Iterable

from orchestration.lanes.bodies import with_models
from orchestration.lanes.lane import execute
from orchestration.ledger.ledger import Ledger
from orchestration.study.run import Job, Run, Trained
from trainers.engine.world import World


def carry_out(runs: Iterable[Run], ledger: Ledger) -> int:
    """Execute these runs and commit what the ledger lacks of each. What a run raises ends it. -> how many were
    trained."""
    trained = 0
    for run in runs:
        attempt = ledger.lease(run.id)
        job, _ = with_models(Job(runs=(run,)), ledger)
        for result in execute(job, World()):
            trained += isinstance(result, Trained) and run.seed is not None
            if not ledger.has(result.entry):
                ledger.stage(result, attempt)
                ledger.commit(result.entry, attempt)
        ledger.forget(run.id)
    return trained
