"""PAWS and the sets of negations: how they are read, and what is said of odd rows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from corpora.benchmarks import negation, paws
from corpora.store.errors import CorpusError
from tests.published import COLLECTION, needs


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SEMRAY_DATA", raising=False)


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("header", ["", "id\tsentence1\tsentence2\tlabel\n"])
def test_paws_with_and_without_its_header(tmp_path: Path, header: str) -> None:
    write(tmp_path / "paws" / "final" / "test.tsv", header + "7\t`` a ''\tb \" c\t1\n9\td\te\t0\tmore\n")
    pairs = paws.read("test", path=str(tmp_path))
    assert (pairs.ids, pairs.a, pairs.gold.tolist()) == (("test:7", "test:9"), ("`` a ''", "d"), [1.0, 0.0])


def test_a_local_copy_of_the_hub_gives_the_same_pairs(tmp_path: Path) -> None:
    from datasets import Dataset, DatasetDict

    rows = {"id": [7, 9], "sentence1": ["a", "d"], "sentence2": ["b", "e"], "label": [1, 0]}
    DatasetDict({"validation": Dataset.from_dict(rows)}).save_to_disk(str(tmp_path / "saved" / "paws"))
    write(tmp_path / "files" / "paws" / "dev.tsv", "7\ta\tb\t1\n9\td\te\t0\n")
    saved, read = (paws.read("dev", path=str(tmp_path / place)) for place in ("saved", "files"))
    assert saved.ids == ("dev:7", "dev:9")
    assert saved.sha256() == read.sha256()


def test_paws_that_is_nowhere_is_said_with_every_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    with pytest.raises(CorpusError) as raised:
        paws.read("dev", path=str(tmp_path))
    for told in (
        f"data.path: {tmp_path}/paws/final/dev.tsv",
        f"data.path: {tmp_path}/google-research-datasets/paws",
        "the hub: google-research-datasets/paws: OfflineModeIsEnabled",
        'load_dataset("google-research-datasets/paws", "labeled_final")',
        "FOLDER holding paws/final/dev.tsv",
    ):
        assert told in str(raised.value)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("1\ta\tb", "line 1: 3 fields, expected 4"),
        ("1\ta\tb\t2", r"line 1: label '2'\n  accepted: 0, 1"),
        ("", r"dev\.tsv holds no row$"),
        ("id\tsentence1\tsentence2\tlabel", "holds no row below its header"),
    ],
)
def test_an_odd_row_of_paws(tmp_path: Path, row: str, said: str) -> None:
    write(tmp_path / "paws" / "dev.tsv", row + "\n")
    with pytest.raises(CorpusError, match=said):
        paws.read("dev", path=str(tmp_path))


def write_negations(root: Path, text: str) -> None:
    for files in negation.FILES.values():
        for file in files:
            write(root / "negation_pairs" / file, text)


def test_negations_are_quoted_where_needed(tmp_path: Path) -> None:
    write_negations(tmp_path, 'sentence\tnegated\n"He said ""no"".\tThen left."\tHe did not.\n')
    sets = negation.negated_pairs(path=str(tmp_path))
    assert {name: len(pairs) for name, pairs in sets.items()} == {
        "nan_nli": 1,
        "glue_diagnostic": 1,
        "reviews": 1,
        "wikifactcheck": 5,
    }
    assert sets["nan_nli"].a == ('He said "no".\tThen left.',)
    assert sets["wikifactcheck"].ids[-1] == "wikifactcheck_english_4:1"
    assert sets["nan_nli"].gold.tolist() == [0.0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("premise\thypothesis\na\tb\n", "lacks the column 'sentence'; it has premise, hypothesis"),
        ('sentence\tnegated\n"' + "a" * 200_000, r"cannot be read: unexpected end of data"),
        ("sentence\tnegated\na\n", "line 2: a sentence or its negation is empty"),
        ("sentence\tnegated\n\tnot a\n", "line 2: a sentence or its negation is empty"),
        ("sentence\tnegated\n", "holds no row below its header"),
    ],
)
def test_an_odd_file_of_negations(tmp_path: Path, text: str, said: str) -> None:
    write_negations(tmp_path, text)
    with pytest.raises(CorpusError, match=said):
        negation.negated_pairs(path=str(tmp_path))


def test_negations_begin_with_a_mark_or_without(tmp_path: Path) -> None:
    write_negations(tmp_path, "\ufeffsentence\tnegated\na\tnot a\n")
    write(tmp_path / "negation_pairs" / "SemAntoNeg_v1.0.json", "\ufeff" + json.dumps(CONTRAST))
    assert negation.negated_pairs(path=str(tmp_path))["nan_nli"].b == ("not a",)
    assert len(negation.semantoneg(path=str(tmp_path))) == 1


@pytest.mark.parametrize("read", [negation.negated_pairs, negation.semantoneg])
def test_a_file_of_negations_in_another_encoding_is_named(tmp_path: Path, read) -> None:
    write_negations(tmp_path, "")
    for file in (*(tmp_path / "negation_pairs").iterdir(), tmp_path / "negation_pairs" / "SemAntoNeg_v1.0.json"):
        file.write_bytes("sentence\tnegated\ncafé\tno café\n".encode("latin-1"))
    with pytest.raises(CorpusError, match=r"cannot be read: .*\n  accepted: text in UTF-8"):
        read(path=str(tmp_path))


CONTRAST = {"idx": 0, "label": 2, "input": "You're not fat.", "sentences": ["not thin", "fat", "thin"]}


def test_semantoneg(tmp_path: Path) -> None:
    write(tmp_path / "negation_pairs" / "SemAntoNeg_v1.0.json", json.dumps(CONTRAST) + "\n")
    (one,) = negation.semantoneg(path=str(tmp_path))
    assert one == negation.Contrast("0", "You're not fat.", ("not thin", "fat", "thin"), 2)
    write(tmp_path / "negation_pairs" / "SemAntoNeg_v1.0.json", json.dumps(CONTRAST | {"label": 0}))
    assert negation.semantoneg(path=str(tmp_path))[0].paraphrase == 0
    for odd, said in (
        ("{", "accepted: an object with idx"),
        ("[" * 100_000, "accepted: an object with idx"),
        (json.dumps(CONTRAST | {"label": 3}), "label 3 of 3"),
        (json.dumps(CONTRAST | {"label": -1}), "label -1 of 3"),
    ):
        write(tmp_path / "negation_pairs" / "SemAntoNeg_v1.0.json", odd)
        with pytest.raises(CorpusError, match=f"line 1: .*{said}|line 1: {said}|(?s:line 1.*{said})"):
            negation.semantoneg(path=str(tmp_path))


@pytest.mark.parametrize("text", ["", "\n"])
def test_a_semantoneg_without_a_row_is_no_set(tmp_path: Path, text: str) -> None:
    write(tmp_path / "negation_pairs" / "SemAntoNeg_v1.0.json", text)
    with pytest.raises(CorpusError, match=r"SemAntoNeg_v1\.0\.json holds no row$"):
        negation.semantoneg(path=str(tmp_path))


def test_a_folder_in_the_place_of_a_file_of_negations_is_named(tmp_path: Path) -> None:
    (tmp_path / "negation_pairs" / "SemAntoNeg_v1.0.json").mkdir(parents=True)
    with pytest.raises(CorpusError, match=r"SemAntoNeg_v1\.0\.json cannot be read: .*Is a directory"):
        negation.semantoneg(path=str(tmp_path))


@needs("negation_pairs")
def test_the_published_sets() -> None:
    sets = negation.negated_pairs(path=str(COLLECTION))
    assert {name: len(pairs) for name, pairs in sets.items()} == {
        "nan_nli": 117,
        "glue_diagnostic": 154,
        "reviews": 2111,
        "wikifactcheck": 14970,
    }
    items = negation.semantoneg(path=str(COLLECTION))
    assert len(items) == 3152
    assert {one.paraphrase for one in items} == {2}


@needs("paws/final")
@pytest.mark.parametrize(("split", "positive"), [("dev", 3539), ("test", 3536)])
def test_the_published_paws(split: str, positive: int) -> None:
    pairs = paws.read(split, path=str(COLLECTION))
    assert (len(pairs), pairs.gold.sum()) == (8000, positive)
