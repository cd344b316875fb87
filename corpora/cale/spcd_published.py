"""Reads the SPCD that its authors published (gabrielloiseau/CALE-SPCD on the hub), or a folder in that form.

    rows, pairs = spcd_of(read("gabrielloiseau/CALE-SPCD"), lexicon)

A row is a pair: two sentences with the target written `<t>word</t>`, both lemmas, both synsets (`say.v.01`,
`v01009258` or `01009258-v`) and a label. COLUMNS lists the names that each column may have.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from corpora.cale.records import POS, SPLITS, OccurrencePairs, Tagged
from corpora.cale.spcd import concept_of
from corpora.sources.occurrences import Occurrence
from corpora.sources.texts import is_text
from corpora.sources.wordnet import Synset, Wordnet
from corpora.store.errors import CorpusError, kind_and_first_line
from corpora.store.places import named_path
from corpora.store.rows import sha256_of

log = logging.getLogger(__name__)


class Row(NamedTuple):
    """A published pair, as in the file."""

    sentence1: str
    lemma1: str
    synset1: str
    sentence2: str
    lemma2: str
    synset2: str
    label: int


COLUMNS = {
    "sentence1": ("sentence1", "sentence_1", "text1", "text_1", "context1", "context_1"),
    "lemma1": ("lemma1", "lemma_1", "word1", "word_1", "target1", "target_1"),
    "synset1": ("synset1", "synset_1", "concept1", "concept_1", "sense1", "sense_1"),
    "label": ("label", "labels", "score", "same_concept"),
}
COLUMNS |= {
    role.replace("1", "2"): tuple(name.replace("1", "2") for name in names) for role, names in COLUMNS.items()
}
HUB_SPLITS = {"train": ("train",), "val": ("validation", "val", "dev"), "test": ("test",)}
_MARK = re.compile(r"<t>\s*(.*?)\s*</t>")
_NAMES = (
    re.compile(r"(?P<pos>[nvars])(?P<offset>\d{8})"),
    re.compile(r"(?P<offset>\d{8})-(?P<pos>[nvars])"),
    re.compile(r"(?P<lemma>.+)\.(?P<pos>[nvars])\.(?P<number>\d+)"),
)


def read(source: str) -> dict[str, list[Row]]:
    """The rows of train, val and test, in their order. CorpusError when data, a split, a column or a cell is
    missing."""
    from datasets import load_dataset, load_from_disk

    folder = named_path(source)
    try:
        if (folder / "dataset_dict.json").exists():
            splits: Mapping[str, Any] = load_from_disk(str(folder))
        else:
            splits = load_dataset(str(folder) if folder.is_dir() else source, trust_remote_code=False)
    except Exception as error:
        raise CorpusError(
            f"corpora: data.spcd = {source!r}: {kind_and_first_line(error)}\n"
            "  accepted: a data set on the hub (gabrielloiseau/CALE-SPCD), or a folder in its form"
        ) from error
    rows = {}
    for split, names in HUB_SPLITS.items():
        name = next((name for name in names if name in splits), None)
        if name is None:
            raise CorpusError(
                f"corpora: {source} has no split for {split}; it has {', '.join(splits)}\n"
                f"  accepted: {', '.join(names)}"
            )
        columns = [_column(splits[name], role, f"{source}, split {name}") for role in Row._fields]
        written = map(Row._make, zip(*columns, strict=True))
        rows[split] = [_whole(row, _at(split, number)) for number, row in enumerate(written)]
    return rows


def fingerprint(rows: Mapping[str, Iterable[Row]]) -> str:
    """sha256 of all rows in order: the same for the hub and for a copy of it."""
    return sha256_of((split, *row) for split, published in rows.items() for row in published)


def spcd_of(
    rows: Mapping[str, Iterable[Row]], lexicon: Wordnet
) -> tuple[list[Tagged], dict[str, OccurrencePairs]]:
    """Occurrences, named by their place, and the pairs of them. CorpusError names an impossible row.

    An occurrence belongs to the split in which it is an anchor, or if it is only a partner, to its first split. A
    pair that is repeated in its split is kept once.
    """
    chosen: dict[str, list[tuple[Tagged, Tagged]]] = {}
    split_of: dict[Tagged, str] = {}
    for split, published in rows.items():
        chosen[split] = [_pair(row, lexicon, _at(split, number)) for number, row in enumerate(published)]
        for _, partner in chosen[split]:
            split_of.setdefault(partner, split)
    _check_apart(chosen)
    for split, pairs in chosen.items():
        split_of |= {anchor: split for anchor, _ in pairs}
    order = sorted(split_of, key=lambda side: (side.occurrence.text, side.occurrence.start, *side[2:4]))
    places = {side: place for place, side in enumerate(order)}
    tagged = [
        side._replace(id=name, split=split_of[side])
        for side, name in zip(order, names_of(len(order)), strict=True)
    ]
    kept = {split: _indexed(chosen[split], places) for split in SPLITS}
    for split, pairs_of_split in kept.items():
        if repeats := len(chosen[split]) - len(pairs_of_split):
            log.info("corpora: SPCD, split %s: %d repeated pairs left out", split, repeats)
    return tagged, kept


def names_of(count: int) -> list[str]:
    """Names of `count` occurrences, which sort in the order of their places."""
    width = max(6, len(str(count - 1)))
    return [f"spcd:{place:0{width}d}" for place in range(count)]


def _at(split: str, number: int) -> str:
    return f"corpora: SPCD, split {split}, row {number}"


def _whole(row: Row, at: str) -> Row:
    """The row, with blanks around its lemmas removed. CorpusError for an empty cell, which comes from a CSV as
    None and would pass for a 0.
    """
    texts: dict[str, Any] = row._asdict()
    label = texts.pop("label")
    for role, value in texts.items():
        if not is_text(value) or not value.strip():
            raise CorpusError(f"{at}: {role} = {value!r}\n  accepted: a text")
    if label not in (0, 1):
        raise CorpusError(f"{at}: label = {label!r}\n  accepted: 0, 1")
    return row._replace(lemma1=row.lemma1.strip(), lemma2=row.lemma2.strip())


def _check_apart(chosen: Mapping[str, Sequence[tuple[Tagged, Tagged]]]) -> None:
    """Raise CorpusError for a pair of val or test that is also a train pair, in either order."""
    trained = set(map(frozenset, chosen["train"]))
    for split in ("val", "test"):
        for number, pair in enumerate(chosen[split]):
            if frozenset(pair) in trained:
                raise CorpusError(
                    f"{_at(split, number)}: the pair stands in train, too\n"
                    "  accepted: other pairs than those of train, in whatever order"
                )


def _column(table: Any, role: str, at: str) -> list[Any]:
    for name in COLUMNS[role]:
        if name in table.column_names:
            return list(table[name])
    raise CorpusError(
        f"corpora: {at}: no column for {role}; it has {', '.join(table.column_names)}\n"
        f"  accepted: {', '.join(COLUMNS[role])}"
    )


def _pair(row: Row, lexicon: Wordnet, at: str) -> tuple[Tagged, Tagged]:
    anchor = _side(row.sentence1, row.lemma1, row.synset1, lexicon, at)
    partner = _side(row.sentence2, row.lemma2, row.synset2, lexicon, at)
    if bool(row.label) != (anchor.concept == partner.concept):
        raise CorpusError(
            f"{at}: label {row.label!r} with the synsets {row.synset1!r} and {row.synset2!r}\n"
            "  accepted: 1 for equal synsets, 0 for others"
        )
    return anchor, partner


def _side(sentence: str, lemma: str, written: str, lexicon: Wordnet, at: str) -> Tagged:
    marks = list(_MARK.finditer(sentence))
    if len(marks) != 1 or not marks[0][1]:
        raise CorpusError(f"{at}: {sentence!r}\n  accepted: a sentence with one target, written <t>word</t>")
    start, end = marks[0].span()
    word = marks[0][1]
    occurrence = Occurrence(sentence[:start] + word + sentence[end:], start, start + len(word), lemma.lower())
    synset = _synset(written, lexicon)
    if synset is None:
        raise CorpusError(
            f"{at}: synset {written!r} is not in WordNet 3.0\n  accepted: say.v.01, v01009258, 01009258-v"
        )
    if synset.pos not in POS:
        raise CorpusError(
            f"{at}: synset {written!r} is one of adverbs\n  accepted: those of nouns, verbs and adjectives"
        )
    return Tagged("", occurrence, concept_of(synset), synset.pos, synset.lexname)


def _synset(written: str, lexicon: Wordnet) -> Synset | None:
    for form in _NAMES:
        if match := form.fullmatch(written):
            parts = match.groupdict()
            pos = parts["pos"].replace("s", "a")
            if "offset" in parts:
                return lexicon.synsets.get(f"{parts['offset']}-{pos}")
            senses = lexicon.senses.get((parts["lemma"].lower(), pos), ())
            number = int(parts["number"])
            return lexicon.synsets[senses[number - 1]] if 0 < number <= len(senses) else None
    return None


def _indexed(pairs: Iterable[tuple[Tagged, Tagged]], places: Mapping[Tagged, int]) -> OccurrencePairs:
    """Distinct pairs as places, with their category: 0 to 3 from two questions, another concept? another lemma?"""
    table = sorted({
        (
            places[anchor],
            2 * (anchor.concept != partner.concept) + (anchor.occurrence.lemma != partner.occurrence.lemma),
            places[partner],
        )
        for anchor, partner in pairs
    })  # fmt: skip
    anchor, category, partner = np.array(table, np.int32).reshape(-1, 3).T
    return OccurrencePairs(anchor.copy(), partner.copy(), category.astype(np.uint8))
