"""What a san run leaves behind can be loaded, and reads texts as it did; teachers' vectors are kept and reused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from tests.trainers.san.corpus import san_corpus, texts_of
from trainers.encoders.encoder import Encoder
from trainers.engine.world import World
from trainers.san import columns
from trainers.san.readers import Headed, Prompted, check_layers, encoder_of, keep_layers, opened
from trainers.san.settings import Settings
from trainers.san.teacher_vectors import Teacher, vectors
from trainers.san.templates import OTHER_VIEW, VIEW, in_template
from trainers.san.training import fit

CORPUS = san_corpus()
TEXTS = ["a dog", "the cat runs in the town", "a bird"]
SHORT = Settings(steps=2, batch_size=8, learning_rate=1e-3, readout="mean")


def test_the_supervised_host_keeps_its_head_in_sentence_transformers_too(backbone: Path, tmp_path: Path):
    from sentence_transformers import SentenceTransformer

    reader, _ = fit(replace(SHORT, host="simcse_sup"), backbone, CORPUS, 0, World())
    assert isinstance(reader, Headed)
    reader.save(tmp_path / "model")
    model = SentenceTransformer(str(tmp_path / "model"), device="cpu")
    rows = model.encode(TEXTS)
    assert np.allclose(rows, reader.encode(TEXTS), atol=1e-5)
    assert not np.allclose(rows, reader.encoder.encode(TEXTS), atol=1e-2)
    again = opened(replace(SHORT, host="simcse_sup"), tmp_path / "model", World())
    assert np.allclose(again.encode(TEXTS), reader.encode(TEXTS), atol=1e-6)
    assert reader.encode([]).shape == (0, 32)
    untrained = opened(replace(SHORT, host="simcse_sup", train=False), tmp_path / "model", World())
    assert np.allclose(untrained.encode(TEXTS), reader.encoder.encode(TEXTS), atol=1e-6)  # no head of training


def test_an_unsupervised_host_drops_it(backbone: Path, tmp_path: Path):
    from sentence_transformers import SentenceTransformer

    reader, _ = fit(SHORT, backbone, CORPUS, 0, World())
    reader.save(tmp_path / "model")
    model = SentenceTransformer(str(tmp_path / "model"), device="cpu")
    assert np.allclose(model.encode(TEXTS), reader.encode(TEXTS), atol=1e-5)
    again = opened(SHORT, tmp_path / "model", World())
    assert np.allclose(again.readers["texts"](TEXTS), reader.encode(TEXTS), atol=1e-6)


@pytest.mark.parametrize(("host", "length"), [("simcse", 8), ("simcse_sup", 8), ("sncse", 30)])
def test_texts_may_be_read_further_than_in_training(backbone: Path, tmp_path: Path, host: Any, length: int):
    """Weights learn from six words of a text either way; looks, scores and what is kept read all where that is asked."""
    short = replace(SHORT, host=host, max_length=length)
    long = replace(short, read_length=64)
    text = " ".join(["the cat runs in the town"] * 6)  # 36 words
    looked: list[np.ndarray] = []

    def look(encoder: Any) -> dict[str, float]:
        looked.append(encoder.encode([text]))
        return {}

    world = World(look_at=(2,), look=look)
    (cut, _), (whole, _) = (fit(one, backbone, CORPUS, 0, world) for one in (short, long))
    assert not np.allclose(cut.encode([text]), whole.encode([text]), atol=1e-3)
    assert (cut.truncated, whole.truncated) == (2, 0)
    for one, reader in zip((short, long), (cut, whole), strict=True):
        assert np.allclose(reader.encode(TEXTS[:1]), cut.encode(TEXTS[:1]), atol=1e-6)  # the same weights
        reader.save(tmp_path / str(one.read_length))
        again = opened(one, tmp_path / str(one.read_length), World())
        assert np.allclose(again.encode([text]), reader.encode([text]), atol=1e-6)
    assert np.allclose(looked[0], cut.encode([text]), atol=1e-6)
    assert np.allclose(looked[1], whole.encode([text]), atol=1e-6)


def test_a_prompted_encoder_is_loaded_with_its_template_alone(backbone: Path, tmp_path: Path):
    """The mask's last state, from transformers' own attention over one text, whatever the readout of others is."""
    from transformers import AutoModel, AutoTokenizer

    reader, _ = fit(replace(SHORT, host="sncse", readout="cls"), backbone, CORPUS, 0, World())
    assert isinstance(reader, Prompted)
    reader.save(tmp_path / "model")
    again = opened(replace(SHORT, host="sncse"), tmp_path / "model", World())
    assert np.allclose(again.encode(TEXTS), reader.encode(TEXTS), atol=1e-6)
    assert not (tmp_path / "model" / "modules.json").exists()
    record = json.loads((tmp_path / "model" / "semray_template.json").read_text())
    assert record == {"template": ['This sentence : " ', ' " means {mask} .'], "readout": "mask"}
    folder = tmp_path / "model" / "transformer"
    model, tokenizer = AutoModel.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    encoded = tokenizer('This sentence : " a dog . " means [MASK] .', return_tensors="pt")
    with torch.no_grad():
        states = model(**encoded).last_hidden_state[0]
    mask = states[encoded["input_ids"][0] == tokenizer.mask_token_id][0].numpy()
    assert np.allclose(reader.encode(["a dog"])[0], mask / np.linalg.norm(mask), atol=1e-5)
    assert reader.encode([]).shape == (0, 32)


@pytest.mark.parametrize("readout", ["cls", "mean"])
def test_a_backbone_is_opened_with_the_arms_readout_and_rate_and_the_worlds_precision(
    backbone: Path, readout: Any
):
    """Before training as transformers gives its last states; without a rate of the arm its dropouts keep their own."""
    from transformers import AutoModel, AutoTokenizer

    model, tokenizer = AutoModel.from_pretrained(backbone).eval(), AutoTokenizer.from_pretrained(backbone)
    with torch.no_grad():
        states = model(**tokenizer(TEXTS[1], return_tensors="pt")).last_hidden_state[0]
    row = (states[0] if readout == "cls" else states.mean(0)).numpy()
    settings = Settings(readout=readout)
    assert np.allclose(
        opened(settings, backbone, World()).encode([TEXTS[1]])[0], row / np.linalg.norm(row), atol=1e-5
    )
    for rate, expected in ((None, model.config.hidden_dropout_prob), (0.25, 0.25), (0.0, 0.0)):
        body = encoder_of(replace(settings, p1=rate), backbone, World()).backbone
        assert {site.p for site in body.modules() if isinstance(site, nn.Dropout)} == {expected}
    assert encoder_of(settings, backbone, World(precision="bf16")).precision == "bf16"


def test_the_first_layers_alone(backbone: Path, tmp_path: Path):
    """As transformers gives the state after that layer."""
    from transformers import AutoModel, AutoTokenizer

    shallow = opened(Settings(train=False, readout="mean", layers=2), backbone, World())
    model, tokenizer = AutoModel.from_pretrained(backbone).eval(), AutoTokenizer.from_pretrained(backbone)
    with torch.no_grad():
        states = model(**tokenizer(TEXTS[1], return_tensors="pt"), output_hidden_states=True).hidden_states
    mean = states[2][0].mean(0).numpy()
    assert np.allclose(shallow.encode([TEXTS[1]])[0], mean / np.linalg.norm(mean), atol=1e-5)
    shallow.save(tmp_path / "model")
    again = opened(Settings(train=False, readout="mean", layers=2), tmp_path / "model", World())
    assert np.allclose(again.encode(TEXTS), shallow.encode(TEXTS), atol=1e-6)
    with pytest.raises(ValueError, match=r"train\.layers = 9\n  accepted: up to 3"):
        opened(Settings(train=False, layers=9), backbone, World())


@pytest.mark.parametrize("kind", ["modernbert", "qwen3"])
def test_the_first_layers_of_kinds_that_list_what_each_layer_is(backbone: Path, tmp_path: Path, kind: str):
    """What is kept of a trained encoder reads as it did; its configuration tells of the layers that are left."""
    from transformers import AutoConfig, AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(backbone)
    sizes = {"vocab_size": len(tokenizer), "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 4}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 8}
    special = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1, "sep_token_id": 2}
    AutoModel.from_config(AutoConfig.for_model(kind, **sizes, **heads, **special)).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    check_layers(tmp_path, 2)
    reader, _ = fit(replace(SHORT, layers=2, p1=0.1), tmp_path, CORPUS, 0, World())
    reader.save(tmp_path / "model")
    again = Encoder.load(tmp_path / "model")
    assert len(again.backbone.config.layer_types) == again.depth == 2
    assert np.array_equal(again.encode(TEXTS), reader.encode(TEXTS))


def test_the_first_layers_of_an_encoder_beside_a_decoder(backbone: Path, tmp_path: Path):
    """Only the encoder is loaded, so that its layers are one stack."""
    from transformers import AutoTokenizer, T5Config, T5Model

    tokenizer = AutoTokenizer.from_pretrained(backbone)
    sizes = {"d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 3, "num_heads": 2}
    T5Model(T5Config(vocab_size=len(tokenizer), **sizes)).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    check_layers(tmp_path, 2)
    reader = opened(Settings(train=False, readout="mean", layers=2), tmp_path, World())
    reader.save(tmp_path / "model")
    again = Encoder.load(tmp_path / "model")
    assert again.depth == 2
    assert np.array_equal(again.encode(TEXTS), reader.encode(TEXTS))


def test_layers_that_are_one_cannot_be_parted(tmp_path: Path):
    """ALBERT runs one layer again and again."""
    from transformers import AlbertConfig, AlbertModel

    config = AlbertConfig(
        vocab_size=50, embedding_size=8, hidden_size=16, num_hidden_layers=3, num_attention_heads=2,
        intermediate_size=16,
    )  # fmt: skip
    with pytest.raises(ValueError, match=r"train\.layers = 2\n  accepted: null, since albert has no one stack"):
        keep_layers(AlbertModel(config), 2)
    config.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=r"accepted: null, since albert"):
        check_layers(tmp_path, 2)


ALL = columns.whole(CORPUS.sentences)


def of_teacher(name: str, template=None, tell=print, column=ALL, counted=ALL, max_length=32) -> np.ndarray:
    return vectors(Teacher.of(name), column, counted, template, max_length=max_length, device="cpu", tell=tell)


def test_teachers_are_read_once(backbone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SEMRAY_CACHE", str(tmp_path))
    monkeypatch.setattr("trainers.san.teacher_vectors.PORTION", 25)
    heard: list[str] = []
    first = of_teacher(f"{backbone}@mean", tell=heard.append)
    again = of_teacher(f"{backbone}@mean", tell=heard.append)
    assert heard == [
        f"{backbone} (mean) reads sentences, 40 of them",
        f"{backbone} (mean) reads sentences, 25 of 40 done",
        f"{backbone} (mean) reads sentences, 40 of 40 done",
    ]
    assert np.array_equal(first, again)
    assert first.dtype == np.float16
    expected = Encoder.load(backbone, readout="mean", max_length=32).encode(CORPUS.sentences[:])
    assert np.allclose(first, expected, atol=1e-3)
    of_teacher(f"{backbone}@cls", tell=heard.append)
    of_teacher(f"{backbone}@cls", VIEW, tell=heard.append)
    assert len(heard) == 9


def test_what_is_kept_of_a_teacher_is_of_these_texts_and_of_this_length_alone(
    backbone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Other texts, others among which words are counted, or less of each: with what another run kept in the cache."""
    monkeypatch.setenv("SEMRAY_CACHE", str(tmp_path))
    whole = of_teacher(f"{backbone}@mean")
    backwards = columns.whole(texts_of(CORPUS.sentences[::-1]))
    assert np.allclose(of_teacher(f"{backbone}@mean", column=backwards), whole[::-1], atol=1e-3)
    assert not np.allclose(of_teacher(f"{backbone}@mean", max_length=4), whole, atol=1e-2)
    few = columns.whole(texts_of(CORPUS.sentences[:5]))
    assert not np.allclose(of_teacher(f"{backbone}@idf", counted=few), of_teacher(f"{backbone}@idf"), atol=1e-2)


