"""What a search had come to when it was last asked for: kept in the ledger, and known again by one small file.

Which points were raced out, and in which order lanes ended, is nowhere written down: to ask every point for its
seeds again could come to other answers. So a search that has ended is known by the table that it ended with.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from orchestration.ledger.points import SearchOutcome

if TYPE_CHECKING:
    from orchestration.ledger.ledger import Ledger
    from orchestration.search.trials import Searched, Selection


def has_ended(found: Searched, ledger: Ledger) -> bool:
    """Whether the search, with as many trials and runs as it may have now, ended with this very table."""
    return found.selection.points(ledger).outcome() == _outcome(found, ended=True)


def keep_outcome(found: Searched, ledger: Ledger, *, ended: bool) -> None:
    """Write down what a search has come to. ended: that nothing is left of it to be run."""
    found.selection.points(ledger).keep_outcome(_outcome(found, ended=ended))


def begin_again(selection: Selection, ledger: Ledger) -> None:
    """Write down that a search that had ended goes on: what it had come to may not hold for long."""
    points = selection.points(ledger)
    if (came := points.outcome()) and came.ended:
        points.keep_outcome(replace(came, ended=False))


def _outcome(found: Searched, *, ended: bool) -> SearchOutcome:
    table = json.dumps([asdict(trial) for trial in found.trials], sort_keys=True)
    selection, best = found.selection, found.best
    return SearchOutcome(
        arm=selection.arm,
        trials=selection.trials,
        budget=selection.budget,
        ended=ended,
        best=None if best is None else best.number,
        point={} if best is None else dict(best.point),
        table=hashlib.sha256(table.encode()).hexdigest(),
    )
