from __future__ import annotations

import json
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from corpora.store.cache import MANIFEST, cache_folder, entry, key_of, without_building
from corpora.store.errors import CorpusError
from tests.modes import kept_from_others


def _build(folder: Path) -> None:
    (folder / "about.txt").write_text("rows in two lines\n")
    (folder / "rows.txt").write_text("one\ntwo\n")


def test_built_once_then_read(own_cache: Path) -> None:
    built: list[Path] = []

    def build(folder: Path) -> None:
        built.append(folder)
        _build(folder)

    for _ in range(2):
        place, digests = entry("kind", "key", build)
    assert len(built) == 1
    assert place == own_cache / "kind" / "key"
    assert list(digests) == ["about.txt", "rows.txt"]


RACER = """
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from corpora.store.cache import entry

def build(folder):
    with (folder.parent / "builds").open("a") as file:
        file.write("built\\n")
    (folder / "rows.txt").write_text("x" * 5_000_000)

sys.stdin.readline()
print(entry("race", "key", build))
"""


def test_colleagues_may_read_what_a_library_wrote_for_its_user_alone(own_cache: Path) -> None:
    def build(folder: Path) -> None:
        _build(folder)
        (folder / "rows.txt").chmod(0o600)

    entry("kind", "key", build)
    assert not kept_from_others(own_cache / "kind")


def test_a_race_builds_once(own_cache: Path) -> None:
    """Three processes, all loaded and waiting, are told to go at the same moment."""
    start = [sys.executable, "-c", RACER]
    racers = [subprocess.Popen(start, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    for racer in racers:
        assert racer.stdin
        racer.stdin.write("go\n")
        racer.stdin.flush()
    answers = {racer.communicate(timeout=60)[0] for racer in racers}
    assert [racer.returncode for racer in racers] == [0, 0, 0]
    assert len(answers) == 1
    assert (own_cache / "race" / "builds").read_text() == "built\n"


def test_who_waits_says_for_what(own_cache: Path) -> None:
    """A run that says nothing new for long is ended: it waits as long as the other takes."""
    heard: list[str] = []
    began, waited = threading.Event(), threading.Event()

    def slow(folder: Path) -> None:
        began.set()
        assert waited.wait(30)
        _build(folder)

    def hear(words: str) -> None:
        heard.append(words)
        waited.set()

    with ThreadPoolExecutor(1) as other:
        first = other.submit(entry, "kind", "k", slow)
        assert began.wait(30)
        second = entry("kind", "k", _lose, hear)  # which finds the other's, and builds nothing
    assert first.result() == second
    assert heard[0] == "waiting for another process to make kind, 0 s"


def _cut(place: Path) -> None:
    (place / "rows.txt").write_text("one\n")


def _lose(place: Path) -> None:
    (place / "rows.txt").unlink()


def _scribble(place: Path) -> None:
    (place / MANIFEST).write_text("{")


@pytest.mark.parametrize("harm", [_cut, _lose, _scribble])
def test_a_corrupt_entry_is_set_aside_and_built_again(
    own_cache: Path, harm: object, caplog: pytest.LogCaptureFixture
) -> None:
    place, digests = entry("kind", "key", _build)
    harm(place)  # type: ignore[operator]
    again, same = entry("kind", "key", _build)
    assert (again, same) == (place, digests)
    assert (place / "rows.txt").read_text() == "one\ntwo\n"
    assert [path.name for path in place.parent.iterdir() if ".broken-" in path.name]
    assert "built again" in caplog.text


def test_a_failed_build_leaves_nothing_behind(own_cache: Path) -> None:
    def fail(folder: Path) -> None:
        _build(folder)
        raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        entry("kind", "key", fail)
    assert [path.name for path in (own_cache / "kind").iterdir()] == ["key.lock"]
    entry("kind", "key", _build)


def test_what_a_dead_builder_left_is_cleared(own_cache: Path) -> None:
    draft = own_cache / "kind" / "key.draft"
    draft.mkdir(parents=True)
    (draft / "half").write_text("")
    _, digests = entry("kind", "key", _build)
    assert list(digests) == ["about.txt", "rows.txt"]


def test_commands_that_only_look_build_nothing(own_cache: Path) -> None:
    """What is there whole they may read; what is absent or damaged they may not mend."""
    place, digests = entry("kind", "key", _build)
    with without_building():
        assert entry("kind", "key", _build) == (place, digests)
        with pytest.raises(CorpusError, match="kind: not built on this machine"):
            entry("kind", "another", _build)
        _cut(place)
        with pytest.raises(CorpusError, match="kind: not built on this machine"):
            entry("kind", "key", _build)
    assert [path.name for path in place.parent.iterdir() if path.is_dir()] == ["key"]
    assert entry("kind", "another", _build)[1] == digests


def test_key_is_of_the_content_not_its_order() -> None:
    assert key_of({"a": 1, "b": [2]}) == key_of({"b": [2], "a": 1})
    assert key_of({"a": 1}) != key_of({"a": 2})
    assert json.loads(json.dumps(key_of({}))) == key_of({})


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SEMRAY_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.delenv("SEMRAY_CACHE")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "semray"
