"""Every entry reaches MLflow once, whatever is interrupted, deleted or done at once. Real MLflow throughout."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestration.ledger.ledger import Ledger
from orchestration.tracking import write
from orchestration.tracking.artifacts import came_along
from orchestration.tracking.entries import Entry, Planned
from orchestration.tracking.sync import Tree, mirror, sync
from orchestration.verdicts.findings import Findings
from tests.finished_study import fill, findings_of, make_run
from tests.mirror import STUDY, client, everything, of_kind, points, search

pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy")  # MLflow's own affair


@pytest.fixture(scope="session")
def undisturbed(small: tuple[Ledger, Findings], new_uri: Callable[[], str]) -> list[tuple[Any, ...]]:
    """Every point of the small study's mirror."""
    uri = new_uri()
    sync(small[1], small[0], uri)
    return points(uri)


def test_syncing_again_adds_nothing(study: tuple[Ledger, Findings], mirrored: str) -> None:
    (ledger, findings), uri = study, mirrored
    before = everything(uri)
    again = sync(replace(findings, created="later"), ledger, uri)
    assert (again.problem, again.new, again.updated) == ("", 0, 0)
    assert everything(uri) == before


def test_an_unchanged_study_is_recognised_without_reading_it(
    study: tuple[Ledger, Findings], mirrored: str, tmp_path: Path
) -> None:
    unreadable = tuple(replace(run, metrics={}, curve=()) for run in study[1].runs)
    done = sync(replace(study[1], runs=unreadable), Ledger(tmp_path / "no-ledger"), mirrored)
    assert (done.problem, done.new, done.updated) == ("", 0, 0)


@pytest.mark.parametrize("kind", ["run", "comparison", "study"])
def test_what_was_deleted_in_mlflow_is_restored(small: tuple[Ledger, Findings], uri: str, kind: str) -> None:
    """One written anew would be its twin once a person restores it."""
    ledger, findings = small
    sync(findings, ledger, uri)
    before = everything(uri)
    (one, *_) = of_kind(uri, kind)
    client(uri).delete_run(one.info.run_id)
    done = sync(findings, ledger, uri)
    assert (done.problem, done.new, done.updated, done.restored) == ("", 0, 0, 1)
    assert done.line.endswith(", 1 restored")
    assert everything(uri) == before
    client(uri).restore_run(one.info.run_id)
    assert sync(findings, ledger, uri).line.endswith(": up to date")
    assert everything(uri) == before


