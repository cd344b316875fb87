"""Readers of the pair tasks in the text files in which they are published. A quote is an ordinary character."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from corpora.benchmarks.pairs import Pairs
from corpora.benchmarks.paws import paws_pairs
from corpora.benchmarks.sts import LARGEST, stsb_pairs
from corpora.store.errors import CorpusError
from corpora.store.places import text_of
from corpora.store.rows import number_within

MRPC_HELD_OUT = 500  # the published files have no validation split: the last rows of the training file

Splits = tuple[Pairs, Pairs, str]


@dataclass(frozen=True)
class TextForm:
    """The files of a task and how their rows are read. beside: must lie beside the training file."""

    folders: tuple[str, ...]
    train: str
    dev: str
    test: str
    rows: Callable[[Path], Pairs]
    beside: str | None = None
    training: str | None = None  # how `source` describes the training file

    def read(self, root: Path, test: bool) -> Splits | None:
        folder = _folder(root, self.folders, self.train, self.beside)
        if folder is None:
            return None
        evaluated = self.test if test else self.dev
        source = f"{folder}: {self.training or self.train}, {evaluated}"
        return self.rows(folder / self.train), self.rows(folder / evaluated), source


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


def _number(path: Path, line: int, text: str) -> float:
    try:
        return number_within(text, 1.0)
    except ValueError:
        raise CorpusError(f"{path}, line {line}: gold {text!r}\n  accepted: 0 to 1") from None


def _sts_rows(path: Path) -> Pairs:
    """Genre, file, year, id, score 0-5, sentence 1, sentence 2, sometimes licence columns."""
    pairs = stsb_pairs(path)
    return replace(pairs, gold=pairs.gold / LARGEST)


def _mrpc_rows(path: Path) -> Pairs:
    return Pairs.of(
        (f"{f[1]}-{f[2]}", f[3], f[4], _number(path, line, f[0])) for line, f in _lines(path, 5) if line > 1
    )


def _qqp_rows(path: Path) -> Pairs:
    """A header, then id, qid1, qid2, question1, question2, is_duplicate.

    GLUE's own files have a handful of rows without a second question or label; they are dropped there too.
    """
    rows = [(line, f) for line, f in _lines(path, 1) if line > 1 and len(f) == 6]
    return Pairs.of((f[0], f[3], f[4], _number(path, line, f[5])) for line, f in rows)


STSB = ("senteval/STS/STSBenchmark", "STS/STSBenchmark", "STSBenchmark", "stsb", ".")
PAWS = ("paws/final", "final", "paws", ".")
TEXT_FORMS: dict[str, tuple[str, Callable[[Path, bool], Splits | None]]] = {
    "stsb": (
        "STSBenchmark/sts-train.csv",
        TextForm(STSB, "sts-train.csv", "sts-dev.csv", "sts-test.csv", _sts_rows).read,
    ),
    "mrpc": ("MRPC/msr_paraphrase_train.txt", read_mrpc),
    "qqp": (
        "QQP/train.tsv",
        TextForm(("QQP", "qqp"), "train.tsv", "dev.tsv", "dev.tsv", _qqp_rows, beside="dev.tsv").read,
    ),
    "paws": (
        "paws/final/train.tsv",
        TextForm(PAWS, "train.tsv", "dev.tsv", "test.tsv", paws_pairs, beside="dev.tsv").read,
    ),
    "paws_offline": (  # PAWS-Wiki where its training file is absent: a task of its own
        "paws/final/dev.tsv with test.tsv",
        TextForm(
            PAWS, "dev.tsv", "test.tsv", "test.tsv", paws_pairs, beside="test.tsv", training="dev.tsv to train"
        ).read,
    ),
}  # task -> the file named in errors if it is missing, and the reader of its splits below a folder
