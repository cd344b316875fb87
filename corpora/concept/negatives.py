"""Five rules that make a wrong definition for a term (CONCEPT, appendix G); the same in training and stress tests.

Two rules edit the definition (antonym, negate), three put another concept's definition in its place. A
replacement is chosen by the names of seed, rule, concept and term alone, so it does not depend on the order,
shard or process in which rows are treated.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, NamedTuple

from corpora.concept.antonyms import Antonyms, replace_word
from corpora.concept.negation import Negation
from corpora.sources.dictionary import DictionarySense
from corpora.sources.english import PREFIXES
from corpora.sources.texts import WORD, keyed, norm
from corpora.sources.wordnet import Wordnet

ATTEMPTS = 16
SHORTEST_STEM = 3
# Types in the order they are tried, each with its root's sense key and the word that names it in an edit.
TYPES = (
    ("person", "person%1:03:00::", "person"),
    ("organization", "organization%1:14:00::", "organization"),
    ("biological", "living_thing%1:03:00::", "organism"),
    ("location", "location%1:03:00::", "place"),
    ("artifact", "artifact%1:03:00::", "device"),
    ("event", "event%1:03:00::", "event"),
    ("abstraction", "abstraction%1:03:00::", "idea"),
)


@dataclass(frozen=True, kw_only=True)
class NegativeSettings:
    """Choices where the paper's wording and its figures differ; the wording is the default.

    antonym_fallback: the rule if no word has an antonym. prefix_fallback: the match of a term without a
    morphological prefix. type_mode: replace the definition, or edit its genus word.
    """

    seed: int = 0
    antonym_fallback: Literal["none", "random_same_pos"] = "none"
    prefix_fallback: Literal["initial3", "none"] = "initial3"
    type_mode: Literal["replace", "edit"] = "replace"


class Negative(NamedTuple):
    rule: str
    kind: str
    text: str


def prefix_of(term: str, is_word: Callable[[str], bool]) -> str | None:
    """The longest listed prefix of the term's first word, hyphen or not, that leaves a word of 3 or more."""
    first = re.split(r"[\s_]", term.lower(), maxsplit=1)[0]
    if not first.startswith(PREFIXES):
        return None
    for prefix in PREFIXES:
        stem = first[len(prefix) :].lstrip("-")
        if first.startswith(prefix) and len(stem) >= SHORTEST_STEM and is_word(stem):
            return prefix
    return None


def types_of(lexicon: Wordnet) -> dict[str, int]:
    """Noun synset id -> index in TYPES of its type: the first that is the synset or one of its hypernyms."""
    roots = {lexicon.keys[key]: index for index, (_, key, _) in enumerate(TYPES) if key in lexicon.keys}

    @cache
    def first(identifier: str) -> int:
        above = (first(parent) for parent in lexicon.synsets[identifier].hypernyms)
        return min((roots.get(identifier, len(TYPES)), *above))

    typed = (
        (identifier, first(identifier)) for identifier, synset in lexicon.synsets.items() if synset.pos == "n"
    )
    return {identifier: index for identifier, index in typed if index < len(TYPES)}


class SynsetFacts:
    """Facts of a lexicon that the rules need, computed once: surfaces, types, prefixes and the two edits."""

    def __init__(self, lexicon: Wordnet) -> None:
        lemmas = {lemma for lemma, _ in lexicon.senses}
        self.lexicon = lexicon
        self.types = types_of(lexicon)
        self.prefix = cache(lambda term: prefix_of(term, lemmas.__contains__))
        self.antonym = cache(Antonyms(lexicon).edit)
        self.negation = cache(Negation(lexicon).edit)
        self.surfaces = {
            identifier: frozenset(map(norm, synset.lemmas)) for identifier, synset in lexicon.synsets.items()
        }

    def know(self, senses: Iterable[DictionarySense]) -> None:
        """Add senses of other dictionaries: each is a concept with one surface."""
        self.surfaces |= {sense.concept: frozenset([norm(sense.term)]) for sense in senses}


@dataclass(frozen=True)
class NegativePool:
    """The definitions for replacements, grouped by rule; every list is sorted by synset id."""

    text: Mapping[str, str]
    by_pos: Mapping[str, Sequence[str]]
    by_type: Sequence[Sequence[str]]
    by_prefix: Mapping[tuple[str, str], Sequence[str]]
    by_initial: Mapping[tuple[str, str], Sequence[str]]


def pool_of(rows: Iterable[tuple[str, str]], text: Mapping[str, str], facts: SynsetFacts) -> NegativePool:
    """Group the concepts of (synset id, term) rows. text: synset id -> its masked definition."""
    by_pos: dict[str, set[str]] = {}
    by_type: list[set[str]] = [set() for _ in TYPES]
    by_prefix: dict[tuple[str, str], set[str]] = {}
    by_initial: dict[tuple[str, str], set[str]] = {}
    for identifier, term in rows:
        pos = identifier[-1]
        by_pos.setdefault(pos, set()).add(identifier)
        if prefix := facts.prefix(term):
            by_prefix.setdefault((prefix, pos), set()).add(identifier)
        if len(initial := norm(term)[:3]) == 3:
            by_initial.setdefault((initial, pos), set()).add(identifier)
        if identifier in facts.types:
            by_type[facts.types[identifier]].add(identifier)
    return NegativePool(
        text,
        {key: sorted(found) for key, found in by_pos.items()},
        [sorted(found) for found in by_type],
        {key: sorted(found) for key, found in by_prefix.items()},
        {key: sorted(found) for key, found in by_initial.items()},
    )


