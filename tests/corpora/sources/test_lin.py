"""Lin's similarity: by hand on a small WordNet, and NLTK's own on the real one from the same counts."""

from __future__ import annotations

import math
import random
from pathlib import Path

import pytest

from corpora.sources.lin import Lin
from corpora.sources.wordnet import Wordnet
from corpora.sources.wordnet_files import WordnetFiles
from tests.corpora.sources.test_wu_palmer import nltk_reader


def test_by_hand(small: Wordnet) -> None:
    """The share of a synset is that of all below it; what is alike scores 1, what shares nothing 0."""
    similarity = Lin(small)
    nouns = [name for name in small.synsets if name.endswith("-n")]
    total = sum(sum(small.synsets[name].counts) + 1 for name in nouns)
    assert similarity.totals["n"] == total
    child = next(name for name in nouns if len(similarity.above[name]) == 2)
    (parent,) = similarity.above[child] - {child}
    below = [name for name in nouns if parent in similarity.above[name]]
    share = sum(sum(small.synsets[name].counts) + 1 for name in below) / total
    assert similarity.information(parent) == pytest.approx(-math.log(share))
    expected = (
        2 * similarity.information(parent) / (similarity.information(parent) + similarity.information(child))
    )
    assert similarity(child, parent) == pytest.approx(expected)
    assert similarity(child, child) == 1
    roots = [identifier for identifier, synset in small.synsets.items() if "the root of every" in synset.gloss]
    assert similarity(roots[0], roots[1]) == 0
    adjective = next(name for name in small.synsets if name.endswith("-a"))
    assert math.isnan(similarity(adjective, adjective))


def test_equals_nltk_on_random_pairs(
    real_files: WordnetFiles, real: Wordnet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NLTK is given our counts; who is above whom and the formula are its own."""
    nltk, similarity = nltk_reader(real_files, tmp_path, monkeypatch), Lin(real)
    counts: dict[str, dict[int, float]] = {pos: {0: float(similarity.totals[pos])} for pos in "nv"}
    for name, count in similarity.counts.items():
        counts[name[-1]][int(name[:8])] = float(count)
    drawn = random.Random(20)
    of_pos = {pos: [name for name in real.synsets if name[-1] == pos] for pos in "nv"}
    pairs = [(drawn.choice(of_pos[pos]), drawn.choice(of_pos[pos])) for pos in "nv" for _ in range(300)]
    for low in drawn.sample(of_pos["n"] + of_pos["v"], 200):
        pairs.append((low, drawn.choice(sorted(similarity.above[low]))))
    for a, b in pairs:
        one, other = (nltk.synset_from_pos_and_offset(name[-1], int(name[:8])) for name in (a, b))
        assert similarity(a, b) == pytest.approx(one.lin_similarity(other, counts), abs=1e-12), (a, b)
