"""SentEval's tasks from files to figures with their items; the frozen encoder's figures where the sets are at hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from corpora.benchmarks.senteval import NAMES, Labelled
from evaluators.metrics import probing
from evaluators.metrics.item_metrics import aggregate
from evaluators.significance.item_bootstrap import strata_of
from evaluators.significance.paired_items import ItemScores, ItemSum
from evaluators.tasks import senteval
from evaluators.tasks.figures import members
from evaluators.tasks.suite import GROUPS
from evaluators.tasks.task import evaluate
from tests.evaluators.metrics.test_probing import RIDGE, clouds
from tests.published import COLLECTION, needs

GOOD, BAD = ("fine", "warm", "good"), ("dull", "cold", "bad")


def line(rng: np.random.Generator, positive: bool) -> str:
    """Three to five words, mostly of one kind."""
    kinds = (GOOD, BAD) if positive else (BAD, GOOD)
    return " ".join(rng.choice(kinds[rng.random() < 0.25]) for _ in range(rng.integers(3, 6)))


def write_sets(root: Path) -> None:
    rng = np.random.default_rng(0)
    (root / "CR").mkdir()
    for name, positive in (("custrev.pos", True), ("custrev.neg", False)):
        lines = [line(rng, positive) for _ in range(19)]
        (root / "CR" / name).write_text("".join(f"{text}\n" for text in (*lines, lines[0])))  # one comes twice
    (root / "MRPC").mkdir()
    for split, rows in (("train", 40), ("test", 20)):
        text = "".join(f"{row % 2}\t1\t2\t{line(rng, True)}\t{line(rng, row % 2 == 1)}\n" for row in range(rows))
        (root / "MRPC" / f"msr_paraphrase_{split}.txt").write_text(
            "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n" + text
        )


def counts(texts: Sequence[str]) -> np.ndarray:
    """How often each known word stands in a text, and a column that no text lacks."""
    words = (*GOOD, *BAD)
    return np.array([[1.0, *(text.split().count(word) for word in words)] for text in texts], np.float32)


@pytest.mark.parametrize("backend", ["senteval", "senteval-sklearn"])
@pytest.mark.parametrize(("name", "tested"), [("CR", 40), ("MRPC", 20)])
def test_from_files_to_figures(tmp_path: Path, backend: str, name: str, tested: int) -> None:
    write_sets(tmp_path)
    task = senteval.tasks(str(tmp_path))[f"{backend}/{name}"]
    ((_, scores),) = evaluate([task], {"texts": counts})
    assert {score.metric for score in scores} == set(task.metrics)
    assert task.headline == f"{backend}/{name}/accuracy"
    for score in scores:
        assert len(score.values) == len(score.item_ids) == len(score.group_ids) == tested
        assert score.value == aggregate(score.aggregate, score.values, score.gold)
    assert len(set(scores[0].group_ids)) < tested or name == "MRPC"  # a text that comes twice is one group


def test_features_of_pairs_are_the_absolute_difference_and_the_product() -> None:
    vectors = {"a": [1.0, -2.0], "b": [3.0, 4.0]}
    rows = Labelled((("a",), ("b",)), np.array([1]))

    def encode(texts):
        return np.array([vectors[text] for text in texts])

    assert senteval.features(rows, encode).tolist() == [[2, 6, 3, -8]]
    assert senteval.features(Labelled((("b", "a"),), np.array([1, 0])), encode).tolist() == [[3, 4], [1, -2]]


@pytest.mark.parametrize("parts", [("all",), ("train", "test"), ("train", "dev", "test")])
def test_the_protocol_is_that_of_the_sets_splits(parts: tuple[str, ...]) -> None:
    x, y = clouds(120, 16, seed=3, apart=0.3)
    rows = np.array_split(np.arange(120), len(parts))
    splits = {
        part: Labelled((tuple(map(str, places)),), y[places]) for part, places in zip(parts, rows, strict=True)
    }
    said = senteval.predicted(splits, lambda texts: x[list(map(int, texts))], RIDGE)
    train, test = rows[0], rows[-1]
    if "all" in splits:
        expected = probing.nested(x, y, 2, RIDGE)
    elif "dev" in splits:
        expected = probing.with_dev(x[train], y[train], (x[rows[1]], y[rows[1]]), x[test], 2, RIDGE)
    else:
        expected = probing.tuned(x[train], y[train], x[test], 2, RIDGE)
    assert said.tolist() == expected.tolist()


def test_both_backends_measure_the_same_rows_under_other_names(tmp_path: Path) -> None:
    write_sets(tmp_path)
    table = senteval.tasks(str(tmp_path))
    rows = {table[name].benchmark.fingerprint() for name in ("senteval/CR", "senteval-sklearn/CR")}
    assert len(rows) == 1
    assert len({task.fingerprint for name, task in table.items() if name.endswith("CR")}) == 2
    assert len(table) == 2 * len(NAMES)


def summed(scores: Sequence) -> ItemSum:
    """The mean over tasks of two arms that were right in half of the cases each."""
    terms = [
        ItemScores(
            aggregate="mean",
            treatment=score.values[None],
            control=1 - score.values[None],
            item_ids=tuple(score.item_ids),
            group_ids=tuple(score.group_ids),
        )
        for score in scores
    ]
    return ItemSum(tuple((1 / len(terms), term) for term in terms))


def accuracies(root: Path, *names: str) -> list:
    table = senteval.tasks(str(root))
    found = evaluate([table[f"senteval-sklearn/{name}"] for name in names], {"texts": counts})
    return [scores[0] for _, scores in found]


def test_tasks_share_an_item_only_where_they_share_its_text(tmp_path: Path) -> None:
    """SST2 is drawn from MR, which other tools cut into tokens otherwise; a row number is no name."""
    write_sets(tmp_path)
    rng = np.random.default_rng(1)
    (tmp_path / "MR").mkdir()
    for name, positive in (("rt-polarity.pos", True), ("rt-polarity.neg", False)):
        lines = [f"{line(rng, positive)} {name[-3:]}{row}" for row in range(12)]
        (tmp_path / "MR" / name).write_text("".join(f"{text}\n" for text in (*lines, "It isn't good .")))
    (tmp_path / "SST" / "binary").mkdir(parents=True)
    for split in ("train", "dev", "test"):
        rows = [f"{line(rng, row % 2 == 1)} {split}{row}\t{row % 2}\n" for row in range(12)]
        rows += ["it is n't good\t0\n"] if split == "test" else []
        (tmp_path / "SST" / "binary" / f"sentiment-{split}").write_text("".join(rows))
    mr, sst2, mrpc = accuracies(tmp_path, "MR", "SST2", "MRPC")
    (shared,) = set(mr.item_ids) & set(sst2.item_ids)
    assert not set(mrpc.item_ids) & ({*mr.item_ids} | {*sst2.item_ids})
    assert [row for row, name in enumerate(sst2.item_ids) if name == shared] == [
        row for row, text in enumerate(senteval.tasks(str(tmp_path))["senteval/SST2"].benchmark.load()["test"].sides[0])
        if text == "it is n't good"
    ]  # fmt: skip
    both = summed([mr, sst2])
    assert len(both.item_ids) == 26 + 13 - 1
    assert len(strata_of(both)) == 1  # what they share is drawn once for both
    assert len(strata_of(summed([mr, mrpc]))) == 2


@needs("senteval/TREC")
@needs("senteval/MRPC")
def test_of_the_published_sets_no_item_of_one_is_one_of_another() -> None:
    table = senteval.tasks(str(COLLECTION))
    items = [
        senteval.items_of(table[f"senteval/{name}"].benchmark.load()["test"]).ids for name in ("TREC", "MRPC")
    ]
    assert len({*items[0], *items[1]}) == 500 + 1725


def test_lengths_of_vectors_count_where_the_encoder_has_lengths(tmp_path: Path) -> None:
    """A linear classifier reads what a transformer without Normalize gives, and unit vectors of any other."""
    write_sets(tmp_path)
    task = senteval.tasks(str(tmp_path))["senteval-sklearn/CR"]
    asked: list[str] = []

    def unscaled(texts: Sequence[str]) -> np.ndarray:
        asked.extend(texts)
        return 3 * counts(texts)

    def refused(texts: Sequence[str]) -> np.ndarray:
        raise AssertionError(texts)

    ((_, (score,)),) = evaluate([task], {"texts": refused, "unscaled": unscaled})
    assert len(asked) == len(set(asked)) > 20
    ((_, (again,)),) = evaluate([task], {"texts": lambda texts: 3 * counts(texts)})
    assert score.values.tolist() == again.values.tolist()


@pytest.mark.parametrize("form", ["mean", "each"])
def test_figures_of_two_classifiers_are_never_put_together(form: str) -> None:
    table = senteval.tasks(None)
    with pytest.raises(ValueError, match=r"one classifier: senteval/… or senteval-sklearn/…"):
        members(f"{form}(senteval/MR, senteval-sklearn/CR)", table, GROUPS)
    assert members(f"{form}(senteval-sklearn)", table, GROUPS)[0] == "senteval-sklearn/MR/accuracy"
