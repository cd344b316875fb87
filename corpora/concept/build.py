"""Builds the concept corpus: WordNet -> masked definitions -> splits -> training rows, negatives, stress tests.

Other dictionaries add training rows, or replace WordNet's. Test rows are always WordNet's.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from corpora.concept import dictionaries, ontology
from corpora.concept.dictionaries import CrossRow
from corpora.concept.masking import masker
from corpora.concept.negatives import HardNegatives, NegativeSettings, SynsetFacts, pool_of
from corpora.concept.ontology import LabelRow
from corpora.concept.records import KINDS, RULES, EvalSplit, PairRows, RuleNegatives, StressRow
from corpora.concept.splits import KEPT_WORDS, Splits, split_of
from corpora.concept.tables import BuiltCorpus
from corpora.concept.views import DefinitionRow, SynonymRow, definition_rows, synonym_rows
from corpora.sources.dictionary import DictionarySense, Word
from corpora.sources.texts import norm, normdef, shown, word_count
from corpora.sources.wordnet import Synset, Wordnet
from corpora.store.columns import Ragged

if TYPE_CHECKING:
    from corpora.concept.data import ConceptData


class Numbers:
    """Numbers names in the order in which they are first seen."""

    def __init__(self) -> None:
        self.of: dict[str, int] = {}

    def __call__(self, name: str) -> int:
        return self.of.setdefault(name, len(self.of))


def build_concept(data: ConceptData, lexicon: Wordnet) -> BuiltCorpus:
    """Build the whole corpus; the same lexicon and settings give the same bytes."""
    mask = masker(lexicon, derivations=data.mask_derivations, mask_token=data.mask_token)
    masked = {synset.id: mask(synset, synset.lemmas) for synset in lexicon.synsets.values()}
    splits = split_of(
        lexicon.synsets,
        masked,
        seed=data.split_seed,
        n_hh=data.n_hh,
        n_id=data.n_id,
        n_dev=data.n_dev,
        dev_apart=data.dev_apart,
    )

    def row_text(synset: Synset, lemma: str) -> str:
        return masked[synset.id] if data.mask_scope == "synset" else mask(synset, (lemma,))

    synonyms, definitions, crossed, senses = _rows_of_all(data, lexicon, splits, row_text)
    facts = SynsetFacts(lexicon)
    facts.know(senses)
    settings = _negative_settings(data)
    replacements = {**masked, **{sense.concept: sense.definition for sense in senses}}
    text, name = Numbers(), Numbers()
    ids_of = _surface_ids(lexicon.synsets, name)

    def columns(view: str, rows: Sequence[Any], ids: Callable[..., list[int]]) -> PairRows:
        return _columns(view, rows, text, (ids(row, ids_of, name) for row in rows))

    syn, t2d = columns("syn", synonyms, _synonym_ids), columns("t2d", definitions, _definition_ids)
    d2d = columns("d2d", crossed, _cross_ids) if crossed else None
    negatives = _training_negatives(definitions, replacements, splits, facts, settings, text)
    evaluated = {"dev": splits.dev, "id": splits.id[: data.test_concepts], "hh": splits.hh}
    spelt = shown if data.test_surfaces == "as-written" else norm
    held = {
        which: eval_split(which, concepts, lexicon.synsets, masked, facts, settings, data.stress_concepts, spelt)
        for which, concepts in evaluated.items()
    }
    labelled = label_rows(data, splits)
    c2l = columns("c2l", labelled, _label_ids) if labelled else None
    return BuiltCorpus(list(text.of), syn, t2d, negatives, held, d2d, c2l)


def _rows_of_all(
    data: ConceptData, lexicon: Wordnet, splits: Splits, row_text: Callable[[Synset, str], str]
) -> tuple[list[SynonymRow], list[DefinitionRow], list[CrossRow], list[DictionarySense]]:
    """The training rows of WordNet and the study's other dictionaries, and the other dictionaries' senses."""
    synonyms, definitions = training_rows(lexicon.synsets, splits, row_text)
    if not set(data.lexicons) - {"wordnet"}:
        return synonyms, definitions, [], []
    counts: Counter[Word] | None = Counter() if data.d2d_monosemous else None
    more, defined, senses = dictionaries.rows_of(dictionaries.senses(data, lexicon, counts), splits)
    crossed = dictionaries.cross_rows(lexicon, senses, splits, row_text, counts) if data.crosses else []
    if data.split == "in-domain":  # else WordNet is for tests alone
        more, defined = [*synonyms, *more], [*definitions, *defined]
    return more, defined, crossed, senses


def training_rows(
    synsets: Mapping[str, Synset], splits: Splits, row_text: Callable[[Synset, str], str]
) -> tuple[list[SynonymRow], list[DefinitionRow]]:
    """The synonym and definition rows without a held-out concept, surface or wording."""
    synonyms = [row for row in synonym_rows(synsets.values()) if splits.allow(row.concept, (row.left, row.right))]
    definitions = [
        row
        for row in definition_rows(synsets.values(), row_text)
        if splits.allow(row.concept, (row.term,), (row.definition, synsets[row.concept].definition))
    ]
    return synonyms, definitions


def label_rows(data: ConceptData, splits: Splits) -> list[LabelRow]:
    """The comments and labels of the study's ontology, if any, without a held-out concept, surface or wording."""
    if data.ontology == "none":
        return []
    rows = ontology.load(data.dbpedia, data.split_seed).train
    return [row for row in rows if splits.allow(row.name, (row.label,), (row.comment,))]


