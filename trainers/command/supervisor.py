"""Starts a command and outlives it by nothing: run as a script of its own, standard library only.

    python -I -S supervisor.py WORD...

It ends, with all that descends from the command, as soon as its standard input closes: the process that holds the
other end was done with it, or died however it died. The command itself ends with this process. Whatever the
command leaves running is ended when it ends. The exit code is the command's; 128 + n when signal n ended it; 127
when it could not be started, which alone is told on standard output: what the command prints goes where errors go.
SIGTERM is passed on.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys

POLL_SECONDS = 0.05
NOT_STARTED = 127
DEATH_SIGNAL, SUBREAPER = 1, 36  # of Linux's prctl(2): what a dying parent sends; whose children orphans become


def main(words: list[str]) -> int:
    """Run the command and see to its end."""
    _prctl(SUBREAPER, 1)
    try:
        command = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr,
            start_new_session=True,
            preexec_fn=_end_with_parent,
        )
    except (OSError, subprocess.SubprocessError) as error:
        print(f"{words[0]}: {getattr(error, 'strerror', None) or error}", file=sys.stderr, flush=True)
        print("not started")
        return NOT_STARTED
    signal.signal(signal.SIGTERM, lambda number, frame: _signal_group(command.pid, signal.SIGTERM))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to all; who started this decides
    while command.poll() is None:
        if select.select([sys.stdin], [], [], POLL_SECONDS)[0] and not os.read(sys.stdin.fileno(), 1):
            break
    _signal_group(command.pid, signal.SIGKILL)
    code = command.wait()
    _end_rest()
    return code if code >= 0 else 128 - code


def _end_with_parent() -> None:
    _prctl(DEATH_SIGNAL, signal.SIGKILL)


def _prctl(option: int, value: int) -> None:
    """Linux alone has it; elsewhere the process group has to do."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _signal_group(leader: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)


def _end_rest() -> None:
    """End what the command left: orphans below it have become children of this process."""
    while children := _children():
        for child in children:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(child, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(-1, 0)


def _children() -> list[int]:
    try:
        with open(f"/proc/self/task/{os.getpid()}/children") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
