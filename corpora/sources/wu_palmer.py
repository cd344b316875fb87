"""Wu-Palmer similarity of WordNet synsets, with the meaning NLTK gives it.

WuPalmer(lexicon)("02084071-n", "02121620-n")       # dog, cat: 0.857142...
"""

from __future__ import annotations

from collections import deque
from functools import cache

from corpora.sources.wordnet import Wordnet

ROOT = "*ROOT*"


class WuPalmer:
    """2 D / (l1 + l2), where D - 1 is the depth of the lowest common hypernym and l the path to it plus D.

    Departures from the plain formula, all NLTK's: of the common hypernyms that one counts whose SHORTEST way to
    the top is longest (of equals the synset itself, else the first by name), but its depth is its LONGEST way to
    the top; verbs, adjectives and mixed parts of speech get a common root above everything. Adjectives have no
    hypernyms, so two of them score .5 unless they are equal.
    """

    def __init__(self, lexicon: Wordnet) -> None:
        self._synsets = lexicon.synsets
        self._senses = lexicon.senses
        self.ancestors = cache(self._ancestors)
        self.depth = cache(self._depth)
        self.name = cache(self._name)

    def __call__(self, a: str, b: str) -> float:
        """Similarity in (0, 1] of two synset ids; nan for nouns without a common hypernym."""
        rooted = not (a.endswith("-n") and b.endswith("-n"))
        up_a, up_b = self.ancestors(a), self.ancestors(b)
        common = [synset for synset in up_a if synset in up_b and (rooted or synset != ROOT)]
        if not common:
            return float("nan")
        lowest = max(self.depth(synset)[0] for synset in common)
        level = [synset for synset in common if self.depth(synset)[0] == lowest]
        subsumer = a if a in level else min(level, key=self.name)
        depth = self.depth(subsumer)[1] + 1
        return 2 * depth / (2 * depth + self._distance(a, subsumer) + self._distance(b, subsumer))

    def _distance(self, low: str, high: str) -> int:
        """Edges on the shortest way from one to its hypernym, up and down through any that both have."""
        up_low, up_high = self.ancestors(low), self.ancestors(high)
        return min(steps + up_high[synset] for synset, steps in up_low.items() if synset in up_high)

    def _ancestors(self, synset: str) -> dict[str, int]:
        """Itself and every hypernym, with the edges between; the common root is one step above the farthest."""
        if synset == ROOT:
            return {ROOT: 0}
        steps = {synset: 0}
        queue = deque([synset])
        while queue:
            below = queue.popleft()
            for hypernym in self._synsets[below].hypernyms:
                if hypernym not in steps:
                    steps[hypernym] = steps[below] + 1
                    queue.append(hypernym)
        return steps | {ROOT: max(steps.values()) + 1}

    def _depth(self, synset: str) -> tuple[int, int]:
        """Edges on the shortest and on the longest way to a top."""
        hypernyms = () if synset == ROOT else self._synsets[synset].hypernyms
        if not hypernyms:
            return 0, 0
        depths = [self.depth(hypernym) for hypernym in hypernyms]
        return 1 + min(low for low, _ in depths), 1 + max(high for _, high in depths)

    def _name(self, synset: str) -> str:
        """dog.n.01: the first lemma, the part of speech and the number of the sense."""
        if synset == ROOT:
            return ROOT
        lemma, pos = self._synsets[synset].lemmas[0].lower(), self._synsets[synset].pos
        return f"{lemma}.{pos}.{self._senses[lemma, pos].index(synset) + 1:02d}"
