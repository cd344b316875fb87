"""Which errors of a run are certain to come back, what of them is recorded, and what each result cost."""

from __future__ import annotations

import gc
import json
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from corpora.store.errors import CorpusError
from evaluators.metrics.scores import Score
from orchestration.lanes.bodies import Problem, metered, problem, with_models
from orchestration.lanes.cluster import started_in
from orchestration.lanes.lane import LaneState, Lease, execute
from orchestration.lanes.pooled.slots import start
from orchestration.ledger.away import StoreAway
from orchestration.ledger.ledger import Ledger
from orchestration.ledger.notes import LedgerError
from orchestration.study.errors import StudyError
from orchestration.study.run import Job, Result, Run, RunsFailed, Scored, Trained
from tests.finished_study import make_run
from tests.lanes import kind_here, lane_here
from tests.results import finish, results
from trainers.concept.settings import Settings
from trainers.encoders.backbones import BackboneError, resolve_backbone
from trainers.engine.meter import Meter, part_of
from trainers.engine.world import Progress, World
from trainers.errors import TrainerError


def raised(error: Exception) -> None:
    raise error


def met(act: Callable[[], Any]) -> Problem:
    with pytest.raises(Exception) as caught:  # noqa: PT011  the cases below name the errors
        act()
    return problem(caught.value)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: Settings(temperature=0.0), "ValueError: train.temperature = 0.0\n  accepted: a number above 0"),
        (lambda: raised(CorpusError("x\n  accepted: y")), "CorpusError: x\n  accepted: y"),
        (lambda: raised(StudyError("x\n  accepted: y")), "StudyError: x\n  accepted: y"),
    ],
)
def test_what_a_person_must_change_is_final_and_told_whole(act: Callable[[], Any], message: str) -> None:
    found = met(act)
    assert (found.message, found.final) == (message, True)
    assert "Traceback" in found.traceback


def test_a_backbone_that_is_not_there_is_final(tmp_path: Path) -> None:
    found = met(lambda: resolve_backbone(str(tmp_path / "nothing")))
    assert found.final
    assert found.message.startswith("BackboneError: ")
    assert "no such folder" in found.message


def test_an_error_for_people_keeps_its_lines() -> None:
    assert met(lambda: raised(BackboneError("not found\n  accepted: a folder"))).message.count("\n") == 1


@pytest.mark.parametrize(
    "act",
    [
        lambda: json.loads("{"),
        lambda: raised(ValueError("of a library\nmore")),
        lambda: raised(RuntimeError("out of memory\nmore")),
        lambda: part_of({"seconds": "a"}, 0.5),  # type: ignore[dict-item]  # of our own code, and no ValueError
    ],
)
def test_other_errors_may_pass(act: Callable[[], Any]) -> None:
    found = met(act)
    assert not found.final
    assert "\n" not in found.message


def test_a_card_that_would_emulate_a_run_s_precision_is_refused_before_it_begins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: including_emulation)
    with pytest.raises(TrainerError, match=r"resources\.precision: bf16, which the GPU cuda:0 does not multiply"):
        next(execute(Job(runs=(make_run("B1", 0),)), World(device="cuda:0", precision="bf16")))


def test_a_body_is_handed_the_world_of_its_run_and_of_its_lane(tmp_path: Path) -> None:
    """What it reports is seen, whoever asks it to stop is heard, and a run that nobody wants any more ends."""
    ledger, seen = Ledger(tmp_path), list[LaneState]()
    run = replace(make_run("B1", 0), precision="bf16", zero_stage=1, look_at=(2,))
    told = [Progress(step=step, steps=9, loss=1.0) for step in range(1, 5)]

    def body(job: Job, world: World) -> Iterator[Result]:
        assert (world.device, world.precision, world.zero_stage) == ("cpu", "bf16", 1)
        assert (world.threads, world.checkpoint_every) == (3, 7)
        for progress in told[:3]:
            world.report(progress)
        seen.append(lane.state())
        assert not world.stopping()
        lane.stop()
        assert world.stopping()
        lane.drop(make_run("B1", 1).id)
        world.report(told[3])
        lane.drop(run.id)
        world.report(told[0])
        yield from results(run)

    lane = lane_here(body, ledger.url, threads=3, checkpoint_every=7)
    final = lane.work(Lease(job=Job(runs=(run,)), attempts={run.id: ledger.lease(run.id)}))
    assert (seen[0].moving, seen[0].looks) == ((run.id, told[2]), (told[1],))
    assert (final.moving, final.problem, final.dropped) == ((run.id, told[3]), None, True)


