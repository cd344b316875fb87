"""Shows progress while a study runs: one updated line on a terminal, a line per finished run elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from orchestration.study.names import listed, printable
from orchestration.study.run import of_seed

if TYPE_CHECKING:
    from rich.console import Console

    from orchestration.lanes.events import Event
    from orchestration.study.run import Run
    from trainers.engine.world import Progress


SHOWN = 3  # runs named at a time
BAR = (8, 24)  # cells of the bar: a sixth of the terminal between these
HEARTBEAT_SECONDS = 15.0  # without a terminal: time until the first line about a run that has not ended


class Watch:
    """Writes lane events to stderr, with the rate and the time left.

    Finished runs count fully and running ones by their step, so that there is an estimate before the first run
    ends.
    backbones: how many the study has; with several, runs are named with their backbone.
    """

    def __init__(
        self,
        total: int = 0,
        stream: TextIO | None = None,
        *,
        backbones: int = 1,
        heartbeat_seconds: float = HEARTBEAT_SECONDS,
    ) -> None:
        self.total, self.finished, self.failed = total, 0, 0
        self.stream, self.heartbeat_seconds = stream or sys.stderr, heartbeat_seconds
        self.several = backbones > 1
        self.running: dict[str, tuple[str, int]] = {}  # run id -> its words and its lane
        self.moved: dict[int, Progress] = {}  # lane -> progress of its run, or stack of runs
        self.waiting = ""  # what is waited for before the first run
        self.started: float | None = None
        self.last_line = time.monotonic()
        self.terminal = _terminal(self.stream)

    def __call__(self, event: Event) -> None:
        """Take one event of a lane."""
        from orchestration.lanes import events

        match event:
            case events.Preparing(what=what):
                self.waiting = what
                if self.terminal is None:
                    self._line(what)
            case events.Waiting(what=what):
                self._line(what)
            case events.RunStarted(run=run, lane=lane):
                self.waiting = ""
                self.started = self.started or time.monotonic()
                self.running[run.id] = (self._name(run), lane)
                self.moved.pop(lane, None)
            case events.RunMoved(run=run, progress=progress) if run.id in self.running:
                self.moved[self.running[run.id][1]] = progress
                if progress.doing and not self.finished:
                    self.started = time.monotonic()  # the time before the first step would distort the rate
            case events.RunFinished(run=run, seconds=seconds):
                self.running.pop(run.id, None)
                self.finished += 1
                self._line(f"{self._name(run)}: done in {seconds:.0f} s   [{self.state()}]")
            case events.RunFailed(run=run, message=message, retrying=retrying):
                self.running.pop(run.id, None)
                self.failed += not retrying
                self._line(
                    f"{self._name(run)}: {message}{'; trying again' if retrying else ''}   [{self.state()}]"
                )
        self._tick()

    @contextmanager
    def awaiting(self, runs: int) -> Iterator[None]:
        """Add so many runs to the total; afterwards leave the terminal on a fresh line."""
        self.total += runs
        try:
            yield
        finally:
            self.close()

    def close(self) -> None:
        """Leave the terminal on a fresh line."""
        if self.terminal is not None:
            self.stream.write("\r\x1b[K")
            self.stream.flush()

    def state(self) -> str:
        """One line: the share done, the rate, the time left."""
        return "  ".join([*self._done(), *self._rate(), self._left()])

    def live(self, width: int) -> str:
        """The updated line, in fewer than `width` cells; parts that do not fit are left out."""
        from rich.cells import cell_len, set_cell_size

        if self.waiting:
            return _cut(f"{self.waiting} …", width - 1)
        cells = min(max(width // 6, BAR[0]), BAR[1])
        filled = round(cells * self._share())
        text = "━" * filled + "╌" * (cells - filled)
        for part in (*self._done(), self._left(), *self._rate()):
            if cell_len(text) + 2 + cell_len(part) < width:
                text += f"  {part}"
        room = width - 3 - cell_len(text)
        names = _cut(self._names(), room) if room >= 12 else ""
        return set_cell_size(text, min(cell_len(text), width - 1)) + (f"  {names}" if names else "")

    def _done(self) -> list[str]:
        return [f"{self.finished}/{self.total} runs", f"{100 * self._share():.0f} %"]

    def _share(self) -> float:
        lanes = [lane for _, lane in self.running.values()]
        moving = sum(lanes.count(lane) * p.step / p.steps for lane, p in self.moved.items() if p.steps)
        return (self.finished + self.failed + moving) / max(self.total, 1)

    def _rate(self) -> list[str]:
        lanes = {lane for _, lane in self.running.values()}
        rate = sum(p.sentences_per_second or 0.0 for lane, p in self.moved.items() if lane in lanes)
        return [f"{rate:.0f} sentences/s"] if rate else []

    def _left(self) -> str:
        share, elapsed = self._share(), time.monotonic() - self.started if self.started else 0.0
        return f"{duration(elapsed * (1 - share) / share)} left" if share > 0.01 else "estimating the time left"

    def _line(self, text: str) -> None:
        self.close()
        shown = printable(text, keep="\n")  # the last words of a script are among them
        self.stream.write(f"{shown}\n")
        self.stream.flush()
        self.last_line = time.monotonic()

    def _tick(self) -> None:
        if self.terminal is not None:
            self.stream.write(f"\r\x1b[K{self.live(self.terminal.width)}")
            self.stream.flush()
        elif self.running and time.monotonic() - self.last_line > self.heartbeat_seconds:
            self.heartbeat_seconds *= 2  # the longer a run takes, the rarer the lines
            self._line(f"running {self._names()}   [{self.state()}]")

    def _names(self) -> str:
        doing = dict.fromkeys(moved.doing for moved in self.moved.values() if moved.doing)
        return "; ".join([*doing, listed([label for label, _ in self.running.values()], SHOWN)])

    def _name(self, run: Run) -> str:
        if self.several:
            return run.label
        return f"{run.arm}{of_seed(run.seed)}"


def _terminal(stream: TextIO) -> Console | None:
    """A console that knows the terminal's current width; None if the stream is no terminal."""
    if not stream.isatty():
        return None
    from rich.console import Console

    return Console(file=stream)


def _cut(text: str, cells: int) -> str:
    """The text in at most so many cells, ending in … if it was cut."""
    from rich.cells import cell_len, set_cell_size

    return text if cell_len(text) <= cells else f"{set_cell_size(text, max(cells - 1, 0)).rstrip()}…"


def duration(seconds: float) -> str:
    """Seconds as a person says them: 45 s, 3 min 20 s, 2 h 5 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
