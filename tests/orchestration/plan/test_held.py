"""Scores of a task that was raised since: the ledger that holds them still reports, and says so; a run scores anew."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from orchestration.commands.cli import main
from orchestration.ledger.ledger import Ledger
from orchestration.plan import held
from orchestration.plan.described import TimeEstimate, estimate
from orchestration.plan.held import as_scored, facts_where, planned, with_times
from orchestration.plan.plan import Facts, Plan, extend, gather_facts, plan
from orchestration.reading.read_study import read_study
from orchestration.study.run import Result, Run, Trained, former_id
from orchestration.study.study import Study
from tests.corpora.conftest import write_small_wordnet
from tests.finished_study import fill, make_results
from tests.orchestration.plan.test_kept_models import write_model
from tests.results import put
from tests.tiny import tiny_backbone

STUDY = """\
question: By which version?
family: concept
backbones: [{backbone}]
seeds: 2
data: {{wordnet: {wordnet}, n_hh: 20, n_id: 20, n_dev: 10}}
arms:
  B0: {{train: false}}
  B1: {{hard_negatives: true}}
evaluate: [t2d, stress, geometry]
compare:
  - {{claim: H1, treatment: B1, control: B0, metric: t2d/recall@10, expect: better}}
"""
SAID = "scored by an earlier version of the task: t2d; `semray run` scores anew"


@pytest.fixture
def study(tmp_path: Path) -> Study:
    write_small_wordnet(tmp_path / "wordnet")
    path = tmp_path / "versions.yaml"
    path.write_text(STUDY.format(backbone=tiny_backbone(tmp_path / "tiny"), wordnet=tmp_path / "wordnet"))
    return read_study(path)


def test_a_ledger_is_read_as_it_was_scored(study: Study, capsys: pytest.CaptureFixture[str]) -> None:
    """t2d is at version 2: equal cosines tie. Entries of version 1 are reported, and never beside one of 2."""
    ledger, facts = Ledger(study.path.parent / "ledger"), gather_facts(study)
    assert facts.before is not None
    raised = {name for name in facts.tasks if facts.tasks[name] != facts.before.tasks[name]}
    assert raised == {"t2d"}
    fill(ledger, plan(study, facts.before).runs)
    words = [str(study.path), "--ledger", ledger.url]

    asked, before = as_scored(study, ledger)
    assert (len(asked.done), asked.left, before) == (3, (), ("t2d",))
    to_run = planned(study, ledger)
    assert (len(to_run.done), len(to_run.left)) == (0, 3)
    assert {task for job in to_run.jobs for run in job.runs for task in run.tasks} == {"t2d"}  # the rest is kept

    out = study.path.parent / "out"
    assert main(["report", *words, "--out", str(out), "--passport", str(out / "p")]) == 0
    assert f"note     {SAID}" in capsys.readouterr().out
    assert SAID.replace("`", "") in (out / "report.md").read_text().replace("\\", "").replace("`", "")
    assert main(["verify", str(out / "p")]) == 0
    for looking in (["status", *words], ["why", str(study.path), "H1", "--ledger", ledger.url]):
        assert main(looking) == 0
        assert SAID in capsys.readouterr().err

    fill(ledger, plan(study, facts).runs[:2])  # one arm by the present version, and a run of the other
    assert as_scored(study, ledger)[1] == ("t2d",)
    fill(ledger, plan(study, facts).runs)
    asked, before = as_scored(study, ledger)
    assert (asked.left, before, planned(study, ledger).left) == ((), (), ())
    assert main(["report", *words, "--out", str(out)]) == 0
    assert "scored by an earlier version" not in capsys.readouterr().out


def test_ledgers_of_before_are_of_the_first_version(study: Study) -> None:
    """Where training and scores are one entry, its scores are of version 1: no study of version 2 takes them.

    A study all of whose tasks are at version 1 does.
    """
    facts = gather_facts(study)
    assert facts.before is not None
    assert (facts.former, bool(facts.before.former)) == ("", True)
    assert all(run.former == "" for run in plan(study, facts).runs)
    others = replace(study, evaluate=("stress", "geometry"))
    of_others = gather_facts(others)
    assert of_others.before is None
    for one, known in ((study, facts.before), (others, of_others)):
        for run in plan(one, known).runs:
            whole = {**run.to_dict(), "corpus_fingerprint": known.former, "evaluate": list(one.evaluate)}
            assert run.former == former_id(whole)


def test_a_ledger_of_another_precision_is_read_and_gone_on_with(study: Study) -> None:
    """Of a cluster whose machines compute in bf16, say. Where it holds as much of both, this machine's own counts."""
    ledger, facts = Ledger(study.path.parent / "ledger"), gather_facts(study)
    other = replace(facts, precision="fp32" if facts.precision == "bf16" else "bf16")
    mine, others = plan(study, facts).runs, plan(study, other).runs
    fill(ledger, others[:2])
    for found in (planned(study, ledger), as_scored(study, ledger)[0]):
        assert (found.runs, found.done, found.left) == (others, others[:2], others[2:])
    fill(ledger, mine[:2])
    assert planned(study, ledger).runs == mine
    assert facts_where(study, lambda one: one.precision == other.precision, as_scored=False) == other
    assert facts_where(study, lambda one: 0, as_scored=False) == facts


