"""The pairs of a file, split once and for all: which part a pair is in depends on its texts alone."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from semray.extending import CorpusError, named_path
from semray_partners.settings import Data

Pair = tuple[str, str]


@dataclass(frozen=True)
class Corpus:
    """train, test: pairs of texts in the order of the file. fingerprint: names the training pairs."""

    train: tuple[Pair, ...]
    test: tuple[Pair, ...]
    fingerprint: str


def load(data: Data) -> Corpus:
    """CorpusError, naming the file and what it should hold, when there are no pairs to be had."""
    file = named_path(data.pairs)
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise CorpusError(
            f"data.pairs: {file}: {error}\n  accepted: a file of two texts a line, tab-separated"
        ) from None
    pairs = []
    for number, line in enumerate(lines, 1):
        parts = tuple(part.strip() for part in line.split("\t"))
        if len(parts) != 2 or not all(parts):
            raise CorpusError(f"{file}:{number}: {line!r}\n  accepted: two texts, with a tab between them")
        pairs.append((parts[0], parts[1]))
    train = tuple(pair for pair in pairs if not _tested(pair, data.test))
    test = tuple(pair for pair in pairs if _tested(pair, data.test))
    return Corpus(train, test, _digest(train))


def fingerprint(data: Data) -> str:
    """As that of the corpus."""
    return load(data).fingerprint


def held_out_fingerprint(data: Data) -> str:
    """Names the pairs that are measured on."""
    return _digest(load(data).test)


def _tested(pair: Pair, share: float) -> bool:
    return int(_digest((pair,))[:8], 16) < share * 2**32


def _digest(pairs: tuple[Pair, ...]) -> str:
    return hashlib.sha256(repr(pairs).encode()).hexdigest()
