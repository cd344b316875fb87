"""Runs a search: Tune suggests and races points, their trials request runs, lanes execute them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

from evaluators.tasks.figures import mean_of
from orchestration.families.registry import family
from orchestration.lanes.events import Event, RunFailed, RunFinished, RunLooked
from orchestration.lanes.lane import execute
from orchestration.lanes.launch import Lanes
from orchestration.search.outcome import begin_again, keep_outcome
from orchestration.search.requests import Asking, Exchange
from orchestration.search.standings import Standings
from orchestration.search.trials import searched

if TYPE_CHECKING:
    from orchestration.ledger.ledger import Ledger
    from orchestration.search.trials import Searched, Selection, Trial
    from orchestration.study.run import Body

PATIENCE_SECONDS = 1.0  # for the other points of a stack to ask for their next seed


def run_search(
    selection: Selection,
    ledger: Ledger,
    *,
    on_event: Callable[[Event], None],
    on_change: Callable[[Standings, Trial, str], None],
    body: Body = execute,
    warm: Sequence[str] | None = None,
) -> tuple[Searched, bool]:
    """Search around one arm until its trials or its budget are spent. Returns its table, and True if stopped.

    Runs that the ledger holds are not repeated, so the same call goes on after a crash. on_change is called for
    each trial with another score, and with words for a trial that is raced out. warm: modules that lanes import
    first; the family's by default.
    """
    begin_again(selection, ledger)
    board, search = Standings(selection, ledger, on_change), selection.search
    asking: Asking | None = None  # set once lanes have started

    def handle(event: Event) -> None:
        on_event(event)
        if asking is None:
            return
        match event:
            case RunLooked(run=run, progress=at):
                score = mean_of(at.figures, selection.study.figures_of(selection.objectives[0].metric))
                if not math.isnan(score):
                    asking.looked(run, lambda number, _: board.looked(run, number, at.step, score))
            case RunFinished(run=run):
                asking.done(run, lambda number, place: board.scored(board.run(number, place), number))
            case RunFailed(run=run, message=why, retrying=False):
                asking.done(run, lambda number, place: board.failed(board.run(number, place), number, why))

    @contextmanager
    def opened(lanes: int) -> Iterator[Asking]:
        nonlocal asking
        with _trials_asking(selection, board, lanes) as asking:
            yield asking

    lanes = Lanes(
        ledger=ledger,
        resources=selection.study.resources,
        on_event=handle,
        body=body,
        warm=family(selection.study.family).imports if warm is None else warm,
        models=False,
        afterwards=board.read,
    )
    at_once = min(selection.trials, search.at_once or selection.trials)  # a point asks for one seed at a time
    with closing(lanes):
        outcome = lanes.serve(opened, at_once=at_once)
    found = searched(selection, ledger)
    keep_outcome(found, ledger, ended=board.settled and not outcome.stopped)
    return found, outcome.stopped


@contextmanager
def _trials_asking(selection: Selection, board: Standings, lanes: int) -> Iterator[Asking]:
    """A context in which a thread runs Tune, and the Asking passes its trials' requests to lanes."""
    import ray

    from orchestration.search.tune import Searching, driver_node

    remote: Any = ray.remote  # its types lack some options
    points = min(selection.search.at_once or lanes, selection.trials)
    together = -(-points // lanes) if family(selection.study.family).stacked else 1
    exchange = remote(num_cpus=0, resources=driver_node())(Exchange).remote(together, PATIENCE_SECONDS)
    asking = Asking(exchange, board.order, together)
    searching = Searching(board, exchange, at_a_time=points)
    try:
        yield asking
    finally:
        asking.close()
        searching.stop()
    if searching.error is not None:
        raise searching.error
