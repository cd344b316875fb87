"""Comment to label: find the label of an ontology's comment, from which the label's words are removed.

The paper's benchmark asks questions that a language model wrote, and is not published. Here the ontology's own
comments stand for them: they are shorter, drier and fewer. Source: Concept, sections 4.5 and 5.6.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from corpora.concept.masking import erase
from corpora.concept.splits import KEPT_WORDS
from corpora.sources import dbpedia
from corpora.sources.dbpedia import OntologyTerm
from corpora.sources.english import FUNCTION_WORDS
from corpora.sources.texts import keyed, norm, normdef
from corpora.store.cache import digest_of, key_of

VERSION = 1  # raised when the same file gives other rows
TESTED = 245  # labels; the paper's test pairs (section 4.5)
STEM = 4  # letters: words with the same first four, or equal shorter words, overlap
_WORD = re.compile(r"[A-Za-z]+")


class LabelRow(NamedTuple):
    """A comment, without the words of its label, and that label."""

    name: str
    comment: str
    label: str


@dataclass(frozen=True)
class OntologyRows:
    """Training rows and test rows, which share no label, class, property or comment."""

    train: tuple[LabelRow, ...]
    test: tuple[LabelRow, ...]


@lru_cache(maxsize=2)
def load(path: str | None = None, seed: int = 0) -> OntologyRows:
    """The rows of the ontology at this place; 1 s once. CorpusError if it is missing."""
    return labelled(dbpedia.read(dbpedia.locate(path)), seed)


def fingerprint(path: str | None = None, seed: int = 0) -> str:
    """A cheap hash of the rows: the ontology's file, the seed and this file's version."""
    return key_of({"comment to label": VERSION, "source": digest_of(dbpedia.locate(path)), "seed": seed})


def labelled(terms: Iterable[OntologyTerm], seed: int) -> OntologyRows:
    """Masked comments with their labels. The test part has the first labels in the order of a hash of their names.

    Comments with fewer than two content words left are left out, and comments of several labels, such as "Reserved
    for DBpedia.".
    """
    rows: dict[tuple[str, str], LabelRow] = {}
    labels_of: defaultdict[str, set[str]] = defaultdict(set)
    for term in terms:
        label = spoken(term.label)
        comment = without(term.comment, label)
        if len(stems(comment)) >= KEPT_WORDS and stems(label):
            rows.setdefault((norm(label), normdef(comment)), LabelRow(term.name, comment, label))
            labels_of[normdef(comment)].add(norm(label))
    kept = {place: row for place, row in rows.items() if len(labels_of[place[1]]) == 1}
    drawn = sorted({label for label, _ in kept}, key=lambda label: (keyed(seed, "ontology", label), label))
    tested = set(drawn[:TESTED])
    train, test = (
        tuple(row for (label, _), row in kept.items() if (label in tested) == part) for part in (False, True)
    )
    return OntologyRows(train, test)


def spoken(label: str) -> str:
    """A label in lower case, with a single word in camel case split into its words."""
    return (label if " " in label else re.sub(r"(?<=[a-z])(?=[A-Z])", " ", label)).lower()


def stems(text: str) -> set[str]:
    """The first letters of the content words of a text."""
    return {word[:STEM] for word in _WORD.findall(text.lower()) if word not in FUNCTION_WORDS}


def without(comment: str, label: str) -> str:
    """The comment without words that share a stem with the label."""
    begun = [re.escape(stem) + ("[A-Za-z]*" if len(stem) == STEM else "") for stem in sorted(stems(label))]
    if not begun:
        return comment
    return erase(comment, re.compile(rf"(?<![A-Za-z])(?:{'|'.join(begun)})(?![A-Za-z])", re.I))
