"""Where a ledger lies: paths as they are written, places that cannot be reached, and files that are not its own."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestration.ledger.ledger import Ledger
from orchestration.ledger.notes import LedgerError
from orchestration.study.errors import StudyError
from tests.ledger_runs import do, leave, make_run, training


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


@pytest.mark.parametrize(
    "act",
    [
        lambda ledger: ledger.ids(),
        lambda ledger: ledger.held([make_run()]),
        lambda ledger: ledger.drive("study").__enter__(),
    ],
)
@pytest.mark.parametrize("url", ["foo://x", "a file", "a link to nothing", "s3://bucket/x"])
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
    if url == "a link to nothing":
        url = str(tmp_path / "link")
        Path(url).symlink_to("nowhere")
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
        leave(tmp_path / name, content)
        with pytest.raises(LedgerError, match=rf"{re.escape(name)}: .+{why}.*\n  accepted: .+"):
            ask()
    leave(tmp_path / ".attempts" / run.id / "4", content)
    for foreign in (".DS_Store", ".nfs0001", "notes"):
        (tmp_path / ".attempts" / run.id / foreign).write_text("")
        (tmp_path / ".failures" / foreign).write_text("")
    assert not ledger.held_elsewhere("0" * 16)
    (tmp_path / ".failures" / f"{run.id}.json").rename(tmp_path / "gone")
    assert not ledger.held_elsewhere(run.id)
    assert ledger.lease(run.id) == 5
    assert ledger.failed() == {}


def test_stray_names_among_the_staged_are_left_alone(tmp_path: Path) -> None:
    ledger, run = Ledger(tmp_path), make_run()
    ledger.stage(training(run), ledger.lease(run.id))
    (tmp_path / ".staging" / ".DS_Store").write_text("")
    (tmp_path / ".staging" / "notes.old").mkdir()
    with ledger.drive("study") as adopted:
        assert adopted == [run.id]
    assert sorted(os.listdir(tmp_path / ".staging")) == [".DS_Store", "notes.old"]


def test_a_point_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    """The ledger's folder for searches is a file: as on a disk that fails, the search ends and says so."""
    points = Ledger(tmp_path).points("margins", "0" * 16)
    points.suggest(0, {"hn_margin": 0.2})
    assert points.suggested() == [{"hn_margin": 0.2}]
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / ".searches").write_text("")
    with pytest.raises(StudyError, match=rf"ledger {tmp_path}/other: .*\n  accepted: a folder"):
        Ledger(tmp_path / "other").points("margins", "0" * 16).suggest(0, {"hn_margin": 0.2})
