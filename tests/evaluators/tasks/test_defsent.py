"""Word prediction from places: the paper's cut, ties, words outside of the vocabulary, synonyms, repeated rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from corpora.defsent.data import DefsentData
from corpora.defsent.records import Definition, DefinitionRows, Questions
from corpora.store.columns import Texts
from evaluators.tasks.defsent import at_cut, metric_names, tasks, word_scores
from evaluators.tasks.task import evaluate


def questions(
    rows: Sequence[tuple[str, str, str]], words_of: dict[str, tuple[str, ...]] | None = None
) -> Questions:
    """DefinitionRows of (id, word, definition)."""
    ids, words, definitions = (
        Texts(pa.array(list(column), pa.large_string())) for column in zip(*rows, strict=True)
    )
    own = {definition: (word,) for _, word, definition in rows}
    return Questions(DefinitionRows(ids, words, definitions, words), {**own, **(words_of or {})})


def answers(places: dict[tuple[str, str], float]):
    """Places by (definition, word), as an encoder gives them."""

    def read(asked: Sequence[Definition]) -> np.ndarray:
        return np.array([[places[tuple(one)]] for one in asked], np.float32)

    return read


def test_the_golden_figures():
    """Places 3, 6, 1 and 2: mrr 1/2, top1 1/4, top3 3/4; with the reciprocals cut at 3 the second would be 0."""
    rows = [(f"{at}", f"w{at}", f"d{at}") for at in range(4)]
    places = {(f"d{at}", f"w{at}"): place for at, place in enumerate((3, 6, 1, 2))}
    scores = {score.metric: score.value for score in word_scores("d2w", questions(rows), answers(places))}
    assert tuple(scores) == metric_names("d2w")
    assert scores["d2w/mrr"] == pytest.approx(0.5)
    assert scores["d2w/top1"] == 0.25
    assert scores["d2w/top3"] == 0.75
    assert scores["d2w/top10"] == 1
    assert scores["d2w/mrr_at_10"] == pytest.approx(0.5)  # all four are within ten
    assert at_cut(np.array([3, 6, 1, 2]), 3).mean() == pytest.approx(0.4583333333)


def test_the_paper_cuts_at_ten():
    """Its MRR is 0 beyond the tenth place; the uncut one is higher."""
    assert at_cut(np.array([1, 10, 11, 4000])).tolist() == [1, 0.1, 0, 0]
    rows = [("a", "w", "d"), ("b", "v", "e")]
    scores = {
        score.metric: score.value
        for score in word_scores("d2w", questions(rows), answers({("d", "w"): 11, ("e", "v"): 2}))
    }
    assert scores["d2w/mrr_at_10"] == 0.25
    assert scores["d2w/mrr"] == pytest.approx((1 / 11 + 1 / 2) / 2)


def test_words_outside_of_the_vocabulary_are_not_asked_for():
    rows = [("a", "w", "d"), ("b", "two words", "e")]
    read = answers({("d", "w"): 2, ("e", "two words"): 0})
    scores = word_scores("d2w", questions(rows), read)
    assert all(list(score.item_ids) == ["a"] for score in scores)
    with pytest.raises(ValueError, match="d2w: none of 1 words"):
        word_scores("d2w", questions(rows[1:]), read)


def test_a_synonym_is_no_mistake():
    """mrr_any: the best place among all words that have this definition, in the vocabulary."""
    asked = questions([("a", "w", "d")], {"d": ("w", "synonym", "two words")})
    read = answers({("d", "w"): 8, ("d", "synonym"): 1, ("d", "two words"): 0})
    scores = {score.metric: score.value for score in word_scores("d2w", asked, read)}
    assert scores["d2w/mrr_any"] == 1
    assert scores["d2w/mrr"] == 1 / 8


def test_copies_of_a_row_are_items_of_their_own():
    """Oxford's lines repeat with their examples, and each counts, as in the paper."""
    rows = [("a", "w", "d"), ("a", "w", "d"), ("b", "v", "e")]
    asked = questions(rows)
    (first, *_) = word_scores("d2w", asked, answers({("d", "w"): 1, ("e", "v"): 100}))
    assert first.value == pytest.approx(2 / 3)
    assert list(first.item_ids) == ["a", "a#2", "b"]
    assert list(first.group_ids) == ["w", "w", "v"]
    told = tasks(DefsentData())["d2w"].item_texts(asked, first.metric)
    assert told == {"a": "w: d", "a#2": "w: d", "b": "v: e"}


def test_the_tasks_ask_for_test_and_dev(small_wordnet: Path):
    from corpora.defsent.corpus import load

    data = DefsentData(wordnet=str(small_wordnet), test_definitions=7)
    table = tasks(data)
    corpus = load(data)
    asked = table["d2w"].benchmark.load()
    assert list(asked.rows.ids) == list(corpus.rows["test"].ids)[:7]
    assert list(table["dev/d2w"].benchmark.load().rows.ids) == list(corpus.rows["dev"].ids)
    assert table["d2w"].fingerprint != table["dev/d2w"].fingerprint
    assert table["d2w"].headline == "d2w/mrr_at_10"

    def always_third(definitions: Sequence[Definition]) -> np.ndarray:
        return np.full((len(definitions), 1), 3, np.float32)

    ((task, scores),) = evaluate([table["d2w"]], {"definitions": always_third})
    assert task is table["d2w"]
    assert scores[0].value == pytest.approx(1 / 3)
    assert len(scores[0].item_ids) == 7


@pytest.fixture
def small_wordnet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    from tests.corpora.conftest import write_small_wordnet

    monkeypatch.setenv("SEMRAY_CACHE", str(tmp_path / "cache"))
    write_small_wordnet(tmp_path)
    return tmp_path
