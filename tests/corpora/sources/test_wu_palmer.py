"""Wu-Palmer similarity: values worked out with NLTK, and NLTK itself beside ours on pairs drawn at random."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import pytest

from corpora.sources.wordnet import LEXNAMES, Wordnet
from corpora.sources.wordnet_files import FILES, WordnetFiles
from corpora.sources.wu_palmer import ROOT, WuPalmer


@pytest.mark.parametrize(
    ("a", "b", "value"),
    [
        ("02084071-n", "02121620-n", 0.857143),  # dog.n.01, cat.n.01
        ("01926329-v", "01904948-v", 0.285714),  # run.v.01, walk.v.01
        ("08654360-n", "00024720-n", 0.166667),  # state.n.01, state.n.02
        ("01123148-a", "01125429-a", 0.5),  # good.a.01, bad.a.01: the common root
        ("02084071-n", "01926329-v", 0.142857),  # dog.n.01, run.v.01
        ("01123148-a", "01123148-a", 1.0),
    ],
)
def test_values_of_nltk(real: Wordnet, a: str, b: str, value: float) -> None:
    similarity = WuPalmer(real)
    assert similarity(a, b) == pytest.approx(value, abs=1e-6)
    assert similarity(b, a) == pytest.approx(value, abs=1e-6)


def test_names_are_those_of_nltk(real: Wordnet) -> None:
    name = WuPalmer(real).name
    assert [name(synset) for synset in ("02084071-n", "00024720-n", ROOT)] == ["dog.n.01", "state.n.02", ROOT]


def test_nouns_without_a_common_hypernym(small: Wordnet) -> None:
    roots = [identifier for identifier, synset in small.synsets.items() if "the root of every" in synset.gloss]
    assert math.isnan(WuPalmer(small)(roots[0], roots[1]))


def test_equals_nltk_on_random_pairs(
    real_files: WordnetFiles, real: Wordnet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any two synsets, two of one part of speech, and a synset with one of its hypernyms."""
    nltk = nltk_reader(real_files, tmp_path, monkeypatch)
    similarity = WuPalmer(real)
    drawn = random.Random(20)
    of_pos = {pos: [identifier for identifier in real.synsets if identifier[-1] == pos] for pos in "nva"}
    anything = [*of_pos["n"], *of_pos["v"], *of_pos["a"]]
    pairs = [(drawn.choice(anything), drawn.choice(anything)) for _ in range(200)]
    pairs += [(drawn.choice(of_pos[pos]), drawn.choice(of_pos[pos])) for pos in "nv" for _ in range(400)]
    for low in drawn.sample(of_pos["n"] + of_pos["v"], 300):
        pairs.append((low, drawn.choice([high for high in similarity.ancestors(low) if high != ROOT])))

    def theirs(identifier: str) -> Any:
        return nltk.synset_from_pos_and_offset(identifier[-1], int(identifier[:8]))

    for a, b in pairs:
        assert similarity(a, b) == pytest.approx(theirs(a).wup_similarity(theirs(b)), abs=1e-12), (a, b)


def nltk_reader(files: WordnetFiles, folder: Path, patch: pytest.MonkeyPatch) -> Any:
    """NLTK's reader on the same files. It wants a list of lexicographer files, which Debian leaves out, and a
    sense index, which only its mapping to other WordNets uses."""
    import nltk
    from nltk.corpus.reader.wordnet import WordNetCorpusReader

    class Reader(WordNetCorpusReader):
        def map_wn(self, version: str = "wordnet") -> None:
            return None

    for name in FILES:
        (folder / name).write_bytes(files.read(name))
    numbers = {"noun": 1, "verb": 2, "adj": 3, "adv": 4}
    lexnames = [f"{at:02d}\t{name}\t{numbers[name.split('.')[0]]}\n" for at, name in enumerate(LEXNAMES)]
    (folder / "lexnames").write_text("".join(lexnames))
    patch.setattr("nltk.data.path", [*nltk.data.path, str(folder)])  # outside its path NLTK opens nothing
    with pytest.warns(UserWarning, match="multilingual functions are not available"):
        return Reader(str(folder), None)
