"""The field's tasks on files of a few rows, with vectors laid out by hand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from corpora.benchmarks import negation
from corpora.benchmarks.pairs import Pairs, text_key
from corpora.store.errors import CorpusError
from evaluators.metrics.geometry import geometry_scores
from evaluators.metrics.scores import Score
from evaluators.tasks import robustness, suite, suppression
from evaluators.tasks.named_items import pair_items
from evaluators.tasks.task import evaluate
from tests.measuring import given

ANGLES = {"near": 0, "nearer": 5, "far": 90, "farther": 120, "opposite": 180}


def on_a_circle(texts: Sequence[str]) -> np.ndarray:
    """Each text at the angle its last word names, in degrees."""
    angles = np.radians([ANGLES[text.split()[-1]] for text in texts])
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def scored(table: dict, name: str) -> dict[str, Score]:
    ((task, scores),) = evaluate([table[name]], {"texts": on_a_circle})
    found = {score.metric: score for score in scores}
    assert task.headline in task.metrics
    assert task.headline in found
    assert all(
        found[metric].larger_is_better == better for metric, better in task.metrics.items() if metric in found
    )
    return found


def write(path: Path, *lines: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def test_semantoneg_asks_for_both_contradictions_to_be_farther(tmp_path: Path) -> None:
    """Right; a tie, which counts against; wrong."""
    rows = [
        ("near", ["far", "farther", "nearer"], 2),
        ("near", ["far", "nearer", "nearer"], 1),
        ("near", ["far", "near", "near"], 0),
    ]
    write(
        tmp_path / "negation_pairs" / "SemAntoNeg_v1.0.json",
        *(
            json.dumps({"idx": number, "label": label, "input": f"{number} {text}", "sentences": others})
            for number, (text, others, label) in enumerate(rows)
        ),
    )
    found = scored(robustness.tasks(str(tmp_path)), "semantoneg")
    assert found["semantoneg/accuracy"].values.tolist() == [1, 0, 0]
    assert len(found["semantoneg/auc"].item_ids) == 9
    assert found["semantoneg/auc"].value == pytest.approx((3.5 + 3.5 + 2) / 18)  # each paraphrase over six others
    task = robustness.tasks(str(tmp_path))["semantoneg"]
    texts = task.item_texts(task.benchmark.load(), "semantoneg/accuracy")
    assert next(texts[item] for item in found["semantoneg/accuracy"].item_ids) == "0 near | nearer"
    assert [texts.get(other, "") for other in found["semantoneg/accuracy"].taken_for] == ["", "nearer", "near"]


def test_negations_of_a_large_set_are_taken_evenly_from_end_to_end(tmp_path: Path) -> None:
    sizes = {"nan_nli": 2, "glue_diagnostic": 1, "reviews": 1201, "wikifactcheck": 5}
    for name, files in negation.FILES.items():
        rows = sizes[name] // len(files)
        lines = [f"{row} near\t{row} {'opposite' if row in (0, rows - 1) else 'far'}" for row in range(rows)]
        for file in files:
            write(tmp_path / "negation_pairs" / file, "sentence\tnegated", *lines)
    found = scored(robustness.tasks(str(tmp_path)), "negation")
    assert len(found["negation/reviews/cosine"].values) == 600
    assert found["negation/reviews/cosine"].value == pytest.approx(
        -2 / 600, abs=1e-6
    )  # the first and the last row
    assert len(found["negation/cosine"].values) == 2 + 1 + 600 + 5
    assert len(set(found["negation/cosine"].item_ids)) == 608  # five files of one row each say the same


def test_paws_ranks_and_decides(tmp_path: Path) -> None:
    """Test: cosines 1, cos 5°, 0 with labels 1, 0, 0. The best threshold on dev lies between 0 and 60 degrees."""
    write(tmp_path / "paws" / "test.tsv", "1\ta near\tb near\t1", "2\tc near\td nearer\t0", "3\te near\tf far\t0")
    write(tmp_path / "paws" / "dev.tsv", "1\tg near\th near\t1", "2\ti far\tj farther\t0")
    table = robustness.tasks(str(tmp_path))
    found = scored(table, "paws")
    assert (found["paws/auc"].value, found["paws/ap"].value) == (1.0, 1.0)
    assert scored(table, "paws/accuracy")["paws/accuracy"].values.tolist() == [1, 0, 1]


def test_the_same_pair_has_one_name_in_every_task() -> None:
    pairs = Pairs.of([("1", "A cat.", "A dog", 1.0), ("2", "a dog!", "A CAT", 2.0), ("3", "A cat.", "else", 3.0)])
    turned = Pairs.of([("9", "a dog", "a cat", 0.0)])
    items, other = pair_items(pairs), pair_items(turned)
    assert items.ids[0] == other.ids[0]
    assert items.ids[1] == f"{items.ids[0]}-2"
    assert items.groups == (items.ids[0], items.ids[1], items.ids[0])  # rows 1 and 3 share a sentence as written


def test_names_for_several_tasks_stand_for_tasks_that_there_are() -> None:
    table = suite.tasks(None)
    assert {name: len(members) for name, members in suite.GROUPS.items()} == {
        "sts": 7,
        "sts-dedup": 7,
        "senteval": 7,
        "senteval-sklearn": 7,
    }
    assert all(member in table for members in suite.GROUPS.values() for member in members)
    assert not set(suite.GROUPS) & set(table)
    assert all(name == task.name for name, task in table.items())


def test_geometry_takes_like_pairs_for_alignment_and_every_text_once_for_the_rest() -> None:
    """Gold of 4 is not above 4; "a near" is in two pairs. Chords of 5 and 90 degrees, squared: 2 - 2 cos."""
    pairs = Pairs.of(
        [("1", "a near", "b nearer", 4.2), ("2", "a near", "c far", 4.0), ("3", "d far", "e near", 5.0)]
    )
    task = replace(robustness.tasks(None)["geometry/STS-B"], benchmark=given({"test": pairs}))
    found = scored({"geometry/STS-B": task}, "geometry/STS-B")
    assert found["geometry/STS-B/alignment"].values == pytest.approx(
        [2 - 2 * np.cos(np.radians(5)), 2.0], abs=1e-6
    )
    rows = on_a_circle(["a near", "d far", "b nearer", "c far", "e near"])  # first sides, then second
    apart = [((a - b) ** 2).sum() for a, b in combinations(rows.astype(float), 2)]
    assert found["geometry/STS-B/uniformity"].value == pytest.approx(np.log(np.mean(np.exp(-2 * np.array(apart)))))
    for score in geometry_scores(rows):
        assert found[score.metric.replace("/", "/STS-B/")].value == pytest.approx(score.value)


def test_the_paper_s_own_pairs_are_found_by_their_letters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In whichever case and punctuation a copy has them; a copy without one of them is not the set."""
    (tmp_path / "SICK").mkdir()
    header = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"
    for part, row in (
        ("train", "a jug near\tA cup, far"),
        ("trial", "Rain near\train falls nearer"),
        ("test_annotated", "x\ty"),
    ):
        (tmp_path / "SICK" / f"SICK_{part}.txt").write_text(f"{header}1\t{row}\t4.8\tNEUTRAL\n")
    table = {
        "jug": ("SICK-R/all", text_key("A CUP FAR", "a jug, near")),
        "rain": ("SICK-R/all", text_key("rain near", "rain falls nearer.")),
    }
    monkeypatch.setattr(suppression, "TABLE_11", table)
    found = scored(robustness.tasks(str(tmp_path)), "suppression/table11")
    assert set(found) == {"suppression/table11/mean", "suppression/table11/jug", "suppression/table11/rain"}
    expected = [0.0, np.cos(np.radians(5))]
    assert found["suppression/table11/mean"].values == pytest.approx(expected, abs=1e-6)
    assert found["suppression/table11/rain"].value == pytest.approx(expected[1], abs=1e-6)
    table["rain"] = ("SICK-R/all", "0" * 16)
    with pytest.raises(CorpusError, match=r"SICK-R/all does not hold the pair 'rain'(.|\n)*3 pairs were read"):
        scored(robustness.tasks(str(tmp_path)), "suppression/table11")
