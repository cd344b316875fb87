"""Which files a command is made of: their content counts, and git says what is not committed."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from corpora.command.watched import covers, fingerprint, git_states
from corpora.store.errors import CorpusError
from orchestration.ledger.ledger import Ledger


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "train.py").write_text("print(1)\n")
    (tmp_path / "lib" / "__pycache__").mkdir(parents=True)
    (tmp_path / "lib" / "model.py").write_text("x = 1\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_change_of_content_counts_and_nothing_else(place: Path) -> None:
    watch = ["train.py", "lib"]
    first = fingerprint(watch)
    (place / "lib" / "__pycache__" / "model.pyc").write_bytes(b"made")
    (place / "train.py").write_text("print(1)\n")
    assert fingerprint(watch) == first == fingerprint([str(place / "train.py"), str(place / "lib")])
    (place / "lib" / "model.py").write_text("x = 22\n")
    second = fingerprint(watch)
    (place / "lib" / "model.py").rename(place / "lib" / "other.py")
    assert len({first, second, fingerprint(watch), fingerprint(["train.py"])}) == 4


def test_the_fingerprint_is_of_names_and_contents_in_order(place: Path) -> None:
    """As is written down here, so that runs of before are found again. A linked folder's files stand below the link."""
    inside = {
        "lib/b.py": "1",
        "lib/a/z.py": "2",
        "lib/a.py": "3",
        "lib/B/y": "4",
        "lib/a/b/c.txt": "5",
        "lib/é": "",
    }
    for name, text in inside.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)
    for name, target in {"lib/to_a": "a", "lib/b_too": "b.py", "lib/a/up": "..", "lib/to_b": "../far/b"}.items():
        (place / name).symlink_to(target)
    (place / "far" / "b").mkdir(parents=True)
    (place / "far" / "b" / "w").write_text("6")
    (place / "lib" / "to_b_again").symlink_to("../far/b")

    inside |= {"lib/model.py": "x = 1\n", "lib/b_too": "1", "lib/to_b/w": "6"}
    inside |= {"lib/to_a/b/c.txt": "5", "lib/to_a/z.py": "2"}
    rows = [
        [name.removeprefix("lib/"), hashlib.sha256(text.encode()).hexdigest()] for name, text in inside.items()
    ]
    rows = sorted([*rows, ["to_b_again", "as to_b"]], key=lambda row: row[0].split("/"))
    script = [[".", hashlib.sha256(b"print(1)\n").hexdigest()]]
    content = json.dumps({"files": [["train.py", script], ["lib", rows]]}, separators=(",", ":"))
    assert fingerprint(["train.py", "lib"]) == hashlib.sha256(content.encode()).hexdigest()


def test_what_programs_make_beside_sources_does_not_count(place: Path) -> None:
    first = fingerprint(["lib"])
    made = (".git/HEAD", ".mypy_cache/a.json", ".ruff_cache/a", ".pytest_cache/a", ".ipynb_checkpoints/a.ipynb")
    for name in (*made, "__pycache__/model", "old.pyc"):
        (place / "lib" / "sub" / name).parent.mkdir(parents=True, exist_ok=True)
        (place / "lib" / "sub" / name).write_text("made")
    assert fingerprint(["lib"]) == first


def test_what_editors_keep_of_an_open_file_does_not_count(place: Path) -> None:
    """A study would have other runs, or none, while its script is looked at. Emacs' lock is a link to nothing."""
    first = fingerprint(["lib"])
    (place / "lib" / ".#model.py").symlink_to("me@here.123:456")
    for name in ("#model.py#", ".model.py.swp", ".model.py.swo"):
        (place / "lib" / name).write_text("x = 1\nunsaved")
    assert fingerprint(["lib"]) == first
    for name in ("model.py.swp", "#model.py", "model.py~"):
        before = fingerprint(["lib"])
        (place / "lib" / name).write_text("of one's own")
        assert fingerprint(["lib"]) != before, name


