"""Which sentences a step sees, beside what, and who may be a negative of whom."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.tiny import tiny_backbone
from tests.trainers.san.corpus import san_corpus, texts_of
from trainers.encoders.encoder import Encoder
from trainers.encoders.tokens import Tokens
from trainers.engine.world import World
from trainers.san import columns
from trainers.san.batches import SanBatch, batches, columns_of, others, steps_of
from trainers.san.settings import Settings
from trainers.san.templates import OTHER_VIEW, VIEW, in_template

CORPUS = san_corpus()
PLAIN = Settings(batch_size=10, readout="mean")
SAN = replace(PLAIN, san="hince", negatives="san")


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Encoder:
    return Encoder.load(tiny_backbone(tmp_path_factory.mktemp("backbone")), readout="mean", max_length=64)


def seen(settings: Settings, encoder: Encoder, steps: int = 4, seed: int = 0, **world: int) -> list[SanBatch]:
    take = batches(settings, CORPUS, encoder, seed, World(**world))  # type: ignore[arg-type]
    return [take(step) for step in range(steps)]


def words(encoder: Encoder, tokens: Any) -> list[str]:
    rows = np.split(tokens.ids, tokens.lengths.cumsum()[:-1])
    return encoder.tokenizer.batch_decode(rows, skip_special_tokens=True)


@pytest.mark.parametrize(
    ("host", "san", "names"),
    [
        ("simcse", "off", "anchor second"),
        ("rankcse", "hince", "anchor second negative"),
        ("simcse_sup", "off", "anchor second contradiction"),
        ("simcse_sup", "hard", "anchor second negative"),
        ("simcse_sup", "hince", "anchor second contradiction negative"),
        ("sncse", "off", "anchor second soft"),
        ("rlrd", "hince", "anchor second soft negative"),
    ],
)
def test_the_columns_of_every_host(host: Any, san: Any, names: str):
    teachers = ("a@mean", "b@mean") if host in ("rankcse", "rlrd") else ()
    settings = Settings(host=host, san=san, negatives="san" if san != "off" else "", teachers=teachers)
    assert columns_of(settings) == tuple(names.split())


def test_arms_share_anchors_and_an_epoch_sees_each_once(encoder: Encoder):
    plain, with_negatives = seen(PLAIN, encoder), seen(SAN, encoder)
    for one, other in zip(plain, with_negatives, strict=True):
        assert one.rows.tolist() == other.rows.tolist()
        assert np.array_equal(one.views.ids, other.views.ids)
    assert sorted(np.concatenate([batch.rows for batch in plain])) == list(range(40))
    later = seen(PLAIN, encoder, 8)[4:]
    assert sorted(np.concatenate([batch.rows for batch in later])) == list(range(40))
    assert [batch.rows.tolist() for batch in later] != [batch.rows.tolist() for batch in plain]
    assert steps_of(replace(PLAIN, epochs=2), CORPUS) == 8
    assert steps_of(replace(PLAIN, batch_size=12), CORPUS) == 3  # what is left over makes no batch


def test_texts_are_those_of_the_rows(encoder: Encoder):
    batch = seen(SAN, encoder)[0]
    anchors = words(encoder, batch.views)
    assert anchors == [CORPUS.sentences[int(row)] for row in batch.rows] * 2
    negatives = CORPUS.negatives("san", rule="semray").take(batch.rows)
    assert batch.apart is not None
    given = words(encoder, batch.apart)
    assert given == [negative or anchor for negative, anchor in zip(negatives, anchors[:10], strict=True)]
    assert len(batch) == 30


def test_workers_share_a_batch(encoder: Encoder):
    whole = seen(SAN, encoder)
    halves = [seen(SAN, encoder, rank=rank, size=2) for rank in (0, 1)]
    for step, batch in enumerate(whole):
        texts = words(encoder, batch.views)
        for half, begin in zip(halves, (0, 5), strict=True):
            part = half[step]
            assert words(encoder, part.views) == [*texts[begin : begin + 5], *texts[begin + 10 : begin + 15]]
            assert part.rows.tolist() == batch.rows.tolist()
            assert part.own.tolist() == list(range(begin, begin + 5))
            assert np.array_equal(part.keep, batch.keep[begin : begin + 5])
            assert np.array_equal(part.keep_negatives, batch.keep_negatives[begin : begin + 5])
            assert len(part) == len(batch)
    runs = (whole, halves[1], seen(SAN, encoder, seed=1))
    assert len({batch.stream for run in runs for batch in run}) == 3 * len(whole)


def masks(settings: Settings, encoder: Encoder) -> tuple[np.ndarray, np.ndarray]:
    """Over the whole corpus as one batch, in the corpus's order. (40, 40) each."""
    batch = seen(replace(settings, batch_size=40), encoder, 1)[0]
    order = np.argsort(batch.rows)
    return batch.keep[np.ix_(order, order)], batch.keep_negatives[np.ix_(order, order)]


def test_what_says_the_same_is_no_negative(encoder: Encoder):
    """Rows 8 and 9 are one sentence. Row 5 has no negative; 3's and 7's give way to their negations under `semray`."""
    keep, keep_negatives = masks(SAN, encoder)
    assert np.argwhere(~keep).tolist() == [[8, 9], [9, 8]]
    assert np.argwhere(~keep_negatives).tolist() == [[row, 5] for row in range(40)]
    _, as_they_are = masks(replace(SAN, postprocess="off"), encoder)
    assert [3, 3] in np.argwhere(~as_they_are).tolist()
    assert as_they_are[[0, 8], [3, 3]].all()
    keep, keep_negatives = masks(replace(SAN, conform="authors", postprocess="off"), encoder)
    assert keep.all()
    assert np.argwhere(~keep_negatives).tolist() == [[row, 5] for row in range(40)]


