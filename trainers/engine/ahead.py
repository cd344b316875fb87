"""Makes the batch of the next step while a GPU computes the current one.

The processor tokenises texts, and a GPU would wait for that between steps. The tokenizer is not Python code and
releases the interpreter, so that a thread can run it beside the loop.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Generic, TypeVar

B = TypeVar("B")


class Ahead(Generic[B]):
    """Wraps the function from step to batch: each call returns a batch and starts the next one in a thread.

    with Ahead(batches, steps=60) as batches:
        batch = batches(step)

    A batch depends on its step alone, so the thread makes the same one. Call `settle` before other code tokenises:
    it waits for the batch in progress, as one tokenizer must not be used by two threads at once.
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
