"""SentEval's tasks from files to figures with their items; the frozen encoder's figures where the sets are at hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from corpora.benchmarks.senteval import NAMES
from evaluators.metrics.item_metrics import aggregate
from evaluators.tasks import senteval
from evaluators.tasks.task import evaluate

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


def test_both_backends_measure_the_same_rows_under_other_names(tmp_path: Path) -> None:
    write_sets(tmp_path)
    table = senteval.tasks(str(tmp_path))
    rows = {table[name].benchmark.fingerprint() for name in ("senteval/CR", "senteval-sklearn/CR")}
    assert len(rows) == 1
    assert len({task.fingerprint for name, task in table.items() if name.endswith("CR")}) == 2
    assert len(table) == 2 * len(NAMES)
