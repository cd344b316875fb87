"""What a person sees: whole sessions on real terminals of 60, 80 and 120 columns, from the first plan to Ctrl-C."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from orchestration.ledger.ledger import Ledger
from tests.corpora.conftest import write_small_wordnet
from tests.terminal import Session, on_terminal
from tests.tiny import tiny_backbone

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

STUDY = """
question: Does training on concepts help a small encoder?
family: concept
backbones: [{backbone}]
seeds: 2
data: {{wordnet: {wordnet}, n_hh: 20, n_id: 20, n_dev: 10}}
train: {{steps: {steps}, batch_size: 8, learning_rate: 1.0e-3, warmup: 2, max_length: 32}}
arms:
  B0: {{train: false}}
  B1: {{hard_negatives: true}}
evaluate: [t2d]
compare:
  - {{claim: H1, treatment: B1, control: B0, metric: t2d/mrr, expect: better}}
resources: {{lanes: 1}}
"""
WIDTHS = (60, 80, 120)
ONE_AFTER_ANOTHER = """
import sys
from orchestration.commands.cli import main
for words in sys.argv[1:]:
    print(f"{main(words.split())} of semray {words}", flush=True)
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `studies/small.yaml` and a study that takes long."""
    folder = tmp_path_factory.mktemp("terminal")
    (folder / "studies").mkdir()
    write_small_wordnet(folder / "wordnet")
    backbone = tiny_backbone(folder / "tiny")
    for name, steps in (("small", 8), ("slow", 100_000)):
        text = STUDY.format(backbone=backbone, wordnet=folder / "wordnet", steps=steps)
        (folder / f"studies/{name}.yaml").write_text(text)
    return folder


def session(place: Path, *words: str, width: int = 80, **given: Any) -> Session:
    own = {"SEMRAY_CACHE": str(place / "cache"), "MLFLOW_TRACKING_URI": ""}
    return on_terminal(words, width, place, environment=own, **given)


@pytest.fixture(scope="module")
def run(place: Path) -> Session:
    """The first run of the study, on 80 columns."""
    return session(place, "run", "small")


def fits(seen: Session) -> bool:
    """Whether no line is wider than the terminal: words that have no blank may be, such as a path."""
    wide = [line for line in (*seen.lines, *seen.frames) if cell_len(line) > seen.width]
    return all(max(map(cell_len, line.split())) > seen.width - 16 for line in wide)


def test_a_run_says_what_it_waits_for_and_ends_with_what_to_type(run: Session) -> None:
    text = "\n".join(run.lines)
    assert run.code == 0, text
    assert fits(run), text
    assert {"starting Ray …", "importing what runs need, in 1 lane …"} <= set(run.frames)
    moving = [frame for frame in run.frames if "━" in frame or "╌" in frame]
    assert moving
    assert all(re.match(r"[━╌]{13}  \d/3 runs  \d+ %", frame) for frame in moving)
    assert all(cell_len(frame) < 80 for frame in run.frames)
    assert not any("tiny" in frame for frame in moving)  # the one backbone goes without saying
    verdict, short, report, after = (
        text.index(part) for part in ("\nH1\n", "in short  ", "report  ", "next    semray why")
    )
    assert verdict < short < report < after
    assert "reports/small/report.html" in text
    assert "semray ui small" in text
    assert "across tasks" not in text


@pytest.mark.parametrize("width", WIDTHS)
def test_plan_and_report_fit_the_terminal(place: Path, run: Session, width: int) -> None:
    asked = ("plan small", "report small", "report small slow", "ls", "report small --methods")
    seen = session(place, *asked, width=width, program=("-c", ONE_AFTER_ANOTHER))
    text = "\n".join(seen.lines)
    assert (seen.code, fits(seen)) == (0, True), text  # of `slow` there is B0's run, which both studies share
    assert [line for line in seen.lines if " of semray " in line] == [f"0 of semray {words}" for words in asked]


def test_mlflow_opens_at_the_study_and_ends_with_ctrl_c(place: Path, run: Session) -> None:
    seen = session(place, "ui", "small", interrupt=("Ctrl-C ends the server",))
    text = "\n".join(seen.lines)
    assert seen.code == 0, text
    assert re.search(r"^http://127\.0\.0\.1:\d+/#/experiments/\d+/runs\?viewStateShareKey=semray&", text, re.M)
    assert "mlflow.db on this machine alone" in text
    missing = session(place, "ui", "slow")
    assert missing.code == 2
    assert "no experiment slow" in "\n".join(missing.lines)


def test_ctrl_c_once_goes_on_and_twice_ends_at_once(place: Path) -> None:
    once = session(place, "run", "slow", interrupt=("sentences/s",))
    text = "\n".join(once.lines)
    assert once.code == 1, text
    assert "stopping: running steps end and are saved; once more to stop now" in once.lines
    assert "next    semray run slow   goes on from here: what is finished is kept" in once.lines
    assert "Traceback" not in text
    twice = session(place, "run", "slow", interrupt=("sentences/s", "stopping: "))
    assert twice.code == 130, "\n".join(twice.lines)
    assert "stopped; finished runs are kept, the same command goes on from here" in twice.lines
    assert Ledger(place / "ledger").failed() == {}


def test_a_terminal_that_closes_ends_a_run_as_ctrl_c_does(place: Path) -> None:
    """The processes of Ray stay until the running step is saved, and the page is written though nobody reads on."""
    page = place / "reports" / "slow" / "report.html"
    page.unlink(missing_ok=True)
    closed = session(place, "run", "slow", "--ledger", "closed", hang_up="sentences/s")
    assert closed.code == 1, "\n".join(closed.lines)
    assert page.exists()
    assert Ledger(place / "closed").failed() == {}
    assert list((place / "closed").glob(".scratch/*/step-*"))


@pytest.mark.parametrize("python", [(), ("-u",)], ids=["", "unbuffered"])
def test_a_pipe_that_nobody_reads_changes_no_result(place: Path, run: Session, python: tuple[str, ...]) -> None:
    page = place / "reports" / "small" / "report.html"
    page.unlink(missing_ok=True)
    assert unread(place, python, "run", "small") == 0
    assert page.exists()
    assert unread(place, python, "gate", "small", "H1") == 1  # two seeds hold no claim


def unread(place: Path, python: tuple[str, ...], *words: str) -> int:
    """The exit code of a command whose words, on both streams, go to a pipe that is closed at its other end."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        command = [sys.executable, *python, "-m", "orchestration", *words]
        own = {**os.environ, "SEMRAY_CACHE": str(place / "cache")}
        return subprocess.run(command, cwd=place, env=own, stdout=writer, stderr=writer).returncode
    finally:
        os.close(writer)
