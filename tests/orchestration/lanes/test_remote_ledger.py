"""Lanes whose ledger is in an object store: checkpoints reach the next attempt, and the driver waits for nothing."""

from __future__ import annotations

import os
import platform
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from evaluators.metrics.scores import Score
from orchestration.lanes.checkpoints import private, scratch_of
from orchestration.lanes.events import Event, RunFinished, RunStarted
from orchestration.lanes.lane import Lane, Lease
from orchestration.lanes.pooled.desk import Desk
from orchestration.lanes.pooled.pool import Pool
from orchestration.ledger.ledger import Ledger
from orchestration.ledger.storage import open_storage
from orchestration.study.errors import StudyError
from orchestration.study.run import Body, Job, Result, Run
from tests.counting_store import CountingStore, counting_store, requests
from tests.lanes import lane_here
from tests.results import finish, results
from tests.simulated_lanes import SimulatedKind, without_ray
from trainers.engine.world import World


@pytest.fixture
def url() -> Iterator[str]:
    with counting_store() as url:
        yield url


def make_run(seed: int = 0) -> Run:
    return Run(
        family="concept",
        arm="A",
        backbone="tiny",
        seed=seed,
        settings={},
        data={},
        tasks={"m": "rows"},
        defining={},
        backbone_fingerprint="b",
        corpus_fingerprint="c",
    )


def lane(url: str, body: Body, monkeypatch: pytest.MonkeyPatch, machine: Path) -> Lane:
    """A lane on a machine of its own, as far as temporary files go."""
    machine.mkdir(exist_ok=True)
    monkeypatch.setattr(tempfile, "tempdir", str(machine))
    return lane_here(body, url, checkpoint_every=1)


def counts(job: Job, world: World) -> Iterator[Result]:
    """Three steps an attempt, each saved; dies after them unless six are done, and never looks at what it was told."""
    (run,) = job.runs
    assert world.scratch is not None
    assert world.save is not None
    files = sorted(world.scratch.glob("step-*/weights"))
    step = int(files[-1].read_text()) if files else 0
    for _ in range(3):
        step += 1
        place = world.scratch / f"step-{step}"
        place.mkdir()
        (place / "weights").write_text(str(step))
        world.save(place, step)
    if step < 6:
        raise MemoryError
    yield from results(run, [Score(metric="m/steps", value=step)])


