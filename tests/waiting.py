"""What tests of whole processes share: a port that nobody has, and waiting until something is so."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable


def free_port() -> int:
    """A port of loopback that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def until(what: Callable[[], bool], seconds: float = 240.0, *, every: float = 0.05) -> None:
    """Come back as soon as it is so, which is asked `every` so many seconds; fail when it takes too long."""
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "nothing happened"
        threading.Event().wait(every)
