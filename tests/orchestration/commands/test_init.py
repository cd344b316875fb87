"""`semray init family` and `semray init study`: what they write, and what they refuse."""

from __future__ import annotations

import io
import shutil
from importlib import import_module
from pathlib import Path

import pytest
import yaml

from corpora.store.errors import CorpusError
from orchestration.commands.cli import main
from orchestration.commands.init import PLACES, write_family
from orchestration.families.registry import FAMILIES
from orchestration.reading.read_study import read_study
from tests.tiny import tiny_backbone

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "family"


def test_the_documented_example_is_what_it_writes(tmp_path: Path) -> None:
    write_family("partners", tmp_path / "family")
    written = {
        path.relative_to(tmp_path / "family") for path in (tmp_path / "family").rglob("*") if path.is_file()
    }
    assert len(written) == len(PLACES)
    for place in written:
        assert (tmp_path / "family" / place).read_text() == (EXAMPLE / place).read_text(), place


def test_its_rows_are_looked_for_where_a_person_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As any path of a study is read: `~` is the home, and a `~name` of nobody is told as missing."""
    monkeypatch.syspath_prepend(str(EXAMPLE))
    monkeypatch.setenv("HOME", str(tmp_path))
    shutil.copy(EXAMPLE / "pairs.tsv", tmp_path)
    corpus, data = (import_module(f"semray_partners.{name}") for name in ("corpus", "settings"))
    assert corpus.load(data.Data(pairs="~/pairs.tsv")).train
    with pytest.raises(CorpusError, match=r"^data\.pairs: ~nobody-has-it/pairs\.tsv: .*No such file"):
        corpus.load(data.Data(pairs="~nobody-has-it/pairs.tsv"))


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
        ("mteb", "there is one of that name"),
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


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SEMRAY_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    tiny_backbone(tmp_path / "tiny")
    return tmp_path


def begun(family: str, *answers: str) -> tuple[str, ...]:
    options = ("setting", "control", "treatment", "metric")
    given = (
        word for option, answer in zip(options, answers, strict=True) if answer for word in (f"--{option}", answer)
    )
    return ("init", "study", "mine", "--family", family, "--backbone", "tiny", *given)


@pytest.mark.parametrize("family", [name for name in FAMILIES if name not in ("difficulty", "frozen")])
def test_a_first_study_is_one_with_the_first_answer_to_every_question(
    family: str, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Training against none. Of the families left out no arm trains or all do: they ask for a value."""
    monkeypatch.setattr("sys.stdin", io.StringIO("\n" * 5))
    assert main(["init", "study", "mine", "--family", family]) == 0
    assert "mine.yaml is written; next:  semray plan mine.yaml" in capsys.readouterr().out
    assert read_study("mine.yaml").arms.keys() == {"control", "treatment"}


PAIRS = "anchor\tpositive\n" + "".join(f"number {n}\tit is {n} of {n * n}\n" for n in range(60))
COMMAND = '[python, train.py, "{seed}", "{out}", --fast]'


@pytest.mark.parametrize(
    ("asked", "lacking", "content"),
    [
        (begun("command", "lr", "1", "2", "scores/accuracy"), "train.py", ""),
        (begun("command", "run", COMMAND.replace("fast", "slow"), COMMAND, "scores/accuracy"), "train.py", ""),
        (begun("sentence_transformers", "train", "", "", "held/mine/mrr"), "pairs.tsv", PAIRS),
        (begun("sentence_transformers", "warmup_steps", "0", "9", "held/mine/recall@1"), "pairs.tsv", PAIRS),
    ],
)
def test_a_first_study_lacks_what_only_its_author_has(
    asked: tuple[str, ...], lacking: str, content: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*asked]) == 0
    assert main(["plan", "mine"]) == 2
    said = capsys.readouterr().err
    assert f"{lacking}: no such file" in said
    assert said.count("accepted:") == 1
    (place / lacking).write_text(content)
    assert main(["plan", "mine"]) == 0
    assert "runs = " in capsys.readouterr().out


@pytest.mark.parametrize(
    "typed", ["010", "1e-3", "no", "0x10", "1_000", "12:30:00", "null", "~", "2024-01-01", "'010'"]
)
def test_the_file_holds_what_was_typed(typed: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """YAML reads 010 as 8 and 12:30:00 as 45000, which reading the file tells."""
    assert main([*begun("command", "lr", "1", typed, "scores/accuracy")]) == 0
    assert f"\n  treatment: {{lr: {typed}}}\n" in Path("mine.yaml").read_text()
    misread = {"010": "YAML reads 010 as 8", "12:30:00": "YAML reads 12:30:00 as 45000"}
    said = capsys.readouterr().err
    assert misread.get(typed, "") in said
    assert ("YAML reads" in said) == (typed in misread)


@pytest.mark.parametrize(
    ("typed", "value"),
    [("a, b", "a, b"), ("5 # five", 5), ("a}", "a}"), ("a: 1", {"a": 1}), (" 5 ", 5), ("! ", None)],
)
def test_what_cannot_stand_in_an_arm_as_it_was_typed_is_what_it_means_there(
    typed: str, value: object, place: Path
) -> None:
    asked = begun("command", "lr", "1", typed, "scores/accuracy")
    assert main(["a, tiny one" if word == "tiny" else word for word in asked]) == 0
    written = yaml.safe_load(Path("mine.yaml").read_text())
    assert (written["backbones"], written["arms"]["treatment"]) == (["a, tiny one"], {"lr": value})


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (
            begun("command", "run", "", "[python", "scores/accuracy"),
            "--treatment [python\n  accepted: a value as YAML",
        ),
        (
            begun("command", "lr", "2024-13-01", "2", "scores/accuracy"),
            "--control 2024-13-01\n  accepted: a value as",
        ),
        (begun("command", "lr", "1", "0b_", "scores/accuracy"), "--treatment 0b_\n  accepted: a value as YAML"),
        (
            begun("concept", "readout", "mean", "foo", "t2d/mrr"),
            "--treatment: readout = 'foo'\n  accepted: ",
        ),
        (
            begun("concept", "learning_rate", "1e-3", "2.0e-3", "t2d/mrr"),
            "--control: learning_rate = '1e-3'\n  accepted: a number above 0; YAML reads 1e-3 as text, write 1.0e-3",
        ),
        (begun("concept", "lr", "1", "2", "t2d/mrr"), "--setting lr\n  accepted: "),
        (begun("command", "lr", "1", "2", "scores/f1"), "--metric scores/f1\n  accepted: scores/accuracy"),
    ],
)
def test_answers_that_are_refused(
    asked: tuple[str, ...],
    said: str,
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("\n" * 5))
    assert main([*asked]) == 2
    assert said in capsys.readouterr().err
    assert not Path("mine.yaml").exists()
