"""Seeds are added while a claim is open and has a chance; a driver that starts anew comes to the same seeds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from evaluators.metrics.scores import Score
from orchestration.commands.gate import own_p
from orchestration.ledger.ledger import Ledger
from orchestration.plan.described import describe
from orchestration.plan.plan import Facts, Plan, plan
from orchestration.reading.read_study import read_study
from orchestration.report.methods import methods
from orchestration.report.short import in_short
from orchestration.study.run import Run
from orchestration.verdicts.declared import declare
from orchestration.verdicts.find import find, still_open
from orchestration.verdicts.growing import grown, with_another_seed, with_seeds_ahead
from tests.results import finish

STUDY = """\
question: Is there any hope?
family: concept
backbones: [tiny]
seeds: {start: 5, max: 12}
arms:
  A: {hard_negatives: true}
  B: {}
evaluate: [t2d, stress]
compare:
  - {claim: H1, treatment: A, control: B, metric: t2d/recall@10, expect: better, min_effect: 0.05}
"""
OTHER = "  - {claim: H2, treatment: A, control: B, metric: stress/negate/auc, expect: better, min_effect: 0.05}\n"
LEVEL = [0.01, -0.02, 0.015, -0.01, 0.0, 0.01, -0.015, 0.02, -0.005, 0.01, -0.01, 0.0]  # against 0.05: no hope
GAINS = [0.05, -0.02, 0.09, 0.03, 0.06, 0.02, -0.05, 0.07, -0.06, -0.04, 0.0, -0.03]  # hope, and then none


def study_of(folder: Path, text: str) -> tuple[Plan, Ledger]:
    path = folder / "hope.yaml"
    path.write_text(text)
    study, ledger = read_study(path), Ledger(folder / "ledger")
    facts = Facts(
        backbones={"tiny": "s" * 64},
        corpus="c" * 64,
        tasks=dict.fromkeys(study.evaluate, "7" * 16),
        precision="fp32",
    )
    planned = plan(study, facts)
    declare(study, planned.runs, ledger)
    return planned, ledger


def train(ledger: Ledger, runs: Iterable[Run]) -> None:
    for run in runs:
        assert run.seed is not None
        recall, stress = (LEVEL[run.seed], GAINS[run.seed]) if run.arm == "A" else (0.0, 0.0)
        base = 0.5 + 0.01 * run.seed
        scores = [
            Score(metric="t2d/recall@10", value=base + recall),
            Score(metric="stress/negate/auc", value=base + stress),
        ]
        finish(ledger, run, scores)


def run_all(planned: Plan, ledger: Ledger, until: int = 99, lanes: int = 1) -> Plan:
    """The loop of `semray run`; it dies before its seed `until`."""
    while True:
        if any(run.id not in ledger.ids() for run in planned.runs):
            ahead = with_seeds_ahead(planned, lanes)
            train(ledger, [run for run in ahead.runs if run.id not in ledger.ids()])
        wider = with_another_seed(planned, find(planned.study, planned.runs, ledger))
        if wider is None or wider.runs[-1].seed == until:
            return planned
        planned = wider


def test_a_claim_without_hope_asks_for_no_further_seed(tmp_path: Path) -> None:
    planned, ledger = study_of(tmp_path, STUDY)
    done = run_all(planned, ledger)
    found = find(done.study, done.runs, ledger)
    (one,) = found.findings
    assert one.verdict.n_seeds == 5
    assert one.verdict.words.startswith("undecided: stopped for futility: were the true difference 0.05")
    assert "all 12 seeds" in one.verdict.sentence
    assert still_open(found) == []
    assert grown(replace(planned, finished=ledger.entries()), ledger).runs == done.runs


def test_the_methods_tell_of_looks_and_of_claims_that_were_given_up(tmp_path: Path) -> None:
    """B stands beside both arms: it has all the seeds, A and C those that their own claims asked for."""
    more = "  - {claim: H2, treatment: C, control: B, metric: stress/negate/auc, expect: better}\n"
    planned, ledger = study_of(tmp_path, STUDY.replace("  B: {}\n", "  B: {}\n  C: {steps: 77}\n") + more)
    done = run_all(planned, ledger, until=8)
    said = methods(find(done.study, done.runs, ledger))
    assert "The trained recipes (A, B and C) were run with 5 to 8 of 8 random seeds (0 to 7); " in said
    assert "tested with the t e-process test at a level of 0.05. Seeds were added to the recipes of open " in said
    assert "intervals hold at every look. H1 was given up for futility." in said


def test_without_a_smallest_effect_all_seeds_are_run(tmp_path: Path) -> None:
    planned, ledger = study_of(tmp_path, STUDY.replace(", min_effect: 0.05", ""))
    assert {run.seed for run in run_all(planned, ledger).runs} == set(range(12))


def test_a_gain_is_open_until_it_is_due_to_its_signal(tmp_path: Path) -> None:
    """A is far better than B, and level with C, the arm that lacks the signal alone."""
    text = STUDY.replace("  B: {}\n", "  B: {}\n  C: {steps: 77}\n")
    text = text.replace("min_effect: 0.05", "matched_control: C, signal: labels")
    planned, ledger = study_of(tmp_path, text)
    for run in planned.runs:
        assert run.seed is not None
        gain = {"A": 0.2 + LEVEL[run.seed], "B": 0.0, "C": 0.2}[run.arm]
        values = {"t2d/recall@10": 0.5 + gain, "stress/negate/auc": 0.5}
        finish(ledger, run, [Score(metric=metric, value=value) for metric, value in values.items()])
    found = find(planned.study, planned.runs, ledger)
    (one,) = found.findings
    assert one.verdict.words == "better than B, not shown to be due to labels"
    assert still_open(found) == [one]
    assert in_short(found) == "in short  0 of 1 claims hold: H1 cannot be told from these seeds and items"
    assert own_p(one) == one.verdict.signal_p != one.verdict.p


def test_what_waits_for_runs_is_not_told_of_as_too_few_seeds_or_items(tmp_path: Path) -> None:
    planned, ledger = study_of(tmp_path, STUDY.replace("{start: 4, max: 12}", "4"))
    for run in planned.runs[:2]:
        finish(ledger, run, [Score(metric="t2d/recall@10", value=0.5)])
    found = find(planned.study, planned.runs, ledger)
    assert in_short(found) == "in short  0 of 1 claims hold: H1 cannot be told yet: runs are missing"


@pytest.mark.parametrize(("lost", "asks"), [((1,), True), ((1, 3), False), (range(12), False)])
def test_no_seed_is_added_where_an_arm_lacks_runs(tmp_path: Path, lost: Sequence[int], asks: bool) -> None:
    """More pairs do not make two failures of one arm good. One failure of five may pass."""
    planned, ledger = study_of(tmp_path, STUDY)
    train(ledger, [run for run in planned.runs if run.arm != "A" or run.seed not in lost])
    found = find(planned.study, planned.runs, ledger)
    assert (with_another_seed(planned, found) is not None) == asks == (still_open(found) != [])


def test_an_open_part_asks_for_no_seed_where_its_joint_claim_holds(tmp_path: Path) -> None:
    """At least one of two holds by the first alone; while all are asked for, the second keeps it open."""
    parts = [line.replace("  - {claim: H", "{claim: P") for line in (STUDY.splitlines()[-1], OTHER.rstrip())]
    for least, is_open in ((1, False), (2, True)):
        joint = f"  - {{claim: J, at_least: {least}, all: [{', '.join(parts)}]}}\n"
        (folder := tmp_path / str(least)).mkdir()
        planned, ledger = study_of(folder, STUDY.rpartition("  - ")[0] + joint)
        for run in planned.runs:
            assert run.seed is not None
            recall, stress = (0.3 + LEVEL[run.seed], GAINS[run.seed]) if run.arm == "A" else (0.0, 0.0)
            values = {"t2d/recall@10": 0.5 + recall, "stress/negate/auc": 0.5 + stress}
            finish(ledger, run, [Score(metric=metric, value=value) for metric, value in values.items()])
        found = find(planned.study, planned.runs, ledger)
        told = [(one.verdict.claim, one.verdict.verdict) for one in found.findings]
        assert told == [("J", "undecided" if is_open else "holds"), ("P1", "better"), ("P2", "undecided")]
        assert [one.verdict.claim for one in still_open(found)] == (["J"] if is_open else [])
        assert (with_another_seed(planned, found) is not None) == is_open


def test_no_seed_is_added_where_seeds_contradict_each_other(tmp_path: Path) -> None:
    """An intersection of intervals that is empty stays so."""
    planned, ledger = study_of(tmp_path, STUDY.replace("start: 5, max: 12", "start: 19, max: 24"))
    for run in planned.runs:
        assert run.seed is not None
        gain = LEVEL[run.seed % 12] / 10 + (0.1 if run.seed < 7 else -0.1) if run.arm == "A" else 0.0
        values = {"t2d/recall@10": 0.5 + gain, "stress/negate/auc": 0.5}
        finish(ledger, run, [Score(metric=metric, value=value) for metric, value in values.items()])
    found = find(planned.study, planned.runs, ledger)
    assert found.findings[0].verdict.words.startswith("undecided: later seeds contradict earlier ones")
    assert still_open(found) == []


@pytest.mark.parametrize(("expect", "shown"), [("better", False), ("worse", True)])
def test_a_budget_asks_for_the_way_that_was_shown(tmp_path: Path, expect: str, shown: bool) -> None:
    """Six seeds show a loss; those after them take the mean to a gain, and not the verdict."""
    text = STUDY.replace("start: 5, max: 12", "start: 13, max: 20")
    planned, ledger = study_of(tmp_path, text.replace("expect: better, min_effect: 0.05", f"expect: {expect}"))
    for run in planned.runs:
        assert run.seed is not None
        gain = (-0.1 + LEVEL[run.seed % 12] if run.seed < 6 else 0.11 + 4 * LEVEL[run.seed % 12]) * (
            run.arm == "A"
        )
        values = {"t2d/recall@10": 0.5 + gain, "stress/negate/auc": 0.5}
        finish(ledger, run, [Score(metric=metric, value=value) for metric, value in values.items()])
    (one,) = find(planned.study, planned.runs, ledger).findings
    assert one.verdict.verdict == "worse"
    assert (one.verdict.delta_mean or 0) > 0
    assert (own_p(one) < 0.05) == shown == one.verdict.as_expected


@pytest.mark.parametrize("until", [5, 6])
def test_a_driver_that_was_killed_comes_to_the_same_seeds(tmp_path: Path, until: int) -> None:
    """A claim with hope keeps the arms growing, and the one without is judged again at every look."""
    planned, ledger = study_of(tmp_path, STUDY + OTHER)
    whole = run_all(planned, ledger)
    expected = find(whole.study, whole.runs, ledger)
    assert len({run.seed for run in whole.runs}) > 5
    (tmp_path / "other").mkdir()
    again, other = study_of(tmp_path / "other", STUDY + OTHER)
    run_all(again, other, until)
    resumed = run_all(again, other)
    assert [run.id for run in resumed.runs] == [run.id for run in whole.runs]
    told = [one.verdict for one in find(resumed.study, resumed.runs, other).findings]
    assert told == [one.verdict for one in expected.findings]


@pytest.mark.parametrize("lanes", [5, 64])
def test_seeds_trained_ahead_change_no_verdict(tmp_path: Path, lanes: int) -> None:
    """Two arms: five lanes take two seeds at once, 64 all that are left. Each is judged in its turn, as ever."""
    planned, ledger = study_of(tmp_path, STUDY + OTHER)
    whole = run_all(planned, ledger)
    expected = find(whole.study, whole.runs, ledger)
    (tmp_path / "other").mkdir()
    again, other = study_of(tmp_path / "other", STUDY + OTHER)
    done = run_all(again, other, lanes=lanes)
    assert [run.id for run in done.runs] == [run.id for run in whole.runs]
    told = [one.verdict for one in find(done.study, done.runs, other).findings]
    assert told == [one.verdict for one in expected.findings]
    assert len({run.seed for run in whole.runs}) < 12
    trained = {other.training(entry).run.seed for entry in other.ids()}
    assert trained == set(range(12 if lanes == 64 else 7))
    assert grown(replace(again, finished=other.entries()), other).runs == done.runs


def test_only_arms_of_open_claims_are_trained_ahead(tmp_path: Path) -> None:
    """C is shown to be better by its first seeds; A and B go on, on six lanes with three seeds at once."""
    shown = "  - {claim: H3, treatment: C, control: B, metric: t2d/recall@10, expect: better}\n"
    text = STUDY.replace("  B: {}\n", "  B: {}\n  C: {steps: 77}\n").rpartition("  - {claim")[0] + OTHER + shown
    planned, ledger = study_of(tmp_path, text)
    for run in planned.runs:
        assert run.seed is not None
        recall, stress = {"A": (0.0, GAINS[run.seed]), "B": (0.0, 0.0), "C": (0.3 + LEVEL[run.seed], 0.0)}[run.arm]
        values = {"t2d/recall@10": 0.5 + recall, "stress/negate/auc": 0.5 + stress}
        finish(ledger, run, [Score(metric=metric, value=value) for metric, value in values.items()])
    found = find(planned.study, planned.runs, ledger)
    assert [one.verdict.claim for one in still_open(found)] == ["H2"]
    wider = with_another_seed(planned, found)
    assert wider is not None
    ahead = with_seeds_ahead(wider, 6).runs[len(planned.runs) :]
    assert {(run.arm, run.seed) for run in ahead} == {(arm, seed) for arm in "AB" for seed in (5, 6, 7)}
    assert with_seeds_ahead(planned, 6) == planned
    assert grown(replace(planned, finished=ledger.entries()), ledger).runs == planned.runs
    finish(ledger, wider.runs[-1], [Score(metric=metric, value=0.5) for metric in values])
    begun = grown(replace(planned, finished=ledger.entries()), ledger)
    assert begun.runs == wider.runs  # one run of the next seed is there, and the other is yet to come


def test_the_plan_says_which_claims_may_stop(tmp_path: Path) -> None:
    planned, _ = study_of(tmp_path, STUDY)
    assert (
        "stops   H1: for futility, from 5 seeds on, where the chance that 12 would show a true difference of 0.05 is "
        "below 10 %" in describe(planned)
    )
    without, _ = study_of(tmp_path, STUDY.replace("{start: 5, max: 12}", "8"))
    assert "futility" not in describe(without)
