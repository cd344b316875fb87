"""A ledger in an object store: how few requests it takes, and what becomes of it when somebody dies in between."""

from __future__ import annotations

import json
import logging
import re
import sys
import uuid
from collections import Counter
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest

from evaluators.metrics.scores import Score
from orchestration.ledger import drivers, object_storage
from orchestration.ledger.ledger import Ledger
from orchestration.ledger.object_storage import ObjectStorage
from orchestration.ledger.seal import SEAL
from orchestration.ledger.storage import open_storage
from orchestration.study.errors import StudyError
from orchestration.study.run import Run, Scored, Trained
from tests.buckets import s3_bucket
from tests.counting_store import CountingStore, requests
from tests.results import finish

SCORES = [Score(metric="t2d/mrr", value=0.5)]


def make_run(seed: int = 0) -> Run:
    return Run(
        family="concept",
        arm="B1",
        backbone="tiny",
        seed=seed,
        settings={"steps": 2},
        data={},
        tasks={"t2d": "r" * 8},
        defining={"steps": 2},
        backbone_fingerprint="b" * 8,
        corpus_fingerprint="c" * 8,
    )


def save_model(folder: Path) -> None:
    for number in range(12):
        (folder / f"part{number}").write_bytes(b"0" * number)


def all_of_it(ledger: Ledger) -> None:
    """Every thing that a study asks of its ledger."""
    runs = [make_run(seed) for seed in range(3)]
    with ledger.drive("study"):
        ledger.declare("study", [{"claim": "H1"}])
        for run in runs[:2]:
            finish(ledger, run, SCORES, save_model=save_model)
        ledger.fail(runs[2], ledger.lease(runs[2].id), "ValueError", "Traceback")
        assert len(ledger.held(runs)) == 4
        assert len(ledger.entries()) == 4
        assert list(ledger.records(runs[:2])) == [run.id for run in runs[:2]]
        assert ledger.failed().keys() == {runs[2].id}
        assert ledger.model(runs[0])
        ledger.drop_model(runs[1])
        ledger.set_aside(runs[1].id)


