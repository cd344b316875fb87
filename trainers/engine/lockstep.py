"""Several trainings in one process: each runs until it asks for something, and what all ask for is done together.

    outcomes = in_lockstep([train_seed_3, train_seed_4], serve)

    def train_seed_3(ask):
        ...
        states = ask(request)            # waits until all have asked, and serve({0: request, 1: …}) has answered

Each training is ordinary code in its own thread. Only one thread runs at a time, always in the same order, and the
state of torch's random numbers is kept per training, so that no training changes another's results.
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
    """Run the works; return in order what each returned or raised. One that ends does not stop the others.

    serve(requests): is called when every work that has not ended waits. It takes the requests by the works' places
    and returns answers to at least one of them; works without an answer keep waiting. An exception that it raises
    is raised in every waiting work.
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
    except Exception as error:  # noqa: BLE001  `_ask` raises it again, in the work that asked
        answers = dict.fromkeys(waiting, error)
    for number, answer in answers.items():
        places[number].answer = answer
    return list(answers)


class _Place:
    """One work's thread: hands the turn to it and back, with its request and the answer."""

    def __init__(self) -> None:
        self._turn, self._back = Semaphore(0), Semaphore(0)
        self.request: Any = None
        self.answer: Any = None
        self.outcome: Any = None
        self.ended = False

    def go_on(self) -> None:
        """Let the work run until it asks for something or ends."""
        self._turn.release()
        self._back.acquire()

    def occupy(self, work: Callable[[Ask], Any]) -> None:
        """Run the work; the body of its thread."""
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
