"""The batch of the next step, made while a GPU is at this one.

Texts become tokens on the processor, and between steps a GPU would wait for them. It is not in Python that this
time goes, so a thread has it beside the loop.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Generic, TypeVar

B = TypeVar("B")


class Ahead(Generic[B]):
    """The function from step to batch, which begins with the next one when it gives one away.

    with Ahead(batches, steps=60) as batches:
        batch = batches(step)

    Batches are functions of the step alone, so that it does not matter where they are made. `settle` waits for the
    one that is being made: what else tokenises must not do so at the same time.
    """

    def __init__(self, batches: Callable[[int], B], steps: int) -> None:
        self._batches, self._steps = batches, steps
        self._thread = ThreadPoolExecutor(1)
        self._next: dict[int, Future[B]] = {}

    def __call__(self, step: int) -> B:
        made = self._next.pop(step, None)
        batch = self._batches(step) if made is None else made.result()
        if step + 1 < self._steps:
            self._next = {step + 1: self._thread.submit(self._batches, step + 1)}
        return batch

    def settle(self) -> None:
        for made in self._next.values():
            made.exception()  # raised where the batch is asked for

    def __enter__(self) -> Ahead[B]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._thread.shutdown()
