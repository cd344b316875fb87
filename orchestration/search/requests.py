"""Between the trials of a search and the lanes: trials ask for runs, the driver answers with what came of them.

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
    """An actor that holds what trials ask until the driver takes it, and the answers they wait for.

    Asks are handed over as soon as there are as many as go together, or once no further one came for so many
    seconds of patience.
    """

    def __init__(self, together: int = 1, patience: float = 0.0) -> None:
        self._together, self._patience = together, patience
        self._asks: list[Ask] = []
        self._answers: dict[int, asyncio.Future[Report | None]] = {}
        self._something = asyncio.Event()
        self._tickets, self._closed = 0, False

    async def ask(self, number: int, place: int) -> Report | None:
        """Where a point stands once its seed at this place is done; None when the search ends before."""
        if self._closed:
            return None
        self._tickets += 1
        ticket = self._tickets
        self._answers[ticket] = asyncio.get_running_loop().create_future()
        self._asks.append((ticket, number, place))
        self._something.set()
        return await self._answers[ticket]

    async def asked(self) -> list[Ask] | None:
        """What was asked since the last time, once there is something; None after the end."""
        await self._something.wait()
        with suppress(TimeoutError):
            while not self._closed and len(self._asks) < self._together:
                self._something.clear()
                await asyncio.wait_for(self._something.wait(), self._patience)
        asks, self._asks = self._asks, []
        if not self._closed:
            self._something.clear()
        return asks or None

    async def answer(self, ticket: int, report: Report | None) -> None:
        """Let the trial go on that holds this ticket."""
        self._answers.pop(ticket).set_result(report)

    async def close(self) -> None:
        """Nobody asks any more; who waits is told that the search ends."""
        self._closed = True
        for ticket in list(self._answers):
            await self.answer(ticket, None)
        self._asks = []
        self._something.set()


class Asking:
    """The driver's end: jobs for the pool, and answers as their runs end.

    order(number, place) gives the run to be done, None when nothing may be asked for any more, or the report
    where the run is known already. together: how many runs that are asked for at one time go into one job.
    """

    def __init__(self, exchange: Any, order: Callable[[int, int], Run | Report | None], together: int = 1) -> None:
        self._exchange, self._order, self._together = exchange, order, together
        self._waiting: dict[str, list[Ask]] = {}
        self.bell = exchange.asked.remote()

    def jobs(self) -> list[Job]:
        """What was asked since the bell last rang, but for runs that are under way already.

        StudyError where the actor that holds the questions died.
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
        """A run ended: answer all who asked for it. report(number, place) says where a point stands now."""
        for ticket, number, place in self._waiting.pop(run.id, ()):
            self._exchange.answer.remote(ticket, report(number, place))

    def looked(self, run: Run, report: Callable[[int, int], Report | None]) -> None:
        """A run is under way: answer those for whom it need not go on, where report(number, place) says so."""
        for ask in list(self._waiting.get(run.id, ())):
            if (ended := report(*ask[1:])) is not None:
                self._waiting[run.id].remove(ask)
                self._exchange.answer.remote(ask[0], ended)
        if not self._waiting.get(run.id):
            self._waiting.pop(run.id, None)

    def wanted(self, run_id: str) -> bool:
        """Whether anybody still waits for a run."""
        return run_id in self._waiting

    def close(self) -> None:
        """End the asking, whoever still waits."""
        self._exchange.close.remote()
