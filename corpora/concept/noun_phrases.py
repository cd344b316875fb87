"""Noun phrases with paraphrases, in five families by how the modifier composes with its head, in two regimes.

The paper's suite, written by a language model, is not published. These pairs come from templates
(noun_phrases.yaml) and WordNet's nouns, in the paper's sizes. Templates repeat, so heads are resampled. Source:
Concept, section 4.5, appendices C and I.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from corpora.concept.negatives import TYPES, types_of
from corpora.sources.english import FUNCTION_WORDS
from corpora.sources.texts import keyed, word_set
from corpora.sources.wordnet import Wordnet, read
from corpora.sources.wordnet_files import locate
from corpora.store.cache import entry, key_of

VERSION = 1  # raised when the same files give other pairs
ROWS = "pairs.json"
TEMPLATES = Path(__file__).with_name("noun_phrases.yaml")
REGIMES = ("strict", "near")
# Family -> pairs of both regimes together (section 4.5), and the type of its heads.
FAMILIES = {
    "intersective": (900, "artifact"),
    "subsective": (800, "person"),
    "relational": (700, "artifact"),
    "modal": (800, "person"),
    "privative": (800, "artifact"),
}
HEADS = 90  # of each type
LEAST_TAGS = 5  # least tags of a head's first sense, which must have half of the word's uses
STEPS_UP = 4
_HEAD = re.compile(r"[a-z]{3,10}$")
_TOKEN = re.compile(r"[a-z]+")
# Words too broad for a paraphrase.
BLUNT = word_set("""
    entity object whole artifact artefact instrumentality instrumentation thing matter unit structure
    device article organism person someone individual adult worker equipment commodity covering
    substance area way construction creation creator inhabitant male female man woman case facility
    product conveyance implement communicator
    """) | {"living thing", "physical entity", "causal agent"}
_INSULT = re.compile(r"\b(?:slur|offensive|disparaging)\b")  # WordNet marks such words in their glosses


@dataclass(frozen=True, slots=True)
class PhrasePair:
    """A noun phrase and a paraphrase. Pairs with the same `meaning` are paraphrases of one another."""

    regime: str
    family: str
    meaning: str
    modifier: str
    head: str
    query: str
    paraphrase: str


@lru_cache(maxsize=2)
def load(wordnet: str | None = None, seed: int = 0) -> tuple[PhrasePair, ...]:
    """The pairs from the WordNet at this place; 4 s once. CorpusError if it is missing."""

    def build(folder: Path) -> None:
        made = phrase_pairs(read(locate(wordnet)), seed)
        (folder / ROWS).write_text(json.dumps([astuple(pair) for pair in made]))

    folder, _ = entry("noun-phrases", fingerprint(wordnet, seed), build)
    return tuple(PhrasePair(*row) for row in json.loads((folder / ROWS).read_text()))


def fingerprint(wordnet: str | None = None, seed: int = 0) -> str:
    """A cheap hash of the pairs: WordNet's files, the templates, the seed and this file's version."""
    templates = hashlib.sha256(TEMPLATES.read_bytes()).hexdigest()
    sources = locate(wordnet).digests()
    return key_of({"noun phrases": VERSION, "templates": templates, "sources": sources, "seed": seed})


def phrase_pairs(lexicon: Wordnet, seed: int = 0) -> Iterator[PhrasePair]:
    """Every family's pairs, half strict, then half near, drawn by a hash of seed and texts.

    Near pairs prefer phrases that also have a strict pair.
    """
    import yaml

    templates: Mapping[str, Sequence[Mapping[str, Any]]] = yaml.safe_load(TEMPLATES.read_text())
    heads = {kind: heads_of(lexicon, kind) for kind in ("artifact", "person")}
    for family, (size, kind) in FAMILIES.items():
        made = list(_candidates(family, templates[family], heads[kind], lexicon))
        strict = _drawn((pair for pair in made if pair.regime == "strict"), seed)[: size // 2]
        kept = {pair.query for pair in strict}
        near = _drawn((pair for pair in made if pair.regime == "near"), seed)
        near.sort(key=lambda pair: pair.query not in kept)  # stable: each half stays in the order of its draw
        yield from (*strict, *near[: size // 2])


def _drawn(pairs: Iterator[PhrasePair], seed: int) -> list[PhrasePair]:
    return sorted(pairs, key=lambda pair: keyed(seed, pair.regime, pair.query, pair.paraphrase))


def heads_of(lexicon: Wordnet, kind: str) -> dict[str, str]:
    """The most used nouns of this type with a broader word for each, in the order of their use."""
    wanted, types = [name for name, *_ in TYPES].index(kind), types_of(lexicon)
    found = []
    for (word, pos), identifiers in lexicon.senses.items():
        first = lexicon.synsets[identifiers[0]]
        if pos != "n" or not _HEAD.match(word) or first.lemmas[0] != word or types.get(first.id) != wanted:
            continue
        if _INSULT.search(first.gloss):
            continue
        uses = first.counts[0]
        all_uses = lexicon.counts.get((word, "n"), 0) + lexicon.counts.get((word, "v"), 0)
        if uses >= LEAST_TAGS and 2 * uses >= all_uses and (broader := broader_of(word, first.id, lexicon)):
            found.append((-uses, word, broader))
    return {word: broader for _, word, broader in sorted(found)[:HEADS]}


def broader_of(word: str, identifier: str, lexicon: Wordnet) -> str | None:
    """The first usable word on the way up from a synset: at most two words, no name, not the noun itself, not
    blunt."""
    for _ in range(STEPS_UP):
        above = lexicon.synsets[identifier].hypernyms
        if not above:
            return None
        identifier = above[0]
        lemma = lexicon.synsets[identifier].lemmas[0].replace("_", " ")
        short = len(lemma.split()) <= 2 and lemma.islower()
        if short and word not in lemma and lemma not in BLUNT:
            return lemma
    return None


def _candidates(
    family: str, classes: Sequence[Mapping[str, Any]], heads: Mapping[str, str], lexicon: Wordnet
) -> Iterator[PhrasePair]:
    """Every phrase of a family with every paraphrase that shares no word with it."""
    for number, one in enumerate(classes):
        for modifier in one["modifiers"]:
            for head, broader in heads.items():
                for regime, word in (("strict", head), ("near", broader)):
                    for template in one[regime]:
                        text = template.format(H=head, B=broader)
                        if not _overlap(modifier, text, head, lexicon):
                            meaning = f"{family} {number} {word}"
                            yield PhrasePair(regime, family, meaning, modifier, head, f"{modifier} {head}", text)


def _overlap(modifier: str, text: str, head: str, lexicon: Wordnet) -> bool:
    """Whether modifier and paraphrase share a content word or a base form of one, the head left out of both."""
    sides = [_stems(side, head, lexicon) for side in (modifier, text)]
    return not sides[0].isdisjoint(sides[1])


def _stems(text: str, head: str, lexicon: Wordnet) -> set[str]:
    content = [token for token in _TOKEN.findall(text.lower()) if token != head and token not in FUNCTION_WORDS]
    return {base for token in content for pos in "nvar" for base in (token, *lexicon.bases(token, pos))}
