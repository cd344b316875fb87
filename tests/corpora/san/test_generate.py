"""Rewriting: the same rows whatever stands beside a sentence, in whatever order, shards and kills."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpora.san import shards
from corpora.san.generate import SCHEMA, Rewriter, rows
from corpora.san.recipe import SetRecipe
from corpora.san.records import BIT
from corpora.store.errors import CorpusError
from tests.corpora.san.small import TEXTS, small_cloze

CLOZE = small_cloze()


def rewriter(**recipe) -> Rewriter:
    return Rewriter(
        generator=CLOZE, recipe=SetRecipe(**recipe), negate=lambda texts: [f"Not {text}" for text in texts]
    )


def made(texts, **recipe) -> dict[str, list]:
    return rows(rewriter(**recipe), list(texts)).to_pydict()


def test_rows():
    table = rows(rewriter(scale=10.0), list(TEXTS), first=100)
    assert table.schema == SCHEMA
    assert table["row"].to_pylist() == list(range(100, 106))
    assert table["text"].to_pylist() == list(TEXTS)
    assert table["soft"].to_pylist() == [f"Not {text}" for text in TEXTS]
    assert table["san"].to_pylist() != list(TEXTS)
    assert {len(masked) for masked in table["n_masked"].to_pylist()} == {4}


def test_a_text_is_counted_once_its_soft_negative_is_written_too():
    negated, heard = list[str](), list[tuple[int, int]]()

    def negate(texts):
        for text in texts:
            negated.append(text)
            yield f"Not {text}"

    using = replace(rewriter(), generator=replace(CLOZE, budget=8), negate=negate)
    table = rows(using, list(TEXTS), how_far=lambda done: heard.append((done, len(negated))))
    assert len(heard) > 1
    assert all(done == written for done, written in heard)
    assert heard[-1][0] == len(TEXTS)
    assert table["soft"].to_pylist() == [f"Not {text}" for text in TEXTS]


@settings(max_examples=20, deadline=None)
@given(st.permutations([*TEXTS, "the cat", "", "zorg ran."]), st.sampled_from(["argmax", "topk"]))
def test_a_row_depends_on_its_sentence_alone(texts, decode):
    together = made(texts, decode=decode)
    alone = [made([text], decode=decode)["san"][0] for text in texts]
    assert together["san"] == alone


def test_kinds_of_words_stay():
    """A filling has the tag of what it replaces, so tags of the words and marks never change."""
    for text, new in zip(TEXTS, made(TEXTS, scale=9.0)["san"], strict=True):
        old_tags, new_tags = (CLOZE.encode([each], 128)[0].tags.tolist() for each in (text, new))
        assert old_tags == new_tags


def test_seeds_and_scales_differ_and_no_mask_keeps_all():
    same = made(TEXTS, scale=1e9)
    assert same["san"] == list(TEXTS)
    assert set(same["flags"]) <= {BIT["identical"], BIT["identical"] | BIT["authors"]}
    assert same["kept"] == [1.0] * len(TEXTS)
    assert made(TEXTS, scale=10.0)["san"] != made(TEXTS, scale=10.0, seed=1)["san"]
    assert sum(map(sum, made(TEXTS, scale=10.0)["n_masked"])) > sum(map(sum, made(TEXTS, scale=40.0)["n_masked"]))


def test_what_lies_beyond_the_limit_stays():
    text = " ".join(TEXTS)
    new = made([text], max_tokens=6, scale=9.0)["san"][0]
    assert new.endswith(text.partition("mat")[2])


@pytest.mark.parametrize(
    "recipe",
    [{"scale": 0.0}, {"iterations": 0}, {"k": 0}, {"max_tokens": 0}, {"seed": -1}, {"scale": float("inf")}],
)
def test_a_recipe_out_of_range(recipe):
    with pytest.raises(ValueError, match="accepted: "):
        SetRecipe(**recipe)


MANIFEST = {"recipe": {"iterations": 4}, "corpus": "c"}


def begun(folder: Path, texts: list[str], monkeypatch) -> None:
    monkeypatch.setattr(shards, "SHARD", 2)
    shards.begin(folder, MANIFEST, texts)


def test_shards_in_any_order_are_the_same_bytes(tmp_path, monkeypatch):
    for name, order in (("a", (0, 1, 2)), ("b", (2, 0, 1))):
        begun(tmp_path / name, list(TEXTS), monkeypatch)
        for shard in order:
            texts = shards.sentences_of(tmp_path / name, shard)
            shards.write_shard(tmp_path / name, shard, rows(rewriter(), texts, shard * 2))
    for shard in range(3):
        assert (tmp_path / "a" / f"part-0000{shard}.parquet").read_bytes() == shards.path_of(
            tmp_path / "b", shard
        ).read_bytes()
    assert pa.concat_tables(shards.read(tmp_path / "a")) == rows(rewriter(), list(TEXTS))


def test_what_is_missing_is_pending_and_not_read(tmp_path, monkeypatch):
    begun(tmp_path, list(TEXTS), monkeypatch)
    shards.write_shard(tmp_path, 1, rows(rewriter(), list(TEXTS[2:4]), 2))
    assert shards.pending(tmp_path) == [0, 2]
    with pytest.raises(CorpusError, match=r"lacks 2 of 3 shards.*part-00000"):
        list(shards.read(tmp_path))
    shards.begin(tmp_path, MANIFEST, list(TEXTS))  # the same again goes on
    with pytest.raises(CorpusError, match="corpus = 'c', asked for 'd'"):
        shards.begin(tmp_path, {**MANIFEST, "corpus": "d"}, list(TEXTS))


def test_a_shard_of_too_few_rows_is_no_part_of_its_set(tmp_path, monkeypatch):
    begun(tmp_path, list(TEXTS[:3]), monkeypatch)
    for shard, texts in enumerate((TEXTS[:1], TEXTS[2:3])):
        shards.write_shard(tmp_path, shard, rows(rewriter(), list(texts), shard * 2))
    with pytest.raises(CorpusError, match=r"part-00000\.parquet has 1 rows, expected 2"):
        list(shards.read(tmp_path))
    shards.write_shard(tmp_path, 0, rows(rewriter(), list(TEXTS[:2])))
    assert [len(table) for table in shards.read(tmp_path)] == [2, 1]
    manifest = tmp_path / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"schema": 1', '"schema": 2'))
    with pytest.raises(CorpusError, match="schema = 2\n  accepted: 1"):
        list(shards.read(tmp_path))


def test_a_folder_without_a_set(tmp_path):
    with pytest.raises(CorpusError, match="holds no set"):
        shards.read_manifest(tmp_path)


WRITER = """
import os, signal, sys
from pathlib import Path
import pyarrow.parquet as pq
from corpora.san import shards
shards.SHARD = 2
from tests.corpora.san.test_generate import rows, rewriter, TEXTS
folder = Path(sys.argv[1])
whole = pq.write_table
def half(table, place, **how):
    whole(table, place, **how)
    os.truncate(place, 100)
    os.kill(os.getpid(), signal.SIGKILL)