def test_what_a_plan_knows_of_seeds_in_reserve_and_of_lost_models(study: Study) -> None:
    """A study that grew goes on from what it has; a task more trains again whatever kept no model."""
    text = study.path.read_text()
    study.path.write_text(text.replace("seeds: 2", "seeds: {start: 2, max: 4}"))
    grown, ledger = read_study(study.path), Ledger(study.path.parent / "ledger")
    trained = [("B1", grown.backbones[0])]
    runs = extend(plan(grown, gather_facts(grown)), (2, 3), trained).runs
    fill(ledger, runs)
    assert extend(planned(grown, ledger), (2, 3), trained).left == ()
    study.path.write_text(text.replace("geometry]", "geometry, d2t]"))
    more = with_times(planned(read_study(study.path), ledger), ledger)
    assert more.to_score == more.runs
    assert more.gone == {run.id for run in runs if run.seed in (0, 1)}


def test_a_run_that_is_only_scored_is_timed_as_scoring(study: Study) -> None:
    """A run trained for 3,600 s beside 60 s for its data, each of three tasks took 10 s. Of the other runs one is
    trained and lacks two tasks, one is trained and lost its model."""
    ledger = Ledger(study.path.parent / "ledger")
    study = replace(study, seeds=replace(study.seeds, initial=(0, 1, 2)))
    trained = [run for run in planned(study, ledger).runs if run.seed is not None]

    def results(run: Run) -> list[Result]:
        training, *scores = make_results(run)
        assert isinstance(training, Trained)
        took = {"data": 60.0, "train": 3600.0}
        return [
            replace(training, seconds=took, save_model=write_model),
            *(replace(one, seconds={"evaluate": 10.0}) for one in scores),
        ]

    whole, scored, lost = trained
    put(ledger, whole, results(whole))
    put(ledger, scored, results(scored)[:2])
    put(ledger, lost, results(lost)[:1])
    ledger.drop_model(lost)
    asked = with_times(planned(study, ledger), ledger)
    assert asked.only_scored == {scored.id}
    told = estimate(replace(asked, runs=tuple(trained)))
    assert told == TimeEstimate(seconds=2 * 10.0 + 3690.0, finished=1)
    silent = replace(asked.facts, scoring={whole.id: 0.0})  # a family that does not time its scoring
    told = estimate(replace(asked, runs=tuple(trained), facts=silent))
    assert told == TimeEstimate(seconds=2 * 3690.0, finished=1)


def test_a_finished_study_is_resolved_once(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the likeliest reading all of it is there; only else is it held against the other three."""
    resolved: list[Facts] = []

    def counted(study: Study, facts: Facts) -> Plan:
        resolved.append(facts)
        return plan(study, facts)

    monkeypatch.setattr(held, "make_plan", counted)
    ledger = Ledger(study.path.parent / "ledger")
    as_scored(study, ledger)
    assert len(resolved) == 4
    fill(ledger, planned(study, ledger).runs)
    resolved.clear()
    assert as_scored(study, ledger)[0].left == ()
    assert len(resolved) == 1


def test_with_a_price_a_plan_says_what_a_study_costs_or_why_it_cannot(
    study: Study, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a new study without a like, of one finished before costs were recorded, of one that records 1,200 s a run."""

    def costs(ledger: Ledger) -> list[str]:
        assert main(["plan", str(study.path), "--ledger", ledger.url, "--price", "2"]) == 0
        return [line for line in capsys.readouterr().out.splitlines() if line.startswith("cost")]

    silent, telling = Ledger(tmp_path / "silent"), Ledger(tmp_path / "telling")
    assert costs(silent) == ["cost    unknown: nothing tells yet how long the runs that are left take"]
    runs = planned(study, silent).runs
    fill(silent, runs)
    assert costs(silent)[0].startswith("cost    unknown: 3 of 3 finished runs are from before")
    for run in runs:
        training, *scores = make_results(run)
        put(telling, run, [replace(training, cost={"seconds": 1200.0}), *scores])
    assert costs(telling) == ["cost    H1: 3 runs, 1 h, 2.00 at 2 an hour"]