def test_what_semray_keeps_there_does_not_count(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ledger by any name, what is written beside it, and the cache grow as runs go on."""
    monkeypatch.setenv("SEMRAY_CACHE", "kept")
    (place / "lib" / "reports").mkdir()
    (place / "lib" / "reports" / "rows.csv").write_text("of one's own: no ledger lies beside it\n")
    first, below = fingerprint(["."]), fingerprint(["lib"])
    with Ledger(place / "mine" / "runs").drive("study"):
        (place / "mine" / "runs" / "entry").write_text("1")
        for name in ("reports/study/report.html", "mlflow.db", "mlflow.db-journal", "mlartifacts/1/a"):
            (place / "mine" / name).parent.mkdir(parents=True, exist_ok=True)
            (place / "mine" / name).write_text("1")
        (place / "kept").mkdir()
        (place / "kept" / "vectors").write_text("1")
        assert fingerprint(["."]) == first
        for name in ("model.py", "mlflow.db.csv"):
            before = fingerprint(["."])
            (place / "mine" / name).write_text("x = 2\n")
            assert fingerprint(["."]) != before, name
        assert fingerprint(["mine/reports"]) != fingerprint(["lib/reports"])
    assert fingerprint(["lib"]) == below
    (place / "lib" / "reports" / "rows.csv").write_text("others\n")
    assert fingerprint(["lib"]) != below


def test_a_file_among_the_reports_counts_by_its_name_and_grows_with_none(place: Path) -> None:
    (place / "reports").mkdir()
    rows = place / "reports" / "rows.csv"
    rows.write_text("1\n")
    with Ledger(place / "ledger").drive("study"):
        first = fingerprint([".", "reports/rows.csv"])
        (place / "reports" / "report.html").write_text("1")
        assert fingerprint([".", "reports/rows.csv"]) == first
        rows.write_text("22\n")
        assert fingerprint([".", "reports/rows.csv"]) != first


def test_what_is_not_there_is_said(place: Path) -> None:
    with pytest.raises(CorpusError, match=r"data.watch: no.py, ~nobody/nor: no such file or folder in") as said:
        fingerprint(["no.py", "train.py", "~nobody/nor"])
    assert str(place) in str(said.value)


def test_a_linked_folder_counts_as_if_it_lay_there(place: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    data = tmp_path_factory.mktemp("data")
    (data / "rows.csv").write_text("1\n")
    without = fingerprint(["lib"])
    (place / "lib" / "data").symlink_to(data)
    linked = fingerprint(["lib"])
    (data / "rows.csv").write_text("22\n")
    changed = fingerprint(["lib"])
    assert len({without, linked, changed}) == 3
    (data / "back").symlink_to(place / "lib")
    assert fingerprint(["lib"]) == changed, "a circle ends"
    (place / "lib" / "data").unlink()
    shutil.copytree(data, place / "lib" / "data", symlinks=True)
    assert fingerprint(["lib"]) == changed


def test_folders_that_link_to_each_other_are_read_once(place: Path) -> None:
    """As those of a store of packages: there are more ways to each than could be gone."""
    folders = [place / "lib" / f"p{number}" for number in range(40)]
    for number, folder in enumerate(folders):
        folder.mkdir()
        (folder / "code.js").write_text(str(number))
    for number, folder in enumerate(folders):
        for other in (*folders[number + 1 : number + 3], *folders[max(0, number - 2) : number]):
            (folder / other.name).symlink_to(other)
    before = fingerprint(["lib"])
    (folders[39] / "code.js").write_text("other")
    changed = fingerprint(["lib"])
    (folders[0] / "p1").unlink()
    (folders[0] / "p1").symlink_to(folders[39])
    assert len({before, changed, fingerprint(["lib"])}) == 3


def test_a_link_to_nothing_is_named(place: Path) -> None:
    (place / "lib" / "gone").symlink_to("nowhere")
    with pytest.raises(
        CorpusError, match=r"data\.watch: lib/gone: No such file or directory\n  accepted: files that"
    ):
        fingerprint(["lib"])


@pytest.mark.parametrize("watch", ["lib", "lib/pipe"])
def test_what_is_no_regular_file_is_refused_by_name(place: Path, watch: str) -> None:
    os.mkfifo(place / "lib" / "pipe")
    with pytest.raises(CorpusError, match=r"data\.watch: lib/pipe: no regular file\n  accepted: files"):
        fingerprint([watch])


def test_a_file_is_covered_by_itself_and_by_a_folder_above(place: Path) -> None:
    assert covers(["train.py", "lib"], Path("lib/model.py"))
    assert covers(["train.py"], place / "train.py")
    assert not covers(["lib"], Path("train.py"))


def git(*words: str) -> str:
    who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    return subprocess.run(["git", *who, *words], check=True, capture_output=True, text=True).stdout.strip()


def test_git_says_commit_and_changes(place: Path) -> None:
    assert git_states(["train.py"]) == ()
    git("init", "-q")
    git("add", "train.py", "lib/model.py")
    git("commit", "-qm", "first")
    commit = git("rev-parse", "--short=12", "HEAD")
    (place / "elsewhere").write_text("is not watched")
    assert git_states(["train.py", "lib/model.py"]) == (f"{place.name} at {commit}, nothing uncommitted",)
    (place / "train.py").write_text("print(2)\n")
    (place / "lib" / "new.py").write_text("")
    assert git_states(["train.py", "lib"]) == (f"{place.name} at {commit}, uncommitted: lib/new.py, train.py",)
    git("commit", "-qam", "second")
    (place / "lib" / "new.py").unlink()
    (place / "elsewhere").unlink()
    with Ledger(place / "ledger").drive("study"):
        assert git_states(["."])[0].endswith("nothing uncommitted")
        (place / "reports").mkdir()
        (place / "reports" / "rows.csv").write_text("1\n")
        assert git_states(["."])[0].endswith("nothing uncommitted")
        assert git_states([".", "reports/rows.csv"])[0].endswith("uncommitted: reports/rows.csv")


def test_git_says_names_as_they_are(place: Path) -> None:
    """Spaces, letters beyond ASCII and names of no encoding too; a ledger by such a name is none of one's files."""
    git("init", "-q")
    (place / "lib" / "to move.py").write_text("x = 2\n")
    git("add", ".")
    git("commit", "-qm", "first")
    (place / "lib" / "größe.py").write_text("")
    git("mv", "lib/to move.py", "lib/moved.py")
    with Ledger(place / "mein größtes ledger").drive("study"):
        said = "lib/größe.py, lib/moved.py, lib/to move.py"
        assert git_states(["lib", "."])[0].endswith(f"uncommitted: {said}")
        git("commit", "-qam", "second")
        (place / "lib" / "größe.py").rename(place / "lib" / os.fsdecode(b"gr\xf6sse"))
        assert git_states(["."])[0].endswith(r"uncommitted: lib/gr\xf6sse")


def test_where_git_does_not_answer_nothing_is_said_to_be_committed(place: Path) -> None:
    git("init", "-q")
    git("add", "train.py")
    git("commit", "-qm", "first")
    (place / ".git" / "index").write_bytes(b"no index")
    commit = git("rev-parse", "--short=12", "HEAD")
    assert git_states(["."]) == (f"{place.name} at {commit}; git did not say what is uncommitted",)


def test_of_many_uncommitted_files_each_folder_is_asked_once(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git("init", "-q")
    for number in range(9):
        (place / "lib" / f"{number}.py").write_text("")
    asked: list[Path] = []
    is_dir = Path.is_dir

    def noted(path: Path) -> bool:
        asked.append(path)
        return is_dir(path)

    monkeypatch.setattr(Path, "is_dir", noted)
    assert git_states(["."])[0].startswith(f"{place.name} at no commit yet, uncommitted: ")
    asked.clear()
    assert git_states(["."])[0].endswith("lib/0.py, lib/1.py, lib/2.py and 8 more")
    assert asked.count(place / "lib") == 1