@dataclass(frozen=True)
class HardNegatives:
    """The five rules over one pool; each is a method (synset id, term, its definition) -> negative or none."""

    facts: SynsetFacts
    pool: NegativePool
    settings: NegativeSettings

    def of(self, concept: str, term: str, definition: str) -> list[Negative]:
        """The negative of every rule, in the order of RULES."""
        rules = (self.antonym, self.negate, self.pos_random, self.pos_prefix, self.type_swap)
        return [negative for rule in rules if (negative := rule(concept, term, definition))]

    def antonym(self, concept: str, term: str, definition: str) -> Negative | None:
        flipped = self.facts.antonym(definition)
        if flipped:
            return Negative("antonym", flipped[1], flipped[0])
        if self.settings.antonym_fallback == "random_same_pos":
            candidates = self.pool.by_pos.get(concept[-1], ())
            return self._drawn("antonym", "fallback", concept, term, definition, candidates)
        return None

    def negate(self, concept: str, term: str, definition: str) -> Negative:
        text, kind = self.facts.negation(definition)
        return Negative("negate", kind, text)

    def pos_random(self, concept: str, term: str, definition: str) -> Negative | None:
        candidates = self.pool.by_pos.get(concept[-1], ())
        return self._drawn("pos_random", "random", concept, term, definition, candidates)

    def pos_prefix(self, concept: str, term: str, definition: str) -> Negative | None:
        """A definition of a term with the same morphological prefix, or else the same first three letters."""
        prefix, initial, pos = self.facts.prefix(term), norm(term)[:3], concept[-1]
        made = None
        if prefix:
            candidates = self.pool.by_prefix.get((prefix, pos), ())
            made = self._drawn("pos_prefix", "morph", concept, term, definition, candidates)
        if made is None and self.settings.prefix_fallback == "initial3":
            candidates = self.pool.by_initial.get((initial, pos), ())
            made = self._drawn("pos_prefix", "init3", concept, term, definition, candidates)
        return made

    def type_swap(self, concept: str, term: str, definition: str) -> Negative | None:
        """A definition of another type, drawn uniformly (or that type's word in place of the genus).

        Only for WordNet's nouns, as nouns of other dictionaries have no known type.
        """
        if concept[-1] != "n" or concept not in self.facts.lexicon.synsets:
            return None
        own = self.facts.types.get(concept)
        others = [index for index in range(len(TYPES)) if index != own]
        if self.settings.type_mode == "replace":
            groups = [self.pool.by_type[index] for index in others]
            return self._drawn("type_swap", "replace", concept, term, definition, *groups)
        number = keyed(self.settings.seed, "type_swap", concept, norm(term), 0)
        edited = _genus_edit(concept, definition, TYPES[others[number % len(others)]][2], self.facts.lexicon)
        return Negative("type_swap", "edit", edited) if edited else None

    def _drawn(
        self, rule: str, kind: str, concept: str, term: str, definition: str, *groups: Sequence[str]
    ) -> Negative | None:
        """The definition of another concept: draws a group uniformly, then one of its concepts.

        Draws again for one that shares a surface, as the concept does with itself, or an equal definition. None
        after 16 draws.
        """
        surface, own = norm(term), self.facts.surfaces[concept]
        for attempt in range(ATTEMPTS):
            number, group = divmod(keyed(self.settings.seed, rule, concept, surface, attempt), len(groups))
            if not groups[group]:
                continue
            other = groups[group][number % len(groups[group])]
            text, surfaces = self.pool.text[other], self.facts.surfaces[other]
            if text != definition and own.isdisjoint(surfaces):
                return Negative(rule, kind, text)
        return None


def _genus_edit(concept: str, definition: str, type_word: str, lexicon: Wordnet) -> str | None:
    """The definition with its genus noun, the first token to name a broader concept, turned into a type word."""
    broader = {lemma.lower() for above in _above(concept, lexicon) for lemma in lexicon.synsets[above].lemmas}
    for token in WORD.finditer(definition):
        word = token.group().lower()
        if broader.intersection(lexicon.bases(word, "n")):
            plural = word not in lexicon.bases(word, "n")
            replacement = {"person": "people"}.get(type_word, type_word + "s") if plural else type_word
            return replace_word(definition, token.start(), token.end(), replacement)
    return None


def _above(concept: str, lexicon: Wordnet) -> set[str]:
    """Every hypernym of the concept, direct or not."""
    found: set[str] = set()
    waiting = list(lexicon.synsets[concept].hypernyms)
    while waiting:
        identifier = waiting.pop()
        if identifier not in found:
            found.add(identifier)
            waiting.extend(lexicon.synsets[identifier].hypernyms)
    return found
