"""A store that fails for a moment: it says nothing of any file, nothing is lost by it, and no verdict changes."""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evaluators.metrics.scores import Score
from orchestration.lanes.bodies import problem
from orchestration.ledger.away import StoreAway
from orchestration.ledger.ledger import Ledger
from orchestration.ledger.notes import LedgerError
from orchestration.ledger.storage import open_storage
from orchestration.reading.read_study import read_study
from orchestration.study.run import Run, Trained
from orchestration.verdicts.declared import declare
from orchestration.verdicts.find import find
from tests.counting_store import CountingStore
from tests.named_study import finished, write_study
from tests.orchestration.ledger.test_object_storage import make_run, save_model
from tests.orchestration.verdicts.test_declared import runs_of
from tests.results import finish

SCORES = [Score(metric="t2d/mrr", value=0.5)]


def slow_down() -> Exception:
    """What s3fs makes of a 503."""
    return OSError(16, "Please reduce your request rate.")


def no_connection() -> Exception:
    return pytest.importorskip("botocore.exceptions").EndpointConnectionError(endpoint_url="https://store")


class Failing:
    """Requests of one kind fail, as often as told, where the key or prefix has a part."""

    def __init__(
        self, patch: pytest.MonkeyPatch, what: str, part: str, error: Exception, times: int = 10**9
    ) -> None:
        self.failed: list[str] = []
        real = getattr(CountingStore, what)

        def asked(store: Any, path: str, *given: Any, **named: Any) -> Any:
            if part in f"{path}/{named.get('prefix', '')}" and len(self.failed) < times:
                self.failed.append(path)
                raise error
            return real(store, path, *given, **named)

        patch.setattr(CountingStore, what, asked)


Act = Callable[[Ledger, Run], object]
ACTS: dict[str, tuple[str, str, Act]] = {
    "record": ("cat_file", ".results", lambda ledger, run: ledger.record(run)),
    "audit": ("cat_file", ".results", lambda ledger, run: ledger.audit(run.id)),
    "audit of notes": ("cat_file", ".declared", lambda ledger, _: ledger.damaged_notes()),
    "audit of folders": ("find", ".declared", lambda ledger, _: ledger.damaged_notes()),
    "declared": ("cat_file", ".declared", lambda ledger, _: ledger.declared("study")),
    "declarations": ("cat_file", ".declared", lambda ledger, _: ledger.declarations()),
    "whose lease": ("cat_file", ".attempts", lambda ledger, run: ledger.held_elsewhere(run.id)),
    "lease": ("cat_file", ".drivers", lambda ledger, run: ledger.lease(run.id)),
    "forget": ("rm_file", ".failures", lambda ledger, run: ledger.forget(run.id)),
}


@pytest.mark.parametrize("error", [slow_down, no_connection])
@pytest.mark.parametrize("what", ACTS)
def test_it_is_no_damage_and_no_answer(
    url: str, monkeypatch: pytest.MonkeyPatch, what: str, error: Callable[[], Exception]
) -> None:
    request, part, act = ACTS[what]
    ledger, run = Ledger(url), make_run()
    with ledger.drive("study"):
        ledger.declare("study", [{"claim": "H1"}])
        finish(ledger, run, SCORES)
        with monkeypatch.context() as patch:
            failing = Failing(patch, request, part, error())
            with pytest.raises(StoreAway, match=rf"ledger {url}: .*\n  accepted: ") as told:
                act(ledger, run)
        act(ledger, run)
    assert failing.failed
    assert not isinstance(told.value, LedgerError)
    assert not problem(told.value).final


def test_a_ledger_travels_as_before(url: str) -> None:
    """Ray's tools write down what they hold."""
    ledger, run = Ledger(url), make_run()
    finish(ledger, run, SCORES)
    for again in (pickle.loads(pickle.dumps(ledger)), copy.copy(ledger)):
        assert again.entries() == ledger.entries()


def test_claims_that_could_not_be_read_are_not_taken_for_none(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a study's verdicts would be exploratory, since a store had no time for one request."""
    path = write_study(tmp_path / "first.yaml", "Which?", ("B1", "B2", "B0"), ("H1", "H2", "H3"))
    declare(read_study(path), runs_of(read_study(path)), Ledger(tmp_path / "ledger"))
    finished(path)
    storage = open_storage(url)
    for place in (tmp_path / "ledger").rglob("*"):
        if place.is_file():
            storage.write(place.relative_to(tmp_path / "ledger").as_posix(), place.read_bytes())
    second = read_study(path.rename(tmp_path / "second.yaml"))
    runs = runs_of(second)
    with monkeypatch.context() as patch:
        Failing(patch, "cat_file", ".declared/first.json", slow_down(), times=1)
        with pytest.raises(StoreAway):
            declare(second, runs, Ledger(url))
    declare(second, runs, Ledger(url))
    assert not any(one.verdict.exploratory for one in find(second, runs, Ledger(url)).findings)


def test_a_lease_that_could_not_be_read_is_not_taken_for_nobodys(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A driver that comes while another's lane uploads leaves that alone."""
    ledger, run = Ledger(url), make_run()
    half, go, put = threading.Event(), threading.Event(), CountingStore.put_file

    def slow(store: Any, source: str, target: str, **options: Any) -> None:
        put(store, source, target, **options)
        if target.endswith("part7"):
            half.set()
            assert go.wait(30)

    with ledger.drive("one"):
        attempt = ledger.lease(run.id)
        monkeypatch.setattr(CountingStore, "put_file", slow)
        lane = threading.Thread(target=lambda: ledger.stage(Trained(run=run, save_model=save_model), attempt))
        lane.start()
        assert half.wait(30)
        with monkeypatch.context() as patch:
            Failing(patch, "cat_file", ".attempts", slow_down(), times=1)
            with pytest.raises(StoreAway), Ledger(url).drive("another"):
                pass
        go.set()
        lane.join()
        assert ledger.commit(run.id, attempt)