def test_a_run_that_was_given_up_is_executed_when_it_is_asked_for_again(tmp_path: Path) -> None:
    """Two points of a search may be one run: what became of it for the first does not hold for the second."""

    def body(job: Job, world: World) -> Iterator[Result]:
        if attempt == 1:
            lane.drop(run.id)
        world.report(Progress(step=1, steps=9, loss=1.0))
        yield from results(run)

    ledger, run, ends = Ledger(tmp_path), make_run("B1", 0), list[tuple[bool, int]]()
    lane = lane_here(body, ledger.url)
    for _ in range(2):
        attempt = ledger.lease(run.id)
        state = lane.work(Lease(job=Job(runs=(run,)), attempts={run.id: attempt}))
        ends.append((state.dropped, len(state.staged)))
    assert ends == [(True, 0), (False, len(run.entries))]


def test_progress_after_the_last_result_changes_nothing(tmp_path: Path) -> None:
    def body(job: Job, world: World) -> Iterator[Result]:
        world.report(Progress(step=1, steps=2, loss=1.0))
        yield from results(run)
        world.report(Progress(step=2, steps=2, loss=1.0))

    ledger, run = Ledger(tmp_path), make_run("B1", 0)
    attempt = ledger.lease(run.id)
    state = lane_here(body, ledger.url).work(Lease(job=Job(runs=(run,)), attempts={run.id: attempt}))
    assert (state.problem, len(state.staged)) == (None, len(run.entries))
    assert state.moving is None


@pytest.mark.parametrize("stacked", [False, True])
def test_runs_of_one_job_keep_checkpoints_if_each_is_a_model_of_its_own(tmp_path: Path, stacked: bool) -> None:
    """One by one in a stack; runs that train as one model have none."""
    ledger, runs = (
        Ledger(tmp_path),
        [replace(make_run("B1", seed), stacked=stacked, tasks={}) for seed in range(2)],
    )
    scratches: list[Path | None] = []

    def body(job: Job, world: World) -> Iterator[Result]:
        assert world.scratch is None
        scratches.extend(world.for_run(run.id).scratch for run in job.runs)
        for run in job.runs:
            yield from results(run)

    lease = Lease(job=Job(runs=tuple(runs)), attempts={run.id: ledger.lease(run.id) for run in runs})
    assert lane_here(body, ledger.url).work(lease).problem is None
    expected = [ledger.scratch(run.id, 1) for run in runs]
    assert scratches == (expected if stacked else [None, None])


@pytest.mark.parametrize("models", [False, True])
def test_a_lane_keeps_models_where_they_are_asked_for(tmp_path: Path, models: bool) -> None:
    """Those of a search would fill a disk."""
    ledger, run = Ledger(tmp_path), replace(make_run("B1", 0), tasks={})
    lane = lane_here(lambda job, world: results(run, save_model=write_model), ledger.url, models=models)
    lane.work(Lease(job=Job(runs=(run,)), attempts={run.id: ledger.lease(run.id)}))
    assert ledger.commit(run.id, 1)
    assert (tmp_path / run.id / "model").exists() == models


def test_what_was_trained_at_once_shares_its_cost() -> None:
    """Two runs at once, then one alone, each scored; then two more at once, whose training is their own.

    Last, one that was trained alone comes between two that were trained at once.
    """
    run = make_run("B1", 0)
    spent = iter(
        [
            {"seconds": 6.0, "flops": 8.0, "flops_per_second": 2.0},
            *({"seconds": seconds} for seconds in (1.0, 0.5, 1.0)),
            {"seconds": 3.0, "flops": 9.0, "flops_per_second": 3.0},
            {"seconds": 1.0},
            {"seconds": 10.0},
            {"seconds": 0.5},
            *({"seconds": seconds} for seconds in (8.0, 3.0, 0.5)),
        ]
    )

    class Counter(Meter):
        def take(self) -> dict[str, float]:
            return next(spent)

    together, alone, score = Trained(run=run, share=0.5), Trained(run=run), Scored(run=run, task="t2d", scores=[])
    found = metered(
        iter([together, score, together, score, alone, score, together, together, together, alone, together]),
        Counter("cpu", "fp32"),
    )
    assert [one.cost for one in found] == [
        {"seconds": 3.0, "flops": 4.0, "flops_per_second": 2.0},
        {"seconds": 1.0},
        {"seconds": 3.5, "flops": 4.0, "flops_per_second": 2.0},
        {"seconds": 1.0},
        {"seconds": 3.0, "flops": 9.0, "flops_per_second": 3.0},
        {"seconds": 1.0},
        {"seconds": 5.0},
        {"seconds": 5.5},
        *({"seconds": seconds} for seconds in (4.0, 3.0, 4.5)),
    ]