def test_requests_are_counted_as_a_server_counts_them(
    url: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other tests count by a store in memory; here the same is asked of a server of S3."""
    monkeypatch.setattr(drivers, "BEAT_SECONDS", 600.0)  # none, however slow the server is
    with requests() as asked:
        all_of_it(Ledger(url))
    kinds = Counter(kind for kind, _, _ in asked)
    with s3_bucket() as bucket, caplog.at_level(logging.INFO, "werkzeug"):
        ledger = Ledger(f"{bucket}/{uuid.uuid4().hex}")
        caplog.clear()
        all_of_it(ledger)
    lines = [re.search(r"(GET|PUT|HEAD|DELETE|POST) (\S+) HTTP", record.getMessage()) for record in caplog.records]
    served = Counter(
        "LIST" if "list-type" in line[2] else "DELETE" if line[1] == "POST" else line[1] for line in lines if line
    )
    assert served == kinds


def test_a_plan_does_not_ask_about_others(url: str) -> None:
    """100 runs beside 50,000 others, each in two entries: at most 60 requests besides reading the study's own."""
    CountingStore.of_others(url, 50_000)
    ledger, runs = Ledger(url), [make_run(seed) for seed in range(100)]
    for run in runs[:20]:
        finish(ledger, run, SCORES)
    with requests() as asked:
        held = ledger.held(runs)
        assert held == {entry for run in runs[:20] for entry in run.entries}
        assert len(ledger.records(runs[:20])) == 20
        assert ledger.failed(runs) == {}
        assert ledger.declarations() == []
    own = {run.id for run in runs}
    others = [(kind, key) for kind, key, _ in asked if not any(run_id in key for run_id in own)]
    assert len(others) <= 60
    assert len(asked) - len(others) <= 20 * (
        1 + 2 * 5
    )  # which entries; of each its pointer, its seal, three files
    with requests() as asked:
        assert ledger.held(runs[:17]) == {entry for run in runs[:17] for entry in run.entries}
    assert len(asked) <= 18


def test_a_commit_and_what_goes_with_it(url: str) -> None:
    """However large the model is, and however much there is of others."""
    CountingStore.of_others(url, 5_000)
    ledger, run = Ledger(url), make_run()
    with ledger.drive("study"):
        with requests() as asked:
            assert not ledger.held_elsewhere(run.id)
            assert ledger.lacking(run) == run.entries
            attempt = ledger.lease(run.id)
        assert len(asked) <= 8
        for result in (Trained(run=run, save_model=save_model), Scored(run=run, task="t2d", scores=SCORES)):
            ledger.stage(result, attempt)
            with requests() as asked:
                assert ledger.commit(result.entry, attempt)
            assert len(asked) <= 8
        with requests() as asked:
            ledger.forget(run.id)
        assert len(asked) <= 7
    assert ledger.holds(run)


def test_to_read_is_one_request(url: str) -> None:
    """No HEAD before it, and no listing of what lies around a name that is not there."""
    storage = open_storage(url)
    storage.write(".declared/a.json", b"{}")
    CountingStore.of_others(url, 3_000)
    with requests() as asked:
        assert storage.read(".declared/a.json") == b"{}"
        assert storage.children(".attempts/none") == []
        with pytest.raises(FileNotFoundError):
            storage.read(".declared/b.json")
    assert [kind for kind, _, _ in asked] == ["GET", "LIST", "GET"]


def test_a_driver_that_died_between_the_commit_and_its_last_word(url: str) -> None:
    """The entry is there from the pointer on; what is left of its staging goes, and its files stay."""
    ledger, run = Ledger(url), make_run()
    attempt = ledger.lease(run.id)
    ledger.stage(Trained(run=run, save_model=save_model), attempt)
    storage = open_storage(url)
    storage.create(f".entries/{run.id}/{run.id}", storage.read(f".staging/{run.id}.{attempt}"))
    assert ledger.entries() == ledger.held([run]) == {run.id}
    assert ledger.adopt() == []
    assert storage.children(".staging") == []
    assert ledger.audit(run.id) is None
    assert ledger.model(run)


def test_a_lane_that_died_while_it_uploaded(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next driver deletes what it left, and nothing stays that no name leads to."""
    ledger, run = Ledger(url), make_run()
    put = CountingStore.put_file

    def dies(self: Any, lpath: str, rpath: str, **options: Any) -> None:
        put(self, lpath, rpath)
        if rpath.endswith("part7"):
            raise KeyboardInterrupt

    monkeypatch.setattr(CountingStore, "put_file", dies)
    with pytest.raises(KeyboardInterrupt):
        ledger.stage(Trained(run=run, save_model=save_model), 1)
    assert open_storage(url).children(".results")
    assert ledger.adopt() == []
    assert open_storage(url).children(".results") == open_storage(url).children(".staging") == []
    assert ledger.entries() == frozenset()


def test_a_lane_that_was_taken_for_dead_and_went_on(url: str) -> None:
    """What it had uploaded by then was deleted: the rest is no entry, and the run is done again."""
    ledger, run = Ledger(url), make_run()
    attempt = ledger.lease(run.id)
    ledger.stage(Trained(run=run, save_model=save_model), attempt)
    (place,) = open_storage(url).children(".results")
    open_storage(url).unlink(f".results/{place}/curve.parquet")
    with requests() as asked:
        assert not ledger.commit(run.id, attempt)
    assert not [key for kind, key, _ in asked if kind == "PUT" and "/.entries/" in f"/{key}"]  # not for a moment
    assert (ledger.entries(), open_storage(url).children(".results")) == (frozenset(), [])


def laid_out_as_before(url: str, tmp_path: Path, runs: list[Run]) -> Ledger:
    """Entries with their files below their names, as a local ledger has them and object stores had them."""
    local, storage = Ledger(tmp_path / "former"), open_storage(url)
    for run in runs:
        finish(local, run, SCORES, save_model=save_model)
    for path in (tmp_path / "former").rglob("*"):
        name = path.relative_to(tmp_path / "former").as_posix()
        if path.is_file() and not name.startswith("."):
            storage.filesystem.pipe_file(f"{storage.root}/{name}", path.read_bytes())  # type: ignore[attr-defined]
    return Ledger(url)


@pytest.mark.parametrize("many", [1, 60])
def test_ledgers_of_before_are_read_and_added_to(url: str, tmp_path: Path, many: int) -> None:
    former = [make_run(seed) for seed in range(many)]
    ledger, new = laid_out_as_before(url, tmp_path, former), make_run(many)
    finish(ledger, new, SCORES)
    everything = {entry for run in (*former, new) for entry in run.entries}
    assert ledger.entries() == ledger.held([*former, new]) == everything
    assert ledger.held(former[:1]) == set(former[0].entries)
    assert all(ledger.holds(run) for run in former)
    assert ledger.records([former[0], new]).keys() == {former[0].id, new.id}
    assert ledger.audit(former[0].id) is None
    assert ledger.model(former[0])
    again = ledger.lease(former[0].id)
    ledger.stage(Trained(run=former[0]), again)
    assert not ledger.commit(former[0].id, again)  # it is there
    ledger.drop_model(former[0])
    assert (ledger.model(former[0]), ledger.audit(former[0].id)) == (None, None)
    ledger.set_aside(former[0].id)
    assert ledger.entries() == everything - {former[0].id}
    storage, first = open_storage(url), tmp_path / "former" / former[0].id
    kept = [path.name for path in first.iterdir() if path.is_file()]
    assert storage.children(former[0].id) == []
    assert storage.children(f".aside/{former[0].id}.1") == sorted(kept)
    for name in {*kept} - {SEAL}:
        assert storage.read(f".aside/{former[0].id}.1/{name}") == (first / name).read_bytes()


def test_an_entry_is_found_by_its_name_wherever_its_files_lie(url: str) -> None:
    """Who opens the ledger anew finds them, and damage is named in the place where a person can mend it."""
    ledger, run = Ledger(url), make_run()
    finish(ledger, run, SCORES, save_model=save_model)
    storage = open_storage(url)
    assert isinstance(storage, ObjectStorage)
    assert storage.read(f"{run.id}/model/part3") == b"000"
    assert ledger.size() == sum(storage.filesystem.du(storage.root, total=False).values()) > 0
    intact = storage.read(f"{run.id}/result.json")
    open_storage(url).write(f"{run.id}/result.json", b"{}")
    (place,) = (name for name in storage.children(".results") if name.startswith(f"{run.id}.1."))
    assert (ledger.audit(run.id) or "").startswith(f"{url}/.results/{place}/result.json: ")
    storage.write(f".results/{place}/result.json", intact)
    assert ledger.audit(run.id) is None


def test_an_entry_set_aside_can_be_put_back_under_its_name(url: str) -> None:
    """As a person would, with a copy of its files; whoever read it before reads the copy."""
    ledger, run = Ledger(url), make_run()
    finish(ledger, run, SCORES, save_model=save_model)
    storage = open_storage(url)
    assert isinstance(storage, ObjectStorage)
    (place,) = (name for name in storage.children(".results") if name.startswith(f"{run.id}.1."))
    ledger.set_aside(run.id)
    assert not ledger.has(run.id)
    for path in storage.filesystem.find(f"{storage.root}/.results/{place}"):
        storage.filesystem.cp_file(path, path.replace(f"/.results/{place}/", f"/{run.id}/"))
        storage.filesystem.rm_file(path)
    assert ledger.audit(run.id) is None
    assert ledger.holds(run)


def test_what_was_staged_before_is_adopted(url: str, tmp_path: Path) -> None:
    """As it lay when the driver of a former semray died: some of it chosen, and copied in part."""
    run = make_run()
    laid_out_as_before(url, tmp_path, [run])
    storage = open_storage(url)
    assert isinstance(storage, ObjectStorage)
    keys = CountingStore.buckets[storage.root.partition("/")[0]]
    for key in [key for key in keys if f"/{run.id}/" in key]:
        keys[key.replace(f"/{run.id}/", f"/.staging/{run.id}.1/")] = keys.pop(key)
    CountingStore.forget_order()
    storage.write(f".commits/{run.id}", f".staging/{run.id}.1".encode())
    storage.filesystem.pipe_file(f"{storage.root}/{run.id}/env.json", b"{}")
    ledger = Ledger(url)
    assert ledger.lacking(run) == (run.id,)
    assert ledger.adopt() == [run.id]
    assert ledger.audit(run.id) is None
    assert storage.children(".staging") == []


@pytest.mark.parametrize(
    "content",
    [
        b"[]",
        *(
            json.dumps({"place": place, "files": 3}).encode()
            for place in ("", ".", "..", ".results", ".results/", ".results/..", ".results/a/b", "/etc", None)
        ),
    ],
)
def test_a_pointer_that_is_damaged_is_named_and_nothing_deleted_by_it(url: str, content: bytes) -> None:
    ledger, run, storage = Ledger(url), make_run(), open_storage(url)
    finish(ledger, run, SCORES)
    before = sorted(storage.children(".results"))
    storage.write(f".entries/{run.id}/{run.id}", content)
    for act in (lambda: ledger.record(run), lambda: storage.remove(run.id)):
        with pytest.raises(
            StudyError, match=rf"\.entries/{run.id}/{run.id}: it points to no entry.*\n  accepted: "
        ):
            act()
    assert sorted(storage.children(".results")) == before


@pytest.mark.parametrize(
    ("code", "status"), [("412", 412), ("PreconditionFailed", 412), ("AtLeastOneDidNotHold", 412), ("Taken", 409)]
)
def test_a_store_refuses_in_its_own_words(
    url: str, monkeypatch: pytest.MonkeyPatch, code: str, status: int
) -> None:
    """s3fs knows one wording of one store; of others it makes an OSError, which would end the study."""
    errors = pytest.importorskip("s3fs.errors")
    from botocore.exceptions import ClientError

    pipe = CountingStore.pipe_file

    def refusing(self: Any, path: str, value: bytes, mode: str = "overwrite", **options: Any) -> None:
        with suppress(FileExistsError):
            return pipe(self, path, value, mode)
        said = {"Error": {"Code": code, "Message": "no"}, "ResponseMetadata": {"HTTPStatusCode": status}}
        raise errors.translate_boto_error(ClientError(said, "PutObject"))

    monkeypatch.setattr(CountingStore, "pipe_file", refusing)
    ledger, run = Ledger(url), make_run()
    storage = open_storage(url)
    storage.create("a", b"1")
    with pytest.raises(FileExistsError):
        storage.create("a", b"2")
    with ledger.drive("study"):
        assert [ledger.lease(run.id), ledger.lease(run.id)] == [1, 2]
        assert ledger.declare("study", [{"claim": "H1"}]) == ledger.declare("study", [{"claim": "H2"}])


def test_a_store_whose_package_is_missing_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    from fsspec.registry import _registry

    monkeypatch.setitem(sys.modules, "s3fs", None)
    monkeypatch.delitem(_registry, "s3", raising=False)
    with pytest.raises(StudyError, match=r"s3://.*\n  accepted: .*pip install 'semray\[s3\]'"):
        open_storage("s3://bucket/ledger")


def test_a_conflict_with_an_upload_that_is_under_way_is_tried_again(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S3 says 409 then, and shows nothing of that name: the other upload may yet fail."""
    errors = pytest.importorskip("s3fs.errors")
    from botocore.exceptions import ClientError

    monkeypatch.setattr(object_storage, "CONFLICT_SECONDS", (0.01, 0.01))
    pipe, busy = CountingStore.pipe_file, 2

    def conflicting(self: Any, path: str, value: bytes, mode: str = "overwrite", **options: Any) -> None:
        nonlocal busy
        if mode == "create" and busy:
            busy -= 1
            said = {"Error": {"Code": "ConditionalRequestConflict"}, "ResponseMetadata": {"HTTPStatusCode": 409}}
            raise errors.translate_boto_error(ClientError(said, "PutObject"))
        pipe(self, path, value, mode)

    monkeypatch.setattr(CountingStore, "pipe_file", conflicting)
    assert (Ledger(url).lease(make_run().id), busy) == (1, 0)
    busy = 3
    with pytest.raises(StudyError, match="ConditionalRequestConflict"):
        Ledger(url).lease(make_run().id)


def save_odd_names(folder: Path) -> None:
    for name in ("weights[0].bin", "what?", "plain"):
        (folder / name).write_bytes(b"0")


@pytest.mark.parametrize("server", ["in memory", "S3"])
def test_names_are_no_patterns(url: str, tmp_path: Path, server: str) -> None:
    """Of files, and of the ledger itself: nothing stays of what is deleted, and what lies beside it stays."""
    with s3_bucket() if server == "S3" else nullcontext(url) as root:
        place = f"{root}/{uuid.uuid4().hex}"
        beside, ledger, run = Ledger(f"{place}/exp1"), Ledger(f"{place}/exp[1]"), make_run()
        save_odd_names(tmp_path)
        for one in (beside, ledger):
            finish(one, run, SCORES, save_model=save_odd_names)
            for _ in range(2):
                one.keep_checkpoint(run.id, 1, tmp_path)
        ledger.drop_model(run)
        assert (ledger.model_size(run), ledger.audit(run.id)) == (0, None)
        assert open_storage(ledger.url).children(f".scratch/{run.id}") == ["1-2"]
        ledger.forget(run.id)
        assert open_storage(ledger.url).children(f".scratch/{run.id}") == []
        ledger.set_aside(run.id)
        assert open_storage(beside.url).children(f".scratch/{run.id}") == ["1-2"]
        assert beside.audit(run.id) is None
        assert beside.model_size(run) == 3


def test_a_key_that_would_lead_out_of_its_folder_is_no_file(url: str) -> None:
    """And the mark of a folder, as other programs leave them, is none."""
    ledger, run, storage = Ledger(url), make_run(), open_storage(url)
    finish(ledger, run, SCORES, save_model=save_model)
    assert isinstance(storage, ObjectStorage)
    (place,) = (f".results/{name}" for name in storage.children(".results") if name.count(".") == 2)
    for key in ("../../../out", "", "sub//x", "./y"):
        storage.filesystem.pipe_file(f"{storage.root}/{place}/model/{key}", b"1")
    folder = ledger.model(run)
    assert folder is not None
    assert sorted(path.name for path in folder.rglob("*")) == sorted(f"part{number}" for number in range(12))
    assert not list(folder.parents[3].glob("out"))


def test_downloads_end_with_their_block(url: str) -> None:
    """A lane lives through many jobs, and an audit looks at every model there is."""
    ledger, runs = Ledger(url), [make_run(seed) for seed in range(3)]
    for run in runs:
        finish(ledger, run, SCORES, save_model=save_model)
    kept = ledger.model(runs[0])
    assert kept is not None
    with ledger.downloads_end():
        within = ledger.model(runs[1])
        assert within is not None
        assert (within / "part3").exists()
    assert not within.exists()
    assert ledger.audit(runs[2].id) is None
    assert [path.name for path in kept.parents[1].iterdir()] == [runs[0].id]


def test_another_failure_of_a_store_is_no_refusal(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(self: Any, path: str, value: bytes, mode: str = "overwrite", **options: Any) -> None:
        raise OSError(5, "the store is full")

    monkeypatch.setattr(CountingStore, "pipe_file", failing)
    with pytest.raises(StudyError, match="the store is full"):
        Ledger(url).lease(make_run().id)


def test_a_store_that_is_silent_is_waited_for_in_words(
    url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("orchestration.ledger.storage.SILENT_SECONDS", 0.05)
    Ledger(url).entries()
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(CountingStore, "latency", 0.3)
    Ledger(url).entries()
    assert capsys.readouterr().err == f"ledger {url}: waiting for its answer …\n"


def test_an_endpoint_that_is_none_is_said_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    s3fs = pytest.importorskip("s3fs")
    s3fs.S3FileSystem.clear_instance_cache()
    monkeypatch.setenv("AWS_ENDPOINT_URL", "nonsense")
    with pytest.raises(StudyError, match="ledger s3://bucket/of-nobody: Invalid endpoint: nonsense"):
        Ledger("s3://bucket/of-nobody")


def test_a_store_that_is_asked_when_it_is_opened_is_said_to_be_away() -> None:
    with pytest.raises(StudyError, match=r"ledger ftp://127.0.0.1:9/x: .*refused"):
        Ledger("ftp://127.0.0.1:9/x")
