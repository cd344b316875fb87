"""Pairs of sentences with a gold value, whichever benchmark they are from."""

from __future__ import annotations

import hashlib
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from corpora.store.rows import sha256_of
from corpora.store.ties import tied


@dataclass(frozen=True, eq=False)
class Pairs:
    """N rows of one split. ids are unique within the split; gold (N,) float64, on the scale the reader names."""

    ids: tuple[str, ...]
    a: tuple[str, ...]
    b: tuple[str, ...]
    gold: np.ndarray

    @staticmethod
    def of(rows: Iterable[tuple[str, str, str, float]]) -> Pairs:
        """Rows of id, both sentences and gold, as columns."""
        ids, a, b, gold = tuple(zip(*rows, strict=True)) or ((), (), (), ())
        return Pairs(ids, a, b, np.array(gold, np.float64))

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, rows: Sequence[int]) -> Pairs:
        return Pairs(
            tuple(self.ids[row] for row in rows),
            tuple(self.a[row] for row in rows),
            tuple(self.b[row] for row in rows),
            self.gold[list(rows)],
        )

    def sha256(self) -> str:
        """Hash of ids, both texts and gold, in order: the row-id hash that is logged with every result."""
        return sha256_of(zip(self.ids, self.a, self.b, self.gold.tolist(), strict=True))

    def text_keys(self) -> list[str]:
        """The `text_key` of each pair, the same in every data set."""
        return [text_key(a, b) for a, b in zip(self.a, self.b, strict=True)]

    def groups(self) -> tuple[str, ...]:
        """The group of each row, named after its first row; shared sentences tie rows together."""
        group = tied(zip(self.a, self.b, strict=True))
        first: dict[str, str] = {}
        return tuple(first.setdefault(group(a), row) for a, row in zip(self.a, self.ids, strict=True))

    def candidates(self) -> tuple[np.ndarray, np.ndarray]:
        """Retrieval pool: rows where a side-b text appears first (K,), and each row's own place in it (N,)."""
        place: dict[str, int] = {}
        rows: list[int] = []
        for row, text in enumerate(self.b):
            if text not in place:
                place[text] = len(rows)
                rows.append(row)
        return np.array(rows), np.array([place[text] for text in self.b])


def numbered(ids: Iterable[str], mark: str = "-") -> list[str]:
    """The ids; a repeated one gets the mark and a number from 2."""
    seen: Counter[str] = Counter()
    apart: dict[str, None] = {}
    for one in ids:
        name = one
        while name in apart:  # by a repetition of another, too
            seen[one] += 1
            name = f"{one}{mark}{seen[one] + 1}"
        apart[name] = None
    return list(apart)


def text_key(*texts: str) -> str:
    """A key of a text or a pair, the same in every data set: a hash of its `letters_of`, in any order."""
    letters = "\t".join(sorted(map(letters_of, texts)))
    return hashlib.sha256(letters.encode(errors="surrogatepass")).hexdigest()[:16]


def letters_of(text: str) -> str:
    """The letters, marks and digits of a text in one encoding (NFKC), without case.

    A text without any keeps all but its blanks, so that different texts of signs stay different.
    """
    if text.isascii() and (plain := text.encode().translate(None, _ASCII_SIGNS)):
        return plain.decode().lower()  # the same by a shorter way: most texts are plain, and some sets large
    composed = unicodedata.normalize("NFC", text)
    letters = _caseless(composed.translate(_LETTERS)).translate(_LETTERS)
    return letters or "".join(_caseless(composed).split())


def _caseless(text: str) -> str:
    for _ in range(2):  # twice, as NFKC gives upper case for 637 letters
        text = unicodedata.normalize("NFKC", text.casefold())
    return text


class _Letters(dict[int, int | None]):
    """For `str.translate`: keeps letters, marks and digits, but no variation selectors, which only change how a
    character is drawn. Filled as characters are met."""

    def __missing__(self, code: int) -> int | None:
        kind, name = unicodedata.category(chr(code)), unicodedata.name(chr(code), "")
        self[code] = code if kind[0] in "LMN" and "VARIATION SELECTOR" not in name else None
        return self[code]


_LETTERS = _Letters()
_ASCII_SIGNS = bytes(code for code in range(128) if not chr(code).isalnum())


def joined(parts: Iterable[Pairs]) -> Pairs:
    """The rows of all parts, one after the other."""
    parts = list(parts)
    return Pairs(
        tuple(id_ for part in parts for id_ in part.ids),
        tuple(text for part in parts for text in part.a),
        tuple(text for part in parts for text in part.b),
        np.concatenate([part.gold for part in parts]) if parts else np.zeros(0),
    )
