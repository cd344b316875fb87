"""The ledger from outside: what is committed is whole, once, and stays; what is damaged is named."""

from __future__ import annotations

import errno
import json
import math
import os
import shutil
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from evaluators.metrics.scores import Score
from orchestration.ledger.ledger import Ledger
from orchestration.ledger.notes import LedgerError
from orchestration.ledger.storage import open_storage
from orchestration.study.run import Run, Scored, Trained
from tests.ledger_runs import CURVE, ROWS, do, make_run, save_model, scored, scores, training
from tests.results import finish, put
from trainers.engine.world import Progress


def recall(ledger: Ledger, run: Run) -> float:
    return ledger.record(run).metrics["t2d/recall@10"].value


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


def test_a_curve_holds_what_was_told_of_a_step_and_nothing_else(ledger: Ledger) -> None:
    """A script tells its learning rate as any other figure; of what a trainer does not know there is no row of zeros."""
    run = make_run()
    of_script = Progress(step=1, steps=2, loss=2.0, figures={"learning_rate": 3e-4})
    of_trainer = Progress(step=2, steps=2, loss=1.0, learning_rate=0.0, sentences_per_second=7.0)
    finish(ledger, run, scores(), curve=[of_script, of_trainer])
    assert [tuple(row.values()) for row in ledger.curve(run).to_pylist()] == [
        (1, "loss", 2.0),
        (1, "learning_rate", 3e-4),
        (2, "loss", 1.0),
        (2, "learning_rate", 0.0),
        (2, "sentences_per_second", 7.0),
    ]


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
    put(
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
