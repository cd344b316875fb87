"""The ledger from outside: what is committed is whole, once, and stays; what is damaged is named."""

from __future__ import annotations

import errno
import json
import math
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from evaluators.metrics.scores import Score
from orchestration.ledger import attempts, drivers
from orchestration.ledger.drivers import driving, this_process
from orchestration.ledger.ledger import Ledger
from orchestration.ledger.notes import LedgerError
from orchestration.ledger.storage import LocalStorage, open_storage
from orchestration.study.errors import StudyError
from orchestration.study.run import Run, Scored, Trained, run_of
from tests.buckets import s3_bucket
from tests.results import finish
from tests.results import put as put_all
from tests.waiting import until
from trainers.engine.world import Progress

ROWS = {"t2d": "r" * 8, "geometry": "s" * 8}  # task -> fingerprint of what it is measured on


def make_run(seed: int = 0) -> Run:
    return Run(
        family="concept",
        arm="B1",
        backbone="tiny",
        seed=seed,
        settings={"steps": 2, "betas": [0.9, 0.99]},
        data={"lexicons": ["wordnet"]},
        tasks=dict(ROWS),
        defining={"steps": 2},
        backbone_fingerprint="b" * 8,
        corpus_fingerprint="c" * 8,
    )


def save_model(folder: Path) -> None:
    (folder / "0_part").mkdir()
    (folder / "0_part" / "weights.safetensors").write_bytes(b"\x00\x01")
    (folder / "config.json").write_text("{}")


def scores(value: float = 0.75) -> list[Score]:
    recall = Score(
        metric="t2d/recall@10",
        value=value,
        aggregate="mean",
        item_ids=["i1", "i2"],
        group_ids=["g", "g"],
        values=np.array([1.0, 0.5]),
    )
    auc = Score(
        metric="t2d/auc",
        value=1.0,
        aggregate="auc",
        item_ids=["a", "b"],
        values=np.array([0.1, 0.9]),
        gold=np.array([0, 1]),
    )
    return [recall, auc, Score(metric="geometry/spread", value=float("nan"), larger_is_better=False)]


CURVE = (
    Progress(step=1, steps=2, loss=2.0, terms={"info": 2.0}, learning_rate=1e-3),
    Progress(step=2, steps=2, loss=1.5),
)


def training(run: Run) -> Trained:
    return Trained(run=run, curve=CURVE, seconds={"train": 1.5}, notes={"device": "cpu"}, save_model=save_model)


def scored(run: Run, value: float = 0.75) -> Scored:
    """The run's scores on its first task."""
    return Scored(run=run, task="t2d", scores=[score for score in scores(value) if "t2d" in score.metric])


def do(ledger: Ledger, run: Run, value: float = 0.75) -> int:
    """A whole run into the ledger; its attempt."""
    attempt = finish(ledger, run, scores(value), curve=CURVE, seconds={"train": 1.5}, save_model=save_model)
    assert ledger.holds(run)
    return attempt


def recall(ledger: Ledger, run: Run) -> float:
    return ledger.record(run).metrics["t2d/recall@10"].value


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    with s3_bucket() as url:
        yield url