def test_what_was_superseded_and_deleted_stays_so_and_holds_up_nothing(
    small: tuple[Ledger, Findings], uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, findings = small
    sync(findings, ledger, uri)
    without = replace(findings, findings=())
    assert sync(without, ledger, uri).updated == 1
    (comparison,) = of_kind(uri, "comparison")
    client(uri).delete_run(comparison.info.run_id)
    before, asked = everything(uri), []
    api = type(client(uri))
    search_runs = api.search_runs
    monkeypatch.setattr(api, "search_runs", lambda *told, **more: asked.append(told) or search_runs(*told, **more))
    assert sync(without, ledger, uri).line.endswith(": up to date")
    assert everything(uri) == before
    assert len(asked) == 2  # what was deleted, and the study's own run


def test_what_is_lost_for_good_is_written_again_when_asked_for(small: tuple[Ledger, Findings], uri: str) -> None:
    """By the removal of the tag that says a run is whole."""
    ledger, findings = small
    sync(findings, ledger, uri)
    before = points(uri)
    (parent,), (comparison,) = of_kind(uri, "study"), of_kind(uri, "comparison")
    artifacts = Path(client(uri).download_artifacts(comparison.info.run_id, ""))
    files = sorted(artifacts.iterdir())
    shutil.rmtree(artifacts)
    assert sync(findings, ledger, uri).line.endswith(": up to date")
    for run in (parent, comparison):
        client(uri).delete_tag(run.info.run_id, "semray.digest")
    done = sync(findings, ledger, uri)
    assert (done.problem, done.new, done.updated) == ("", 1, 1)
    assert sorted(artifacts.iterdir()) == files
    assert points(uri) == before


def test_a_copied_folder_keeps_its_own_artifacts(small: tuple[Ledger, Findings], uri: str, tmp_path: Path) -> None:
    """MLflow keeps whole paths: a sync of the copy wrote over the original's report."""
    from mlflow.tracking._tracking_service.utils import _artifact_repos_cache

    ledger, findings = small
    sync(findings, ledger, uri)
    original = Path(uri.removeprefix("sqlite:///")).parent
    copied = shutil.copytree(original, tmp_path / "a copy #1")
    there = f"sqlite:///{copied}/mlflow.db"
    before = {file: file.stat().st_mtime_ns for file in original.rglob("*")}
    _artifact_repos_cache.clear()  # a command is a process of its own
    assert sync(replace(findings, findings=()), ledger, there).updated == 1
    assert {file: file.stat().st_mtime_ns for file in original.rglob("*")} == before
    beside = (copied / "mlartifacts" / STUDY).as_uri()
    assert client(there).get_experiment_by_name(STUDY).artifact_location == beside
    assert all(run.info.artifact_uri == f"{beside}/{run.info.run_id}/artifacts" for run in search(there))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [(True, False, False), (True, True, True), (False, True, True), (False, False, True)],
)
def test_artifacts_are_looked_for_where_they_are(tmp_path: Path, old: bool, new: bool, expected: bool) -> None:
    """Where none are left, new ones lie beside the database: the folder that was left is not made anew."""
    for folder, there in (("old", old), ("new", new)):
        (tmp_path / folder / ("mlartifacts/a study" if there else "")).mkdir(parents=True)
    before = (tmp_path / "old/mlartifacts/a study").as_uri()
    assert came_along("a study", before, tmp_path / "new/mlflow.db") == expected
    assert not came_along("a study", before, tmp_path / "old/mlflow.db")
    (tmp_path / "link").symlink_to(tmp_path / "old")
    assert came_along("a study", before, tmp_path / "link/mlflow.db") == (not old)
    for chosen in ("s3://bucket/mlartifacts/a%20study", (tmp_path / "elsewhere/a study").as_uri()):
        assert not came_along("a study", chosen, tmp_path / "new/mlflow.db")


@pytest.mark.parametrize("after", [0, 6, 11])
def test_an_interrupted_sync_is_completed(
    small: tuple[Ledger, Findings],
    undisturbed: list[tuple[Any, ...]],
    uri: str,
    monkeypatch: pytest.MonkeyPatch,
    after: int,
) -> None:
    """Ctrl-C while the artifacts of some run are written: the next sync ends where an undisturbed one does."""
    ledger, findings = small
    log_files, calls = write._log_files, iter(range(100))

    def interrupted(*arguments: Any) -> None:
        if next(calls) == after:
            raise KeyboardInterrupt
        log_files(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(write, "_log_files", interrupted)
        with pytest.raises(KeyboardInterrupt):
            sync(findings, ledger, uri)
    assert sync(findings, ledger, uri).problem == ""
    assert points(uri) == undisturbed
    assert len(search(uri)) == 12


def test_two_at_once_write_once(small: tuple[Ledger, Findings], uri: str) -> None:
    ledger, findings = small
    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(lambda _: sync(findings, ledger, uri), range(2)))
    assert sorted(report.new for report in done) == [0, 12]
    assert len(search(uri)) == 12


def test_parents_of_an_earlier_semray_become_one(uri: str, tmp_path: Path) -> None:
    """There was one for each revision: the newest goes on, the others are out of the way."""
    ledger = Ledger(tmp_path / "ledger")
    findings = findings_of(ledger, 1, ())
    sync(findings, ledger, uri)
    (parent,) = of_kind(uri, "study")
    experiment = parent.info.experiment_id
    client(uri).set_tag(parent.info.run_id, "semray.run_key", "study/0123456789abcdef")
    client(uri).set_tag(parent.info.run_id, "semray.digest", "of before")
    tags = {"semray.run_key": "study/fedcba9876543210", "semray.kind": "study"}
    client(uri).create_run(experiment, start_time=1, tags=tags)
    assert sync(findings, ledger, uri).problem == ""
    keys = {run.info.run_id: run.data.tags["semray.run_key"] for run in of_kind(uri, "study")}
    assert keys.pop(parent.info.run_id) == "study"
    assert [key.split("/")[0] for key in keys.values()] == ["superseded"]


