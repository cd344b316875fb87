"""`semray reproducible`: whether a seed fixes an arm is found by running it twice, and the report and passport say it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchestration.commands.cli import main
from orchestration.lanes.cluster import connected
from orchestration.ledger.ledger import Ledger
from orchestration.plan.held import planned
from orchestration.reading.read_study import read_study
from orchestration.verdicts.find import find
from orchestration.verdicts.passport import verify, write_passport

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

SCRIPT = """
import os, random, sys
seed, out, how = sys.argv[1:]
draws = random.Random() if how == "loose" else random.Random(int(seed))
with open(out + "/scores.csv", "w") as file:
    file.write("metric,item,score\\n")
    for item in range(8):
        file.write(f"accuracy,{item},{draws.random()}\\n")
"""
STUDY = """
question: Does a seed fix it?
family: command
seeds: [5, 6]
data: {watch: [train.py], metrics: {accuracy: higher}}
train: {run: [python, train.py, "{seed}", "{out}", "{how}"]}
arms: {steady: {how: steady}, loose: {how: loose}}
evaluate: [scores]
compare:
  - {claim: H1, treatment: steady, control: loose, metric: scores/accuracy, expect: better}
resources: {retries: 0}
"""


def test_an_arm_is_run_twice_and_the_report_says_what_came_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "mine.yaml").write_text(STUDY)
    with connected(2):
        assert main(["reproducible", "mine.yaml", "steady"]) == 0
        assert "steady, seed 5, run twice: the same bits" in capsys.readouterr().out
        assert main(["reproducible", "mine.yaml", "loose", "--seed", "6", "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert (said["outcome"], said["metric"], said["label"]) == ("different", "scores/accuracy", "loose, seed 6")
    ledger, study = Ledger("ledger"), read_study("mine.yaml")
    plan = planned(study, ledger)
    assert plan.done == ()  # a trial is no finished run
    assert not list(Path("ledger").glob(".trial-*"))
    findings = find(study, plan.runs, ledger)
    assert [note.partition(":")[0] for note in findings.notes] == ["repeat", "repeat"]
    assert "loose, seed 6, run twice, is NOT reproducible: scores/accuracy differs by" in findings.notes[1]
    write_passport(tmp_path / "passport.zip", plan, ledger, findings)
    assert verify(tmp_path / "passport.zip").differences == ()


@pytest.mark.parametrize(
    ("words", "said"),
    [(["nobody"], "no arm nobody\n  accepted: steady, loose"), (["loose", "--seed", "9"], "accepted: 5, 6")],
)
def test_what_is_refused(
    words: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "mine.yaml").write_text(STUDY)
    assert main(["reproducible", "mine.yaml", *words]) == 2
    assert said in capsys.readouterr().err
