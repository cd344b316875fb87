"""Tags in context by spaCy's model, copied to the pieces of a word."""

from __future__ import annotations

import numpy as np
import pytest

from corpora.san.importance import CODE, POS, SPECIAL
from corpora.san.mask_predict import TaggedTokens
from corpora.san.tagging import by_isolated_word, tagged
from corpora.sources import spacy_model
from corpora.store.errors import CorpusError
from tests.corpora.san.small import small_cloze


@pytest.fixture(scope="module", autouse=True)
def model():
    try:
        return spacy_model.load()
    except CorpusError as missing:
        pytest.skip(str(missing))


def test_one_word_two_tags():
    """`work` is a verb here and a noun there; a vocabulary entry has one tag for both."""
    texts = ["They work.", "The work is hard.", ""]
    tokens = small_cloze().encode(texts, 128)
    tags = [[POS[tag] for tag in each.tags] for each in tagged(texts, tokens)]
    assert tags == [["PRON", "VERB", "PUNCT"], ["DET", "NOUN", "AUX", "ADJ", "PUNCT"], []]


def test_pieces_have_the_tag_of_their_word_and_specials_stay():
    text = "boats sank"
    pieces = TaggedTokens(
        np.arange(4),
        np.array([CODE["X"]] * 3 + [SPECIAL], np.uint8),
        np.array([0, 4, 6, 8]),
        np.array([4, 5, 8, 10]),
    )
    tags = next(tagged([text], [pieces])).tags
    assert [POS[tag] for tag in tags] == ["NOUN", "NOUN", "VERB", "SPECIAL"]


def test_isolated_words():
    resolve = by_isolated_word()
    assert [resolve(word) for word in ("the", "1956", "quickly", "...")] == ["DET", "NUM", "ADV", "PUNCT"]


def test_without_a_model(monkeypatch):
    monkeypatch.setattr(spacy_model, "PACKAGES", ("en_no_such_model",))
    with pytest.raises(CorpusError, match=r"en_no_such_model\n  to get it: python -m spacy download"):
        spacy_model.installed()
