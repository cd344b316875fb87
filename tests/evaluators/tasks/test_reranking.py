"""Reranking by hand: two queries whose candidates lie at known angles; and files that cannot be read."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from corpora.benchmarks.reranking import read
from corpora.store.errors import CorpusError
from evaluators.tasks.reranking import tasks
from evaluators.tasks.task import evaluate

NAME = "SciDocsRR"
ROWS = [
    {"query": "q 0", "positive": ["a 10", "b 40"], "negative": ["c 20", "d 90"]},
    {"query": "p 0", "positive": ["e 30"], "negative": ["f 30", "g 50"]},
    {"query": "left 0", "positive": ["i 1"], "negative": []},
    {"query": "left out", "positive": [], "negative": ["h 1"]},
]


def encode(texts: list[str]) -> np.ndarray:
    """Each text at the angle, in degrees, that it ends with."""
    angles = np.radians([float(text.split()[1]) for text in texts])
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def write(folder: Path, text: str) -> None:
    (folder / "reranking").mkdir()
    (folder / "reranking" / f"{NAME}.jsonl.gz").write_bytes(gzip.compress(text.encode()))


def test_figures_by_hand(tmp_path: Path):
    """Query q: right, wrong, right, wrong: AP (1 + 2/3) / 2, first right of two. Query p: a tie, so second: AP 1/2."""
    write(tmp_path, "\n".join(map(json.dumps, ROWS)) + "\n")
    task = tasks(str(tmp_path))[f"rerank/{NAME}"]
    ((_, scores),) = evaluate([task], {"texts": encode})
    found = {score.metric.rpartition("/")[2]: score for score in scores}
    assert {name: score.value for name, score in found.items()} == pytest.approx(
        {"map_at_1": 0.25, "mrr_at_1": 0.5, "map": (5 / 6 + 1 / 2) / 2}
    )
    assert found["map"].values is not None
    assert found["map"].values.tolist() == pytest.approx([5 / 6, 1 / 2])
    assert set(task.metrics) == {score.metric for score in scores}
    texts = task.item_texts(task.benchmark.load(), "")
    assert [texts[item] for item in found["map"].item_ids] == ["q 0 | a 10", "p 0 | e 30"]
    assert [other and texts[other] for other in found["map"].taken_for] == ["", "f 30"]


@pytest.mark.parametrize("seed", range(40))
def test_a_wrong_candidate_of_the_right_ones_vector_stands_before_it(tmp_path: Path, seed: int):
    """The right candidate stands among the wrong ones too, and nearest: second, so no figure is above 1/2. A product
    rounds equal rows by where they stand."""
    draws = np.random.default_rng(seed)
    right, *vectors = draws.standard_normal((int(draws.integers(4, 20)), 384)).astype(np.float32)
    wrong = {f"wrong {number}": vector for number, vector in enumerate(vectors[1:])}
    known = {"query": right + 0.3 * vectors[0], "right": right, "copy": right, **wrong}
    row = {"query": "query", "positive": ["right"], "negative": [*wrong, "copy"]}
    write(tmp_path, json.dumps(row))
    task = tasks(str(tmp_path))[f"rerank/{NAME}"]
    ((_, scores),) = evaluate([task], {"texts": lambda texts: np.stack([known[text] for text in texts])})
    assert [score.value for score in scores] == [0.0, 0.0, 0.5]


def test_an_order_without_ties_is_that_of_the_cosines(tmp_path: Path):
    """A hundredth of a degree apart, 3e-6 in cosine at 1 degree: right before wrong, so every figure is 1."""
    write(tmp_path, json.dumps({"query": "q 0", "positive": ["a 1.00"], "negative": ["b 1.01", "c 40"]}))
    task = tasks(str(tmp_path))[f"rerank/{NAME}"]
    ((_, scores),) = evaluate([task], {"texts": encode})
    assert [score.value for score in scores] == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "no json",
        "[" * 100_000,
        '{"query": 1, "positive": ["a"], "negative": ["b"]}',
        '{"query": "a", "positive": "how to mount", "negative": ["b"]}',
    ],
)
def test_a_line_that_is_no_query_is_named(tmp_path: Path, text: str):
    write(tmp_path, text)
    with pytest.raises(CorpusError, match=rf"{NAME}\.jsonl\.gz, line 1: "):
        read(NAME, path=str(tmp_path))


def test_a_file_may_be_unpacked(tmp_path: Path):
    write(tmp_path, text := "\n".join(map(json.dumps, ROWS)))
    (tmp_path / "other" / "reranking").mkdir(parents=True)
    (tmp_path / "other" / "reranking" / f"{NAME}.jsonl").write_text(text)
    assert read(NAME, path=str(tmp_path / "other")) == read(NAME, path=str(tmp_path))


def test_a_file_without_a_row_is_no_set(tmp_path: Path):
    write(tmp_path, "\n")
    with pytest.raises(CorpusError, match=r"jsonl\.gz holds no row"):
        read(NAME, path=str(tmp_path))


def test_a_file_without_a_query_to_rank_is_no_set(tmp_path: Path):
    write(tmp_path, json.dumps(ROWS[-1]))
    with pytest.raises(CorpusError, match=r"jsonl\.gz holds no query with candidates of both kinds"):
        read(NAME, path=str(tmp_path))


def test_a_damaged_archive_is_named_whichever_byte_it_is(tmp_path: Path):
    write(tmp_path, "".join(json.dumps({**ROWS[0], "query": f"how {n}"}) + "\n" for n in range(300)))
    file = tmp_path / "reranking" / f"{NAME}.jsonl.gz"
    whole = file.read_bytes()
    for at in range(10, len(whole) - 8, 37):  # between the head and the checksum
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        with pytest.raises(CorpusError, match=r"jsonl\.gz cannot be read: "):
            read(NAME, path=str(tmp_path))


def test_a_set_that_is_nowhere_says_where_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("SEMRAY_DATA", raising=False)
    with pytest.raises(CorpusError, match=r"SciDocsRR not found; looked at\n .*reranking/SciDocsRR\.jsonl"):
        read(NAME, path=str(tmp_path))
