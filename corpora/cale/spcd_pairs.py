"""SPCD's pairs: for every occurrence one partner of each possible category (CALE, appendix A).

Choices depend only on a hash of the seed, the anchor's id and the category, and not on the order of the input, the
number of processes or the machine. Departure: the paper draws partners within each split, but its counts are only
reached if val and test anchors also take partners from train (`partner_pool: one_sided`).
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import numpy as np

from corpora.cale.records import CATEGORIES, SPLITS, OccurrencePairs, Tagged
from corpora.sources.texts import keyed_sha256


def pairs_of(
    rows: Sequence[Tagged], *, seed: int, partner_pool: Literal["one_sided", "strict"]
) -> dict[str, OccurrencePairs]:
    """The pairs of each split, as places in `rows`, which are sorted by id.

    Train anchors take partners from train; val and test anchors from their own split and, if one_sided, train.
    """
    pairs = {}
    for split in SPLITS:
        allowed = {split, "train"} if partner_pool == "one_sided" else {split}
        pool = _Pool([place for place, row in enumerate(rows) if row.split in allowed], rows)
        anchors = [place for place, row in enumerate(rows) if row.split == split]
        chosen = [pair for anchor in anchors for pair in pool.partners(anchor, seed)]
        anchor, partner, category = np.array(chosen, np.int32).reshape(-1, 3).T
        pairs[split] = OccurrencePairs(anchor.copy(), partner.copy(), category.astype(np.uint8))
    return pairs


class _Pool:
    """Occurrences that may be partners, by place in `rows`, and by lemma and concept; all lists sorted by id."""

    def __init__(self, places: list[int], rows: Sequence[Tagged]) -> None:
        self.rows = rows
        self.places = places
        self.groups: dict[tuple[str, str], list[int]] = defaultdict(list)
        self.of_concept: dict[str, list[int]] = defaultdict(list)
        self.of_lemma: dict[str, list[int]] = defaultdict(list)
        for place in places:
            lemma, concept = _names(rows[place])
            self.groups[lemma, concept].append(place)
            self.of_concept[concept].append(place)
            self.of_lemma[lemma].append(place)
        self.others: dict[tuple[str, str], tuple[list[int], list[int]]] = {}

    def partners(self, anchor: int, seed: int) -> Iterator[tuple[int, int, int]]:
        """(anchor, partner, category) for every category that has a candidate."""
        name = self.rows[anchor].id
        lemma, concept = _names(self.rows[anchor])
        if (lemma, concept) not in self.others:
            self.others[lemma, concept] = (
                [place for place in self.of_concept[concept] if self.rows[place].occurrence.lemma != lemma],
                [place for place in self.of_lemma[lemma] if self.rows[place].concept != concept],
            )
        own = [place for place in self.groups[lemma, concept] if place != anchor]
        for category, candidates in enumerate((own, *self.others[lemma, concept])):
            if candidates:
                pick = keyed_sha256(seed, name, CATEGORIES[category]) % len(candidates)
                yield anchor, candidates[pick], category
        if len(self.of_lemma[lemma]) + len(self.others[lemma, concept][0]) < len(self.places):
            yield anchor, self._stranger(anchor, seed), CATEGORIES.index("DC/DL")

    def _stranger(self, anchor: int, seed: int) -> int:
        """The first of a keyed sequence of places that shares neither lemma nor concept with the anchor."""
        name, (lemma, concept) = self.rows[anchor].id, _names(self.rows[anchor])
        attempt = 0
        while True:
            place = self.places[keyed_sha256(seed, name, "DC/DL", attempt) % len(self.places)]
            other_lemma, other_concept = _names(self.rows[place])
            if other_lemma != lemma and other_concept != concept:
                return place
            attempt += 1


def _names(row: Tagged) -> tuple[str, str]:
    return row.occurrence.lemma, row.concept


def digests_of(rows: Sequence[Tagged], pairs: Mapping[str, OccurrencePairs]) -> dict[str, str]:
    """sha256 over sorted lines: `id TAB lemma TAB concept` and, per split, `anchor TAB partner TAB category`."""
    lines = {"occurrences": [f"{row.id}\t{row.occurrence.lemma}\t{row.concept}\n" for row in rows]}
    for split, chosen in pairs.items():
        columns = zip(chosen.anchor.tolist(), chosen.partner.tolist(), chosen.category.tolist(), strict=True)
        lines[split] = [f"{rows[a].id}\t{rows[b].id}\t{CATEGORIES[c]}\n" for a, b, c in columns]
    return {name: hashlib.sha256("".join(sorted(part)).encode()).hexdigest() for name, part in lines.items()}
