"""Keeps the outcome of a search in the ledger, as one small file, and recognises a search that has ended.

The ledger does not hold which points were raced out, nor in which order runs ended: to race again could decide
otherwise. So a search has ended if its table is the one that it ended with.
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
    """Whether the search ended with this table, under the trials and the budget that the study has now."""
    return found.selection.points(ledger).outcome() == _outcome(found, ended=True)


def keep_outcome(found: Searched, ledger: Ledger, *, ended: bool) -> None:
    """Keep the outcome of a search. ended: no run of it is left."""
    found.selection.points(ledger).keep_outcome(_outcome(found, ended=ended))


def begin_again(selection: Selection, ledger: Ledger) -> None:
    """Mark an ended search as going on, since its outcome may change."""
    points = selection.points(ledger)
    if (last := points.outcome()) and last.ended:
        points.keep_outcome(replace(last, ended=False))


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
