"""Carries requests from the trials of a search to the lanes: trials ask for runs, the driver answers with reports.

trial process --ask--> Exchange (an actor) --asked--> driver: Asking -> Pool -> lanes
              <-report-                    <-answer-
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from orchestration.study.errors import StudyError
from orchestration.study.run import Job, Run

LOST = (
    "the process between the search's points and its lanes died (killed, or out of memory)\n"
    "  accepted: the same command once more, which goes on from here"
)
Report = dict[str, float]
Ask = tuple[int, int, int]  # ticket, number of the point, place of the seed


class Exchange:
    """An actor that holds the trials' requests until the driver takes them, and the answers that trials wait for.

    The driver gets the requests once there are `together` of them, or none has come for `patience` seconds.
    """

    def __init__(self, together: int = 1, patience: float = 0.0) -> None:
        self._together, self._patience = together, patience
        self._asks: list[Ask] = []
        self._answers: dict[int, asyncio.Future[Report | None]] = {}
        self._arrived = asyncio.Event()
        self._tickets, self._closed = 0, False

    async def ask(self, number: int, place: int) -> Report | None:
        """The report on a point once its seed at this place is done; None if the search ends before."""
        if self._closed:
            return None
        self._tickets += 1
        ticket = self._tickets
        self._answers[ticket] = asyncio.get_running_loop().create_future()
        self._asks.append((ticket, number, place))
        self._arrived.set()
        return await self._answers[ticket]

    async def asked(self) -> list[Ask] | None:
        """Wait for requests, and return those since the last call; None after the end."""
        await self._arrived.wait()
        with suppress(TimeoutError):
            while not self._closed and len(self._asks) < self._together:
                self._arrived.clear()
                await asyncio.wait_for(self._arrived.wait(), self._patience)
        asks, self._asks = self._asks, []
        if not self._closed:
            self._arrived.clear()
        return asks or None

    async def answer(self, ticket: int, report: Report | None) -> None:
        """Give its report to the trial that waits with this ticket; after the end none does."""
        if (waiting := self._answers.pop(ticket, None)) is not None:
            waiting.set_result(report)

    async def close(self) -> None:
        """End the exchange: every waiting trial gets None."""
        self._closed = True
        for ticket in list(self._answers):
            await self.answer(ticket, None)
        self._asks = []
        self._arrived.set()


class Asking:
    """The driver's side of an Exchange: it makes jobs for the pool, and answers when their runs end.

    order(number, place) gives the run to execute, the report if the run is known already, or None if the budget is
    spent. together: how many of the runs requested at one time go into one job.
    """

    def __init__(self, exchange: Any, order: Callable[[int, int], Run | Report | None], together: int = 1) -> None:
        self._exchange, self._order, self._together = exchange, order, together
        self._waiting: dict[str, list[Ask]] = {}  # each run under way -> the requests for it
        self.bell = exchange.asked.remote()

    def jobs(self) -> list[Job]:
        """Jobs for the requests since the bell last rang, without runs that are already under way.

        StudyError if the exchange's process died.
        """
        import ray

        try:
            asks = ray.get(self.bell)
        except ray.exceptions.RayError as error:
            raise StudyError(LOST) from error
        self.bell = None if asks is None else self._exchange.asked.remote()
        runs: list[Run] = []
        for ask in asks or ():
            ordered = self._order(*ask[1:])
            if not isinstance(ordered, Run):
                self._exchange.answer.remote(ask[0], ordered)
                continue
            if ordered.id not in self._waiting:
                runs.append(ordered)
            self._waiting.setdefault(ordered.id, []).append(ask)
        runs.sort(key=lambda run: run.seed or 0)  # runs of one seed share their batches
        size = self._together
        return [Job(runs=tuple(runs[begin : begin + size])) for begin in range(0, len(runs), size)]

    def done(self, run: Run, report: Callable[[int, int], Report | None]) -> None:
        """Answer all requests for a run that has ended. report(number, place) gives the report on a point."""
        for ticket, number, place in self._waiting.pop(run.id, ()):
            self._exchange.answer.remote(ticket, report(number, place))

    def looked(self, run: Run, report: Callable[[int, int], Report | None]) -> None:
        """Answer requests for a run under way that is stopped for them: report(number, place) is not None."""
        for ask in list(self._waiting.get(run.id, ())):
            if (ended := report(*ask[1:])) is not None:
                self._waiting[run.id].remove(ask)
                self._exchange.answer.remote(ask[0], ended)

    def wanted(self, run_id: str) -> bool:
        """Whether a trial still waits for the run."""
        return bool(self._waiting.get(run_id))

    def given_up(self, run_id: str) -> bool:
        """A lane has given the run up: whether to execute it anew, as a trial has asked for it meanwhile."""
        again = self.wanted(run_id)
        if not again:
            self._waiting.pop(run_id, None)
        return again

    def close(self) -> None:
        """Close the exchange, even if trials still wait."""
        self._exchange.close.remote()
