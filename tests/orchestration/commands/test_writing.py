"""A place that cannot be written to ends a command in words, before its work, and nothing of another kind is replaced."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

import pytest

from orchestration.commands.cli import main

TABLE = "arm,seed,metric,score\n" + "".join(
    f"{arm},{seed},m,{score}\n" for arm, score in (("a", 0.5), ("b", 0.6)) for seed in range(3)
)
JUDGE = ("judge", "t.csv", "--treatment", "b", "--control", "a", "--metric", "m")
INIT = ("--family", "concept", "--backbone", "b", "--setting", "train", "--metric", "t2d/mrr")
NOBODY = "no study, model or run of this name: what cannot be written is told before it is looked for"
FOLDERS = {
    "judge": (*JUDGE, "--out"),
    "report": ("report", NOBODY, "--out"),
    "export": ("export", NOBODY),
    "convert": ("convert", NOBODY, "--out"),
    "init family": ("init", "family", "one", "--path"),
    "mlm-train": ("mlm-train", "--backbone", NOBODY, "--out"),
    "san-generate": ("san-generate", "--sentences", NOBODY, "--out"),
}
FILES = {
    "judge": (*JUDGE, "--passport"),
    "report": ("report", NOBODY, "--passport"),
    "check-claim": ("check-claim", "70", "71", "--write"),
    "init study": ("init", "study", *INIT),
}
BELOW = {  # what keeps anything from being there, be it a file or a folder
    "below a file": ("file/in", "Not a directory"),
    "far below a file": ("file/in/it", "Not a directory"),
    "a long name": ("n" * 300, "too long"),
    "in a long name": (f"{'n' * 300}/in", "too long"),
    "of the kernel": ("/proc/in", "nothing can be written in /proc"),
    "in no folder of the kernel": ("/proc/none/in", "nothing can be written in /proc"),
    "read-only": ("closed/in", "nothing can be written in"),
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text(TABLE)
    Path("file").write_text("kept")
    Path("folder").mkdir()
    Path("closed").mkdir(mode=0o500)
    Path("loop").symlink_to("loop")
    os.mkfifo("pipe")
    return tmp_path


def told(words: Sequence[str], where: str, capsys: pytest.CaptureFixture[str]) -> str:
    """What a command says on stderr that ends with exit code 2 and leaves no file behind."""
    before = sorted(Path.cwd().rglob("*"))
    try:
        code = main([*words, where])
    except SystemExit as ended:  # refused where the command line is read
        code = int(str(ended.code))
    assert code == 2
    assert sorted(Path.cwd().rglob("*")) == before
    said = capsys.readouterr().err
    assert "\n  accepted: " in said
    return said


@pytest.mark.parametrize("case", BELOW)
@pytest.mark.parametrize("words", [*FOLDERS.values(), *FILES.values()], ids=lambda words: words[0])
def test_where_nothing_can_be(
    words: Sequence[str], case: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where, why = BELOW[case]
    if case == "read-only" and os.access("closed", os.W_OK):
        pytest.skip("who runs this may write everywhere")
    if where.startswith("/proc") and not os.path.isdir("/proc/self"):
        pytest.skip("a kernel without such a folder")
    if case == "a long name" and words[:2] == ("init", "study"):
        why = "at most 200 bytes"
    assert why in told(words, where, capsys)


@pytest.mark.parametrize("where", ["file", "pipe", "loop", "none-there"])
@pytest.mark.parametrize("name", FOLDERS)
def test_what_is_no_folder(name: str, where: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("none-there").symlink_to("nothing")
    assert f"{where}: is no folder" in told(FOLDERS[name], where, capsys)


@pytest.mark.parametrize("where", ["folder", ".", "pipe", "loop"])
@pytest.mark.parametrize("name", ["judge", "report"])
def test_what_is_no_file(name: str, where: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A device would be replaced by a file where the person may do so: /dev/null among them."""
    assert f"{where}: is no file" in told(FILES[name], where, capsys)
    assert stat.S_ISFIFO(Path("pipe").lstat().st_mode)


@pytest.mark.parametrize("words", [*FOLDERS.values(), *FILES.values()], ids=lambda words: words[0])
def test_an_empty_variable_is_not_taken_for_none(
    words: Sequence[str], place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told(words, "", capsys)


@pytest.mark.parametrize("word", ["convert", "mlm-train", "san-generate"])
def test_the_home_of_nobody(word: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "nobody of that name has a home here" in told(FOLDERS[word], "~nobody-of-this-name/in", capsys)


def test_a_name_with_a_line_break_is_a_name(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*JUDGE, "--out", "two\nlines", "--passport", "a\nb"]) == 0
    assert Path("two\nlines/report.html").is_file()
    assert Path("a\nb").is_file()
    assert "control characters" in told(FILES["init study"], "x\ny", capsys)  # it would name the study


def test_a_signature_that_cannot_be_is_told_before_the_passport_is_made(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sign = (*JUDGE, "--passport", "passport", "--sign")
    assert "--sign none: no such file" in told(sign, "none", capsys)
    Path("passport.sig").mkdir()
    assert "passport.sig: is no file" in told(sign, "file", capsys)


def test_a_headroom_that_cannot_be_drawn(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = Path(__file__).resolve().parents[3] / "studies" / "difficulty_pair.yaml"
    assert "file: is no folder" in told(("headroom", str(study), "--plot"), "file", capsys)
