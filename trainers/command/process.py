"""Runs a command as a process that never outlives this one: starts it, follows its log, ends it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from trainers.command import supervisor
from trainers.command.progress import progress_of
from trainers.engine.world import Progress
from trainers.errors import TrainerError

PYTHON = ("python", "python3")  # as the first word, these are the interpreter that runs semray
TAIL_LINES, TAIL_BYTES = 20, 8_192
PART = 1 << 20  # bytes of a log that are read at a time, as it may be larger than memory
USAGE = 2  # exit code of argparse and shell tools for arguments that they do not understand
END_SECONDS = 20.0  # from SIGTERM to SIGKILL: time to save


class CommandFailed(RuntimeError):
    """A command failed, and may succeed when run again. The message ends with the last lines of its log."""


class CommandRefused(TrainerError):
    """A command failed, and would fail again: it could not be started, refused its words, or removed its log."""


class Running:
    """A running command. All that it prints is appended to `log`."""

    def __init__(self, words: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
        self.words, self.log, self.began = words, log, time.monotonic()
        program = [sys.executable, *words[1:]] if words[0] in PYTHON else list(words)
        with log.open("ab") as file:
            self._read_to = file.tell()
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", supervisor.__file__, *program],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                env=dict(environment),
                start_new_session=True,
            )
        self._line = ""

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began

    @property
    def printed(self) -> int:
        """Bytes of its log that `news` has seen."""
        return self._read_to

    @property
    def code(self) -> int | None:
        """The exit code; 128 + n if signal n ended it or its supervisor; None while it runs."""
        code = self._process.poll()
        return code if code is None or code >= 0 else 128 - code

    def news(self) -> Progress | None:
        """The last progress in the log since the last call; of very much text only the end is read."""
        try:
            log = self.log.open("rb")
        except FileNotFoundError:  # Python's message would name a file that the user does not know
            raise CommandRefused(
                f"{self.words[0]}: removed {self.log.parent}, the folder that holds its {{out}} and its log\n"
                "  accepted: a command that removes nothing but what lies in {out}"
            ) from None
        with log as file:
            end = file.seek(0, os.SEEK_END)
            if end - self._read_to > PART:
                self._read_to, self._line = end - PART, ""
            file.seek(self._read_to)
            fresh = file.read(end - self._read_to)
        self._read_to = end
        *lines, self._line = (self._line + fresh.decode(errors="replace").replace("\r", "\n")).split("\n")
        self._line = self._line[-TAIL_BYTES:]
        found = (progress_of(line) for line in reversed(lines))
        return next((progress for progress in found if progress is not None), None)

    def stop(self) -> None:
        """Ask the command to end, and wait END_SECONDS at most, so that it can save."""
        self._process.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(END_SECONDS)

    def kill(self) -> None:
        """End the command and all its descendants now."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def failure(self, why: str, *, final: bool = False) -> Exception:
        """The error to raise: what happened, the log's last line, its path and its last lines."""
        tail = tail_of(self.log)
        last = tail[-1] if tail else "it printed nothing"
        text = "\n".join(
            [f"{self.words[0]}: {why}: {last}", f"  log: {self.log}", *(f"  | {line}" for line in tail)]
        )
        return CommandRefused(text) if final else CommandFailed(text)

    def check(self) -> None:
        """CommandFailed or CommandRefused if it ended with an exit code other than 0."""
        code, output = self.code, self._process.stdout
        assert output is not None
        if code == supervisor.NOT_STARTED and output.read():  # a script may end with that code, too
            raise self.failure("could not be started", final=True)
        if code is not None and code - 128 in set(signal.Signals):
            raise self.failure(f"ended by {signal.Signals(code - 128).name} after {self.seconds:.0f} s")
        if code:
            raise self.failure(f"exit code {code} after {self.seconds:.0f} s", final=code == USAGE)


@contextmanager
def running(words: Sequence[str], environment: Mapping[str, str], log: Path) -> Iterator[Running]:
    """Run a command within the block, and end it in any case when the block ends."""
    command = Running(words, environment, log)
    try:
        yield command
    finally:
        command.kill()


def lines_of(log: Path) -> Iterator[str]:
    """The lines of a log; a line longer than PART is split."""
    with log.open(errors="replace") as file:
        for several in iter(partial(file.readline, PART), ""):
            yield from several.splitlines()


def end_of(log: Path, size: int) -> bytes:
    """The last bytes of a log."""
    with log.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - size))
        return file.read(size)


def tail_of(log: Path) -> list[str]:
    """The last lines of a log that are not blank."""
    text = end_of(log, TAIL_BYTES).decode(errors="replace")
    return [line.rstrip() for line in text.splitlines() if line.strip()][-TAIL_LINES:]
