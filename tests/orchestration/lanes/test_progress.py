"""What is told of a study while it runs: what goes on before the first step, and how long the rest takes."""

from __future__ import annotations

import io
import time
from dataclasses import replace

import pytest
from rich.cells import cell_len

from orchestration.lanes.events import Preparing, RunFailed, RunFinished, RunMoved, RunStarted
from orchestration.lanes.progress import Watch, duration
from orchestration.lanes.waits import Stillness
from orchestration.study.run import Run
from trainers.engine.world import Progress

RUN = Run(
    family="difficulty",
    arm="lex",
    backbone="tiny",
    seed=3,
    settings={},
    data={},
    defining={},
    backbone_fingerprint="b",
    corpus_fingerprint="c",
)


def test_what_comes_before_the_first_step_is_told_and_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    said = io.StringIO()
    watch = Watch(2, said, heartbeat_seconds=15.0)
    watch(Preparing(what="starting Ray"))
    watch(RunStarted(run=RUN, lane=0, attempt=1))
    for _ in range(300):  # five minutes of embedding, heard of once a second
        now[0] += 1
        watch(RunMoved(run=RUN, progress=Progress(step=0, steps=0, loss=0.0, doing="stsb: embedding 9 sentences")))
    lines = said.getvalue().splitlines()
    assert len(lines) == 1 + 4  # after 15, 30, 60 and 120 s: the longer it takes, the less there is to say
    assert "running stsb: embedding 9 sentences; lex, seed 3   [0/2 runs  0 %" in lines[-1]
    now[0] += 10
    watch(RunMoved(run=RUN, progress=Progress(step=50, steps=100, loss=1.0)))
    assert watch.state() == "0/2 runs  25 %  30 s left"
    watch(RunFinished(run=RUN, seconds=20.0))
    assert "lex, seed 3: done in 20 s   [1/2 runs  50 %" in said.getvalue()


def test_what_a_script_said_last_acts_on_no_screen() -> None:
    said = io.StringIO()
    Watch(1, said)(RunFailed(run=RUN, message="CommandRefused: \x1b[2Jno\n  accepted: a yes", retrying=False))
    assert said.getvalue().startswith("lex, seed 3: CommandRefused: \\x1b[2Jno\n  accepted: a yes   [0/1 runs")


@pytest.mark.parametrize("width", [20, 40, 60, 80, 120, 400])
@pytest.mark.parametrize("doing", ["", "stsb: embedding 9 sentences"])
def test_the_line_that_moves_fits_every_terminal(width: int, doing: str) -> None:
    """Bar, runs and share come first; the names of what runs only where there is room."""
    watch = Watch(17, io.StringIO(), backbones=2)
    watch(Preparing(what="importing what runs need, in 2 lanes"))
    assert watch.live(width).startswith("importing what r")
    assert cell_len(watch.live(width)) < width
    watch(RunStarted(run=RUN, lane=0, attempt=1))
    progress = Progress(step=50, steps=100, loss=1.0, doing=doing, sentences_per_second=412.0)
    watch(RunMoved(run=RUN, progress=progress))
    line = watch.live(width)
    assert cell_len(line) < width
    assert "0/17 runs" in line
    assert "lex on tiny, seed 3" in line or width < 120
    assert ("412 sentences/s" in line) == (width >= 60)


def test_what_failed_is_done_with_unless_it_is_tried_again() -> None:
    """Half of its steps count no more when it begins anew."""
    said = io.StringIO()
    watch, half = Watch(4, said), Progress(step=50, steps=100, loss=1.0)
    for retrying, state in ((True, "0/4 runs  0 %  "), (False, "0/4 runs  25 %  ")):
        watch(RunStarted(run=RUN, lane=0, attempt=1))
        assert watch.state().startswith("0/4 runs  0 %  ")
        watch(RunMoved(run=RUN, progress=half))
        assert watch.state().startswith("0/4 runs  12 %  ")
        watch(RunFailed(run=RUN, message="lost", retrying=retrying))
        assert (
            said.getvalue()
            .splitlines()[-1]
            .startswith(f"lex, seed 3: lost{'; trying again' * retrying}   [{state}")
        )


def test_runs_of_a_stack_move_together_and_other_lanes_beside_them(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    watch, runs = Watch(4, io.StringIO()), [replace(RUN, seed=seed) for seed in range(3)]
    for run, lane in zip(runs, (0, 0, 1), strict=True):
        watch(RunStarted(run=run, lane=lane, attempt=1))
        now[0] += 10
    watch(RunMoved(run=runs[0], progress=Progress(step=50, steps=100, loss=1.0, sentences_per_second=400)))
    watch(RunMoved(run=runs[2], progress=Progress(step=60, steps=100, loss=1.0, sentences_per_second=12)))
    assert watch.state() == "0/4 runs  40 %  412 sentences/s  45 s left"  # 2 * .5 + .6 of 4, in 30 s
    watch(RunFinished(run=runs[2], seconds=1.0))
    assert watch.state() == "1/4 runs  50 %  400 sentences/s  30 s left"
    with watch.awaiting(4):
        assert watch.state() == "1/8 runs  25 %  400 sentences/s  1 min 30 s left"


def test_stillness_counts_neither_news_nor_the_sleep_of_who_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    still, heard = Stillness(), []
    for gone, words in ((0, "a"), (1, "a"), (2, "a"), (3600, "a"), (1, "b"), (1, "b"), (3, "b")):
        now[0] += gone
        heard.append((still.hear(words), still.worth_a_word(6.0)))
    assert heard == [(0, False), (1, False), (3, True), (6, False), (0, False), (1, False), (4, True)]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (44.6, "45 s"),
        (59.6, "1 min 0 s"),
        (200, "3 min 20 s"),
        (3599, "59 min 59 s"),
        (3600, "1 h 0 min"),
        (7500, "2 h 5 min"),
    ],
)
def test_durations(seconds: float, words: str) -> None:
    assert duration(seconds) == words