def test_an_entailment_that_another_premise_has_or_is_is_no_negative(encoder: Encoder):
    """Rows 20 and 21 entail the same; row 30 entails the sentence of row 31."""
    entailed = [f"{sentence} too" for sentence in CORPUS.sentences[:]]
    entailed[21], entailed[30] = entailed[20], CORPUS.sentences[31]
    corpus = replace(CORPUS, entailed=texts_of(entailed))
    settings = replace(PLAIN, host="simcse_sup", batch_size=40)
    batch = batches(settings, corpus, encoder, 0, World())(0)
    order = np.argsort(batch.rows)
    left_out = np.argwhere(~batch.keep[np.ix_(order, order)]).tolist()
    assert left_out == [[8, 9], [9, 8], [20, 21], [21, 20], [31, 30]]


@pytest.mark.parametrize(("host", "length"), [("simcse", 5), ("simcse_sup", 5), ("sncse", 27)])
def test_a_negative_that_is_cut_before_it_differs_is_none(tmp_path: Path, host: Any, length: int):
    """Few pieces of a text are read, and what negatives add behind its last word is not."""
    short = Encoder.load(tiny_backbone(tmp_path), readout="mean", max_length=length)
    corpus = san_corpus()
    sentences = corpus.sentences[:]
    late = [f"{sentence} stone" for sentence in sentences]
    changed = replace(
        corpus,
        sets={"san": replace(corpus.sets["san"], last=texts_of(late))},
        entailed=texts_of([f"stone {sentence}" for sentence in sentences]),
    )
    settings = replace(SAN, host=host, batch_size=40, postprocess="off")
    batch = batches(settings, changed, short, 0, World())(0)
    own = batch.keep_negatives[np.arange(40), np.arange(40)]
    assert not own.any()  # all sentences have four words and more
    assert batch.keep_negatives.sum() > 40 * 30


def test_controls_take_the_negatives_place(encoder: Encoder):
    random, soft = (replace(PLAIN, san="hince", column=column) for column in ("random", "soft"))
    for batch in seen(random, encoder):
        assert (batch.negative_rows != batch.rows).all()
        assert words(encoder, batch.apart) == [CORPUS.sentences[int(row)] for row in batch.negative_rows]
    batch = seen(replace(random, batch_size=40), encoder, 1)[0]
    anchors, negatives = (
        [CORPUS.sentences[int(row)] for row in rows] for rows in (batch.rows, batch.negative_rows)
    )
    others_there = [[negative != anchor for negative in negatives] for anchor in anchors]
    assert np.array_equal(batch.keep_negatives, others_there)
    given = ["" if row % 2 else f"any {sentence}" for row, sentence in enumerate(CORPUS.sentences)]
    batch = batches(soft, replace(CORPUS, soft=texts_of(given)), encoder, 0, World())(0)
    assert words(encoder, batch.apart) == [
        given[row] or f"not {CORPUS.sentences[row]}" for row in batch.rows.tolist()
    ]
    batch = seen(replace(PLAIN, p2_of="second_view"), encoder)[0]
    assert words(encoder, batch.views) == words(encoder, batch.apart)
    rows = np.arange(40)
    assert others(40, rows, 0, 1).tolist() != others(40, rows, 0, 2).tolist()


def test_prompted_hosts_read_templates(encoder: Encoder):
    """Anchors in the first, all that they are compared with in the second."""
    batch = seen(replace(SAN, host="sncse"), encoder)[0]
    assert batch.apart is not None
    texts = CORPUS.sentences.take(batch.rows)
    views = [
        in_template(encoder.tokenizer, column, template, max_length=32)
        for column, template in (
            (texts, VIEW),
            (texts, OTHER_VIEW),
            (columns.negations(CORPUS).take(batch.rows), OTHER_VIEW),
        )
    ]
    apart = in_template(
        encoder.tokenizer, columns.negatives(SAN, CORPUS).take(batch.rows), OTHER_VIEW, max_length=32
    )
    for tokens, expected in ((batch.views, Tokens.joined(views)), (batch.apart, apart)):
        assert np.array_equal(tokens.ids, expected.ids)
        assert tokens.read is not None
        assert expected.read is not None
        assert np.array_equal(tokens.read, expected.read)


@pytest.mark.parametrize(
    ("changes", "workers", "message"),
    [
        ({"batch_size": 41}, 1, r"batch_size = 41\n  accepted: at most 40"),
        ({"batch_size": 9}, 2, r"batch_size = 9\n  accepted: a multiple of the 2 workers"),
        ({"san": "hince", "negatives": "sam"}, 1, r"negatives = 'sam'\n  accepted: san"),
        ({"host": "rankcse", "teachers": ("t",)}, 1, r"teachers = \['t'\]\n  accepted: names in data\.teachers"),
        ({"host": "simcse_sup"}, 1, r"host = 'simcse_sup'\n  accepted: with a corpus of premise"),
    ],
)
def test_what_cannot_be_formed_is_refused(encoder: Encoder, changes: dict[str, Any], workers: int, message: str):
    bare = replace(CORPUS, entailed=None, contradicted=None)
    with pytest.raises(ValueError, match=rf"train\.{message}"):
        batches(replace(PLAIN, **changes), bare, encoder, 0, World(size=workers))
    batches(replace(PLAIN, teachers=("t",), negatives="sam"), bare, encoder, 0, World())  # it reads none of these
