"""WiC-TSV: parallel files, and what is said of odd ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from corpora.benchmarks.wic_tsv import read
from corpora.store.errors import CorpusError
from tests.published import COLLECTION, needs

FILES = {
    "examples": "fundus\t1\tthe fundus of the stomach\nbank\t0\tbanks of mud\n",
    "definitions": "the base of a hollow organ\na business that keeps money\n",
    "labels": "T\nF\n",
}


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SEMRAY_DATA", raising=False)


def write(folder: Path, **changed: str) -> str:
    for split, name in (("train", "Training"), ("dev", "Development")):
        (folder / "wic_tsv" / name).mkdir(parents=True)
        for part, text in {**FILES, **changed}.items():
            (folder / "wic_tsv" / name / f"{split}_{part}.txt").write_text(text)
    return str(folder)


def test_a_word_in_its_sentence_and_before_its_definition(tmp_path: Path) -> None:
    splits = read(path=write(tmp_path))
    assert list(splits) == ["train", "dev"]
    first, second = splits["dev"]
    assert (first.id, first.same, second.same) == ("dev:1", True, False)
    assert [one.text[one.start : one.end] for one in (first.first, first.second)] == ["fundus", "fundus"]
    assert second.first.text[second.first.start : second.first.end] == "banks"
    assert first.second.text == "fundus : the base of a hollow organ"


@pytest.mark.parametrize(
    ("part", "text", "says"),
    [
        ("labels", "T\n", "accepted: as many of each"),
        ("labels", "", r"train_labels\.txt holds no row"),
        ("labels", "T\nmaybe\n", "accepted: T, F"),
        ("examples", "fundus\tone\tthe fundus\nbank\t0\tbanks\n", "accepted: a word, its place and an example"),
        ("examples", "fundus\t1\tthe fundus\tof\nbank\t0\tbanks\n", "accepted: a word, its place and an example"),
        ("examples", "fundus\t9\tthe fundus\nbank\t0\tbanks\n", "token 9 of an example of 2 tokens"),
    ],
)
def test_an_odd_file_is_refused_in_words(tmp_path: Path, part: str, text: str, says: str) -> None:
    with pytest.raises(CorpusError, match=says):
        read(path=write(tmp_path, **{part: text}))
    with pytest.raises(CorpusError, match="WiC-TSV not found"):
        read(path=str(tmp_path / "none"))


@needs("wic_tsv")
def test_the_published_files() -> None:
    splits = read(path=str(COLLECTION))
    assert {split: len(pairs) for split, pairs in splits.items()} == {
        "train": 2828,
        "dev": 389,
    }  # the last line of train has no line end