def eval_split(
    name: str,
    concepts: Sequence[str],
    synsets: Mapping[str, Synset],
    masked: Mapping[str, str],
    facts: SynsetFacts,
    settings: NegativeSettings,
    stress_concepts: int | None,
    spelt: Callable[[str], str],
) -> EvalSplit:
    """Held-out concepts as terms, candidate definitions, gold by text, and stress rows.

    spelt: how a term is written; terms of one surface are one, as the first of them is written.
    A concept whose masked definition keeps fewer than two words has no row. Replacements in the stress rows
    come from this split's own definitions.
    """
    tested = [concept for concept in concepts if word_count(masked[concept]) >= KEPT_WORDS]
    term, definition = Numbers(), Numbers()
    written: dict[str, str] = {}
    gold: dict[int, list[int]] = defaultdict(list)
    carriers: dict[int, list[str]] = defaultdict(list)
    for concept in tested:
        place = definition(masked[concept])
        carriers[place].append(concept)
        for lemma in synsets[concept].lemmas:
            listed = gold[term(norm(lemma))]
            written.setdefault(norm(lemma), spelt(lemma))
            if place not in listed:
                listed.append(place)
    rows = ((concept, lemma) for concept in tested for lemma in synsets[concept].lemmas)
    negatives = HardNegatives(facts, pool_of(rows, masked, facts), settings)
    stressed = (
        StressRow(concept, written[norm(first)], masked[concept], negative.rule, negative.kind, negative.text)
        for concept in tested[:stress_concepts]
        for first in synsets[concept].lemmas[:1]
        for negative in negatives.of(concept, first, masked[concept])
    )
    return EvalSplit(
        name=name,
        terms=tuple(written.values()),
        definitions=tuple(definition.of),
        gold=tuple(tuple(gold[number]) for number in range(len(gold))),
        concept_of_definition=tuple(tuple(carriers[number]) for number in range(len(carriers))),
        stress=tuple(stressed),
    )


def _negative_settings(data: ConceptData) -> NegativeSettings:
    shared: dict[str, Any] = {
        field.name: getattr(data, field.name) for field in fields(NegativeSettings) if field.name != "seed"
    }
    return NegativeSettings(seed=data.negatives_seed, **shared)


def _surface_ids(synsets: Mapping[str, Synset], name: Numbers) -> Callable[[str], frozenset[int]]:
    """A function term -> ids of its surface and of every synset with it, in any sense and part of speech."""
    holders: dict[str, set[str]] = defaultdict(set)
    for synset in synsets.values():
        for lemma in synset.lemmas:
            holders[norm(lemma)].add(synset.id)

    @cache
    def ids(term: str) -> frozenset[int]:
        surface = norm(term)
        return frozenset([name(f"t:{surface}"), *map(name, sorted(holders[surface]))])

    return ids


def _synonym_ids(row: SynonymRow, ids_of: Callable[[str], frozenset[int]], name: Numbers) -> list[int]:
    return sorted(ids_of(row.left) | ids_of(row.right) | {name(row.concept)})


def _definition_ids(row: DefinitionRow, ids_of: Callable[[str], frozenset[int]], name: Numbers) -> list[int]:
    return sorted(ids_of(row.term) | {name(row.concept), name(f"d:{normdef(row.definition)}")})


def _cross_ids(row: CrossRow, ids_of: Callable[[str], frozenset[int]], name: Numbers) -> list[int]:
    wordings = (name(f"d:{normdef(side)}") for side in (row.left, row.right))
    return sorted(ids_of(row.term) | {*map(name, row.concepts), *wordings})


def _label_ids(row: LabelRow, ids_of: Callable[[str], frozenset[int]], name: Numbers) -> list[int]:
    return sorted(ids_of(row.label) | {name(f"o:{row.name}"), name(f"d:{normdef(row.comment)}")})


def _columns(
    view: str,
    rows: Sequence[SynonymRow | DefinitionRow | CrossRow | LabelRow],
    text: Numbers,
    ids: Iterator[list[int]],
) -> PairRows:
    left = np.fromiter((text(row[-2]) for row in rows), np.int32, count=len(rows))
    right = np.fromiter((text(row[-1]) for row in rows), np.int32, count=len(rows))
    return PairRows(view, left, right, Ragged.of(ids))


def _training_negatives(
    rows: Sequence[DefinitionRow],
    masked: Mapping[str, str],
    splits: Splits,
    facts: SynsetFacts,
    settings: NegativeSettings,
    text: Numbers,
) -> RuleNegatives:
    """Every rule's negative for every row; replacements come only from the concepts of these rows.

    An edit may give a held-out definition (the antonym of "enter a computer" is that of log-out). It is dropped,
    as training would push a test definition away.
    """
    negatives = HardNegatives(facts, pool_of(((row.concept, row.term) for row in rows), masked, facts), settings)
    is_held_out = cache(lambda text: normdef(text) in splits.wordings)
    texts: list[list[int]] = []
    rules, kinds = bytearray(), bytearray()
    for row in rows:
        every = negatives.of(row.concept, row.term, row.definition)
        made = [negative for negative in every if not is_held_out(negative.text)]
        texts.append([text(negative.text) for negative in made])
        rules.extend(RULES.index(negative.rule) for negative in made)
        kinds.extend(KINDS.index(negative.kind) for negative in made)
    return RuleNegatives(Ragged.of(texts), np.frombuffer(rules, np.uint8), np.frombuffer(kinds, np.uint8))