pq.write_table = half
shards.write_shard(folder, 0, rows(rewriter(), shards.sentences_of(folder, 0), 0))
"""


def test_a_killed_writer_leaves_its_shard_pending(tmp_path, monkeypatch):
    begun(tmp_path, list(TEXTS), monkeypatch)
    root = Path(__file__).resolve().parents[3]
    done = subprocess.run(
        [sys.executable, "-c", WRITER, str(tmp_path)], env={**os.environ, "PYTHONPATH": str(root)}, check=False
    )
    assert done.returncode == -signal.SIGKILL
    assert shards.pending(tmp_path) == [0, 1, 2]


def test_the_number_of_masks_is_that_of_the_law():
    """Over many seeds the masked tokens are as many as their probabilities add up to."""
    counts = np.array([made(TEXTS, seed=seed, iterations=1)["n_masked"] for seed in range(200)])[:, :, 0]
    expected = [
        sum({"NOUN": 9, "VERB": 9, "ADJ": 8, "DET": 6, "ADP": 5, "PUNCT": 1}[tag] / 20 for tag in tags)
        for tags in TAGS_OF
    ]
    error = np.abs(counts.mean(0) - expected)
    assert (error < 4 * np.sqrt(np.array(expected) / 200)).all()


TAGS_OF = [
    ("DET", "NOUN", "VERB", "ADP", "DET", "NOUN", "PUNCT"),
    ("DET", "NOUN", "VERB", "ADP", "DET", "NOUN", "PUNCT"),
    ("DET", "ADJ", "NOUN", "VERB", "PUNCT"),
    ("DET", "ADJ", "NOUN", "VERB", "PUNCT"),
    ("DET", "ADJ", "NOUN", "VERB", "ADP", "DET", "ADJ", "NOUN", "PUNCT"),
    ("DET", "ADJ", "NOUN", "VERB", "ADP", "DET", "NOUN", "PUNCT"),
]