def test_a_teacher_reads_the_template_as_its_readout_says(
    backbone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("SEMRAY_CACHE", str(tmp_path))
    encoder = Encoder.load(backbone, readout="mean", max_length=32)
    tokens = in_template(encoder.tokenizer, CORPUS.sentences[:], OTHER_VIEW, max_length=32)
    masks = encoder.embed(tokens)
    masks /= np.linalg.norm(masks, axis=1, keepdims=True)
    assert np.allclose(of_teacher(f"{backbone}@mask", OTHER_VIEW), masks, atol=1e-3)
    means = encoder.embed(replace(tokens, read=None))
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    assert np.allclose(of_teacher(f"{backbone}@mean", OTHER_VIEW), means, atol=1e-3)
    assert not np.allclose(means, masks, atol=1e-2)


def test_rare_words_count_more_in_static_embeddings(
    backbone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Σ log(N / n_w) E_w over the pieces of a text; [CLS] and [SEP], which every text has, weigh nothing."""
    monkeypatch.setenv("SEMRAY_CACHE", str(tmp_path))
    encoder = Encoder.load(backbone, max_length=32)
    table = encoder.backbone.get_input_embeddings().weight.detach().numpy()
    sentences = [encoder.tokenizer(text)["input_ids"] for text in CORPUS.sentences]
    row = sum(
        np.log(40 / sum(piece in sentence for sentence in sentences)) * table[piece] for piece in sentences[2]
    )
    found = of_teacher(f"{backbone}@idf", VIEW)
    assert np.allclose(found[2], row / np.linalg.norm(row), atol=1e-3)