def test_a_study_of_more_runs_than_a_page_is_read_whole(
    small: tuple[Ledger, Findings], uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, findings = small
    sync(findings, ledger, uri)
    (parent,) = of_kind(uri, "study")
    client(uri).delete_tag(parent.info.run_id, "semray.digest")
    before, api = points(uri), type(client(uri))
    search_runs = api.search_runs
    monkeypatch.setattr(api, "search_runs", lambda *asked, **how: search_runs(*asked, **{**how, "max_results": 5}))
    done = sync(findings, ledger, uri)
    assert (done.problem, done.new, done.unchanged) == ("", 1, 11)
    assert points(uri) == before


def test_an_experiment_that_was_deleted_is_said(small: tuple[Ledger, Findings], uri: str) -> None:
    ledger, findings = small
    sync(replace(findings, findings=(), runs=()), ledger, uri)
    client(uri).delete_experiment(client(uri).get_experiment_by_name(STUDY).experiment_id)
    problem = f"the experiment {STUDY} was deleted there; restore it or delete it for good"
    assert sync(findings, ledger, uri).problem == problem


def test_a_model_is_tracked_once_whatever_is_interrupted(
    uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, run = Ledger(tmp_path / "ledger"), make_run("B1", 0)
    fill(ledger, [run], save_model=lambda folder: (folder / "modules.json").write_text("[]") and None)
    name = 'it\'s 50% "so" a/b:c.d seed 0'
    entry = Entry(name=name, model={"ledger": ledger.url, "run": run.id})
    tracked = Planned(key="run/B1", kind="run", digest="x", build=lambda: entry)
    tree = Tree(experiment=STUDY, note="", parent=lambda links: tracked, children=list)
    api = type(client(uri))
    with monkeypatch.context() as patch:
        patch.setattr(api, "finalize_logged_model", interrupted)
        with pytest.raises(KeyboardInterrupt):
            mirror(tree, uri)
    for _ in range(2):
        assert mirror(tree, uri).problem == ""
        (found,) = of_kind(uri, "run")
        (model,) = client(uri).search_logged_models([found.info.experiment_id])
        assert (model.status, model.name) == ("READY", "it-s-50-so-a-b-c-d seed 0".replace(" ", "-"))
        assert [output.model_id for output in found.outputs.model_outputs] == [model.model_id]
        client(uri).delete_tag(found.info.run_id, "semray.digest")


def interrupted(*arguments: Any) -> None:
    raise KeyboardInterrupt


def test_a_planted_link_is_not_followed(
    small: tuple[Ledger, Findings], uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lock lies in the user's own cache, and a link under its name is refused, not written through."""
    monkeypatch.setenv("SEMRAY_CACHE", str(tmp_path / "cache"))
    ledger, findings = small
    assert sync(findings, ledger, uri).problem == ""
    (lock,) = (tmp_path / "cache" / "locks").iterdir()
    assert lock.stat().st_mode & 0o077 == 0
    victim = tmp_path / "victim"
    victim.write_text("mine")
    lock.unlink()
    lock.symlink_to(victim)
    assert sync(findings, ledger, uri).problem != ""
    assert victim.read_text() == "mine"


def test_a_sync_that_does_not_end_is_not_waited_for(
    small: tuple[Ledger, Findings], uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from orchestration.tracking import sync as module

    monkeypatch.setenv("SEMRAY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(module, "LOCK_SECONDS", 0.2)
    ledger, findings = small
    with module._locked(uri, findings.study):
        assert "another sync of this study has not ended" in sync(findings, ledger, uri).problem
    assert sync(findings, ledger, uri).problem == ""
