"""Tasks on held-out rows of one's own, against figures worked out by hand and by scikit-learn."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score

from corpora.sentence_transformers.corpus import Columns
from corpora.sentence_transformers.data import HeldOut, RecipeData, TrainingSet
from evaluators.tasks.held_out import tasks
from evaluators.tasks.task import evaluate, is_dev

ANGLES = {"q1": 0, "q2": 90, "q3": 40, "a": 10, "b": 50, "c": 85, "near": 45, "far": 180}


def encode(texts: Sequence[str]) -> np.ndarray:
    """Directions in the plane, by the angle of each text."""
    turned = np.radians([ANGLES[text] for text in texts])
    return np.stack([np.cos(turned), np.sin(turned)], axis=1).astype(np.float32)


def table(**given: Any) -> Any:
    one = TrainingSet(**{"source": "mine.tsv", "columns": ("one", "other"), "hold": HeldOut(dev=0.1)} | given)
    return tasks(RecipeData(datasets={"mine": one}))


def scores_on(rows: Columns, **given: Any) -> dict[str, Any]:
    task = table(**given)["held/mine"]
    return {score.metric: score for score in task.score(rows, encode)}


def test_there_is_a_task_for_what_is_held_out_and_one_to_choose_by() -> None:
    assert list(table()) == ["held/mine", "dev/held/mine"]
    assert [is_dev(name) for name in table()] == [False, True]
    assert list(table(hold=HeldOut())) == ["held/mine"]
    assert list(table(hold=None)) == []


def test_every_distinct_first_text_looks_for_any_of_its_second_texts() -> None:
    """q1 has a (10 away) and c; q2 has b, which c stands before; q3 has b, 10 away."""
    rows = Columns({"one": ["q1", "q1", "q2", "q3"], "other": ["a", "c", "b", "b"]})
    found = scores_on(rows)
    assert found["held/mine/recall@1"].values.tolist() == [1, 0, 1]
    assert found["held/mine/mrr"].value == pytest.approx((1 + 1 / 2 + 1) / 3)
    task = table()["held/mine"]
    texts = task.item_texts(rows, "held/mine/mrr")
    assert [texts.get(other, "") for other in found["held/mine/mrr"].taken_for] == ["", "c", ""]
    groups = found["held/mine/mrr"].group_ids
    assert groups[1] == groups[2] != groups[0]  # both are answered by b


def test_triplets_count_rows_whose_positive_is_nearer_and_ties_against() -> None:
    rows = Columns({"a": ["q1", "q2", "q3"], "p": ["a", "b", "b"], "n": ["far", "near", "b"]})
    found = scores_on(rows, columns=("a", "p", "n"))
    assert found["held/mine/triplets"].values.tolist() == [1, 1, 0]


def test_labels_are_followed() -> None:
    rows = Columns({"one": ["q1", "q2", "q3", "q1"], "other": ["a", "b", "c", "far"]}, [0.9, 0.5, 0.6, 0.1])
    found = scores_on(rows, label="gold")
    cosines = np.cos(np.radians([10, 40, 45, 180]))
    assert found["held/mine/spearman"].value == pytest.approx(spearmanr(cosines, rows.labels)[0])
    assert list(found) == ["held/mine/spearman"]
    two = Columns(rows.texts, [1.0, 0.0, 1.0, 0.0])
    found = scores_on(two, label="gold")
    assert found["held/mine/auc"].value == pytest.approx(roc_auc_score(two.labels, cosines))


@pytest.mark.parametrize(
    ("columns", "labels", "deciding"),
    [
        (("one", "other"), None, "mrr"),
        (("one", "other", "third"), None, "mrr"),
        (("one", "other"), [0.0, 1.0, 0.0, 1.0], "spearman"),
    ],
)
def test_what_a_task_promises_is_what_it_gives(columns: tuple[str, ...], labels: Any, deciding: str) -> None:
    given = {"columns": columns, "label": "gold" if labels else None}
    texts = {name: ["q1", "q2", "q3", "a"] for name in columns}
    assert set(scores_on(Columns(texts, labels), **given)) == set(table(**given)["held/mine"].metrics)
    assert table(**given)["held/mine"].headline == f"held/mine/{deciding}"


@pytest.mark.parametrize(
    ("columns", "labels", "first"),
    [
        (("one", "other"), None, "q1 | a"),
        (("one", "other", "third"), None, "q1 | a"),
        (("one", "other"), [0.0, 1.0, 0.0], "q1 | a"),
    ],
)
def test_every_item_has_a_text_that_a_person_reads(columns: tuple[str, ...], labels: Any, first: str) -> None:
    """Its name is a digest, which says nothing."""
    given = {"columns": columns, "label": "gold" if labels else None}
    rows = Columns(
        dict(zip(columns, (["q1", "q1", "q2"], ["a", "c", "b"], ["b", "b", "a"]), strict=False)), labels
    )
    task = table(**given)["held/mine"]
    for score in task.score(rows, encode):
        texts = task.item_texts(rows, score.metric)
        assert texts[score.item_ids[0]].startswith(first), score.metric
        assert set(score.item_ids) <= set(texts)
    if len(columns) == 3:
        triplets = task.score(rows, encode)[-1]
        assert task.item_texts(rows, triplets.metric)[triplets.item_ids[2]] == "q2 | b | not: a"


def test_rows_of_a_file_are_measured(tmp_path: Path) -> None:
    file = tmp_path / "mine.tsv"
    file.write_text("one\tother\n" + "".join(f"first {row}\tsecond {row}\n" for row in range(300)))
    task = table(source=str(file), hold=HeldOut(test=0.2))["held/mine"]

    def numbered(texts: Sequence[str]) -> np.ndarray:
        return np.eye(300, dtype=np.float32)[[int(text.split()[1]) for text in texts]]

    ((_, scores),) = evaluate([task], {"texts": numbered})
    assert {score.value for score in scores} == {1.0}
    assert 30 < len(scores[0].item_ids) < 90
    file.write_text(file.read_text().replace("second", "another"))
    assert table(source=str(file), hold=HeldOut(test=0.2))["held/mine"].fingerprint != task.fingerprint
