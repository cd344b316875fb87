"""Every item that a task keeps can be read: its name leads to its texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from corpora.benchmarks.pairs import Pairs, joined
from corpora.benchmarks.senteval import Labelled
from corpora.concept.records import EvalSplit, StressRow
from corpora.defsent.data import DefsentData
from corpora.sentence_transformers.data import HeldOut, RecipeData, TrainingSet
from evaluators.tasks import defsent, held_out, suite
from evaluators.tasks.concept import tasks_on
from evaluators.tasks.named_items import pair_item_texts, pair_items, subset_item_texts
from evaluators.tasks.senteval import item_texts_of, items_of
from evaluators.tasks.task import Benchmark

ROWS = tuple(
    StressRow(concept, f"term {concept}", f"definition of {concept}", rule, "", f"{rule} of {concept}")
    for concept in "ab"
    for rule in ("negate", "antonym")
)
SPLIT = EvalSplit(
    name="id",
    terms=("term a", "term b"),
    definitions=("definition of a", "definition of b"),
    gold=((0,), (1,)),
    concept_of_definition=(("a",), ("b",)),
    stress=ROWS,
)
HERE = {split: Benchmark(fingerprint=lambda: "", load=lambda: SPLIT) for split in ("id", "dev", "hh")}


def encode(texts: Sequence[str]) -> np.ndarray:
    return np.random.default_rng(1).standard_normal((len(texts), 8), np.float32)


@pytest.mark.parametrize("name", ["t2d", "d2t", "pair_auc", "stress"])
def test_every_item_of_a_concept_task_is_told(name: str) -> None:
    task = tasks_on(ranked=HERE, stressed=HERE)[name]
    assert task.item_texts is not None
    for score in task.score(SPLIT, encode):
        texts = task.item_texts(SPLIT, score.metric)
        assert set(score.item_ids or ()) <= texts.keys()
        assert all("term" in texts[item] for item in score.item_ids or ())


@pytest.mark.parametrize("name", ["t2d", "d2t"])
def test_what_a_query_was_taken_for_is_told(name: str) -> None:
    """Terms and definitions whose vectors are each other's: every query finds the other answer first."""
    turned = {"term a": 0, "definition of b": 0, "term b": 1, "definition of a": 1}
    task = tasks_on(ranked=HERE, stressed=HERE)[name]
    *others, mrr = task.score(SPLIT, lambda texts: np.eye(2, dtype=np.float32)[[turned[text] for text in texts]])
    assert not any(score.taken_for for score in others)
    assert task.item_texts is not None
    texts = task.item_texts(SPLIT, mrr.metric)
    assert [texts[other] for other in mrr.taken_for] == ["term b: definition of b", "term a: definition of a"]
    *_, right = task.score(
        SPLIT, lambda texts: np.eye(2, dtype=np.float32)[[int(text[-1] == "b") for text in texts]]
    )
    assert list(right.taken_for) == ["", ""]


@pytest.mark.parametrize("rule", ["negate", "antonym"])
def test_what_is_wrong_for_a_term_is_named(rule: str) -> None:
    task = tasks_on(ranked=HERE, stressed=HERE)["stress"]
    assert task.item_texts is not None
    texts = task.item_texts(SPLIT, f"stress/{rule}/auc")
    assert texts["a+"] == "term a: definition of a"
    assert texts["a-"] == f"term a, taken for: {rule} of a"
    assert texts["a"] == f"term a: definition of a (not: {rule} of a)"


def test_a_concept_that_is_no_terms_first_has_a_text() -> None:
    """A query may be taken for it all the same."""
    split = replace(
        SPLIT, definitions=(*SPLIT.definitions, "another of a"), concept_of_definition=(("a",), ("b",), ("c",))
    )
    task = tasks_on(ranked=HERE, stressed=HERE)["t2d"]
    assert task.item_texts is not None
    assert task.item_texts(split, "t2d/mrr")["c"] == "another of a"


def test_both_texts_of_a_pair() -> None:
    pairs = Pairs(("0", "1"), ("a dog", "a cat"), ("a hound", "a car"), np.array([5.0, 0.0]))
    assert list(pair_item_texts(pairs).values()) == ["a dog | a hound", "a cat | a car"]
    assert list(pair_item_texts(pairs)) == list(pair_items(pairs).ids)


def test_pairs_of_any_subset() -> None:
    """A task scores some of its pairs, or all together: whichever, each has a text."""
    one = Pairs(("0", "1"), ("a dog", "a cat"), ("a hound", "a car"), np.zeros(2))
    two = Pairs(("0", "1"), ("a dog", "a cup"), ("a hound", "a pot"), np.zeros(2))
    texts = subset_item_texts({"one": one, "two": two}, "negation/cosine")
    for pairs in (one, two, joined([one, two])):
        for name, a, b in zip(pair_items(pairs).ids, pairs.a, pairs.b, strict=True):
            assert texts[name] == f"{a} | {b}"


@pytest.mark.parametrize("sides", [(("good", "bad"),), (("a dog", "a cat"), ("a hound", "a car"))])
def test_rows_of_senteval(sides: tuple[tuple[str, ...], ...]) -> None:
    rows = Labelled(sides, np.array([1, 0]))
    assert list(item_texts_of(rows)) == list(items_of(rows).ids)
    assert list(item_texts_of(rows).values()) == [" | ".join(row) for row in zip(*sides, strict=True)]


def test_tasks_whose_items_are_called_by_digests_tell_what_they_say() -> None:
    recipe = RecipeData(
        datasets={"mine": TrainingSet(source="mine.tsv", columns=("one", "other"), hold=HeldOut(dev=0.1))}
    )
    fields = [
        task
        for name, task in suite.tasks(None, {}).items()
        if name.startswith(("sts/", "dev/sts/", "senteval", "paws", "dev/paws", "negation", "wic", "suppression"))
        or name.startswith(("rerank/", "semantoneg", "recursive_np"))
    ]
    assert len(fields) > 40
    for task in (*fields, *defsent.tasks(DefsentData()).values(), *held_out.tasks(recipe).values()):
        assert task.item_texts is not None or task.name.startswith("sts/avg"), task.name  # which keep no items
