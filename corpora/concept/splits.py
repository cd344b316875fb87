"""Held-out concepts and what they take out of training (CONCEPT, section 4, "decontaminated splits").

A synset filter alone leaks: another sense of a held-out word would still train the same string. So every row
with a held-out surface leaves training, on either side, and so does every row with a held-out wording.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from corpora.sources.texts import keyed, norm, normdef, word_count
from corpora.sources.wordnet import Synset

HH_WORDS = 3  # a definition shorter than this is no test of a frequent concept
KEPT_WORDS = 2  # a shorter masked definition has no meaning


@dataclass(frozen=True)
class Splits:
    """Held-out synset ids per split, in their order of choice, and what must not occur in training.

    surfaces: of every lemma held out. wordings: of every definition held out, with and without its terms.
    """

    hh: tuple[str, ...]
    id: tuple[str, ...]
    dev: tuple[str, ...]
    surfaces: frozenset[str]
    wordings: frozenset[str]

    @cached_property
    def concepts(self) -> frozenset[str]:
        return frozenset(self.hh + self.id + self.dev)

    def allow(self, concept: str, terms: Sequence[str], definitions: Sequence[str] = ()) -> bool:
        """Whether a row of this concept, with these term-like sides and definitions, may be trained on."""
        return (
            concept not in self.concepts
            and self.surfaces.isdisjoint(map(norm, terms))
            and self.wordings.isdisjoint(map(normdef, definitions))
        )


def split_of(
    synsets: Mapping[str, Synset],
    masked: Mapping[str, str],
    *,
    seed: int,
    n_hh: int,
    n_id: int,
    n_dev: int,
    dev_apart: bool,
) -> Splits:
    """The most frequent synsets as head-holdout, then a keyed draw for the in-domain test and for dev.

    masked: synset id -> definition without its terms. Ties in frequency are ordered by id; the seed changes the
    in-domain test and dev, not the head-holdout. dev_apart: no dev concept shares a surface or a wording with a
    tested one; otherwise they only are different concepts.
    """
    wordy = (synset for synset in synsets.values() if word_count(synset.definition) >= HH_WORDS)
    hh = [synset.id for synset in sorted(wordy, key=lambda synset: (-synset.frequency, synset.id))[:n_hh]]
    taken = surfaces_of(hh, synsets)
    free = (
        synset.id
        for synset in synsets.values()
        if taken.isdisjoint(map(norm, synset.lemmas)) and word_count(masked[synset.id]) >= KEPT_WORDS
    )
    drawn = sorted(free, key=lambda identifier: (keyed(seed, "split", identifier), identifier))
    tested = drawn[:n_id]
    rest: Iterable[str] = drawn[n_id:]
    if dev_apart:
        surfaces, wordings = surfaces_of(tested, synsets), wordings_of(hh + tested, synsets, masked)
        rest = (
            identifier
            for identifier in rest
            if surfaces_of((identifier,), synsets).isdisjoint(surfaces)
            and wordings_of((identifier,), synsets, masked).isdisjoint(wordings)
        )
    dev = tuple(islice(rest, n_dev))
    held_out = [*hh, *tested, *dev]
    return Splits(
        hh=tuple(hh),
        id=tuple(tested),
        dev=dev,
        surfaces=surfaces_of(held_out, synsets),
        wordings=wordings_of(held_out, synsets, masked),
    )


def surfaces_of(identifiers: Sequence[str], synsets: Mapping[str, Synset]) -> frozenset[str]:
    return frozenset(norm(lemma) for identifier in identifiers for lemma in synsets[identifier].lemmas)


def wordings_of(
    identifiers: Sequence[str], synsets: Mapping[str, Synset], masked: Mapping[str, str]
) -> frozenset[str]:
    """The bare wording of these definitions, with and without their terms."""
    return frozenset(
        normdef(text)
        for identifier in identifiers
        for text in (masked[identifier], synsets[identifier].definition)
    )
