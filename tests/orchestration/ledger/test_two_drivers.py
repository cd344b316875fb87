"""What one driver does never undoes what another, living one does; and a lock is taken once, whatever a store says."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestration.ledger import drivers
from orchestration.ledger.ledger import Ledger
from orchestration.ledger.notes import LedgerError
from orchestration.ledger.object_storage import ObjectStorage
from orchestration.ledger.storage import open_storage
from orchestration.study.errors import StudyError
from orchestration.study.run import Run, Trained
from tests.counting_store import CountingStore, counting_store, requests
from tests.ledger_runs import checkpointed
from tests.orchestration.ledger.test_object_storage import make_run, save_model


@pytest.fixture(params=["local", "remote"])
def anywhere(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "local":
        yield str(tmp_path / "ledger")
        return
    with counting_store() as url:
        yield url


class Interrupted:
    """Others act once, when a request of this kind for such a key has been answered."""

    def __init__(self, patch: pytest.MonkeyPatch, what: str, part: str, act: Callable[[], object]) -> None:
        self.acts, self.answer = [act], None
        real = getattr(CountingStore, what)

        def asked(store: Any, path: str, *given: Any, **named: Any) -> Any:
            try:
                return real(store, path, *given, **named)
            finally:
                if part in path and self.acts:
                    self.answer = self.acts.pop()()

        patch.setattr(CountingStore, what, asked)


@pytest.mark.parametrize(
    ("what", "part"), [("cat_file", ".staging/"), ("pipe_file", "/.gone"), ("cat_file", ".entries/")]
)
def test_one_gives_up_what_another_adopts(url: str, monkeypatch: pytest.MonkeyPatch, what: str, part: str) -> None:
    """A driver that slept gives its old attempt up at any moment: the entry is whole, or there is none."""
    late, run = Ledger(url), make_run()
    attempt = late.lease(run.id)
    late.stage(Trained(run=run, save_model=save_model), attempt)
    Ledger(url).lease(run.id)
    other = Interrupted(monkeypatch, what, part, Ledger(url).adopt)
    late.commit(run.id, attempt)
    assert not other.acts
    ledger, places = Ledger(url), open_storage(url).children(".results")
    if ledger.entries():
        assert (ledger.audit(run.id), len(places)) == (None, 1)
        assert ledger.model(run)
    else:
        assert places == open_storage(url).children(".staging") == []


def of_two_attempts(url: str, run: Run) -> Ledger:
    """Two whole results of one run, neither leased: nothing but the publication itself can refuse one."""
    ledger = Ledger(url)
    for attempt in (1, 2):
        ledger.stage(Trained(run=run, save_model=save_model), attempt)
    return ledger


def test_of_two_results_published_at_once_one_is_the_entry(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other is told so, and its files go."""
    run, storage = make_run(), open_storage(url)
    late = of_two_attempts(url, run)
    Interrupted(monkeypatch, "cat_file", ".staging/", lambda: storage.publish(f".staging/{run.id}.2", run.id))
    assert not late.commit(run.id, 1)
    assert (late.training(run.id).attempt, late.audit(run.id)) == (2, None)
    assert storage.children(".staging") == []
    assert len(storage.children(".results")) == 1


