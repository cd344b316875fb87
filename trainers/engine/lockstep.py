"""Several trainings in one process: each goes on by itself until all want something done, which is done for all.

    outcomes = in_lockstep([train_seed_3, train_seed_4], serve)

    def train_seed_3(ask):
        ...
        states = ask(request)            # the others have their turn, then serve({0: request, 1: …}) answers

A training is ordinary code in a thread of its own. One thread runs at a time, in the same order always, and each
finds torch's random numbers as it left them: nothing depends on who else trains beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from threading import Semaphore, Thread
from typing import Any, TypeVar

import torch

T = TypeVar("T")
Ask = Callable[[Any], Any]
Serve = Callable[[Mapping[int, Any]], Mapping[int, Any]]


def in_lockstep(works: Sequence[Callable[[Ask], T]], serve: Serve) -> list[T | Exception]:
    """What each work returns or raises; the others go on without one that has ended.

    serve: hears, by the place of each work, of all requests that wait, when every work that goes on waits. It
    answers one at least; whom it does not answer keeps waiting. What it raises is raised in all that wait.
    """
    places = [_Place() for _ in works]
    for place, work in zip(places, works, strict=True):
        Thread(target=place.occupy, args=(work,), daemon=True).start()
    turns: Sequence[int] = range(len(places))
    while turns:
        for turn in turns:
            places[turn].go_on()
        waiting = {number: place.request for number, place in enumerate(places) if not place.ended}
        turns = _answered(waiting, serve, places) if waiting else ()
    return [place.outcome for place in places]


def _answered(waiting: Mapping[int, Any], serve: Serve, places: Sequence[_Place]) -> list[int]:
    try:
        answers = serve(waiting)
    except Exception as error:  # noqa: BLE001  it is raised again, where it was asked for
        answers = dict.fromkeys(waiting, error)
    for number, answer in answers.items():
        places[number].answer = answer
    return list(answers)


class _Place:
    """Where one work waits and is waited for."""

    def __init__(self) -> None:
        self._turn, self._back = Semaphore(0), Semaphore(0)
        self.request: Any = None
        self.answer: Any = None
        self.outcome: Any = None
        self.ended = False

    def go_on(self) -> None:
        """Let the work run until it asks or ends."""
        self._turn.release()
        self._back.acquire()

    def occupy(self, work: Callable[[Ask], Any]) -> None:
        """The whole life of the work's thread."""
        self._turn.acquire()
        try:
            self.outcome = work(self._ask)
        except Exception as error:  # noqa: BLE001  it is the outcome
            self.outcome = error
        self.ended = True
        self._back.release()

    def _ask(self, request: Any) -> Any:
        self.request, on_cpu = request, torch.get_rng_state()
        on_card = torch.cuda.get_rng_state() if torch.cuda.is_initialized() else None
        self._back.release()
        self._turn.acquire()
        torch.set_rng_state(on_cpu)
        if on_card is not None:
            torch.cuda.set_rng_state(on_card)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer
