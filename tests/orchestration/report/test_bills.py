"""What a verdict costs: in the ledger, in the plan and in the report; and that nothing rests on it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from evaluators.metrics.scores import Score
from orchestration.commands.cli import main
from orchestration.ledger.ledger import Ledger
from orchestration.plan.bill import Bill, bill_by_claim, cost_words, total
from orchestration.plan.plan import Facts, plan
from orchestration.reading.read_study import read_study
from orchestration.report.bills import bill_caption, bill_rows
from orchestration.report.forms import as_json, latex, markdown, table
from orchestration.report.html import html
from orchestration.report.plots import every
from tests.finished_study import CLAIMS, findings_of, make_run
from tests.results import finish, put, results

HOUR = {"seconds": 3600.0, "gpu_hours": 0.5, "joules": 1.8e6}
FACTS = Facts(backbones={"small": "s" * 8}, corpus="c" * 8, tasks={"t2d": "r"}, precision="fp32")
STUDY = """\
question: Which?
family: concept
backbones: [small]
seeds: 4
arms:
  B0: {train: false}
  B1: {hard_negatives: true}
  B1-noHN: {hard_negatives: false}
evaluate: [t2d]
compare:
  - {claim: H1, treatment: B1, control: B0, metric: t2d/recall@10, expect: better}
  - {claim: H2, treatment: B1, control: B1-noHN, metric: t2d/recall@10, expect: better}
"""


def test_the_ledger_keeps_it_beside_the_figures(tmp_path: Path) -> None:
    ledger, run = Ledger(tmp_path), make_run("B1", 0)
    left = results(run, [Score(metric=f"{task}/x", value=1.0) for task in run.tasks])
    put(ledger, run, (replace(result, cost={"seconds": 2.0, "joules": 8.0}) for result in left))
    assert ledger.record(run).cost == {"seconds": 8.0, "joules": 32.0}
    other = make_run("B1", 1)
    finish(ledger, other)
    assert ledger.record(other).cost == {}


def test_runs_that_tell_no_energy_give_no_sum_of_it() -> None:
    assert total([HOUR, HOUR]) == Bill(runs=2, hours=2, gpu_hours=1, kwh=1)
    assert total([HOUR, {"seconds": 1800.0}]) == Bill(runs=2, hours=1.5, gpu_hours=0.5, kwh=None)
    assert total([HOUR, HOUR]).words(2.0) == "2 runs, 2 h, 1 GPU-hours, 1 kWh, 2.00 at 2 an hour"
    assert total([{"seconds": 1800.0}]).words(2.0) == "1 run, 0.5 h, 1.00 at 2 an hour"
    assert total([HOUR] * 2417).words() == "2417 runs, 2,417 h, 1,208 GPU-hours, 1,208 kWh"
    card = {"seconds": 1800.0, "gpu_joules": 1.8e6}
    assert total([card, card]).words() == "2 runs, 1 h, 1 kWh of GPUs alone"
    assert total([card, HOUR]).words() == "2 runs, 1.5 h, 0.5 GPU-hours"


def test_a_plan_estimates_what_each_claim_will_have_cost(tmp_path: Path) -> None:
    """B0 took half an hour, two runs of B1 took one and three: any other of B1, and of another trained arm, two."""
    (tmp_path / "s.yaml").write_text(STUDY)
    made = plan(read_study(tmp_path / "s.yaml"), FACTS)
    assert bill_by_claim(made) == {}
    (frozen,) = (run for run in made.runs if run.arm == "B0")
    first, second, *_ = (run for run in made.runs if run.arm == "B1")
    took = ((frozen, 0.5), (first, 1.0), (second, 3.0))
    costs = {run.id: {name: hours * value for name, value in HOUR.items()} for run, hours in took}
    finished = frozenset(entry for run, _ in took for entry in run.entries)
    known = replace(made, finished=finished, facts=replace(FACTS, costs=costs))
    assert {claim: (cost.runs, cost.hours) for claim, cost in bill_by_claim(known).items()} == {
        "H1": (5, 0.5 + 1 + 3 + 2 * 2),
        "H2": (8, 1 + 3 + 2 * 2 + 4 * 2),
    }
    untrained = replace(known, facts=replace(FACTS, costs={frozen.id: HOUR}))
    assert bill_by_claim(untrained) == {}  # which tells nothing of what training costs


def test_a_plan_has_a_line_for_a_price_at_every_stage(tmp_path: Path) -> None:
    """Nothing known, time foretold, one run done, all done, done before costs were recorded."""
    (tmp_path / "s.yaml").write_text(STUDY)
    new = plan(read_study(tmp_path / "s.yaml"), FACTS)
    assert cost_words(new, None, 36000.0) == []
    assert cost_words(new, 2.0, None) == ["unknown: nothing tells yet how long the runs that are left take"]
    foretold = "of what is left, by the time foretold: about 9 runs, 10 h, 20.00 at 2 an hour"
    assert cost_words(new, 2.0, 36000.0) == [foretold]
    resources = replace(new.study.resources, gpus_per_run=0.5)
    on_cards = replace(new, study=replace(new.study, resources=resources))
    assert cost_words(on_cards, 2.0, 36000.0)[0].endswith("10 h, 5 GPU-hours, 10.00 at 2 an hour")
    first = next(run for run in new.runs if run.arm == "B1")
    begun = replace(new, finished=frozenset(first.entries), facts=replace(FACTS, costs={first.id: HOUR}))
    assert cost_words(begun, 2.0, None)[0] == "H1: about 5 runs, 5 h, 2.5 GPU-hours, 2.5 kWh, 5.00 at 2 an hour"
    done = replace(new, finished=frozenset(entry for run in new.runs for entry in run.entries))
    known = replace(done, facts=replace(FACTS, costs={run.id: HOUR for run in new.runs}))
    assert cost_words(known, 2.0, None)[0] == "H1: 5 runs, 5 h, 2.5 GPU-hours, 2.5 kWh, 5.00 at 2 an hour"
    claimless = replace(known, study=replace(known.study, compare=()))
    assert cost_words(claimless, 2.0, None) == [
        "of all runs: 9 runs, 9 h, 4.5 GPU-hours, 4.5 kWh, 9.00 at 2 an hour"
    ]
    (line,) = cost_words(done, 2.0, None)
    assert line.startswith("unknown: 9 of 9 finished runs are from before")


def test_a_report_shows_it_and_no_verdict_rests_on_it(tmp_path: Path) -> None:
    plain = findings_of(Ledger(tmp_path))
    costly = replace(plain, runs=tuple(replace(run, cost=HOUR) for run in plain.runs), price=3.0)
    assert bill_rows(plain) == []
    assert "GPU-hours" not in table(plain)
    (row, *_) = bill_rows(costly)
    assert row[0] == plain.findings[0].verdict.claim
    assert row[5] == f"{3.0 * int(row[1]) * 0.5:.2f}"
    for text in (table(costly), markdown(costly), latex(costly), html(costly, every(costly))):
        assert "GPU-hours" in text
        assert row[5] in text
    assert as_json(costly) == as_json(plain)


def test_a_bill_of_weeks_is_told_alike_by_plan_and_report(tmp_path: Path) -> None:
    """Eight seeds and an untrained control, each of 123.4 hours."""
    plain = findings_of(Ledger(tmp_path), 8, CLAIMS[:1])
    week = {"seconds": 123.4 * 3600, "gpu_hours": 123.4, "joules": 123.4 * 3.6e6}
    (row,) = bill_rows(replace(plain, runs=tuple(replace(run, cost=week) for run in plain.runs)))
    assert row[1:5] == ("9", "1,111", "1,111", "1,111")
    assert total([week] * 9).words() == "9 runs, 1,111 h, 1,111 GPU-hours, 1,111 kWh"


def test_a_bill_says_of_which_backbone_it_is_and_how_many_runs_told(tmp_path: Path) -> None:
    """H1 on two backbones, of which the large one took ten times as long; one of four runs there recorded nothing."""
    findings = findings_of(Ledger(tmp_path), 3, CLAIMS[:1])
    (first,) = findings.findings
    small = tuple(replace(run, cost=HOUR) for run in findings.runs)
    large = tuple(
        replace(run, backbone="large", cost={} if run.seed == 2 else {"seconds": 36000.0}) for run in findings.runs
    )
    there = tuple((arm, "large") for arm, _ in first.places)
    second = replace(first, verdict=replace(first.verdict, backbone="large"), places=there)
    rows = bill_rows(replace(findings, runs=small + large, findings=(first, second)))
    assert [row[:3] for row in rows] == [("H1 on tiny", "4", "4"), ("H1 on large", "3 of 4", "30")]
    assert ["2 of 4" in bill_caption(told) for told in (rows, rows[:1])] == [True, False]


@pytest.mark.parametrize("price", ["0", "-1", "nan", "much"])
def test_a_price_is_a_number_above_0(price: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["plan", "x.yaml", "--price", price])
    assert ended.value.code == 2
    assert "accepted: a number above 0" in capsys.readouterr().err
