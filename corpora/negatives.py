"""Five rules that make a wrong definition for a term (CONCEPT, appendix G); the same in training and stress tests.

Two rules edit the definition (antonym, negate), three put another concept's definition in its place. A
replacement is chosen by the names of seed, rule, concept and term alone, so it does not depend on the order,
shard or process in which rows are treated.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, NamedTuple

from corpora.antonyms import Antonyms, replace_word
from corpora.english import PREFIXES
from corpora.negation import Negation
from corpora.texts import WORD, keyed, norm
from corpora.wordnet import Wordnet

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
    """Where the paper's wording and its figures part, the wording is the default and the other a choice.

    antonym_fallback: what to do when no word has an antonym. prefix_fallback: what a term without a
    morphological prefix is matched by. type_mode: replace the definition or edit its genus word.
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
    for prefix in PREFIXES:
        stem = first[len(prefix) :].lstrip("-")
        if first.startswith(prefix) and len(stem) >= SHORTEST_STEM and is_word(stem):
            return prefix
    return None


def types_of(lexicon: Wordnet) -> dict[str, int]:
    """Noun synset id -> index of its type in TYPES: the first that is among the synset and all it is a kind of."""
    roots = {lexicon.keys[key]: index for index, (_, key, _) in enumerate(TYPES) if key in lexicon.keys}

    @cache
    def first(identifier: str) -> int:
        above = (first(parent) for parent in lexicon.synsets[identifier].hypernyms)
        return min((roots.get(identifier, len(TYPES)), *above))

    typed = (
        (identifier, first(identifier)) for identifier, synset in lexicon.synsets.items() if synset.pos == "n"
    )
    return {identifier: index for identifier, index in typed if index < len(TYPES)}


class Facts:
    """What the rules ask of a lexicon, worked out once: surfaces, types, prefixes and the two edits."""

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


@dataclass(frozen=True)
class Pool:
    """The definitions a replacement may come from, grouped as the rules ask; every list is sorted by synset id."""

    text: Mapping[str, str]
    by_pos: Mapping[str, Sequence[str]]
    by_type: Sequence[Sequence[str]]
    by_prefix: Mapping[tuple[str | None, str], Sequence[str]]
    by_initial: Mapping[tuple[str, str], Sequence[str]]


def pool_of(rows: Iterable[tuple[str, str]], text: Mapping[str, str], facts: Facts) -> Pool:
    """Group the concepts of (synset id, term) rows. text: synset id -> its masked definition."""
    by_pos: dict[str, set[str]] = {}
    by_type: list[set[str]] = [set() for _ in TYPES]
    by_prefix: dict[tuple[str | None, str], set[str]] = {}
    by_initial: dict[tuple[str, str], set[str]] = {}
    for identifier, term in rows:
        pos = identifier[-1]
        by_pos.setdefault(pos, set()).add(identifier)
        by_prefix.setdefault((facts.prefix(term), pos), set()).add(identifier)
        if len(initial := norm(term)[:3]) == 3:
            by_initial.setdefault((initial, pos), set()).add(identifier)
        if identifier in facts.types:
            by_type[facts.types[identifier]].add(identifier)
    return Pool(
        text,
        {key: sorted(found) for key, found in by_pos.items()},
        [sorted(found) for found in by_type],
        {key: sorted(found) for key, found in by_prefix.items()},
        {key: sorted(found) for key, found in by_initial.items()},
    )


def negatives_of(
    concept: str, term: str, definition: str, *, facts: Facts, pool: Pool, settings: NegativeSettings
) -> Iterator[Negative]:
    """At most one negative per rule for a term of a concept, in the order of RULES."""
    pos = concept[-1]

    def drawn(rule: str, candidates: Sequence[str]) -> str | None:
        return _drawn(rule, concept, term, definition, (candidates,), facts, pool, settings.seed)

    flipped = facts.antonym(definition)
    if flipped:
        yield Negative("antonym", flipped[1], flipped[0])
    elif settings.antonym_fallback == "random_same_pos" and (text := drawn("antonym", pool.by_pos.get(pos, ()))):
        yield Negative("antonym", "fallback", text)

    denied, kind = facts.negation(definition)
    yield Negative("negate", kind, denied)

    if text := drawn("pos_random", pool.by_pos.get(pos, ())):
        yield Negative("pos_random", "random", text)

    prefix = facts.prefix(term)
    if prefix and (text := drawn("pos_prefix", pool.by_prefix.get((prefix, pos), ()))):
        yield Negative("pos_prefix", "morph", text)
    elif settings.prefix_fallback == "initial3" and (
        text := drawn("pos_prefix", pool.by_initial.get((norm(term)[:3], pos), ()))
    ):
        yield Negative("pos_prefix", "init3", text)

    if pos == "n":
        own = facts.types.get(concept)
        others = [index for index in range(len(TYPES)) if index != own]
        if settings.type_mode == "edit":
            choice = others[keyed(settings.seed, "type_swap", concept, term, 0) % len(others)]
            if edited := _genus_edit(concept, definition, TYPES[choice][2], facts.lexicon):
                yield Negative("type_swap", "edit", edited)
        else:
            groups = tuple(pool.by_type[index] for index in others)
            if text := _drawn("type_swap", concept, term, definition, groups, facts, pool, settings.seed):
                yield Negative("type_swap", "replace", text)


def _drawn(
    rule: str,
    concept: str,
    term: str,
    definition: str,
    groups: Sequence[Sequence[str]],
    facts: Facts,
    pool: Pool,
    seed: int,
) -> str | None:
    """The definition of another concept: a group uniformly, then one of its concepts uniformly.

    Refused: the concept itself, one that shares a surface with it, one with the very same definition.
    None after 16 refusals.
    """
    surfaces = facts.surfaces[concept] | {norm(term)}
    for attempt in range(ATTEMPTS):
        number, group = divmod(keyed(seed, rule, concept, term, attempt), len(groups))
        candidates = groups[group]
        if not candidates:
            continue
        other = candidates[number % len(candidates)]
        text = pool.text[other]
        if other != concept and text != definition and surfaces.isdisjoint(facts.surfaces[other]):
            return text
    return None


def _genus_edit(concept: str, definition: str, type_word: str, lexicon: Wordnet) -> str | None:
    """The definition with its genus noun, the first token to name a broader concept, turned into a type word."""
    broader = {lemma.lower() for above in _above(concept, lexicon) for lemma in lexicon.synsets[above].lemmas}
    for token in re.finditer(WORD, definition):
        word = token.group().lower()
        if broader.intersection(lexicon.bases(word, "n")):
            plural = word not in lexicon.bases(word, "n")
            replacement = {"person": "people"}.get(type_word, type_word + "s") if plural else type_word
            return replace_word(definition, token.start(), token.end(), replacement)
    return None


def _above(concept: str, lexicon: Wordnet) -> set[str]:
    """Every synset the concept is a kind or an instance of, itself left out."""
    found: set[str] = set()
    waiting = list(lexicon.synsets[concept].hypernyms)
    while waiting:
        identifier = waiting.pop()
        if identifier not in found:
            found.add(identifier)
            waiting.extend(lexicon.synsets[identifier].hypernyms)
    return found
