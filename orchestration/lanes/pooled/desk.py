"""What a driver asks of a ledger, in threads of its own where each answer takes its time: no lane waits for it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")


class Desk:
    """Work that is done in a thread, and what comes of it, which is heard in the driver's own.

    Pieces of work with one key follow one another; those of several are done at a time. Without threads each piece
    is done and heard at once.
    """

    def __init__(self, threads: int) -> None:
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="ledger") if threads else None
        self._waiting: dict[Hashable, deque[tuple[Callable[[], Any], Callable[[Any], None]]]] = {}
        self._done: SimpleQueue[tuple[Hashable, Future[Any]]] = SimpleQueue()

    @property
    def busy(self) -> bool:
        """Whether something is not heard yet."""
        return bool(self._waiting)

    def do(self, key: Hashable, work: Callable[[], T], then: Callable[[T], None]) -> None:
        """Have work done, and `then` called with its result by `hear`."""
        if self._threads is None:
            then(work())
            return
        line = self._waiting.setdefault(key, deque())
        line.append((work, then))
        if len(line) == 1:
            self._start(key)

    def hear(self, seconds: float = 0.0) -> None:
        """Take what has come of work, waiting so long for the first. What work raised is raised here."""
        wait = seconds
        while self._waiting:
            try:
                key, done = self._done.get(timeout=wait) if wait else self._done.get_nowait()
            except Empty:
                return
            wait = 0.0
            self._take(key, done)

    def finish(self) -> None:
        """Wait until all is done and heard."""
        while self._waiting:
            self._take(*self._done.get())

    def close(self) -> None:
        """As `finish`; no more work after that."""
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
        """In the thread that did it."""
        self._done.put((key, done))

    def _take(self, key: Hashable, done: Future[Any]) -> None:
        line = self._waiting[key]
        _, then = line.popleft()
        if line:
            self._start(key)
        else:
            del self._waiting[key]
        then(done.result())
