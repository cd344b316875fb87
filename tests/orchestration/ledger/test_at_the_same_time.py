"""What a ledger tells while another driver, a dead one, or its store is in the middle of something."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from orchestration.ledger import object_storage
from orchestration.ledger.ledger import Ledger
from orchestration.ledger.notes import LedgerError
from orchestration.ledger.storage import open_storage
from orchestration.study.run import Trained
from tests.counting_store import CountingStore
from tests.ledger_runs import checkpointed, make_run, save_model, scores
from tests.results import finish


@pytest.mark.parametrize("moment", ["before its files", "amid its files"])
def test_a_model_that_is_dropped_while_it_is_opened_is_none(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """And no damage, for which a person would be asked to move a good entry away."""
    run = make_run()
    finish(ledger, run, scores(), save_model=save_model)
    real = ledger._storage.local

    def local(name: str, cache: Path) -> Path | None:
        found = None if moment == "before its files" else real(name, cache)
        Ledger(ledger.url).drop_model(run)
        return real(name, cache) if moment == "before its files" else found

    monkeypatch.setattr(ledger._storage, "local", local)
    if moment == "amid its files" and ledger.remote:  # what was downloaded is whole
        assert ledger.model(run) is not None
    else:
        assert ledger.model(run) is None
    monkeypatch.undo()
    assert ledger.audit(run.id) is None


def test_a_model_that_goes_while_its_files_are_read_is_none(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run()
    finish(ledger, run, scores(), save_model=save_model)

    def read(*_: Any) -> None:
        Ledger(ledger.url).drop_model(run)
        raise FileNotFoundError("it was there a moment ago")

    monkeypatch.setattr("orchestration.ledger.ledger.broken_in", read)
    assert ledger.model(run) is None


def test_a_model_that_is_missing_though_sealed_stays_damage(ledger: Ledger) -> None:
    run = make_run()
    finish(ledger, run, scores(), save_model=save_model)
    ledger._storage.remove(f"{run.id}/model")
    with pytest.raises(LedgerError, match="model: it is missing"):
        ledger.model(run)


def test_checkpoints_that_a_dead_driver_left_of_finished_runs_go(ledger: Ledger, tmp_path: Path) -> None:
    """It ended between a run's last result and its own tidying up; of an unfinished run they are kept."""
    done, going_on, unfinished = (make_run(seed) for seed in range(3))
    other = Ledger(ledger.url)
    for run in (done, going_on):
        finish(ledger, run, scores())
    with other.drive("another"):
        checkpointed(other, going_on, tmp_path / "elsewhere")
        for run in (done, unfinished):
            checkpointed(ledger, run, tmp_path / "elsewhere")
        ledger.forget_finished([done, going_on])
        left = {name.partition(".")[0] for name in open_storage(ledger.url).children(".scratch")}
    assert left == {going_on.id, unfinished.id}


def test_files_of_nobody_are_not_sealed_and_odd_names_are_told_when_they_are_written(ledger: Ledger) -> None:
    """Else no one could read the entry again."""
    run, odd = make_run(0), make_run(1)

    def with_foreign(folder: Path) -> None:
        save_model(folder)
        (folder / "._config.json").write_text("left by a system")

    finish(ledger, run, scores(), save_model=with_foreign)
    assert ledger.audit(run.id) is None
    assert ledger.model(run)
    assert all(ledger.record(run).metrics)
    with pytest.raises(
        ValueError, match=r"'model/ x.json': a run has left a file of this name\n  accepted: printable"
    ):
        ledger.stage(Trained(run=odd, save_model=lambda folder: (folder / " x.json").write_text("") and None), 1)


class Late:
    """A store that lists a new file only some time after its upload."""

    def __init__(self, patch: pytest.MonkeyPatch, seconds: float) -> None:
        self.since: dict[str, float] = {}
        put, listed = CountingStore._put, CountingStore._listed

        def later(store: Any, path: str, *given: Any, **named: Any) -> None:
            put(store, path, *given, **named)
            self.since.setdefault(store._strip_protocol(path), time.monotonic())

        def seen(store: Any, bucket: str, *given: Any) -> list[str]:
            now = time.monotonic()
            return [key for key in listed(store, bucket, *given) if now - self.since[f"{bucket}/{key}"] >= seconds]

        patch.setattr(CountingStore, "_put", later)
        patch.setattr(CountingStore, "_listed", seen)


def test_a_store_that_lists_files_late_loses_nothing(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A result of which files are not listed yet was taken for one that another driver deletes."""
    Late(monkeypatch, 0.3)
    ledger, run = Ledger(url), make_run()
    with ledger.drive("study"):
        attempt = ledger.lease(run.id)
        ledger.stage(Trained(run=run, save_model=save_model), attempt)
        assert ledger.commit(run.id, attempt)
    assert ledger.training(run.id).attempt == attempt


@pytest.mark.parametrize("left", [0, 1])
def test_a_result_whose_files_were_deleted_is_refused(
    url: str, monkeypatch: pytest.MonkeyPatch, left: int
) -> None:
    """Its lane was taken for dead. Those that are still there may be as many as were uploaded, with the mark."""
    monkeypatch.setattr(object_storage, "LISTED_SECONDS", (0.01,))
    ledger, run, storage = Ledger(url), make_run(), open_storage(url)
    ledger.stage(Trained(run=run, save_model=save_model), 1)
    (place,) = storage.children(".results")
    files = [name for name in CountingStore.buckets[url.split("/")[2]] if place in name]
    for name in files[left:] if left == 0 else files[:left]:
        storage.unlink(name.removeprefix("ledger/"))
    if left:
        storage.write(f".results/{place}/.gone", b"")
    assert not ledger.commit(run.id, 1)
    assert not ledger.entries()


def test_many_models_are_asked_for_and_dropped_beside_one_another(url: str) -> None:
    ledger, runs = Ledger(url), [make_run(seed) for seed in range(8)]
    for run in runs:
        finish(ledger, run, scores(), save_model=save_model)
    assert ledger.model_sizes(runs) == {run.id: ledger.model_size(run) for run in runs}
    before = len(CountingStore.asked)
    ledger.drop_models(runs)
    assert threading.current_thread() not in {asked[2] for asked in CountingStore.asked[before:]}
    assert set(ledger.model_sizes(runs).values()) == {0}
