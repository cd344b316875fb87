"""What a person sees while a study runs: a bar on a terminal, a line per finished run elsewhere."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from orchestration.lanes.events import Event
    from trainers.engine.world import Progress


SHOWN = 3  # runs named at a time


class Watch:
    """Turns lane events into words on stderr, with the rate and the time left.

    The share of the work done counts finished runs whole and running ones by their step, so the estimate
    moves before the first run ends.
    """

    def __init__(self, total: int, stream: TextIO | None = None, *, heartbeat_seconds: float = 15.0) -> None:
        self.total, self.finished, self.failed = total, 0, 0
        self.stream, self.heartbeat_seconds = stream or sys.stderr, heartbeat_seconds
        self.running: dict[str, tuple[str, int]] = {}  # run id -> its words and its lane
        self.moved: dict[int, Progress] = {}  # lane -> where the run, or the stack of runs, on it is
        self.started: float | None = None
        self.last_line = time.monotonic()
        self.bar = self.stream.isatty()

    def __call__(self, event: Event) -> None:
        """Take one event of a lane."""
        from orchestration.lanes import events

        match event:
            case events.LaneReady():
                self._line("a lane is ready")
            case events.RunStarted(run=run, lane=lane):
                self.started = self.started or time.monotonic()
                self.running[run.id] = (run.label, lane)
                self.moved.pop(lane, None)
            case events.RunMoved(run=run, progress=progress) if run.id in self.running:
                self.moved[self.running[run.id][1]] = progress
                if progress.doing and not self.finished:
                    self.started = time.monotonic()  # what comes before the first step says nothing of the rate
            case events.RunFinished(run=run, seconds=seconds):
                self.running.pop(run.id, None)
                self.finished += 1
                self._line(f"{run.label}: done in {seconds:.0f} s")
            case events.RunFailed(run=run, message=message, retrying=retrying):
                self.running.pop(run.id, None)
                self.failed += not retrying
                self._line(f"{run.label}: {message}{'; trying again' if retrying else ''}")
        self._tick()

    def close(self) -> None:
        """Leave the terminal on a fresh line."""
        if self.bar:
            self.stream.write("\r\x1b[K")
            self.stream.flush()

    def state(self) -> str:
        """One line: how much is done, how fast, how long it will take."""
        lanes = [lane for _, lane in self.running.values()]
        moving = sum(lanes.count(lane) * p.step / p.steps for lane, p in self.moved.items() if p.steps)
        share = (self.finished + self.failed + moving) / max(self.total, 1)
        elapsed = time.monotonic() - self.started if self.started else 0.0
        left = elapsed * (1 - share) / share if share > 0.01 else None
        rate = sum(p.sentences_per_second for lane, p in self.moved.items() if lane in lanes)
        words = [f"{self.finished}/{self.total} runs", f"{100 * share:.0f} %"]
        if rate:
            words.append(f"{rate:.0f} sentences/s")
        words.append(f"{duration(left)} left" if left is not None else "estimating the time left")
        return "  ".join(words)

    def _line(self, text: str) -> None:
        self.close()
        self.stream.write(f"{text}   [{self.state()}]\n")
        self.stream.flush()
        self.last_line = time.monotonic()

    def _tick(self) -> None:
        if self.bar:
            width = 24
            filled = round(width * (self.finished + self.failed) / max(self.total, 1))
            text = f"{'━' * filled}{'╌' * (width - filled)}  {self.state()}  {self._names()}"
            self.stream.write(f"\r\x1b[K{text[:150]}")
            self.stream.flush()
        elif self.running and time.monotonic() - self.last_line > self.heartbeat_seconds:
            self._line(f"running {self._names()}")

    def _names(self) -> str:
        labels = [label for label, _ in self.running.values()]
        named = ", ".join(labels[:SHOWN]) + (f" and {len(labels) - SHOWN} more" if len(labels) > SHOWN else "")
        return "; ".join([*(moved.doing for moved in self.moved.values() if moved.doing), named])


def duration(seconds: float) -> str:
    """Seconds as a person says them: 45 s, 3 min 20 s, 2 h 5 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
