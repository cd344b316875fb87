"""A run that was stopped and goes on is billed for both attempts, alone and in a stack."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from orchestration.lanes.lane import Lease, execute
from orchestration.ledger.entries.record import Record
from orchestration.ledger.ledger import Ledger
from orchestration.plan.plan import gather_facts, plan, prepare
from orchestration.reading.read_study import read_study
from orchestration.study.run import TRAINING, Body, Job, Result
from tests.corpora.conftest import write_small_wordnet
from tests.lanes import lane_here
from tests.tiny import tiny_backbone
from trainers.engine.world import Progress, World

STUDY = """\
question: What did it take?
family: concept
backbones: [{place}/tiny]
seeds: 2
data: {{wordnet: {place}/wordnet, n_hh: 20, n_id: 20, n_dev: 10}}
train: {{steps: 6, batch_size: 4, warmup: 1, max_length: 32}}
arms: {{B1: {{hard_negatives: true}}}}
evaluate: [t2d]
resources: {{runs_per_stack: {stack}, precision: fp32}}
"""
STEPS, STOPPED = 6, 3
AWAY = 100.0  # seconds that go by, as clocks have it, after each step of a run that will be stopped


def stopped(job: Job, world: World) -> Iterator[Result]:
    """Every run is asked to stop after its third step, and takes long until then."""
    asked, clock, away = count(), time.perf_counter, count(1)
    gone = 0.0

    def report(progress: Progress) -> None:
        nonlocal gone
        gone = AWAY * next(away)
        world.report(progress)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "perf_counter", lambda: clock() + gone)
        stopping = lambda: next(asked) >= (STOPPED - 1) * len(job.runs)  # noqa: E731
        yield from execute(job, replace(world, report=report, stopping=stopping))


def trained(ledger: Ledger, job: Job, *bodies: Body) -> list[Record]:
    """The trainings of a job's runs, after an attempt by each of the bodies."""
    with ledger.drive("study"):
        for body in bodies:
            state = lane_here(body, ledger.url).work(
                Lease(job=job, attempts={run.id: ledger.lease(run.id) for run in job.runs})
            )
        assert state.problem is None
        for entry, attempt in state.staged:
            assert ledger.commit(entry, attempt)
    return [ledger.training(run.id) for run in job.runs]


@pytest.mark.parametrize("stack", [1, 2])
def test_what_an_earlier_attempt_spent_counts_too(tmp_path: Path, stack: int) -> None:
    """As much arithmetic as without the stop, and of the time each attempt its part.

    Of two in a stack the first leaves its checkpoint while the second has still to end that step.
    """
    write_small_wordnet(tmp_path / "wordnet")
    tiny_backbone(tmp_path / "tiny")
    (tmp_path / "study.yaml").write_text(STUDY.format(place=tmp_path, stack=stack))
    study = read_study(tmp_path / "study.yaml")
    job = plan(study, gather_facts(study)).jobs[0]
    prepare(study)
    assert len(job.runs) == stack
    whole = trained(Ledger(str(tmp_path / "whole")), job, execute)
    again = trained(Ledger(str(tmp_path / "again")), job, stopped, execute)
    for one, other in zip(whole, again, strict=True):
        assert other.cost["flops"] == pytest.approx(one.cost["flops"], rel=(stack - 1) / STEPS)
        for seconds in (
            other.seconds[TRAINING] - one.seconds[TRAINING],
            other.cost["seconds"] - one.cost["seconds"],
        ):
            assert seconds == pytest.approx(STOPPED * AWAY, rel=0.2)
