"""A command on a real terminal of some width: what a person would see of it, as the screen is in the end."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROWS = 50
SHOWN = re.compile(rb"\x1b\[K")


@dataclass
class Session:
    """What came out of a command on a terminal. seen: everything, raw; frames: the lines that moved."""

    width: int
    code: int | None = None
    seen: bytes = b""
    silences: list[float] = field(default_factory=list)  # seconds without a word, the longest first

    @property
    def lines(self) -> list[str]:
        """The lines that stand on the screen in the end; of a line that was written over, its last state."""
        return [self._last(line) for line in self.seen.decode(errors="replace").replace("\r\n", "\n").split("\n")]

    @property
    def frames(self) -> list[str]:
        """Every state of a line that moved."""
        parts = self.seen.decode(errors="replace").split("\r\x1b[K")[1:]
        return [part.split("\n")[0].rstrip("\r") for part in parts if part.split("\n")[0].strip()]

    @staticmethod
    def _last(line: str) -> str:
        return line.split("\r\x1b[K")[-1].rstrip("\r")


def on_terminal(
    words: Sequence[str],
    width: int,
    folder: Path,
    *,
    typed: bytes = b"",
    interrupt: Sequence[str] = (),
    hang_up: str | None = None,
    seconds: float = 240.0,
    environment: dict[str, str] | None = None,
    program: Sequence[str] = ("-m", "orchestration"),
) -> Session:
    """Run `semray WORDS` in a folder on a pseudo-terminal; `interrupt`: press Ctrl-C when each text is first seen.

    hang_up: close the terminal when this text is seen, as a lost connection does: the shell tells all of it.
    program: what Python runs on these words instead of `semray`.
    """
    process, terminal = _start([*program, *words], width, folder, environment or {})
    session, waited, last = Session(width), list(interrupt), time.monotonic()
    if typed:
        os.write(terminal, typed)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        ready, _, _ = select.select([terminal], [], [], 0.2)
        if ready:
            try:
                part = os.read(terminal, 65536)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            session.seen += part
            session.silences.append(time.monotonic() - last)
            last = time.monotonic()
            if waited and waited[0].encode() in session.seen:
                waited.pop(0)
                os.write(terminal, b"\x03")
            if hang_up and hang_up.encode() in session.seen:
                os.killpg(process.pid, signal.SIGHUP)
                break
        elif process.poll() is not None:
            break
    else:
        os.killpg(process.pid, signal.SIGKILL)
    os.close(terminal)  # of a process that is at work still: it is told of that, too
    session.code = process.wait(timeout=60)
    session.silences.sort(reverse=True)
    return session


def _start(
    words: Sequence[str], width: int, folder: Path, environment: dict[str, str]
) -> tuple[subprocess.Popen[bytes], int]:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, width, 0, 0))
    kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}

    def own_terminal() -> None:
        os.setsid()
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # also where these tests run under nohup
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # so that Ctrl-C reaches the command as it would a person's

    process = subprocess.Popen(
        [sys.executable, *words],
        cwd=folder,
        env={**kept, "TERM": "xterm-256color", **environment},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        preexec_fn=own_terminal,
        close_fds=True,
    )
    os.close(theirs)
    return process, ours
