"""The count-based generator against its formula, computed the long way for every word."""

from __future__ import annotations

from math import log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpora.san.cloze import ADDED, PLACES, SMOOTHING, UNIT, WEIGHTS, Cloze, count
from corpora.san.english_tokens import tokens_of
from corpora.san.importance import CODE
from corpora.san.mask_predict import UNKNOWN, batched
from tests.corpora.san.small import TEXTS, resolve, small_cloze

CLOZE = small_cloze()
SENTENCES = [tokens_of(text) for text in TEXTS]


def plainly(words: list[str | None], place: int, kind: str) -> dict[str, float]:
    """The score of each word of a kind, by counting the texts again."""
    seen = {word: sum(sentence.count(word) for sentence in SENTENCES) for word in CLOZE.words}
    total = sum(seen.values()) + ADDED * len(seen)
    scores = {}
    for word in seen:
        if resolve(word) != kind:
            continue
        p = (seen[word] + ADDED) / total
        scores[word] = log(p)
        for offset, weight in zip(PLACES, WEIGHTS, strict=True):
            at = place + offset
            beside = words[at] if 0 <= at < len(words) else None
            if beside is None or beside not in seen:
                continue
            pairs = [
                (sentence[i + offset], sentence[i])
                for sentence in SENTENCES
                for i in range(len(sentence))
                if 0 <= i + offset < len(sentence)
            ]
            together = pairs.count((beside, word))
            # the total beside the neighbour is the same for every word, and left out by the tables
            scores[word] += weight * (log((together + SMOOTHING * p) / SMOOTHING) - log(p))
    return scores


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.sampled_from([*CLOZE.words, "zorg", None]), min_size=1, max_size=6),
    st.integers(0, 5),
    st.sampled_from(["NOUN", "VERB", "ADJ", "DET", "ADP", "PUNCT"]),
)
def test_fills_with_the_best_word_of_the_formula(words, place, kind):
    place %= len(words)
    words[place] = None
    text = " ".join(word or "_" for word in words)
    scores = plainly(words, place, kind)
    tokens = CLOZE.encode([text], 128)[0]
    ids = np.where([word is None for word in words], UNKNOWN, tokens.ids).astype(np.int32)
    tags = tokens.tags.copy()
    tags[place] = CODE[kind]
    batch = batched([tokens._replace(ids=ids, tags=tags)], [text], np.array([1], np.uint64))
    masked = np.zeros(batch.ids.shape, bool)
    masked[0, place] = True
    filled = CLOZE.words[CLOZE.fill(batch, masked, None)[0, place]]
    assert scores[filled] == pytest.approx(max(scores.values()), abs=8 / UNIT)


def test_a_filled_word_is_context_for_the_next():
    """`red` and its noun, both masked: the noun is chosen beside the adjective that was filled in before it."""
    tokens = CLOZE.encode(["a big dog"], 128)[0]
    batch = batched([tokens], ["a big dog"], np.array([1], np.uint64))
    masked = np.zeros(batch.ids.shape, bool)
    masked[0, 1:3] = True
    first = CLOZE.words[CLOZE.fill(batch, masked, None)[0, 1]]
    both = [CLOZE.words[i] for i in CLOZE.fill(batch, masked, None)[0, :3]]
    best = plainly(["a", first, None], 2, "NOUN")
    assert both[:2] == ["a", first]
    assert best[both[2]] == pytest.approx(max(best.values()), abs=8 / UNIT)


def test_what_it_lacks_stays():
    """No symbol was counted, and an unknown word stays where it is not masked."""
    tokens = CLOZE.encode(["$ zorg"], 128)[0]
    batch = batched([tokens], ["$ zorg"], np.array([1], np.uint64))
    masked = np.array([[True, False] + [False] * 6])
    assert CLOZE.fill(batch, masked, None)[0, :2].tolist() == [UNKNOWN, UNKNOWN]


def test_noise_ranks_among_the_best():
    """Enough noise on the second best makes it win; none leaves the best."""
    tokens = CLOZE.encode(["the cat sat"], 128)[0]
    batch = batched([tokens], ["the cat sat"], np.array([1], np.uint64))
    masked = np.array([[False, True] + [False] * 6])
    best = CLOZE.fill(batch, masked, None)[0, 1]
    noise = np.zeros((1, 8, 2))
    assert CLOZE.fill(batch, masked, noise)[0, 1] == best
    noise[0, 1, 1] = 100.0
    other = CLOZE.fill(batch, masked, noise)[0, 1]
    assert other != best
    assert CLOZE.tags[other] == CODE["NOUN"]


def test_tables_survive_the_disk(tmp_path):
    CLOZE.save(tmp_path)
    again = Cloze.load(tmp_path, resolve, CLOZE.source)
    assert again.fingerprint == CLOZE.fingerprint
    assert again.words == CLOZE.words


def test_words_seen_once_and_beyond_the_limit_are_unknown():
    counted = count(["b b b a a c", "a"], source="two", most=1)
    assert counted.words == ("a",)
    assert counted.pairs[0][2].tolist() == [1]  # `a a` alone: no pair reaches over an unknown word or an end
