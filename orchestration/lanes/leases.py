"""Looks runs up in the ledger, and leases them: each is executed once, whatever other drivers begin or end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orchestration.ledger.drivers import Driver
    from orchestration.ledger.ledger import Ledger
    from orchestration.study.run import Run


@dataclass(frozen=True)
class Found:
    """A job's runs as found in the ledger, with attempt numbers if they may begin.

    left: unfinished runs. lacking: by run id, the entries that are missing. elsewhere: by run id, another driver
    that is working on the run. newest: by run id, the newest attempt before this look.
    """

    left: tuple[Run, ...]
    lacking: dict[str, set[str]]
    elsewhere: dict[str, Driver]
    newest: dict[str, int]
    attempts: dict[str, int] = field(default_factory=dict)


def looked_up(runs: Sequence[Run], ledger: Ledger) -> Found:
    """Look a job's runs up: whether anyone works on them, and after that whether they are finished."""
    newest = {run.id: ledger.newest(run.id) for run in runs}
    others = {run.id: ledger.held_elsewhere(run.id, newest[run.id]) for run in runs}
    held = ledger.held(runs)
    left = tuple(run.remaining(held) for run in runs if run.lacking(held))
    elsewhere = {run.id: other for run in left if (other := others[run.id])}
    return Found(left, {run.id: set(run.lacking(held)) for run in left}, elsewhere, newest)


def leased(runs: Sequence[Run], ledger: Ledger) -> Found:
    """As `looked_up`, with the unfinished runs leased, unless another driver works on any of them.

    A run is leased only if nobody has leased it since it was looked up.
    """
    while True:
        found = looked_up(runs, ledger)
        wanted = {run.id: found.newest[run.id] for run in found.left} if not found.elsewhere else {}
        attempts = _leased(wanted, ledger)
        if attempts is not None:
            return replace(found, attempts=attempts)


def _leased(newest: Mapping[str, int], ledger: Ledger) -> dict[str, int] | None:
    """The attempt numbers of runs, all leased; None, and none of them leased, if anyone was faster with one."""
    attempts: dict[str, int] = {}
    try:
        for run_id in sorted(newest):  # in one order: of two drivers that lease the same, one gets all
            attempts[run_id] = ledger.lease_after(run_id, newest[run_id])
    except FileExistsError:
        for run_id, attempt in attempts.items():
            ledger.give_back(run_id, attempt)
        return None
    return attempts
