"""The token of a person's Ray: there before Ray starts, whole, and for nobody else."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from orchestration.lanes.cluster import RunShare, connected, private_token, runs_that_fit
from orchestration.study.errors import StudyError


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))


def test_the_token_is_private_and_stays() -> None:
    place = private_token()
    assert place.stat().st_mode & 0o777 == 0o600
    token = place.read_text()
    assert len(token) == 64
    assert private_token().read_text() == token
    assert [file.name for file in place.parent.iterdir()] == ["auth_token"]


def test_a_home_that_is_none_to_write_to_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("HOME", str(tmp_path / "file"))
    with pytest.raises(StudyError, match=r"auth_token, .*: Not a directory\n  accepted: HOME naming a folder"):
        connected(1).__enter__()


def test_a_token_that_others_may_read_is_closed() -> None:
    place = private_token()
    place.chmod(0o644)
    assert private_token().stat().st_mode & 0o777 == 0o600


def test_of_several_that_make_one_all_get_the_same() -> None:
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(private_token().read_text())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 1
    assert len(found[0]) == 64


@pytest.mark.parametrize(
    ("share", "fit"),
    [
        (RunShare(cpus=1), 15),
        (RunShare(cpus=2), 7),
        (RunShare(cpus=1, gpus=1.0), 3),
        (RunShare(cpus=1, gpus=0.4), 6),  # two on each GPU: Ray splits no share
        (RunShare(cpus=1, gpus=0.1), 15),
        (RunShare(cpus=1, gpus=1 / 3), 9),
        (RunShare(cpus=2, gpus=2.0), 1),
        (RunShare(cpus=2, gpus=4.0), 0),
        (RunShare(cpus=1, memory=10), 10),
        (RunShare(cpus=16), 0),
    ],
)
def test_as_many_runs_fit_as_the_scarcest_part_allows(
    share: RunShare, fit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ray

    monkeypatch.setattr(ray, "cluster_resources", lambda: {"CPU": 15.0, "GPU": 3.0, "memory": 109.0})
    assert runs_that_fit(share) == fit
