"""Runs of a study that train as a stack: in a lane, stopped and gone on with, each recorded for itself."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from corpora.store.errors import CorpusError
from orchestration.families import encoders
from orchestration.families.registry import family
from orchestration.lanes.lane import Lane, Lease, execute
from orchestration.ledger.ledger import Ledger
from orchestration.plan.plan import Plan, gather_facts, plan, prepare
from orchestration.reading.read_study import read_study
from orchestration.study.errors import StudyError
from orchestration.study.run import Body, Job, Result, Run, RunsFailed, Trained
from semray.testing import outcome
from tests.corpora.conftest import write_small_wordnet
from tests.lanes import lane_here
from tests.tiny import tiny_backbone
from trainers.engine.world import World

STUDY = """\
question: Do they train as one?
family: concept
backbones: [{backbone}]
seeds: 2
data: {{wordnet: {wordnet}, n_hh: 20, n_id: 20, n_dev: 10}}
train: {{steps: 6, batch_size: 4, warmup: 1, max_length: 32{train}}}
arms: {{B0: {{train: false}}, B1: {{hard_negatives: true}}, B2: {{temperature: 0.1}}}}
evaluate: [t2d]
resources: {{runs_per_stack: 4, precision: fp32}}
"""


def planned(place: Path, train: str = "") -> Plan:
    if not (place / "tiny").exists():
        write_small_wordnet(place / "wordnet")
        tiny_backbone(place / "tiny")
    path = place / "study.yaml"
    path.write_text(STUDY.format(backbone=place / "tiny", wordnet=place / "wordnet", train=train))
    study = read_study(path)
    found = plan(study, gather_facts(study))
    prepare(study)
    return found


def lane(ledger: Ledger, body: Body) -> Lane:
    return lane_here(body, ledger.url, checkpoint_every=2)


def stopped(job: Job, world: World) -> Iterator[Result]:
    """Every run is asked to stop after its third step."""
    asked = count()
    yield from execute(job, replace(world, stopping=lambda: next(asked) >= 2 * len(job.runs)))


def test_a_stack_is_stopped_goes_on_and_leaves_what_each_run_leaves_alone(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path / "ledger"))
    (_, job), seen = planned(tmp_path).jobs, []
    assert [(run.arm, run.seed) for run in job.runs] == [(arm, seed) for seed in (0, 1) for arm in ("B1", "B2")]

    def watched(job: Job, world: World) -> Iterator[Result]:
        yield from execute(job, replace(world, report=lambda progress: seen.append(progress.step)))

    def lease() -> Lease:
        return Lease(job=job, attempts={run.id: ledger.lease(run.id) for run in job.runs})

    with ledger.drive("study"):
        first = lane(ledger, stopped).work(lease())
        assert first.problem is not None
        assert {first.problem.of(run.id).message for run in job.runs} == {"Stopped: after step 3"}
        assert first.staged == {}
        second = lane(ledger, watched).work(lease())
        assert second.problem is None
        assert min(step for step in seen if step) == 4
        for entry, attempt in second.staged:
            assert ledger.commit(entry, attempt)
    for run in job.runs:
        alone = outcome(execute(Job(runs=(replace(run, stacked=False),)), World()))
        kept = ledger.record(run)
        losses = [row["value"] for row in ledger.curve(run).to_pylist() if row["name"] == "loss"]
        assert losses == pytest.approx([p.loss for p in alone.curve], rel=1e-5)
        assert {name: score.value for name, score in kept.metrics.items()} == pytest.approx(alone.values, abs=0.02)
        assert ledger.model(run) is not None
    costs = [ledger.records([run])[run.id].cost for run in job.runs]
    assert len({cost["flops"] for cost in costs}) == len({cost["step_seconds"] for cost in costs}) == 1
    took = {entry: seconds for (entry, _), seconds in second.staged.items()}
    done = [took[run.entries[-1]] for run in job.runs]
    assert max(done) < 0.6 * sum(done)  # the first has not the time of all


def test_of_a_stack_each_run_that_fails_says_why_and_the_others_are_kept(tmp_path: Path) -> None:
    """One steps too far and is lost at its second step; one divides by next to nothing and is lost at its first."""
    _, job = planned(tmp_path).jobs
    first, second, third, fourth = job.runs
    far = replace(second, settings={**second.settings, "learning_rate": 1e30, "clip_norm": 1e30, "warmup": 0})
    sharp = replace(fourth, settings={**fourth.settings, "temperature": 1e-40})
    ledger = Ledger(str(tmp_path / "ledger"))
    with ledger.drive("study"):
        four = Job(runs=(first, far, third, sharp))
        state = lane(ledger, execute).work(
            Lease(job=four, attempts={run.id: ledger.lease(run.id) for run in four.runs})
        )
    assert state.problem is not None
    assert set(state.problem.apart) == {far.id, sharp.id}
    for run, step in ((far, 2), (sharp, 1)):
        own = state.problem.of(run.id)
        assert own.message.startswith(f"Diverged: loss is not finite at step {step}: ")
        assert "\n" not in own.message
        assert own.final
        assert own.traceback.count("loss is not finite") == 1
    assert {entry.partition(".")[0] for entry, _ in state.staged} == {first.id, third.id}


def test_each_run_of_a_stack_pays_for_the_steps_that_it_took(tmp_path: Path) -> None:
    """Whoever is lost early leaves no half of its neighbour's bill unpaid."""
    _, job = planned(tmp_path).jobs
    first, _, third, fourth = job.runs
    sharp = replace(fourth, settings={**fourth.settings, "temperature": 1e-40})  # lost at its first step
    costs = [
        billed(Ledger(str(tmp_path / name)), *runs)
        for name, runs in (("2", [first, third]), ("3", [first, third, sharp]))
    ]
    for run in (first, third):
        whole, disturbed = (of[run.id] for of in costs)
        assert disturbed["flops"] == pytest.approx(whole["flops"], rel=1e-6)
        assert disturbed["flops_per_second"] == pytest.approx(
            disturbed["flops"] / disturbed["step_seconds"], rel=1e-6
        )