def test_a_run_that_trains_again_to_be_scored_is_billed_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It keeps no model, and is asked for two tasks more, one after the other: each 100 s of training again."""
    clock, trainings = time.perf_counter, 0
    monkeypatch.setattr(time, "perf_counter", lambda: clock() + 100 * trainings)

    def body(job: Job, world: World) -> Iterator[Result]:
        nonlocal trainings
        trainings += 1
        yield from results(job.runs[0])

    ledger, run = Ledger(tmp_path), replace(make_run("B1", 0), tasks={})
    lane = lane_here(body, ledger.url, models=False)
    for tasks in ({"m": "rows"}, {"m": "rows", "t": "rows"}, {"m": "rows", "t": "rows", "u": "rows"}):
        run = replace(run, tasks=tasks)
        left, attempt = ledger.remaining(run), ledger.lease(run.id)
        state = lane.work(Lease(job=Job(runs=(left,)), attempts={run.id: attempt}))
        (*_, told), lacking = state.staged.values(), ledger.lacking(run)
        assert all(ledger.commit(entry, attempt) for entry in lacking)
        assert told // 100 == 1
    costs = [ledger.training(run.id).cost, *(ledger.scores(run.entry(task)).cost for task in "mtu")]
    assert [cost["seconds"] // 100 for cost in costs] == [1, 0, 1, 1]


def write_model(folder: Path) -> None:
    (folder / "weights").write_bytes(b"whole")


@pytest.mark.parametrize(
    ("raises", "said"),
    [
        (None, None),
        (lambda run: RunsFailed({run.id: ValueError("of its own")}), "ValueError: of its own"),
        (lambda run: RuntimeError("of all"), "RuntimeError: of all"),
    ],
)
def test_a_damaged_model_fails_its_own_run_alone(
    tmp_path: Path, raises: Callable[[Run], Exception] | None, said: str | None
) -> None:
    """Three that execute together are to be scored; whatever becomes of the others, that one is told by itself."""

    def body(job: Job, world: World) -> Iterator[Result]:
        assert [run.id for run in job.runs] == list(job.models) == [runs[0].id, runs[2].id]
        *first, last = job.runs
        for run in first if raises else job.runs:
            yield Scored(run=run, task="t", scores=[])
        if raises:
            raise raises(last)

    ledger, runs = Ledger(tmp_path), [replace(make_run("B1", seed), tasks={}) for seed in range(3)]
    for run in runs:
        finish(ledger, run, save_model=write_model)
    (tmp_path / runs[1].id / "model/weights").write_bytes(b"other")
    job = Job(runs=tuple(replace(run, tasks={"t": "rows"}) for run in runs))
    state = lane_here(body, ledger.url).work(
        Lease(job=job, attempts={run.id: ledger.lease(run.id) for run in runs})
    )
    staged = [entry for entry, _ in state.staged]
    assert staged == [run.entry("t") for run in job.runs if run.id in (runs[0].id, None if said else runs[2].id)]
    assert state.problem is not None
    damaged, other = (state.problem.of(runs[place].id) for place in (1, 2))
    assert damaged.final
    assert f"{runs[1].id}/model/weights: it is not as the run wrote it" in damaged.message
    assert said is None or (other.message, other.final) == (said, False)


@pytest.mark.parametrize(("trained", "said"), [(True, None), (False, "the job ended without all results of")])
def test_a_job_owes_the_training_of_a_run_unless_its_model_is_there(
    tmp_path: Path, trained: bool, said: str | None
) -> None:
    ledger, run = Ledger(tmp_path), replace(make_run("B1", 0), tasks={})
    if trained:
        finish(ledger, run, save_model=write_model)
    job = Job(runs=(replace(run, tasks={"t": "rows"}),))
    lane = lane_here(lambda job, world: iter([Scored(run=job.runs[0], task="t", scores=[])]), ledger.url)
    problem = lane.work(Lease(job=job, attempts={run.id: ledger.lease(run.id)})).problem
    assert (problem and problem.message) == (said and f"RuntimeError: {said} {run.id}")


def test_of_models_that_are_all_damaged_each_is_told_by_itself(tmp_path: Path) -> None:
    ledger, runs = Ledger(tmp_path), [make_run("B1", seed) for seed in range(2)]
    for run in runs:
        finish(ledger, run, save_model=write_model)
        (tmp_path / run.id / "model/weights").write_bytes(b"other")
    with pytest.raises(LedgerError, match=f"^.*{runs[0].id}/model/weights: it is not as the run wrote it"):
        with_models(Job(runs=(runs[0],)), ledger)  # a run alone is told as it is, not as one of several
    both = met(lambda: with_models(Job(runs=tuple(runs)), ledger))
    for run, told in ((runs[0], met(lambda: with_models(Job(runs=(runs[0],)), ledger))), (runs[1], both)):
        assert f"{run.id}/model/weights: it is not as the run wrote it" in told.of(run.id).message
        assert told.of(run.id).final


def test_a_store_that_does_not_answer_for_a_model_is_no_fault_of_its_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, run = Ledger(tmp_path), make_run("B1", 0)
    finish(ledger, run, save_model=write_model)
    monkeypatch.setattr(Ledger, "model", lambda *_: raised(StoreAway("gone")))
    with pytest.raises(StoreAway):
        with_models(Job(runs=(run, make_run("B1", 1))), ledger)


@pytest.mark.parametrize(("gpus", "seen"), [(0.0, ""), (0.5, None)])
def test_a_lane_without_a_gpu_sees_none(monkeypatch: pytest.MonkeyPatch, gpus: float, seen: str | None) -> None:
    """One with a share is shown its own by Ray, which leaves the others all that the machine has."""
    import ray

    asked: dict[str, Any] = {}

    def remote(**options: Any) -> Callable[[type], Any]:
        asked.update(options)
        return lambda of: SimpleNamespace(remote=lambda *_: None)

    monkeypatch.setattr(ray, "remote", remote)
    start(kind_here("a:b", gpus=gpus), "ledger")
    assert asked["runtime_env"]["env_vars"].get("CUDA_VISIBLE_DEVICES") == seen


def test_a_machine_without_the_study_s_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        StudyError, match=r"/no/such, where the study was started: No such file or directory on (.+);"
    ) as said:
        lane_here(lambda job, world: iter(()), str(tmp_path), folder="/no/such")
    assert f" on {socket.gethostname()}; accepted: a folder that all machines share" in str(said.value)
    assert "\n" not in str(said.value), "of a lane that does not start the last line is told"


@pytest.mark.parametrize(("brought", "goes"), [({}, True), ({"working_dir": "gcs://_ray_pkg_1.zip"}, False)])
def test_a_job_that_brought_its_folder_stays_in_its_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, brought: dict[str, str], goes: bool
) -> None:
    import ray

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(ray, "get_runtime_context", lambda: SimpleNamespace(runtime_env=brought))
    assert started_in() == (str(tmp_path) if goes else None)


def test_a_lane_does_not_collect_again_over_what_its_first_job_left(tmp_path: Path) -> None:
    """Most of it further imports: a quarter of what a short run cost. A job that fails at once is none."""
    left: list[Any] = []
    seen: list[int] = []

    def body(job: Job, world: World) -> Iterator[Result]:
        seen.append(len(gc.get_objects()))
        if len(seen) == 1:
            raise CorpusError("no rows")
        left.append([[number] for number in range(50_000)])
        for run in job.runs:
            yield Trained(run=run, curve=[])
            for task in run.tasks:
                yield Scored(run=run, task=task, scores=[Score(metric="loss", value=0.5)])

    ledger = Ledger(tmp_path)
    lane = lane_here(body, str(tmp_path), models=False)
    assert gc.isenabled()
    for seed in range(3):
        run = make_run("B1", seed)
        state = lane.work(Lease(job=Job(runs=(run,)), attempts={run.id: ledger.lease(run.id)}))
        assert (state.problem is None) is bool(seed)
    assert len(left) == 2
    assert max(seen) < 25_000