@pytest.fixture(params=["local", "memory", "s3"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Ledger:
    if request.param == "local":
        return Ledger(tmp_path / "ledger")
    if request.param == "memory":
        return Ledger(f"memory://{uuid.uuid4().hex}")
    return Ledger(f"{request.getfixturevalue('bucket')}/{uuid.uuid4().hex}")


def test_what_goes_in_comes_out(ledger: Ledger) -> None:
    run = make_run()
    assert ledger.entries() == frozenset()
    assert not ledger.has(run.id)
    assert (ledger.holds(run), ledger.trained(run), ledger.lacking(run)) == (False, False, run.entries)
    finish(
        ledger, run, scores(), curve=CURVE, seconds={"train": 1.5}, notes={"device": "cpu"}, save_model=save_model
    )

    assert ledger.entries() == set(run.entries)
    assert ledger.ids() == {run.id}
    assert (ledger.holds(run), ledger.trained(run), ledger.lacking(run)) == (True, True, ())
    record, t2d = ledger.record(run), run.entry("t2d")
    assert (record.id, record.attempt, record.run, record.sealed) == (run.id, 1, run, True)
    assert record.metrics["t2d/recall@10"].value == 0.75
    assert record.metrics["t2d/auc"].aggregate == "auc"
    assert np.isnan(record.metrics["geometry/spread"].value)
    assert not record.metrics["geometry/spread"].larger_is_better
    assert {name: metric.entry for name, metric in record.metrics.items()} == {
        "t2d/recall@10": t2d,
        "t2d/auc": t2d,
        "geometry/spread": run.entry("geometry"),
    }
    assert (record.seconds, record.notes) == ({"train": 1.5}, {"device": "cpu"})
    assert record.env["libraries"]["ray"]
    assert ledger.items(t2d).to_pylist() == [
        {"metric": "t2d/recall@10", "item_id": "i1", "group_id": "g", "value": 1.0, "gold": None},
        {"metric": "t2d/recall@10", "item_id": "i2", "group_id": "g", "value": 0.5, "gold": None},
        {"metric": "t2d/auc", "item_id": "a", "group_id": "a", "value": 0.1, "gold": 0.0},
        {"metric": "t2d/auc", "item_id": "b", "group_id": "b", "value": 0.9, "gold": 1.0},
    ]
    assert ledger.items(run.entry("geometry")).num_rows == 0
    curve = ledger.curve(run).to_pylist()
    assert [row["value"] for row in curve if row["name"] == "loss"] == [2.0, 1.5]
    assert {"step": 1, "name": "loss/info", "value": 2.0} in curve
    model = ledger.model(run)
    assert model is not None
    assert (model / "0_part" / "weights.safetensors").read_bytes() == b"\x00\x01"
    assert [ledger.audit(entry) for entry in run.entries] == [None, None, None]


def test_a_run_without_items_curve_and_model(ledger: Ledger) -> None:
    run = make_run()
    finish(ledger, run, [Score(metric="t2d", value=1)])
    assert ledger.items(run.entry("t2d")).num_rows == ledger.curve(run).num_rows == 0
    assert ledger.model(run) is None


def test_what_another_machine_finishes_is_seen(bucket: str) -> None:
    """However many runs are asked for: what was listed before is listed again."""
    s3fs = pytest.importorskip("s3fs")
    url, runs = f"{bucket}/{uuid.uuid4().hex}", [make_run(seed) for seed in range(60)]
    ledger = Ledger(url)
    do(ledger, runs[0])
    assert ledger.held(runs) == set(runs[0].entries)
    s3fs.S3FileSystem.clear_instance_cache()  # another process has a client of its own
    do(Ledger(url), runs[1])
    assert ledger.held(runs) == {*runs[0].entries, *runs[1].entries}


def test_a_task_more_is_a_score_more(ledger: Ledger) -> None:
    """The training is the same, by its id, whatever a study measures; so is the score that both ask for."""
    run = make_run()
    less, more = replace(run, tasks={"t2d": ROWS["t2d"]}), replace(run, tasks={**ROWS, "stress": "new"})
    other_rows = replace(run, tasks={**ROWS, "t2d": "other rows"})
    assert run.id == less.id == more.id == other_rows.id
    do(ledger, run)
    assert ledger.holds(less)
    assert ledger.record(less).metrics.keys() == {"t2d/recall@10", "t2d/auc"}
    assert ledger.lacking(more) == (more.entry("stress"),)
    assert ledger.remaining(more).tasks == {"stress": "new"}
    assert ledger.lacking(other_rows) == (other_rows.entry("t2d"),)
    with pytest.raises(KeyError):
        ledger.record(more)
    attempt = ledger.lease(run.id)
    ledger.stage(Scored(run=more, task="stress", scores=[Score(metric="stress/auc", value=0.5)]), attempt)
    assert ledger.commit(more.entry("stress"), attempt)
    assert ledger.record(more).metrics["stress/auc"].value == 0.5
    assert ledger.record(run).metrics.keys() == {"t2d/recall@10", "t2d/auc", "geometry/spread"}


def test_what_a_run_cost_is_that_of_its_training_and_of_all_its_scores(ledger: Ledger) -> None:
    run, before = make_run(), time.time()
    put_all(
        ledger,
        run,
        [
            Trained(run=run, seconds={"train": 30.0, "load": 1.0}, notes={"device": "cpu"}, cost={"flops": 5.0}),
            Scored(run=run, task="t2d", scores=[], seconds={"load": 2.0, "t2d": 4.0}, notes={"read": 1}),
            Scored(run=run, task="geometry", scores=[], seconds={"load": 0.5}, cost={"flops": 2.0}),
        ],
    )
    record = ledger.record(run)
    assert record.seconds == {"train": 30.0, "load": 3.5, "t2d": 4.0}
    assert record.cost == {"flops": 7.0}
    assert record.notes == {"device": "cpu", "read": 1}
    assert record.began is not None
    assert before - 31.001 <= record.began <= time.time() - 31 + 0.001  # its training ended when it was staged
    assert ledger.scores(run.entry("t2d")).seconds == {"load": 2.0, "t2d": 4.0}


def test_an_item_without_a_value_stays_one(ledger: Ledger) -> None:
    """Not a number is kept, not left empty."""
    run = make_run()
    score = Score(
        metric="t2d/m", value=math.nan, aggregate="mean", item_ids=["a", "b"], values=np.array([math.nan, 1])
    )
    finish(ledger, run, [score])
    assert math.isnan(ledger.record(run).metrics["t2d/m"].value)
    value, one = ledger.items(run.entry("t2d"))["value"].to_pylist()
    assert isinstance(value, float)
    assert math.isnan(value)
    assert one == 1.0


def test_a_model_that_was_dropped(ledger: Ledger) -> None:
    """The scores stay valid, and the entry is whole without it."""
    run = make_run()
    do(ledger, run)
    assert ledger.model_size(run) == 2 + 2  # two bytes of weights, and {}
    assert ledger.without_model([run]) == frozenset()
    ledger.drop_model(run)
    assert (ledger.model(run), ledger.model_size(run)) == (None, 0)
    assert ledger.holds(run)
    assert recall(ledger, run) == 0.75
    assert [ledger.audit(entry) for entry in run.entries] == [None, None, None]
    assert not any(name.startswith("model") for name in open_storage(ledger.url).children(run.id))


def test_the_room_that_a_ledger_takes_is_told_while_a_study_works(tmp_path: Path) -> None:
    """Files and folders come and go while they are counted."""
    storage, told = open_storage(tmp_path), threading.Event()
    storage.write("finished", b"abc")

    def work() -> None:
        while not told.is_set():
            for name in "abcdefgh":
                storage.write(f"scratch/{name}/checkpoint", b"x", durable=False)
            storage.remove("scratch")

    with ThreadPoolExecutor(1) as study:
        working = study.submit(work)
        try:
            assert all(storage.size("") >= len(b"abc") for _ in range(2000))
        finally:
            told.set()
    working.result()


def test_what_is_left_of_a_model_is_told_and_goes(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """A `semray prune` that was killed between the seal and the files: nobody uses them, and they take room."""

    def killed(storage: object, name: str) -> None:
        raise KeyboardInterrupt

    run = make_run()
    do(ledger, run)
    with monkeypatch.context() as patch:
        patch.setattr(type(open_storage(ledger.url)), "remove", killed)
        with pytest.raises(KeyboardInterrupt):
            ledger.drop_model(run)
    assert ledger.model(run) is None
    assert ledger.without_model([run]) == {run.id}
    assert ledger.model_size(run) == 2 + 2
    ledger.drop_model(run)
    assert ledger.model_size(run) == 0


@pytest.mark.parametrize("metric", ["", "../up", "t2d//mrr", "/root", ".hidden", "a\\b", "line\nbreak", "m" * 201])
def test_a_metric_that_is_no_path_is_refused(tmp_path: Path, metric: str) -> None:
    """Names of metrics become places in MLflow."""
    with pytest.raises(ValueError, match="accepted: parts joined by /"):
        Ledger(tmp_path).stage(Scored(run=make_run(), task="t2d", scores=[Score(metric=metric, value=1)]), 1)


def test_two_scores_of_one_metric_are_refused(tmp_path: Path) -> None:
    twice = Scored(run=make_run(), task="t2d", scores=[Score(metric="m", value=1), Score(metric="m", value=2)])
    with pytest.raises(ValueError, match="two scores of one metric"):
        Ledger(tmp_path).stage(twice, 1)


def test_an_older_attempt_is_refused(ledger: Ledger) -> None:
    run = make_run()
    entry = run.entry("t2d")
    old, new = ledger.lease(run.id), ledger.lease(run.id)
    assert (old, new) == (1, 2)
    for result in (training(run), scored(run, 0.1)):
        ledger.stage(result, old)
        assert not ledger.commit(result.entry, old)
        assert not ledger.has(result.entry)
        assert not ledger.staged(result.entry, old)
    ledger.stage(scored(run, 0.2), new)
    assert ledger.commit(entry, new)
    assert ledger.scores(entry).metrics["t2d/recall@10"].value == 0.2


def test_a_second_commit_changes_nothing(ledger: Ledger) -> None:
    run = make_run()
    do(ledger, run, 0.1)
    again = ledger.lease(run.id)
    for result in (training(run), scored(run, 0.2)):
        ledger.stage(result, again)
        assert not ledger.commit(result.entry, again)
        assert not ledger.staged(result.entry, again)
    assert (recall(ledger, run), ledger.record(run).attempt) == (0.1, 1)


def test_of_many_commits_at_once_one_wins(tmp_path: Path) -> None:
    """Two drivers that know nothing of each other: each staged its own attempt, and both publish."""
    ledger, run = Ledger(tmp_path), make_run()
    entry = run.entry("t2d")
    for attempt in range(1, 7):  # attempts that were never leased: nothing but the publication itself can refuse
        ledger.stage(scored(run, attempt / 10), attempt)
    with ThreadPoolExecutor(6) as pool:
        won = list(pool.map(lambda attempt: Ledger(ledger.url).commit(entry, attempt), range(1, 7)))
    assert sum(won) == 1
    winner = won.index(True) + 1
    assert ledger.scores(entry).attempt == winner
    assert ledger.scores(entry).metrics["t2d/recall@10"].value == winner / 10


def test_another_driver_adopts_the_result_meanwhile(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver is paused after it looked and before it publishes: another finds its result, and makes it the entry."""
    run = make_run()
    entry, attempt = run.entry("t2d"), ledger.lease(run.id)
    ledger.stage(scored(run, 0.3), attempt)
    other = Ledger(ledger.url)
    looked = Ledger.has

    def paused(self: Ledger, name: str) -> bool:
        found = looked(self, name)
        if self is ledger:
            open_storage(other.url).publish(f".staging/{entry}.{attempt}", entry)
        return found

    monkeypatch.setattr(Ledger, "has", paused)
    assert not ledger.commit(entry, attempt)
    assert other.scores(entry).metrics["t2d/recall@10"].value == 0.3


def test_a_run_whose_entry_a_person_deleted_can_be_done_again(ledger: Ledger) -> None:
    run = make_run()
    do(ledger, run, 0.1)
    for entry in (run.id, run.entry("t2d")):
        open_storage(ledger.url).remove(entry)
        assert not ledger.has(entry)
    assert ledger.remaining(run).tasks == {"t2d": ROWS["t2d"]}
    do(ledger, run, 0.2)
    assert recall(ledger, run) == 0.2


def test_of_many_leases_at_once_all_differ(tmp_path: Path) -> None:
    ledger, run = Ledger(tmp_path), make_run()
    with ThreadPoolExecutor(6) as pool:
        attempts = list(pool.map(lambda _: Ledger(ledger.url).lease(run.id), range(6)))
    assert sorted(attempts) == [1, 2, 3, 4, 5, 6]


def test_nothing_staged_is_an_error(ledger: Ledger) -> None:
    with pytest.raises(FileNotFoundError):
        ledger.commit(make_run().id, ledger.lease(make_run().id))


def test_a_failure_stays_until_the_run_is_done(ledger: Ledger) -> None:
    run = make_run()
    attempt = ledger.lease(run.id)
    failure = ledger.fail(run, attempt, "ValueError: loss", "Traceback …\nValueError: loss")
    open_storage(ledger.url).write(".failures/of my own.json", b"{}")
    assert ledger.failed() == {run.id: failure}
    assert (failure.run.label, failure.attempt, failure.error) == (run.label, 1, "ValueError: loss")
    assert ledger.failed([run]) == {run.id: failure}
    assert ledger.failed([make_run(1)]) == {}
    assert ledger.failed()[run.id].final is False
    final = ledger.fail(run, attempt, "StudyError: rows", "Traceback …", final=True)
    failure = ledger.failed()[run.id]
    assert (failure, failure.final, failure.error) == (final, True, "StudyError: rows")
    ledger.stage(training(run), attempt)
    assert ledger.commit(run.id, attempt)
    assert ledger.failed() == {run.id: failure}  # trained, and not scored yet
    do(ledger, run)
    assert ledger.failed() == {}
    assert open_storage(ledger.url).children(".failures") == ["of my own.json"]


def test_a_failure_may_name_what_is_no_text(tmp_path: Path) -> None:
    """Such as a file whose name is no UTF-8."""
    ledger, run, said = Ledger(tmp_path), make_run(), "NothingLeft: the command left \udcff.bin"
    failure = ledger.fail(run, ledger.lease(run.id), said, f"Traceback …\n{said}")
    assert ledger.failed() == {run.id: failure}
    assert failure.error == said
    assert (
        Path(failure.log).read_text(encoding="utf-8") == "Traceback …\nNothingLeft: the command left \\udcff.bin"
    )


def test_claims_are_written_once(ledger: Ledger) -> None:
    h1, h2 = {"claim": "H1", "expect": "better"}, {"claim": "H2", "expect": "equivalent", "margin": 0.01}
    assert ledger.declared("study") is None
    first = ledger.declare("study", [h1])
    assert first.claims == (h1,)
    later = ledger.declare("study", [h2, h1])
    assert (later.claims, later.digest) == ((h1,), first.digest)
    assert ledger.declared("study") == first
    assert ledger.declared("another/study") is None


def test_altered_claims_are_noticed(tmp_path: Path) -> None:
    Ledger(tmp_path).declare("study", [{"claim": "H1", "expect": "better"}])
    file = tmp_path / ".declared" / "study.json"
    file.write_text(file.read_text().replace("better", "worse"))
    with pytest.raises(LedgerError, match=r"study\.json: it is not as it was written"):
        Ledger(tmp_path).declared("study")
    former = {name: value for name, value in json.loads(file.read_text()).items() if name != "sha256"}
    file.write_text(json.dumps(former))  # as before notes had seals
    with pytest.raises(LedgerError, match=r"study\.json: the declared claims were altered"):
        Ledger(tmp_path).declared("study")


@pytest.mark.parametrize(
    "claim",
    [{"says": []}, {"seeds": "0"}, {"seeds": [0, True]}, {"seeds": [0.5]}, {"seeds": {"start": 2}}, {"seeds": 2}],
)
def test_claims_of_another_form_are_named(tmp_path: Path, claim: dict[str, object]) -> None:
    """With a digest all the same, as in a stranger's passport."""
    good = {"claim": "H1", "says": {"tiny": "5ea4c4"}}
    for seeds in ([0, 1], {"start": 2, "max": 4}):
        assert Ledger(tmp_path).declare(f"{seeds}", [{**good, "seeds": seeds}]).claims[0]["seeds"] == seeds
    with pytest.raises(
        LedgerError, match=r"study\.json: .*a claim's (says is no|seeds are neither) .*\n  accepted: "
    ):
        Ledger(tmp_path).declare("study", [{**good, **claim}])
    assert len(Ledger(tmp_path).declarations()) == 2  # the others are read all the same


def test_set_aside_twice(ledger: Ledger) -> None:
    run = make_run()
    do(ledger, run)
    for entry in run.entries:
        first = ledger.set_aside(entry)
        assert ledger.lacking(run) == (entry,)
        assert ledger.model_size(run) == (0 if entry == run.id else 2 + 2)
        do(ledger, run)
        assert ledger.set_aside(entry) != first
        do(ledger, run)
    assert ledger.entries() == set(run.entries)
    with pytest.raises(KeyError):
        ledger.training("0" * 16)


def test_set_aside_again_after_an_earlier_one_was_deleted(tmp_path: Path) -> None:
    ledger, run = Ledger(tmp_path), make_run()
    do(ledger, run)
    first = ledger.set_aside(run.id)
    do(ledger, run)
    second = ledger.set_aside(run.id)
    shutil.rmtree(first)
    do(ledger, run)
    assert ledger.set_aside(run.id) not in (first, second)


def test_a_ledger_that_lets_nobody_look_into_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is there is not known, which is not that nothing is. (Root may look anywhere: the answer is made up.)"""
    ledger, run = Ledger(tmp_path), make_run()
    do(ledger, run)

    def refused(path: str) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", path)

    monkeypatch.setattr(os, "lstat", refused)
    for look in (ledger.has, ledger.audit, ledger.training, ledger.set_aside):
        with pytest.raises(StudyError, match=r"^ledger .*: .*Permission denied.*\n  accepted: a folder that may"):
            look(run.id)


@pytest.mark.parametrize("between", [0, 1, 2])
def test_checkpoints_pass_to_the_next_attempt(tmp_path: Path, between: int) -> None:
    ledger, run = Ledger(tmp_path), make_run()
    first = ledger.scratch(run.id, ledger.lease(run.id))
    assert first is not None
    (first / "step").write_text("7")
    for _ in range(between):
        ledger.lease(run.id)  # an attempt that never came to life
    attempt = ledger.lease(run.id)
    last = ledger.scratch(run.id, attempt)
    assert last is not None
    assert (last / "step").read_text() == "7"
    assert not first.exists()
    ledger.stage(training(run), attempt)
    assert ledger.commit(run.id, attempt)
    assert last.exists()  # its scores are not there yet
    ledger.forget(run.id)
    assert not last.exists()


def test_the_newest_checkpoints_pass_on_though_an_older_lane_woke_late(ledger: Ledger, tmp_path: Path) -> None:
    """It writes its own once more, after those of the attempt that took its place."""
    run, into = make_run(), tmp_path / "into"
    into.mkdir()
    for attempt, step in ((1, "7"), (2, "9"), (10, "11"), (2, "10"), (1, "8")):
        folder = tmp_path / f"of {attempt}" if ledger.remote else tmp_path / f"ledger/.scratch/{run.id}.{attempt}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "step").write_text(step)
        if ledger.remote:
            ledger.keep_checkpoint(run.id, attempt, folder)
    if ledger.remote:
        ledger.checkpoint(run.id, into)
    assert ((ledger.scratch(run.id, 11) or into) / "step").read_text() == "11"


def test_checkpoints_of_a_lane_that_woke_late_are_dropped(tmp_path: Path) -> None:
    """Its run is done by then; it goes on all the same, writes where its checkpoints were, and is refused."""
    ledger, run = Ledger(tmp_path), make_run()
    late = ledger.scratch(run.id, ledger.lease(run.id))
    assert late is not None
    do(ledger, run, 0.1)
    late.mkdir()
    ledger.stage(scored(run, 0.2), 1)
    assert not ledger.commit(run.entry("t2d"), 1)
    ledger.forget(run.id)
    assert os.listdir(tmp_path / ".scratch") == os.listdir(tmp_path / ".staging") == []


# Drivers that come and go

HOLD = """
    import signal, sys
    from pathlib import Path
    from orchestration.ledger.ledger import Ledger
    from orchestration.study.run import Run, Scored, Trained
    ledger, run = Ledger(sys.argv[1]), Run.from_dict({run!r})
    def wait(folder=None):
        print("ready", flush=True)
        signal.pause()
    with ledger.drive("study"):
        attempt = ledger.lease(run.id)
        {then}
"""


def start_driver(url: str, then: str) -> subprocess.Popen[str]:
    """Another process that drives the study, leases the run, does `then`, and says when it is there."""
    code = textwrap.dedent(HOLD).format(run=make_run().to_dict(), then=then)
    process = subprocess.Popen([sys.executable, "-c", code, url], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def end(process: subprocess.Popen[str], how: signal.Signals = signal.SIGKILL) -> None:
    process.send_signal(how)
    process.communicate(timeout=30)


def test_one_driver_at_a_time(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    other = start_driver(ledger.url, "wait()")
    with (
        pytest.raises(
            StudyError, match=rf"study is being run by process {other.pid} on .*\n  accepted: .*another ledger$"
        ),
        ledger.drive("study"),
    ):
        pass
    with ledger.drive("another study"):
        assert ledger.held_elsewhere(make_run().id)
    end(other)
    with ledger.drive("study"):
        assert not ledger.held_elsewhere(make_run().id)
        with pytest.raises(StudyError, match="this process itself"), Ledger(tmp_path).drive("study"):
            pass
    with ledger.drive("study"):
        pass


@pytest.fixture
def quick_beats(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lock that may be stale is watched for a quarter of a second."""
    monkeypatch.setattr(drivers, "BEAT_SECONDS", 0.1)


@pytest.mark.usefixtures("quick_beats")
@pytest.mark.parametrize("host", [f"not-{socket.gethostname()}", socket.gethostname()])
@pytest.mark.parametrize(("age", "free"), [(1.0, False), (3600.0, True), (-365 * 86400.0, True)])
def test_a_driver_out_of_sight_lives_by_its_beat(ledger: Ledger, host: str, age: float, free: bool) -> None:
    """On another host, or in another container of this host's name. One whose clock is ahead is not waited for."""
    lock = {
        "study": "study",
        "host": host,
        "pid": 2**22 + 1,  # no process has so high an id
        "started": 1.0,
        "beat": time.time() - age,
    }
    open_storage(ledger.url).create(".drivers/study/4", json.dumps(lock).encode())
    if free:
        with ledger.drive("study"):
            pass
    else:
        with pytest.raises(StudyError, match=f"being run by process 4194305 on {host}"), ledger.drive("study"):
            pass


@pytest.mark.parametrize("off", [-300.0, 365 * 86400.0])
def test_a_driver_whose_clock_is_off_is_named(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, off: float
) -> None:
    """It goes on beating, by its own clock, and keeps its study."""
    monkeypatch.setattr(drivers, "BEAT_SECONDS", 0.8)  # watched for two seconds: a full machine delays a beat
    storage, done = LocalStorage(tmp_path), threading.Event()

    def beat() -> None:
        while not done.is_set():
            storage.write(".drivers/study/1", lock(7, time.time() + off))
            done.wait(0.02)

    beating = threading.Thread(target=beat)
    beating.start()
    until(lambda: storage.children(".drivers/study") == ["1"])
    try:
        with (
            pytest.raises(
                StudyError, match=r"process 7 on elsewhere \(its clock is \d+ s (ahead of|behind) this one"
            ),
            Ledger(tmp_path).drive("study"),
        ):
            pass
    finally:
        done.set()
        beating.join()
    said = capfd.readouterr().err
    assert "the last sign of life of process 7 on elsewhere is" in said
    assert ("after" if off > 0 else "before") in said


def test_a_driver_that_stands_still_on_this_host_has_no_clock_of_its_own(tmp_path: Path) -> None:
    lock = {**this_process("study").to_dict(), "beat": time.time() - 300}
    LocalStorage(tmp_path).create(".drivers/study/1", json.dumps(lock).encode())
    with (
        pytest.raises(StudyError, match=r"is being run by this process itself\n  accepted: "),
        Ledger(tmp_path).drive("study"),
    ):
        pass


def a_lock(**fields: object) -> str:
    return json.dumps({**this_process("study").to_dict(), "beat": time.time(), **fields})


def test_a_driver_lives_on_when_the_clock_is_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """When a process began is told by the clock of now: it seems another one, and is watched, once."""
    monkeypatch.setattr(drivers, "BEAT_SECONDS", 0.8)  # watched for two seconds: a full machine delays a beat
    with Ledger(tmp_path).drive("study"):
        began = psutil.Process().create_time()
        monkeypatch.setattr(psutil.Process, "create_time", lambda process: began + 2)
        for _ in range(2):
            with pytest.raises(StudyError, match="this process itself"), Ledger(tmp_path).drive("study"):
                pass
    assert capfd.readouterr().err.count("watching it for") == 1


@pytest.mark.usefixtures("quick_beats")
def test_a_process_id_that_was_given_again_holds_nothing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    put(tmp_path / ".drivers" / "study" / "1", a_lock(started=1.0))
    with Ledger(tmp_path).drive("study"):
        assert "watching it for" in capfd.readouterr().err


def test_a_driver_that_was_killed_holds_nothing_though_nobody_asked_after_it(tmp_path: Path) -> None:
    """Its process is in the table until its parent asks; without one that does, as in some containers, for ever."""
    other = start_driver(str(tmp_path), "wait()")
    other.kill()
    until(lambda: psutil.Process(other.pid).status() == psutil.STATUS_ZOMBIE)
    with Ledger(tmp_path).drive("study"):
        pass
    end(other)


@pytest.mark.timeout(20)  # a pipe is not waited for
@pytest.mark.parametrize(
    "content",
    [
        *("", "{", "[]", "{}", '{"study": 5}', "[" * 100_000, "a folder", "a pipe"),
        *(a_lock(**wrong) for wrong in ({"pid": -1}, {"pid": 0}, {"beat": math.nan}, {"beat": math.inf})),
        a_lock(host="elsewhere", beat=math.nan),
    ],
)
def test_a_lock_that_is_damaged_is_named(tmp_path: Path, content: str) -> None:
    place = tmp_path / ".drivers" / "study" / "3"
    put(place, content)
    (place.parent / ".DS_Store").write_text("")
    with (
        pytest.raises(LedgerError, match=r"\.drivers/study/3: .*\n  accepted: .*delete"),
        Ledger(tmp_path).drive("study"),
    ):
        pass


def put(place: Path, content: str) -> None:
    """Something where a file of the ledger belongs."""
    place.parent.mkdir(parents=True, exist_ok=True)
    if content == "a folder":
        place.mkdir()
    elif content == "a pipe":
        os.mkfifo(place)
    else:
        place.write_text(content)


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"run": 5}', "[" * 100_000, '{"a": 1e999}', "a folder", "a pipe"]
)
def test_small_files_that_are_damaged_are_named(tmp_path: Path, content: str) -> None:
    """Each with what mends it. A lease that cannot be read is nobody's."""
    ledger, run = Ledger(tmp_path), make_run()
    asks: dict[str, Callable[[], object]] = {
        f".failures/{run.id}.json": ledger.failed,
        ".declared/study.json": lambda: ledger.declared("study"),
    }
    if content != '{"a": 1e999}':
        asks[".searches/study/margins/0.json"] = lambda: ledger.points("study", "margins").suggested()
    if content == '{"run": 5}':
        del asks[".searches/study/margins/0.json"]  # as good a point as any
    else:
        asks[".searches/study/stopped/0-1.stopped.json"] = lambda: ledger.points("study", "stopped").stopped()
    why = "it is no plain file" if content in ("a folder", "a pipe") else ""
    for name, ask in asks.items():
        put(tmp_path / name, content)
        with pytest.raises(LedgerError, match=rf"{re.escape(name)}: .+{why}.*\n  accepted: .+"):
            ask()
    put(tmp_path / ".attempts" / run.id / "4", content)
    for foreign in (".DS_Store", ".nfs0001", "notes"):
        (tmp_path / ".attempts" / run.id / foreign).write_text("")
        (tmp_path / ".failures" / foreign).write_text("")
    assert not ledger.held_elsewhere("0" * 16)
    (tmp_path / ".failures" / f"{run.id}.json").rename(tmp_path / "gone")
    assert not ledger.held_elsewhere(run.id)
    assert ledger.lease(run.id) == 5
    assert ledger.failed() == {}


@pytest.mark.parametrize("name", ["runs::1", "a::b/ledger", "s3::ledger", "~x", "what?", "50%41", "[x]*"])
def test_a_path_is_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Whatever its letters mean to fsspec: the ledger lies there, for who names it so and for who has its place."""
    monkeypatch.chdir(tmp_path)
    driver = Ledger(name)
    driver.declare("study", [])
    assert driver.url == str(tmp_path / name)
    assert (tmp_path / name / ".declared" / "study.json").exists()
    assert Ledger(driver.url).declared("study") == Ledger(tmp_path / name).declared("study") is not None


def test_a_file_url_is_its_path(tmp_path: Path) -> None:
    """One ledger under both names, with runs that appear by rename."""
    named, run = Ledger(f"file://{tmp_path}/ledger"), make_run()
    do(named, run)
    assert (named.url, named.remote) == (str(tmp_path / "ledger"), False)
    assert Ledger(tmp_path / "ledger").entries() == set(run.entries)


def test_a_path_from_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Ledger("~/ledger").url == str(tmp_path / "ledger")


@pytest.mark.parametrize("end", ["finished", "failed"])
def test_a_lease_ends_with_its_run(tmp_path: Path, end: str) -> None:
    """Its driver lives on; a study that lacks the run later, since it was set aside, does not wait for that one."""
    one, other, run = Ledger(tmp_path), Ledger(tmp_path), make_run()
    with one.drive("one"), other.drive("other"):
        attempt = one.lease(run.id)
        assert other.held_elsewhere(run.id) == one.driver
        assert not one.held_elsewhere(run.id)  # none waits for itself
        if end == "finished":
            do(one, run)
            one.set_aside(run.id)
        else:
            one.fail(run, attempt, "ValueError: no", "")
        assert not other.held_elsewhere(run.id)
        assert other.lease(run.id) == one.newest(run.id)
        assert one.held_elsewhere(run.id)
        one.forget(run.id)  # what another driver leased is not this one's to end
        assert one.held_elsewhere(run.id)


def lock(pid: int, beat: float) -> bytes:
    return json.dumps({"study": "study", "host": "elsewhere", "pid": pid, "started": 1.0, "beat": beat}).encode()


def test_a_driver_whose_study_was_taken_over(ledger: Ledger) -> None:
    """It was paused for longer than others wait, and finds out when it begins its next run."""
    run = make_run()
    with ledger.drive("study"):
        attempt = ledger.lease(run.id)
        open_storage(ledger.url).create(".drivers/study/2", lock(7, time.time()))
        with pytest.raises(
            StudyError, match=r"study study was taken over by process 7 on elsewhere.*\n  accepted: "
        ):
            ledger.lease(run.id)
        assert ledger.newest(run.id) == attempt
    with pytest.raises(StudyError, match="being run by process 7"), ledger.drive("study"):
        pass


class Slow(LocalStorage):
    """A store that is slow at one moment: there, others act. It is a store in all other respects."""

    def __init__(self, root: Path, moment: str, others: Callable[[LocalStorage], None]) -> None:
        super().__init__(root)
        self.moment, self.others = moment, [others]

    def _pass(self, moment: str) -> None:
        if moment == self.moment and self.others:
            self.others.pop()(LocalStorage(self.root))

    def read(self, name: str) -> bytes:
        self._pass("before reading the lock")
        return super().read(name)

    def create(self, name: str, content: bytes, *, durable: bool = True) -> None:
        self._pass("before creating a lock")
        super().create(name, content, durable=durable)


def test_a_number_that_another_leases_meanwhile_is_not_leased_again(tmp_path: Path) -> None:
    run = make_run()
    slow = Slow(tmp_path, "before creating a lock", lambda storage: attempts.lease(storage, run.id, None))
    assert attempts.lease(slow, run.id, None) == 2
    assert Ledger(tmp_path).newest(run.id) == 2


@pytest.mark.usefixtures("quick_beats")
@pytest.mark.parametrize("moment", ["before reading the lock", "before creating a lock"])
@pytest.mark.parametrize("left", [["2"], ["3"], ["2", "3"]])
def test_two_that_find_one_stale_lock(tmp_path: Path, moment: str, left: list[str]) -> None:
    """While one of them is slow the other takes over, perhaps twice: the slow one is refused, and nothing is lost."""
    LocalStorage(tmp_path).create(".drivers/study/1", lock(1, time.time() - 3600))

    def others(storage: LocalStorage) -> None:
        for number in left:
            storage.create(f".drivers/study/{number}", lock(int(number), time.time()))
        storage.remove(".drivers/study/1")

    with pytest.raises(StudyError, match=f"run by process {left[-1]} on elsewhere"):  # noqa: SIM117
        with driving(Slow(tmp_path, moment, others), "study"):
            pass
    assert LocalStorage(tmp_path).children(".drivers/study")[-1:] == left[-1:]


@pytest.mark.usefixtures("quick_beats")
def test_a_study_released_while_its_lock_is_watched_is_free(tmp_path: Path) -> None:
    """Its driver was on a host whose clock is off, and ended meanwhile."""
    place = ".drivers/study/1"
    LocalStorage(tmp_path).create(place, lock(7, time.time() - 3600))

    def release(storage: LocalStorage) -> None:
        storage.write(place, lock(7, drivers.RELEASED))

    slow = Slow(tmp_path, "before reading the lock", lambda _: slow.others.append(release))
    with driving(slow, "study"):
        assert LocalStorage(tmp_path).children(".drivers/study") == ["2"]


@pytest.mark.usefixtures("quick_beats")
def test_a_driver_taken_for_dead_lives_once_it_beats_again(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """It was paused. Until then it is watched once, however many of its runs are asked about."""
    storage = LocalStorage(tmp_path)
    paused = drivers.Driver(study="study", host="elsewhere", pid=7, started=1.0)
    storage.create(".drivers/study/1", lock(7, time.time() - 3600))
    assert [drivers.is_driving(storage, paused) for _ in range(2)] == [False, False]
    assert capfd.readouterr().err.count("watching it for") == 1
    storage.write(".drivers/study/1", lock(7, time.time()))
    assert drivers.is_driving(storage, paused)


def test_a_study_changes_hands_again_and_again(ledger: Ledger) -> None:
    """Numbers never start anew, so that whoever was away cannot take one that is in use again."""
    storage = open_storage(ledger.url)
    for number in ("1", "2", "3"):
        with ledger.drive("study"):
            assert storage.children(".drivers/study") == [number]
        assert storage.children(".drivers/study") == [number]


def test_a_driver_lives_on_while_its_store_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(drivers, "BEAT_SECONDS", 0.01)
    place = tmp_path / ".drivers" / "study"

    def beat() -> float:
        return json.loads((place / "1").read_text())["beat"]

    with driving(LocalStorage(tmp_path), "study"):
        place.rename(tmp_path / "away")
        place.write_text("a file where the folder was")
        said = ""
        while "is away" not in said:
            said += capfd.readouterr().err
        place.unlink()
        (tmp_path / "away").rename(place)
        before = beat()
        while beat() == before:
            pass
    assert (said + capfd.readouterr().err).count("is away, trying on") == 1


@pytest.mark.parametrize(
    "act",
    [
        lambda ledger: ledger.ids(),
        lambda ledger: ledger.held([make_run()]),
        lambda ledger: ledger.drive("study").__enter__(),
    ],
)
@pytest.mark.parametrize("url", ["foo://x", "a file", "s3://bucket/x"])
def test_a_ledger_that_cannot_be_reached(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    url: str,
    act: Callable[[Ledger], object],
) -> None:
    if url == "a file":
        url = str(tmp_path / "file")
        Path(url).write_text("")
    if url.startswith("s3:"):
        forget = pytest.importorskip("s3fs").S3FileSystem.clear_instance_cache
        forget()  # the credentials of other tests, and below those of this one
        request.addfinalizer(forget)
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
        monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(StudyError, match=rf"^ledger {re.escape(url)}.*: .+\n  accepted: "):
        act(Ledger(url))


def test_stray_names_among_the_staged_are_left_alone(tmp_path: Path) -> None:
    ledger, run = Ledger(tmp_path), make_run()
    ledger.stage(training(run), ledger.lease(run.id))
    (tmp_path / ".staging" / ".DS_Store").write_text("")
    (tmp_path / ".staging" / "notes.old").mkdir()
    with ledger.drive("study") as adopted:
        assert adopted == [run.id]
    assert sorted(os.listdir(tmp_path / ".staging")) == [".DS_Store", "notes.old"]


def test_a_finished_run_of_a_killed_driver_is_adopted(tmp_path: Path) -> None:
    ledger, run = Ledger(tmp_path), make_run()
    other = start_driver(ledger.url, "ledger.stage(Trained(run=run), attempt); wait()")
    assert ledger.adopt() == []  # its driver lives
    assert ledger.staged(run.id, 1)
    end(other)
    ledger.fail(run, 1, "lane lost", "")
    for left in (f".train/{run.id}/state", f".scratch/{run.id}.1/step"):
        open_storage(ledger.url).write(left, b"")
    with ledger.drive("study") as adopted:
        assert adopted == [run.id]
    assert ledger.training(run.id).attempt == 1
    assert ledger.adopt() == []
    assert ledger.failure(run.id) is None  # what is done leaves nothing but its entries and its attempts' numbers
    assert os.listdir(tmp_path / ".train") == os.listdir(tmp_path / ".scratch") == []


def test_a_half_written_run_of_a_killed_driver_is_dropped(tmp_path: Path) -> None:
    """The process dies while the model is being written, which comes before the marker."""
    ledger, run = Ledger(tmp_path), make_run()
    other = start_driver(ledger.url, "ledger.stage(Trained(run=run, save_model=wait), attempt)")
    assert os.listdir(tmp_path / ".staging") == [f"{run.id}.1.part"]
    assert ledger.adopt() == []
    assert os.listdir(tmp_path / ".staging") == [f"{run.id}.1.part"]
    end(other)
    with ledger.drive("study") as adopted:
        assert adopted == []
    assert os.listdir(tmp_path / ".staging") == []
    assert ledger.ids() == set()


def test_what_a_lane_wrote_before_it_failed_is_no_part_of_its_result(ledger: Ledger) -> None:
    """The same attempt is staged again."""
    run = make_run()
    attempt = ledger.lease(run.id)

    def full(folder: Path) -> None:
        (folder / "half").write_bytes(b"")
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        ledger.stage(replace(training(run), save_model=full), attempt)
    assert not ledger.staged(run.id, attempt)
    ledger.stage(training(run), attempt)
    assert ledger.commit(run.id, attempt)
    model = ledger.model(run)
    assert model is not None
    assert sorted(os.listdir(model)) == ["0_part", "config.json"]
    assert ledger.audit(run.id) is None


def test_of_several_orphans_the_newest_is_adopted(ledger: Ledger) -> None:
    """The tenth attempt is newer than the ninth."""
    run = make_run()
    for _ in range(8):
        ledger.lease(run.id)
    for value in (0.1, 0.2):
        attempt = ledger.lease(run.id)
        for result in (training(run), scored(run, value)):
            ledger.stage(result, attempt)
    ledger.lease(run.id)
    assert sorted(ledger.adopt()) == [run.id, run.entry("t2d")]
    assert ledger.training(run.id).attempt == 10
    assert ledger.scores(run.entry("t2d")).metrics["t2d/recall@10"].value == 0.2
    assert not ledger.staged(run.id, 9)


# Any order of events


class LedgerMachine(RuleBasedStateMachine):
    """A driver leases, its lanes stage, it commits; it may die between any two steps, and lanes may wake up late."""

    url_prefix = "local"

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.ledger = Ledger(self.folder.name if self.url_prefix == "local" else f"memory://{uuid.uuid4().hex}")
        self.runs = [make_run(seed) for seed in range(2)]
        self.leased: dict[str, list[int]] = {run.id: [] for run in self.runs}
        self.staged: set[tuple[str, int]] = set()
        self.entries: dict[str, int] = {}  # entry -> the attempt that must stay

    def teardown(self) -> None:
        self.folder.cleanup()

    runs_by = st.sampled_from([0, 1])

    @rule(which=runs_by)
    def lease(self, which: int) -> None:
        run = self.runs[which]
        attempt = self.ledger.lease(run.id)
        assert attempt > max(self.leased[run.id], default=0)
        self.leased[run.id].append(attempt)

    @rule(which=runs_by, trained=st.booleans(), data=st.data())
    def stage(self, which: int, trained: bool, data: st.DataObject) -> None:
        run = self.runs[which]
        entry = run.id if trained else run.entry("t2d")
        fresh = [attempt for attempt in self.leased[run.id] if (entry, attempt) not in self.staged]
        if fresh:
            attempt = data.draw(st.sampled_from(fresh))
            score = Score(metric="t2d/attempt", value=attempt)
            self.ledger.stage(
                Trained(run=run) if trained else Scored(run=run, task="t2d", scores=[score]), attempt
            )
            self.staged.add((entry, attempt))

    @precondition(lambda self: self.staged)
    @rule(data=st.data())
    def commit(self, data: st.DataObject) -> None:
        entry, attempt = data.draw(st.sampled_from(sorted(self.staged)))
        expected = entry not in self.entries and attempt == max(self.leased[run_of(entry)])
        assert self.ledger.commit(entry, attempt) == expected
        self.staged.remove((entry, attempt))
        if expected:
            self.entries[entry] = attempt

    @rule()
    def crash(self) -> None:
        """The driver dies and comes again: what was whole and not in the ledger is adopted, newest first."""
        self.ledger = Ledger(self.ledger.url)
        with self.ledger.drive("study") as adopted:
            pass
        orphans: dict[str, int] = {}
        for entry, attempt in sorted(self.staged):
            if entry not in self.entries:
                orphans[entry] = attempt
        assert sorted(adopted) == sorted(orphans)
        self.entries.update(orphans)
        self.staged.clear()

    @invariant()
    def every_entry_is_there_once_and_unchanged(self) -> None:
        assert self.ledger.entries() == set(self.entries)
        for entry, attempt in self.entries.items():
            assert self.ledger.audit(entry) is None
            trained = run_of(entry) == entry
            record = self.ledger.training(entry) if trained else self.ledger.scores(entry)
            assert record.attempt == attempt
            assert trained or record.metrics["t2d/attempt"].value == attempt


class MemoryLedgerMachine(LedgerMachine):
    url_prefix = "memory"


quick = settings(max_examples=40, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck))
TestLocalOrders = LedgerMachine.TestCase
TestLocalOrders.settings = quick
TestMemoryOrders = MemoryLedgerMachine.TestCase
TestMemoryOrders.settings = quick


def test_a_point_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    """The ledger's folder for searches is a file: as on a disk that fails, the search ends and says so."""
    points = Ledger(tmp_path).points("margins", "0" * 16)
    points.suggest(0, {"hn_margin": 0.2})
    assert points.suggested() == [{"hn_margin": 0.2}]
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / ".searches").write_text("")
    with pytest.raises(StudyError, match=rf"ledger {tmp_path}/other: .*\n  accepted: a folder"):
        Ledger(tmp_path / "other").points("margins", "0" * 16).suggest(0, {"hn_margin": 0.2})
