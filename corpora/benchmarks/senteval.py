"""SentEval's sets for classification, in its layout: MR, CR, SUBJ, MPQA, SST2, TREC and MRPC.

    splits = read("TREC", path="data")          # {"train": Labelled, "test": Labelled}
    splits = read("MR", path="data")            # {"all": Labelled}: sets without a test part of their own

Rows come in the toolkit's order, by number of tokens, then label, then place in the files, which the folds of its
cross-validation hang on. Tokens are joined by one space and a text without any becomes ".", as the toolkit's own
examples do. Source: Conneau and Kiela 2018; SentEval, senteval/{binary,sst,trec,mrpc}.py.

Departure: lines end at line feeds alone, where the toolkit also ends them at every character Unicode calls a line
boundary. Its own files hold none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np

from corpora.store.errors import CorpusError
from corpora.store.places import first_of, not_found, text_of
from corpora.store.rows import sha256_of

SOURCE = "https://github.com/facebookresearch/SentEval, data/downstream/get_transfer_data.bash"
# Lines of a class. Nested folds train on nine tenths of nine tenths, which may leave 9 of 11 lines. Two classes of
# 12 lines leave 20, of which a classifier that stops by a twentieth of its rows has one.
LEAST = 12
TREC_LABELS = ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM")


@dataclass(frozen=True, eq=False)
class Labelled:
    """N rows of one or two texts (sides) with labels (N,) int64 from 0."""

    sides: tuple[tuple[str, ...], ...]
    labels: np.ndarray

    def __len__(self) -> int:
        return len(self.labels)


Splits = Mapping[str, Labelled]
_Row = tuple[tuple[list[str], ...], int]  # tokens of each side, label


def read(name: str, *, path: str | None) -> Splits:
    """The splits of a set of `NAMES`, from data.path or $SEMRAY_DATA. CorpusError when it is nowhere or odd."""
    folder_name, files, read_folder = _SETS[name]
    places = [f"{above}{folder_name}" for above in ("senteval/", "", "downstream/")]
    file, looked = first_of([f"{place}/{files[0]}" for place in places], path, Path.is_file)
    if file is None:
        raise not_found(f"SentEval's {name}", looked, holds=f"{folder_name}/{', '.join(files)}", source=SOURCE)
    return {split: _sorted(rows) for split, rows in read_folder(file.parent).items()}


def fingerprint(splits: Splits) -> str:
    """sha256 of all texts and labels in order."""
    rows = ((split, *zip(*rows.sides, rows.labels.tolist(), strict=True)) for split, rows in splits.items())
    return sha256_of(chain.from_iterable(rows))


def _sorted(rows: Iterable[_Row]) -> Labelled:
    ordered = sorted(rows, key=lambda row: (*map(len, row[0]), row[1]))
    sides = zip(*(row[0] for row in ordered), strict=True)
    return Labelled(
        tuple(tuple(" ".join(tokens) or "." for tokens in side) for side in sides),
        np.array([row[1] for row in ordered], np.int64),
    )


def _binary(positive: str, negative: str) -> Callable[[Path], dict[str, list[_Row]]]:
    """A file a class, one sample a line; a blank line is a sample without tokens."""

    def of(file: Path, label: int) -> list[_Row]:
        rows: list[_Row] = [((line.split(),), label) for line in _lines(file, "latin-1")]
        if len(rows) < LEAST:
            raise CorpusError(
                f"corpora: {file} has {len(rows)} lines\n  accepted: at least {LEAST}, for ten folds within ten"
            )
        return rows

    return lambda folder: {"all": of(folder / positive, 1) + of(folder / negative, 0)}


def _sst2(folder: Path) -> dict[str, list[_Row]]:
    def rows(split: str) -> list[_Row]:
        file = folder / f"sentiment-{split}"
        return [
            ((fields[0].split(),), _label(fields[1], ("0", "1"), file, number))
            for number, fields in _fields(file, 2)
        ]

    return {split: rows(split) for split in ("train", "dev", "test")}


def _trec(folder: Path) -> dict[str, list[_Row]]:
    """`COARSE:fine question` a line; the fine label is dropped."""

    def rows(file: Path) -> list[_Row]:
        found: list[_Row] = []
        for number, line in enumerate(_lines(file, "latin-1"), 1):
            label, _, rest = line.strip().partition(":")
            fine, _, question = rest.partition(" ")
            if not (fine and question):
                raise CorpusError(
                    f"corpora: {file}, line {number}: {line[:40]!r}\n  accepted: LABEL:fine, a space, the question"
                )
            found.append(((question.split(),), _label(label, TREC_LABELS, file, number)))
        return found

    return {"train": rows(folder / "train_5500.label"), "test": rows(folder / "TREC_10.label")}


def _mrpc(folder: Path) -> dict[str, list[_Row]]:
    """A header, then quality, two ids and both sentences."""

    def rows(split: str) -> list[_Row]:
        file = folder / f"msr_paraphrase_{split}.txt"
        found: list[_Row] = [
            (
                (fields[3].split(), fields[4].split()),
                _label(fields[0], ("0", "1"), file, number),
            )
            for number, fields in _fields(file, 5)
            if number > 1
        ]
        if not found:
            raise CorpusError(f"corpora: {file} holds no row below its header")
        return found

    return {split: rows(split) for split in ("train", "test")}


def _fields(file: Path, columns: int) -> Iterable[tuple[int, list[str]]]:
    for number, line in enumerate(_lines(file, "utf-8-sig"), 1):
        fields = line.strip().split("\t")
        if len(fields) < columns:
            raise CorpusError(f"corpora: {file}, line {number}: {len(fields)} fields, expected {columns}")
        yield number, fields


def _label(written: str, accepted: tuple[str, ...], file: Path, number: int) -> int:
    if written not in accepted:
        raise CorpusError(f"corpora: {file}, line {number}: label {written!r}\n  accepted: {', '.join(accepted)}")
    return accepted.index(written)


def _lines(file: Path, encoding: str) -> list[str]:
    text = text_of(file, encoding)
    if not text:
        raise CorpusError(f"corpora: {file} is empty")
    return [line.rstrip("\r") for line in text.removesuffix("\n").split("\n")]


def _pair(folder: str, positive: str, negative: str) -> tuple[str, tuple[str, ...], Callable]:
    return folder, (positive, negative), _binary(positive, negative)


_SETS: dict[str, tuple[str, tuple[str, ...], Callable[[Path], dict[str, list[_Row]]]]] = {
    "MR": _pair("MR", "rt-polarity.pos", "rt-polarity.neg"),
    "CR": _pair("CR", "custrev.pos", "custrev.neg"),
    "SUBJ": _pair("SUBJ", "subj.objective", "subj.subjective"),
    "MPQA": _pair("MPQA", "mpqa.pos", "mpqa.neg"),
    "SST2": ("SST/binary", ("sentiment-train", "sentiment-dev", "sentiment-test"), _sst2),
    "TREC": ("TREC", ("train_5500.label", "TREC_10.label"), _trec),
    "MRPC": ("MRPC", ("msr_paraphrase_train.txt", "msr_paraphrase_test.txt"), _mrpc),
}
NAMES = tuple(_SETS)