def test_checkpoints_reach_the_next_attempt_on_another_machine(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, run = Ledger(url), make_run()
    first, second = ledger.lease(run.id), None
    state = lane(url, counts, monkeypatch, tmp_path / "one").work(
        Lease(job=Job(runs=(run,)), attempts={run.id: 1})
    )
    assert state.problem is not None
    assert (first, state.problem.message) == (1, "MemoryError:")
    assert open_storage(url).children(f".scratch/{run.id}") == ["1-3"]  # the newest alone

    second = ledger.lease(run.id)
    state = lane(url, counts, monkeypatch, tmp_path / "two").work(
        Lease(job=Job(runs=(run,)), attempts={run.id: second})
    )
    assert state.problem is None
    for entry, attempt in state.staged:
        assert ledger.commit(entry, attempt)
    assert ledger.record(run).metrics["m/steps"].value == 6
    ledger.forget(run.id)
    assert open_storage(url).children(".scratch") == []
    assert [*tmp_path.glob("*/semray-*/*")] == []  # nothing is left on either machine


def by_itself(job: Job, world: World) -> Iterator[Result]:
    """A recipe that saves without saying so, and is stopped; then goes on from there."""
    (run,) = job.runs
    assert world.scratch is not None
    kept = world.scratch / "out"
    if not kept.exists():
        kept.write_text("here")
        raise KeyError("stopped")
    yield from results(run, [Score(metric="m", value=1.0)], notes={"found": kept.read_text()})


def test_what_a_recipe_saved_by_itself_is_kept_when_it_ends(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, run = Ledger(url), make_run()
    for attempt, problem in ((1, True), (2, False)):
        ledger.lease(run.id)
        work = lane(url, by_itself, monkeypatch, tmp_path / str(attempt)).work
        state = work(Lease(job=Job(runs=(run,)), attempts={run.id: attempt}))
        assert (state.problem is not None) == problem
    assert ledger.commit(run.id, 2)
    assert ledger.training(run.id).notes == {"found": "here"}


def test_a_copy_that_was_cut_short_is_passed_over(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lane died while it uploaded its second checkpoint: the first is what there is."""
    ledger, run = Ledger(url), make_run()
    for step in (1, 2):
        (tmp_path / f"step-{step}").write_text(str(step))
        ledger.keep_checkpoint(run.id, 1, tmp_path) if step == 1 else None
    open_storage(url).write(f".scratch/{run.id}/1-2/step-2", b"2")  # the marker would have come last
    (tmp_path / "found").mkdir()
    ledger.checkpoint(run.id, tmp_path / "found")
    assert [path.name for path in (tmp_path / "found").iterdir()] == ["step-1"]


def test_a_checkpoint_that_cannot_be_copied_costs_nothing_else(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def away(*_: object, **__: object) -> None:
        raise OSError(5, "the store is away")

    def once(job: Job, world: World) -> Iterator[Result]:
        assert world.scratch is not None
        assert world.save is not None
        (world.scratch / "step-1").write_text("1")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(CountingStore, "put_file", away)
            world.save(world.scratch / "step-1", 1)
        yield from results(job.runs[0], [Score(metric="m", value=1.0)])

    ledger, run = Ledger(url), make_run()
    ledger.lease(run.id)
    state = lane(url, once, monkeypatch, tmp_path / "one").work(Lease(job=Job(runs=(run,)), attempts={run.id: 1}))
    assert state.problem is None
    assert "on this machine alone: [Errno 5] the store is away" in caplog.text


def test_of_the_folders_of_a_run_its_newest_attempt_has_one_and_it_begins_with_what_the_ledger_holds(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lanes that were killed have left theirs, one of them by the number that is in use again; others' runs stay."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    ledger, run = Ledger(url), make_run()
    left = [private(ledger, run.id, attempt) for attempt in (1, 2, 3)]
    others = [private(ledger, make_run(1).id, 1), private(Ledger(f"{url}/other"), run.id, 1)]
    for folder in (*left, *others):
        folder.mkdir()
        (folder / "step-9").touch()
    with monkeypatch.context() as elsewhere:  # a machine that shares the place for temporary files
        elsewhere.setattr(platform, "node", lambda: "another")
        assert private(ledger, run.id, 3) != left[2]
    with scratch_of(ledger, run.id, 3) as (scratch, _):
        assert scratch == left[2]
        assert [*scratch.iterdir()] == []
        assert {*scratch.parent.iterdir()} == {scratch, *others}
        assert scratch.parent.stat().st_mode & 0o777 == 0o700
    assert {*scratch.parent.iterdir()} == {*others}


def _linked(place: Path) -> None:
    (place.parent / "theirs").mkdir()
    place.symlink_to(place.parent / "theirs")


def _of_another_user(place: Path) -> None:
    if os.getuid():
        pytest.skip("root alone gives a folder away")
    place.mkdir()
    os.chown(place, 12345, -1)


@pytest.mark.parametrize("taken", [Path.touch, _linked, _of_another_user])
def test_checkpoints_are_not_written_where_somebody_else_may_have_laid_a_place_for_them(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: Callable[[Path], None]
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    mine = private(Ledger(url), make_run().id, 1).parent
    assert mine.is_relative_to(tmp_path)
    mine.chmod(0o755)
    private(Ledger(url), make_run().id, 1)
    assert mine.stat().st_mode & 0o777 == 0o700
    mine.rmdir()
    taken(mine)
    with pytest.raises(StudyError, match=rf"{mine}: somebody else's, or no folder\n  accepted: none, or TMPDIR"):
        private(Ledger(url), make_run().id, 1)


# The driver's desk


def test_work_of_one_key_is_done_in_order_and_heard_in_the_callers_thread() -> None:
    desk, said = Desk(8), list[tuple[int, int, bool]]()
    here = threading.get_ident()

    def work(key: int, number: int) -> tuple[int, int, bool]:
        return key, number, threading.get_ident() != here

    def hear(done: tuple[int, int, bool]) -> None:
        assert threading.get_ident() == here
        said.append(done)

    for number in range(20):
        for key in range(5):
            desk.do(key, lambda key=key, number=number: work(key, number), hear)
    assert desk.busy
    desk.close()
    assert not desk.busy
    for key in range(5):
        assert [one for one in said if one[0] == key] == [(key, number, True) for number in range(20)]


def test_what_work_raises_is_raised_where_it_is_heard() -> None:
    def fails() -> None:
        raise OSError("away")

    desk = Desk(2)
    desk.do("key", fails, lambda _: None)
    with pytest.raises(OSError, match="away"):
        desk.finish()
    desk.close()
    with pytest.raises(OSError, match="away"):
        Desk(0).do("key", fails, lambda _: None)


# A pool


@pytest.mark.timeout(120)
def test_no_lane_waits_for_the_ledger(url: str) -> None:
    """The driver's own thread asks the store nothing, and what others ask for it stays few for each run."""
    ledger, jobs = Ledger(url), [Job(runs=(make_run(seed),)) for seed in range(24)]
    kind, told = SimulatedKind(0.1), list[Event]()
    with ledger.drive("study"), without_ray():
        pool = Pool(kind.start, ledger, told.append, threading.Event(), lease_seconds=60, stall_seconds=60)
        with requests() as asked:
            outcome = pool.run(jobs, lanes=8, tries=1)
    assert (len(outcome.finished), outcome.failed, outcome.stopped) == (24, {}, False)
    assert all(ledger.holds(run) for job in jobs for run in job.runs)
    assert [type(event) for event in told if getattr(event, "run", None) == jobs[0].runs[0]] == [
        RunStarted,
        RunFinished,
    ]
    assert not [one for one in asked if one[2] is threading.current_thread()]
    # Signs of life are as many as there are seconds, and lanes upload what they stage in threads beside their own.
    # The rest: looked up and leased, committed twice, forgotten.
    lanes = [one for one in asked if one[2] in kind.threads or (one[0] == "PUT" and "/.results/" in one[1])]
    driver = [one for one in asked if one not in lanes and "/.drivers/" not in one[1]]
    assert len(driver) <= 24 * (5 + 2 * 9 + 6)


@pytest.mark.timeout(120)
def test_what_others_have_done_is_not_done_again(url: str) -> None:
    """Found while handing out: those runs are finished, and the others go on."""
    ledger, runs = Ledger(url), [make_run(seed) for seed in range(6)]
    for run in runs[::2]:
        finish(ledger, run, [Score(metric="m/x", value=2.0)])
    kind = SimulatedKind(0.0)
    with ledger.drive("study"), without_ray():
        pool = Pool(kind.start, ledger, lambda _: None, threading.Event(), lease_seconds=60, stall_seconds=60)
        outcome = pool.run([Job(runs=(run,)) for run in runs], lanes=2, tries=1)
    assert sorted(outcome.finished) == sorted(run.id for run in runs)
    assert [ledger.record(run).metrics["m/x"].value for run in runs] == [2.0, 1.0] * 3
    assert sum(map(len, kind.spans)) == 3


@pytest.mark.timeout(120)
def test_a_store_that_goes_away_ends_the_study_with_its_words(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object, **__: object) -> None:
        raise OSError(5, "the store is away")

    ledger = Ledger(url)
    kind = SimulatedKind(0.0)
    with ledger.drive("study"), without_ray():
        monkeypatch.setattr(CountingStore, "pipe_file", away)
        pool = Pool(kind.start, ledger, lambda _: None, threading.Event(), lease_seconds=60, stall_seconds=60)
        with pytest.raises(StudyError, match="the store is away\n  accepted: "):
            pool.run([Job(runs=(make_run(),))], lanes=1, tries=1)
