"""Runs a driver's requests to a slow ledger in threads, so that no lane waits for them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")


class Desk:
    """Does work in threads, and passes each result to a callback in the driver's thread (`hear`).

    Works with the same key are done one after another, others in parallel. With 0 threads each work is done, and
    its callback called, at once.
    """

    def __init__(self, threads: int) -> None:
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="ledger") if threads else None
        self._waiting: dict[Hashable, deque[tuple[Callable[[], Any], Callable[[Any], None]]]] = {}
        self._done: SimpleQueue[tuple[Hashable, Future[Any]]] = SimpleQueue()

    @property
    def busy(self) -> bool:
        """True if work is left whose callback has not been called."""
        return bool(self._waiting)

    def do(self, key: Hashable, work: Callable[[], T], then: Callable[[T], None]) -> None:
        """Start the work; `hear` later calls `then` with its result."""
        if self._threads is None:
            then(work())
            return
        line = self._waiting.setdefault(key, deque())
        line.append((work, then))
        if len(line) == 1:
            self._start(key)

    def hear(self, seconds: float = 0.0) -> None:
        """Call the callbacks of finished work; wait up to `seconds` for the first. Raises what the work raised."""
        wait = seconds
        while self._waiting:
            try:
                key, done = self._done.get(timeout=wait) if wait else self._done.get_nowait()
            except Empty:
                return
            wait = 0.0
            self._take(key, done)

    def finish(self) -> None:
        """Wait until all work is done and all callbacks are called."""
        while self._waiting:
            self._take(*self._done.get())

    def close(self) -> None:
        """As `finish`, and end the threads."""
        try:
            self.finish()
        finally:
            if self._threads is not None:
                self._threads.shutdown(cancel_futures=True)

    def _start(self, key: Hashable) -> None:
        assert self._threads is not None
        work, _ = self._waiting[key][0]
        self._threads.submit(work).add_done_callback(partial(self._end, key))

    def _end(self, key: Hashable, done: Future[Any]) -> None:
        """Called in the thread that did the work."""
        self._done.put((key, done))

    def _take(self, key: Hashable, done: Future[Any]) -> None:
        line = self._waiting[key]
        _, then = line.popleft()
        if line:
            self._start(key)
        else:
            del self._waiting[key]
        then(done.result())
