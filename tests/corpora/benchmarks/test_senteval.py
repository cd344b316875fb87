"""SentEval's sets: the order their rows come in, texts without tokens, and what is said of odd files."""

from __future__ import annotations

from pathlib import Path

import pytest

from corpora.benchmarks import senteval
from corpora.store.errors import CorpusError
from tests.published import COLLECTION, needs


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SEMRAY_DATA", raising=False)


def write(path: Path, *lines: str, encoding: str = "utf-8") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes("".join(f"{line}\n" for line in lines).encode(encoding))
    return path


def test_rows_by_tokens_then_label_then_place(tmp_path: Path) -> None:
    """A blank line is a sample without tokens; blanks between tokens are one; bytes are Latin-1."""
    write(tmp_path / "CR" / "custrev.pos", "two  words ", "café", *["a b c"] * 10, encoding="latin-1")
    write(tmp_path / "CR" / "custrev.neg", "", "one", "non sense", *(f"d e {n}" for n in range(9)))
    rows = senteval.read("CR", path=str(tmp_path))["all"]
    assert rows.sides[0][:6] == (".", "one", "café", "non sense", "two words", "d e 0")
    assert rows.labels[:5].tolist() == [0, 0, 1, 0, 1]
    assert rows.sides[0][5:14] == tuple(f"d e {line}" for line in range(9))


def test_a_line_ends_at_a_line_feed_alone(tmp_path: Path) -> None:
    """In raw files of code page 1252 the byte 0x85 is an ellipsis, which Unicode reads as the end of a line."""
    write(tmp_path / "SUBJ" / "subj.objective", *["wait\x85 what"] * 12, encoding="latin-1")
    write(tmp_path / "SUBJ" / "subj.subjective", *["so\r"] * 12)
    rows = senteval.read("SUBJ", path=str(tmp_path))["all"]
    assert len(rows) == 24
    assert set(rows.sides[0]) == {"so", "wait what"}


def test_sst2_trec_and_mrpc(tmp_path: Path) -> None:
    for split in ("train", "dev", "test"):
        write(tmp_path / "SST" / "binary" / f"sentiment-{split}", "a fine film\t1", "dull\t0")
    write(tmp_path / "TREC" / "train_5500.label", "HUM:ind Who : me ?", "ABBR:exp What is it ?")
    write(tmp_path / "TREC" / "TREC_10.label", "NUM:dist How far ?")
    header = "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String"
    for split in ("train", "test"):
        write(
            tmp_path / "MRPC" / f"msr_paraphrase_{split}.txt",
            header,
            '1\t7\t8\ta "b c\td',
            "0\t7\t9\tb\tg h i",
            "0\t7\t9\ta\te f",
        )
    sst = senteval.read("SST2", path=str(tmp_path))
    assert list(sst) == ["train", "dev", "test"]
    assert (sst["dev"].sides, sst["dev"].labels.tolist()) == ((("dull", "a fine film"),), [0, 1])
    trec = senteval.read("TREC", path=str(tmp_path))
    assert (trec["train"].sides, trec["train"].labels.tolist()) == ((("What is it ?", "Who : me ?"),), [0, 3])
    mrpc = senteval.read("MRPC", path=str(tmp_path))
    assert (mrpc["test"].sides, mrpc["test"].labels.tolist()) == (
        (("a", "b", 'a "b c'), ("e f", "g h i", "d")),
        [0, 0, 1],
    )
    assert senteval.fingerprint(mrpc) != senteval.fingerprint(trec)


@pytest.mark.parametrize(
    ("name", "file", "lines", "said"),
    [
        ("SST2", "SST/binary/sentiment-train", ["no label"], "line 1: 1 fields, expected 2"),
        ("SST2", "SST/binary/sentiment-train", ["x\t2"], r"line 1: label '2'\n  accepted: 0, 1"),
        ("TREC", "TREC/train_5500.label", ["HUM Who ?"], r"line 1: 'HUM Who \?'\n  accepted: LABEL:fine"),
        ("TREC", "TREC/train_5500.label", ["HUM:ind"], "line 1: 'HUM:ind'"),
        ("TREC", "TREC/train_5500.label", ["HUM: Who ?"], r"line 1: 'HUM: Who \?'"),
        ("TREC", "TREC/train_5500.label", ["PER:x Who ?"], r"label 'PER'\n  accepted: ABBR, DESC"),
        ("MRPC", "MRPC/msr_paraphrase_train.txt", ["h\ta\tb\tc\td", "1\t2\t3\tx"], "line 2: 4 fields, expected 5"),
        ("MRPC", "MRPC/msr_paraphrase_train.txt", ["h\ta\tb\tc\td"], "holds no row below its header"),
        ("MR", "MR/rt-polarity.pos", ["x"] * 11, "rt-polarity.pos has 11 lines\n  accepted: at least 12"),
        ("MR", "MR/rt-polarity.pos", ["x"] * 12, "rt-polarity.neg cannot be read"),
        ("MPQA", "MPQA/mpqa.pos", [], "mpqa.pos is empty"),
    ],
)
def test_odd_files(tmp_path: Path, name: str, file: str, lines: list[str], said: str) -> None:
    write(tmp_path / "senteval" / file, *lines)
    with pytest.raises(CorpusError, match=said):
        senteval.read(name, path=str(tmp_path))


def test_what_is_nowhere(tmp_path: Path) -> None:
    with pytest.raises(CorpusError) as raised:
        senteval.read("SUBJ", path=str(tmp_path))
    assert f"data.path: {tmp_path}/senteval/SUBJ/subj.objective" in str(raised.value)
    assert "FOLDER holding SUBJ/subj.objective, subj.subjective" in str(raised.value)


@needs("senteval/MR")
@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("MR", {"all": 10662}),
        ("CR", {"all": 3775}),
        ("TREC", {"train": 5452, "test": 500}),
        ("MRPC", {"train": 4076, "test": 1725}),
    ],
)
def test_the_published_sets(name: str, sizes: dict[str, int]) -> None:
    splits = senteval.read(name, path=str(COLLECTION))
    assert {split: len(rows) for split, rows in splits.items()} == sizes
