"""Lin's similarity of WordNet synsets, by the tag counts that WordNet carries (cntlist.rev).

Lin(lexicon)("02084071-n", "02121620-n")       # dog, cat
"""

from __future__ import annotations

import math
from collections import defaultdict

from corpora.sources.wordnet import Wordnet
from corpora.sources.wu_palmer import ROOT, WuPalmer

HIERARCHIES = ("n", "v")  # the parts of speech that have hypernyms


class Lin:
    """2 IC(c) / (IC(a) + IC(b)), c the common hypernym of most information; 0 without one, nan unless both are
    nouns or both verbs.

    IC is minus the logarithm of a synset's share of its part of speech: tags of the synset and all below it, with
    one added for every synset, so that no share is 0. Source: Lin 1998; counts: WordNet's own,
    of its tagged texts, where other programs take the Brown corpus.
    """

    def __init__(self, lexicon: Wordnet) -> None:
        ancestors = WuPalmer(lexicon).ancestors
        self.above = {
            name: frozenset(ancestors(name)) - {ROOT} for name in lexicon.synsets if name[-1] in HIERARCHIES
        }
        self.counts: dict[str, int] = defaultdict(int)
        self.totals: dict[str, int] = defaultdict(int)
        for name, above in self.above.items():
            own = sum(lexicon.synsets[name].counts) + 1
            self.totals[name[-1]] += own
            for higher in above:
                self.counts[higher] += own

    def information(self, synset: str) -> float:
        return -math.log(self.counts[synset] / self.totals[synset[-1]])

    def __call__(self, a: str, b: str) -> float:
        """Similarity in [0, 1] of two synset ids."""
        if a not in self.above or b not in self.above or a[-1] != b[-1]:
            return float("nan")
        if a == b:
            return 1.0
        shared = max((self.information(name) for name in self.above[a] & self.above[b]), default=0.0)
        return 2 * shared / (self.information(a) + self.information(b)) if shared else 0.0
