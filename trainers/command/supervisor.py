"""Runs a command and ends with it. This is a script that uses the standard library only.

    python -I -S supervisor.py WORD...

When its standard input closes, because the process at the other end closed it or died, it ends the command and all
descendants, and then itself. The command also ends if this process dies, and processes that the command leaves
behind end with it. The exit code is the command's; 128 + n if signal n ended it; 127 if it could not be started.
Only the last prints to standard output, as the command's output goes to standard error. SIGTERM is passed on.
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
DEATH_SIGNAL, SUBREAPER = 1, 36  # options of Linux's prctl(2): PDEATHSIG, CHILD_SUBREAPER


def main(words: list[str]) -> int:
    """Run the command to its end; returns the exit code."""
    _prctl(SUBREAPER, 1)
    try:
        command = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr,
            start_new_session=True,
            preexec_fn=_prepare,
        )
    except (OSError, subprocess.SubprocessError) as error:
        print(f"{words[0]}: {getattr(error, 'strerror', None) or error}", file=sys.stderr, flush=True)
        print("not started")
        return NOT_STARTED
    signal.signal(signal.SIGTERM, lambda number, frame: _signal_group(command.pid, signal.SIGTERM))
    while command.poll() is None:
        if select.select([sys.stdin], [], [], POLL_SECONDS)[0]:  # closed, as nothing is written to it
            break
    _signal_group(command.pid, signal.SIGKILL)
    code = command.wait()
    _end_rest()
    return code if code >= 0 else 128 - code


def _prepare() -> None:
    """Let the command end with its parent, and hear SIGHUP, which is blocked in Ray's processes and inherited."""
    _prctl(DEATH_SIGNAL, signal.SIGKILL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})


def _prctl(option: int, value: int) -> None:
    """Call prctl(2) on Linux. Other systems lack it, and rely on the process group."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _signal_group(leader: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)


def _end_rest() -> None:
    """End the processes that the command left, which have become children of this one."""
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
