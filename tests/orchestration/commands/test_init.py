"""`semray init family`: what it writes, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestration.commands.cli import main
from orchestration.commands.init import PLACES, write_family

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "family"


def test_the_documented_example_is_what_it_writes(tmp_path: Path) -> None:
    write_family("partners", tmp_path / "family")
    written = {
        path.relative_to(tmp_path / "family") for path in (tmp_path / "family").rglob("*") if path.is_file()
    }
    assert len(written) == len(PLACES)
    for place in written:
        assert (tmp_path / "family" / place).read_text() == (EXAMPLE / place).read_text(), place


def test_another_name_is_put_everywhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "family", "my_own", "--path", str(tmp_path / "x")]) == 0
    assert "pip install -e '.[test]'" in capsys.readouterr().out
    texts = [path.read_text() for path in (tmp_path / "x").rglob("*") if path.is_file()]
    assert not any("$name" in text or "$slug" in text or "semray_partners" in text for text in texts)
    for path in (tmp_path / "x").rglob("*.py"):
        compile(path.read_text(), str(path), "exec")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("concept", "there is one of that name\n  accepted: none of cale, command, concept"),
        ("My-Own", "accepted: small letters, digits and _"),
        ("class", "accepted: small letters"),
    ],
)
def test_names_that_are_refused(name: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "family", name, "--path", str(tmp_path / "x")]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


def test_a_folder_that_holds_something_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine").write_text("")
    assert main(["init", "family", "mine", "--path", str(tmp_path)]) == 2
    assert "exists already" in capsys.readouterr().err
