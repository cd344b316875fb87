"""A family more is a file and a line; a task more is a line, and trains nothing that was trained before."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestration.families import registry
from orchestration.lanes.in_this_process import carry_out
from orchestration.ledger.ledger import Ledger
from orchestration.plan.held import planned
from orchestration.plan.plan import Plan
from orchestration.reading.read_study import read_study
from orchestration.verdicts.find import find
from tests.tiny import tiny_backbone

STUDY = """\
question: Does the length of a word help?
family: toy
backbones: [PLACE/tiny]
seeds: 3
arms: {still: {train: false}, quick: {}, quicker: {learning_rate: 0.3}}
evaluate: [length]
compare:
  - {claim: T1, treatment: quicker, control: quick, metric: length/mean, expect: better}
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setitem(registry.FAMILIES, "toy", "tests.toy_family")
    tiny_backbone(tmp_path / "tiny")
    return tmp_path


def plan_of(place: Path, name: str, evaluate: str = "[length]") -> Plan:
    text = STUDY.replace("PLACE", str(place)).replace("[length]", evaluate)
    (place / f"{name}.yaml").write_text(text)
    return planned(read_study(place / f"{name}.yaml"), Ledger(place / "ledger"))


def test_a_family_of_ones_own_runs_to_a_verdict(place: Path) -> None:
    ledger, plan = Ledger(place / "ledger"), plan_of(place, "toys")
    assert carry_out(plan.left, ledger) == 6
    (finding,) = find(plan.study, plan.runs, ledger).findings
    assert finding.verdict.delta_mean == pytest.approx(0.2 * 3 * (7 / 3) / 100)
    assert plan_of(place, "toys").left == ()


def test_a_study_with_a_task_more_trains_nothing_and_keeps_every_figure(place: Path) -> None:
    ledger, first = Ledger(place / "ledger"), plan_of(place, "toys")
    carry_out(first.left, ledger)
    before = {run.id: ledger.record(run).metrics["length/mean"].value for run in first.runs}
    more = plan_of(place, "more", "[length, again]")
    assert len(more.to_score) == len(more.left) == 7
    assert carry_out(more.left, ledger) == 0
    assert plan_of(place, "more", "[length, again]").left == ()
    after = {run.id: ledger.record(run).metrics for run in more.runs}
    assert {run_id: metrics["length/mean"].value for run_id, metrics in after.items()} == before
    assert all(metrics["again/mean"].value == before[run_id] for run_id, metrics in after.items())


def test_a_task_more_trains_again_where_the_model_is_gone(place: Path) -> None:
    ledger, first = Ledger(place / "ledger"), plan_of(place, "toys")
    carry_out(first.left, ledger)
    for run in first.runs:
        ledger.drop_model(run)
    assert plan_of(place, "toys").left == ()  # what was scored stays scored
    assert carry_out(plan_of(place, "more", "[length, again]").left, ledger) == 6
    assert plan_of(place, "more", "[length, again]").left == ()
