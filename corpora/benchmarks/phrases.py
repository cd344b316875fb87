"""Noun phrases that people wrote or judged: their entailments, paraphrases and compositionality.

    items = entailments(path="data")       # RNPC: does "a former chairman" entail "a chairman"?
    given = compounds(path="data")         # SemEval-2013 task 4: free paraphrases of noun compounds, with votes
    judged = compositionality(path="data") # Reddy et al. 2011: 90 compounds, means of ratings from 0 to 5

Sources: Lyu et al. 2022; Hendrickx et al. 2013; Reddy, McCarthy and Manandhar 2011.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from corpora.store.errors import CorpusError
from corpora.store.places import found, lines, quoted_rows
from corpora.store.rows import number_within

RNPC = "https://github.com/veronica320/Recursive-NPs"
COMPOUNDS = "https://github.com/vered1986/panic"
KINDS = ("int", "sub", "pri")  # intersective, subsective and privative modifiers
COMBOS = tuple(f"{first}-{second}" for first in KINDS for second in KINDS)
HIGHEST = 5.0  # of Reddy et al.'s ratings
_COLUMNS = ("combo", "hypothesis", "id", "label", "premise", "source NP")
_ENTAILED = {"entailment": True, "non-entailment": False}


@dataclass(frozen=True)
class Entailment:
    """Whether a sentence with a phrase of two modifiers entails the sentence with one of them, or none. combo: the
    kinds of both modifiers, in their order."""

    id: str
    combo: str
    head: str
    premise: str
    hypothesis: str
    entailed: bool


@dataclass(frozen=True)
class Compound:
    """A noun compound and its paraphrases, each with the number of people who gave it."""

    modifier: str
    head: str
    paraphrases: tuple[tuple[str, int], ...]

    @property
    def text(self) -> str:
        return f"{self.modifier} {self.head}"


@dataclass(frozen=True)
class Rated:
    """How literally a compound uses its modifier, its head and both, means of ratings from 0 to 5."""

    modifier: str
    head: str
    by_modifier: float
    by_head: float
    whole: float

    @property
    def text(self) -> str:
        return f"{self.modifier} {self.head}"


def entailments(*, path: str | None) -> tuple[Entailment, ...]:
    """The single-premise items of RNPC in file order. CorpusError when the file is absent or odd."""
    file = _file("RNPC's SPTE", ("recursive_np/tasks/SPTE.csv", "RNPC/tasks/SPTE.csv"), path, RNPC)
    return tuple(
        _entailment(row, f"corpora: {file}, line {number}") for number, row in quoted_rows(file, _COLUMNS)
    )


def _entailment(row: dict[str, str], at: str) -> Entailment:
    words, label = row["source NP"].split(), row["label"]
    if label not in _ENTAILED or row["combo"] not in COMBOS or not words:
        raise CorpusError(
            f"{at}: label {label!r}, combo {row['combo']!r}\n"
            f"  accepted: {' or '.join(_ENTAILED)}; {', '.join(COMBOS)}; with a phrase"
        )
    return Entailment(
        row["id"], row["combo"], words[-1].lower(), row["premise"], row["hypothesis"], _ENTAILED[label]
    )


def compounds(*, path: str | None) -> tuple[Compound, ...]:
    """The test part of the shared task, by compound in file order. CorpusError when the file is absent or odd."""
    names = ("noun_compounds/semeval_2013/test_gold.txt", "semeval_2013/test_gold.txt")
    file = _file("SemEval-2013 task 4", names, path, COMPOUNDS)
    paraphrases: dict[tuple[str, str], list[tuple[str, int]]] = {}
    for modifier, head, text, votes in _rows(file, 4):
        if not votes.isdecimal():
            raise CorpusError(f"corpora: {file}: {votes!r} votes for {text!r}\n  accepted: a whole number")
        paraphrases.setdefault((modifier, head), []).append((" ".join(text.split()), int(votes)))
    return tuple(Compound(*words, tuple(texts)) for words, texts in paraphrases.items())


def compositionality(*, path: str | None) -> tuple[Rated, ...]:
    """The compounds in file order. CorpusError when the file is absent or odd."""
    file = _file("Reddy et al.'s compounds", ("noun_compounds/reddy2011.csv", "reddy2011.csv"), path, COMPOUNDS)
    made = []
    for modifier, head, *ratings in _rows(file, 5):
        try:
            made.append(Rated(modifier, head, *(number_within(rating, HIGHEST) for rating in ratings)))
        except ValueError:
            problem = f"corpora: {file}: {ratings} of {modifier} {head}"
            raise CorpusError(f"{problem}\n  accepted: three means from 0 to {HIGHEST:g}") from None
    return tuple(made)


def _rows(file: Path, width: int) -> Iterator[list[str]]:
    for number, fields in lines(file):
        if len(fields) != width:
            raise CorpusError(f"corpora: {file}, line {number}: {len(fields)} fields, expected {width}")
        yield fields


def _file(what: str, names: tuple[str, ...], path: str | None, source: str) -> Path:
    return found(what, names, path=path, holds=names[0], source=source)
