"""Readers of the pair tasks in the text files in which they are published. A quote is an ordinary character."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from corpora.benchmarks.pairs import Pairs
from corpora.benchmarks.paws import paws_pairs
from corpora.benchmarks.sts import LARGEST, stsb_pairs
from corpora.store.errors import CorpusError
from corpora.store.places import text_of
from corpora.store.rows import number_within

MRPC_HELD_OUT = 500  # the published files have no validation split: the last rows of the training file

Splits = tuple[Pairs, Pairs, str]


def read_stsb(root: Path, test: bool) -> Splits | None:
    """STS benchmark: genre, file, year, id, score 0-5, sentence 1, sentence 2, sometimes licence columns."""
    places = ("senteval/STS/STSBenchmark", "STS/STSBenchmark", "STSBenchmark", "stsb", ".")
    folder = _folder(root, places, "sts-train.csv")
    if folder is None:
        return None
    evaluated = folder / ("sts-test.csv" if test else "sts-dev.csv")
    return _sts_rows(folder / "sts-train.csv"), _sts_rows(evaluated), f"{folder}: sts-train.csv, {evaluated.name}"


def read_mrpc(root: Path, test: bool) -> Splits | None:
    """MRPC as in SentEval. Validation is the last 500 training rows (GLUE's own validation has 408 others).

    CorpusError where no other row is left to train on.
    """
    folder = _folder(root, ("senteval/MRPC", "MRPC", "mrpc", "."), "msr_paraphrase_train.txt")
    if folder is None:
        return None
    rows = _mrpc_rows(folder / "msr_paraphrase_train.txt")
    if len(rows) <= MRPC_HELD_OUT:
        raise CorpusError(
            f"{folder / 'msr_paraphrase_train.txt'}: {len(rows)} rows\n"
            f"  accepted: more than {MRPC_HELD_OUT}, of which the last {MRPC_HELD_OUT} are validation"
        )
    train = rows.take(range(len(rows) - MRPC_HELD_OUT))
    if test:
        return train, _mrpc_rows(folder / "msr_paraphrase_test.txt"), f"{folder}: train less 500 rows, test"
    held_out = rows.take(range(len(rows) - MRPC_HELD_OUT, len(rows)))
    return train, held_out, f"{folder}: train less its last 500 rows, which are validation"


def read_paws(root: Path, test: bool) -> Splits | None:
    """PAWS-Wiki labelled (final): id, sentence1, sentence2, label; with or without the header line."""
    folder = _folder(root, ("paws/final", "final", "paws", "."), "train.tsv", beside="dev.tsv")
    if folder is None:
        return None
    evaluated = folder / ("test.tsv" if test else "dev.tsv")
    return paws_pairs(folder / "train.tsv"), paws_pairs(evaluated), f"{folder}: train.tsv, {evaluated.name}"


def read_paws_offline(root: Path, test: bool) -> Splits | None:
    """PAWS-Wiki where its training file is absent: trains on dev, evaluates on test. A task of its own."""
    folder = _folder(root, ("paws/final", "final", "paws", "."), "dev.tsv", beside="test.tsv")
    if folder is None:
        return None
    return paws_pairs(folder / "dev.tsv"), paws_pairs(folder / "test.tsv"), f"{folder}: dev.tsv to train, test.tsv"


def read_qqp(root: Path, test: bool) -> Splits | None:
    """QQP as in GLUE: a header, then id, qid1, qid2, question1, question2, is_duplicate."""
    folder = _folder(root, ("QQP", "qqp"), "train.tsv", beside="dev.tsv")
    if folder is None:
        return None
    return _qqp_rows(folder / "train.tsv"), _qqp_rows(folder / "dev.tsv"), f"{folder}: train.tsv, dev.tsv"


TEXT_FORMS: dict[str, Callable[[Path, bool], Splits | None]] = {
    "stsb": read_stsb,
    "mrpc": read_mrpc,
    "qqp": read_qqp,
    "paws": read_paws,
    "paws_offline": read_paws_offline,
}
MISSING_FORMS = {
    "stsb": "STSBenchmark/sts-train.csv",
    "mrpc": "MRPC/msr_paraphrase_train.txt",
    "qqp": "QQP/train.tsv",
    "paws": "paws/final/train.tsv",
    "paws_offline": "paws/final/dev.tsv with test.tsv",
}


def _folder(root: Path, names: tuple[str, ...], file: str, beside: str | None = None) -> Path | None:
    """The first of these folders under root that holds `file` (and `beside`)."""
    wanted = [file] if beside is None else [file, beside]
    return next((root / name for name in names if all((root / name / each).is_file() for each in wanted)), None)


def _lines(path: Path, columns: int) -> Iterator[tuple[int, list[str]]]:
    """Line number and fields of every line. CorpusError for a file that cannot be read, or too few fields."""
    for number, line in enumerate(text_of(path).rstrip("\n").split("\n"), start=1):
        fields = line.rstrip("\r").split("\t")
        if len(fields) < columns:
            raise CorpusError(f"{path}, line {number}: {len(fields)} fields, expected at least {columns}")
        yield number, fields


def _number(path: Path, line: int, text: str, largest: float) -> float:
    try:
        return number_within(text, largest) / largest
    except ValueError:
        raise CorpusError(f"{path}, line {line}: gold {text!r}; accepted: 0 to {largest:g}") from None


def _sts_rows(path: Path) -> Pairs:
    pairs = stsb_pairs(path)
    return Pairs(pairs.ids, pairs.a, pairs.b, pairs.gold / LARGEST)


def _mrpc_rows(path: Path) -> Pairs:
    return Pairs.of(
        (f"{f[1]}-{f[2]}", f[3], f[4], _number(path, line, f[0], 1.0)) for line, f in _lines(path, 5) if line > 1
    )


def _qqp_rows(path: Path) -> Pairs:
    """GLUE's own files have a handful of rows without a second question or label; they are dropped there too."""
    rows = [(line, f) for line, f in _lines(path, 1) if line > 1 and len(f) == 6]
    return Pairs.of((f[0], f[3], f[4], _number(path, line, f[5], 1.0)) for line, f in rows)