def test_a_result_takes_the_place_of_an_entry_set_aside_meanwhile(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was refused for that entry, which is gone by the time that its driver looks."""
    run = make_run()
    late = of_two_attempts(url, run)

    def others() -> None:
        open_storage(url).publish(f".staging/{run.id}.2", run.id)
        Interrupted(monkeypatch, "pipe_file", "/.entries/", lambda: Ledger(url).set_aside(run.id))

    Interrupted(monkeypatch, "cat_file", ".staging/", others)
    assert late.commit(run.id, 1)
    assert (late.training(run.id).attempt, late.audit(run.id)) == (1, None)


def test_what_another_gives_up_while_it_is_published_is_no_entry(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look at its files and the publication: they are gone."""
    run, storage = make_run(), open_storage(url)
    ledger = Ledger(url)
    ledger.stage(Trained(run=run, save_model=save_model), 1)
    other = Interrupted(monkeypatch, "find", "/.results", lambda: storage.discard(f".staging/{run.id}.1", run.id))
    assert not ledger.commit(run.id, 1)
    assert not other.acts
    assert ledger.entries() == frozenset()
    assert storage.children(".results") == storage.children(".staging") == []


def test_an_adopted_entry_leaves_what_a_living_driver_has(anywhere: str, tmp_path: Path) -> None:
    """Checkpoints of an attempt that goes on are that driver's to end."""
    dead, run = Ledger(anywhere), make_run()
    dead.stage(Trained(run=run, save_model=save_model), dead.lease(run.id))
    living = Ledger(anywhere)
    storage = open_storage(anywhere)
    with drivers.driving(storage, "goes-on") as living.driver:
        checkpointed(living, run, tmp_path / "elsewhere")
        with Ledger(anywhere).drive("another") as adopted:
            assert adopted == [run.id]
        left = storage.size(".scratch")
        assert left >= 1
        assert Ledger(anywhere).held_elsewhere(run.id) == living.driver


def test_a_driver_whose_clock_is_off_keeps_what_it_uploads(
    url: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """It is watched before it is taken for dead, once."""
    monkeypatch.setattr(drivers, "BEAT_SECONDS", 0.4)
    ledger, run, storage = Ledger(url), make_run(), open_storage(url)
    hour = 3600.0
    other = drivers.Driver(study="one", host="elsewhere", pid=7, started=1.0)
    ledger.driver = other
    attempts = {run.id: ledger.lease(run.id) for run in (run, make_run(1))}
    ledger.driver = None
    for run_id, attempt in attempts.items():
        storage.write(
            f".staging/{run_id}.{attempt}.part", json.dumps({"place": ".results/a", "files": 0}).encode()
        )

    real = CountingStore.cat_file

    def beating(store: Any, path: str, *given: Any, **named: Any) -> bytes:
        """Each time that its lock is read it has beaten since, by its own clock."""
        if path.endswith(".drivers/one/1"):
            store.pipe_file(path, json.dumps({**other.to_dict(), "beat": time.time() - hour}).encode())
        return real(store, path, *given, **named)

    storage.write(".drivers/one/1", json.dumps({**other.to_dict(), "beat": time.time() - hour}).encode())
    monkeypatch.setattr(CountingStore, "cat_file", beating)
    watching = Ledger(url)
    assert watching.adopt() == []
    assert len(storage.children(".staging")) == 2
    assert {watching.held_elsewhere(run_id) for run_id in attempts} == {other}
    assert capfd.readouterr().err.count("watching it for") == 1


def test_a_lock_whose_answer_was_lost_is_held(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library asks again, and the store refuses it for what it has just uploaded itself."""
    pipe, lost = CountingStore.pipe_file, list[str]()

    def losing(store: Any, path: str, value: bytes, mode: str = "overwrite", **options: Any) -> None:
        pipe(store, path, value, mode)
        if ".drivers/" in path and not lost:
            lost.append(path)
            pipe(store, path, value, mode)

    monkeypatch.setattr(CountingStore, "pipe_file", losing)
    ledger = Ledger(url)
    with ledger.drive("study"):
        assert ledger.lease(make_run().id) == 1
        with pytest.raises(StudyError, match="is being run by this process itself"), Ledger(url).drive("study"):
            pass
    assert lost


def test_a_store_that_replaces_what_it_was_told_to_refuse_is_refused(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe = CountingStore.pipe_file
    monkeypatch.setattr(
        CountingStore, "pipe_file", lambda store, path, value, mode="", **_: pipe(store, path, value)
    )
    with (
        pytest.raises(StudyError, match=r"does not refuse a second upload of one name.*\n  accepted: a store of"),
        Ledger(url).drive("study"),
    ):
        pass


@pytest.mark.timeout(30)
@pytest.mark.parametrize("place", ["007", "7/x"])
def test_what_is_named_nearly_like_a_lock_is_not_waited_for(url: str, place: str) -> None:
    """A number that no driver writes is nobody's; a folder in a lock's place is named."""
    open_storage(url).write(f".drivers/study/{place}", b"{}")
    with requests() as asked:
        if place == "007":
            with Ledger(url).drive("study"):
                pass
        else:
            with (
                pytest.raises(LedgerError, match=r"\.drivers/study/7: it is no file\n  accepted: "),
                Ledger(url).drive("study"),
            ):
                pass
    assert len(asked) < 20


def test_others_of_this_name_are_no_part_of_a_pointer(url: str) -> None:
    """The mark of a folder that is being deleted is gone with it, or when it is not deleted after all."""
    ledger, run = Ledger(url), make_run()
    ledger.stage(Trained(run=run), ledger.lease(run.id))
    storage = open_storage(url)
    assert isinstance(storage, ObjectStorage)
    pointer = storage.read(f".staging/{run.id}.1")
    storage.create(f".entries/{run.id}/{run.id}", pointer)
    storage.discard(f".staging/{run.id}.1", run.id)
    assert ledger.audit(run.id) is None
    assert json.loads(pointer)["files"] == len(storage.children(json.loads(pointer)["place"]))