def test_what_others_scores_cost_is_no_training(tmp_path: Path) -> None:
    """A run that has its model is scored first, before those that lack theirs train as a stack."""
    _, job = planned(tmp_path).jobs
    held, ledger = job.runs[-1], Ledger(str(tmp_path / "ledger"))
    billed(ledger, held)
    model = ledger.model(held)
    assert model is not None
    results = list(execute(replace(job, models={held.id: model}), World()))
    before = [isinstance(one, Trained) for one in results].index(True)
    assert before == len(held.tasks)
    assert all(one.run is held for one in results[:before])


def billed(ledger: Ledger, *runs: Run) -> dict[str, Mapping[str, float]]:
    """What each run's training cost, by its id, those left out that failed."""
    with ledger.drive("study"):
        job = Job(runs=runs)
        state = lane(ledger, execute).work(Lease(job=job, attempts={run.id: ledger.lease(run.id) for run in runs}))
        for entry, attempt in state.staged:
            assert ledger.commit(entry, attempt)
    return {run.id: ledger.training(run.id).cost for run in runs if (run.id, 1) in state.staged}


def test_a_run_that_cannot_be_scored_is_no_other_run_s_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, job = planned(tmp_path).jobs
    scored = encoders.scored

    def lacking(run: Run, *given: object) -> Iterator[Result]:
        if run.id == job.runs[1].id:
            raise CorpusError("no rows")
        yield from scored(run, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(encoders, "scored", lacking)
    seen = []
    with pytest.raises(RunsFailed) as told:
        seen.extend(execute(job, World()))
    assert pickle.loads(pickle.dumps(told.value)).errors.keys() == told.value.errors.keys()
    assert {run_id: str(error) for run_id, error in told.value.errors.items()} == {job.runs[1].id: "no rows"}
    assert {one.entry for one in seen} >= {
        entry for run in job.runs if run is not job.runs[1] for entry in run.entries
    }


def test_what_cannot_stack_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        StudyError, match=r"arms\.B1: train\.micro_batch = 2\n  accepted: null with .*runs_per_stack"
    ):
        planned(tmp_path, train=", micro_batch: 2")
    assert family("difficulty").shape is None
    text = (tmp_path / "study.yaml").read_text().replace("family: concept", "family: sentence_transformers")
    (tmp_path / "other.yaml").write_text(text)
    with pytest.raises(StudyError, match=r"resources\.runs_per_stack = 4\n  accepted: 1: runs of this family"):
        read_study(tmp_path / "other.yaml")
