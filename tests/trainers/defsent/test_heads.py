"""Heads and what stands still: tied loading, copies, the parameters of each policy, and a head that is not there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.overrides import TorchFunctionMode

from tests.tiny import tiny_backbone
from tests.trainers.masked_lm import SHAPES, masked_lm
from trainers.defsent import heads
from trainers.defsent.encoder import WordEncoder
from trainers.defsent.freezing import FrozenWeightsChanged, check_frozen, digest_of_frozen, freeze, trainable
from trainers.encoders.encoder import Encoder
from trainers.engine.streams import torch_stream


@pytest.fixture(scope="module", params=SHAPES)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return masked_lm(tmp_path_factory.mktemp("backbone") / request.param, request.param)


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_backbone(tmp_path_factory.mktemp("bare"))


def model_of(folder: Path) -> WordEncoder:
    encoder = Encoder.load(folder)
    return WordEncoder(encoder, heads.pretrained_head(encoder, folder))


def test_the_pretrained_head_is_that_of_transformers(folder: Path):
    """The same logits as the masked LM itself gives for its token states."""
    from transformers import AutoModelForMaskedLM

    peer = AutoModelForMaskedLM.from_pretrained(folder).eval()
    encoder = Encoder.load(folder, readout="cls")
    head = heads.pretrained_head(encoder, folder)
    text = "a small vessel"
    with torch.inference_mode():
        expected = peer(**encoder.tokenizer(text, return_tensors="pt")).logits[:, 0]
        ours = head(encoder.pooled(encoder.tokenise([text])))
    assert torch.allclose(ours, expected, atol=1e-5)


def test_the_decoder_is_shared_until_it_is_untied_by_a_copy(folder: Path):
    """Loaded as untied instead, transformers would leave decoder and bias at random."""
    model = model_of(folder)
    embeddings = model.encoder.backbone.get_input_embeddings().weight
    assert model.head.decoder is embeddings
    model.head.untie()
    assert model.head.decoder is not embeddings
    assert torch.equal(model.head.decoder, embeddings)


def test_a_pretrained_head_is_compared_where_the_encoder_is(folder: Path):
    """Two tensors on two devices cannot be: an encoder on a GPU would end there. Here one without numbers stands
    for it, and what `torch.equal` says is made up."""

    class Equal(TorchFunctionMode):
        def __torch_function__(self, function: Callable[..., Any], types: Any, args: Any = (), named: Any = None):
            if function is not torch.equal:
                return function(*args, **(named or {}))
            assert {one.device.type for one in args} == {"meta"}
            return True

    encoder = Encoder.load(folder).to("meta")
    with Equal():
        head = heads.pretrained_head(encoder, folder)
    assert head.decoder is heads.embeddings_of(encoder)


@pytest.mark.parametrize("shape", SHAPES)
def test_loading_untied_leaves_the_decoder_at_random(tmp_path: Path, shape: str):
    """The trap that loading tied avoids; when it is mended in transformers, this test says so."""
    from transformers import AutoModelForMaskedLM

    folder = masked_lm(tmp_path, shape)
    untied, told = AutoModelForMaskedLM.from_pretrained(
        folder, tie_word_embeddings=False, output_loading_info=True
    )
    tied = AutoModelForMaskedLM.from_pretrained(folder)
    assert any("decoder" in name for name in told["missing_keys"])
    assert not torch.equal(untied.get_output_embeddings().weight, tied.get_output_embeddings().weight)


@pytest.mark.parametrize(
    ("policy", "expected"), [("head", 5024), ("head_untied", 6624), ("head+embeddings", 4448), ("none", 8628)]
)
def test_what_each_policy_trains(tmp_path: Path, policy: str, expected: int):
    """Given numbers for a BERT of vocabulary 100, 32 positions, width 16, 2 layers, inner width 32, without pooler.

    In all 7,028. "none" trains those and the 1,600 of the head's own copy of the embeddings.
    """
    from transformers import BertConfig, BertForMaskedLM, BertTokenizer

    config = BertConfig(
        vocab_size=100,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=32,
        type_vocab_size=2,
    )
    BertForMaskedLM(config).save_pretrained(tmp_path)
    BertTokenizer(vocab={f"w{at}": at for at in range(95)} | {"[UNK]": 95, "[PAD]": 96, "[CLS]": 97, "[SEP]": 98, "[MASK]": 99}).save_pretrained(tmp_path)  # fmt: skip
    model = model_of(tmp_path)
    assert sum(parameter.numel() for parameter in model.parameters()) == 7028
    freeze(model, policy)
    assert trainable(model) == expected


def test_a_frozen_weight_that_moves_is_found(folder: Path):
    model = model_of(folder)
    freeze(model, "head+embeddings")
    before = digest_of_frozen(model)
    with torch.no_grad():
        next(parameter for parameter in model.parameters() if parameter.requires_grad).add_(1)
    check_frozen(model, before)
    with torch.no_grad():
        model.head.bias[3] += 1e-6
    with pytest.raises(FrozenWeightsChanged, match="frozen weights changed"):
        check_frozen(model, before)


def test_a_bare_encoder_has_no_head_to_ask_for(bare: Path):
    """transformers would make one up: a random transform over the embeddings."""
    encoder = Encoder.load(bare)
    with pytest.raises(ValueError, match=r"train\.head_source = 'pretrained', and .* has no masked-LM head"):
        heads.pretrained_head(encoder, bare)
    assert not heads.has_head(bare, heads.LAYOUTS["bert"])


def test_a_head_is_seen_without_loading_it(folder: Path):
    assert heads.has_head(folder, heads.layout_of(Encoder.load(folder).backbone.config, folder))


def test_a_head_with_vectors_of_its_own_is_refused(folder: Path, tmp_path: Path) -> None:
    """Which a masked LM has whose configuration unties them."""
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    model = AutoModelForMaskedLM.from_pretrained(folder, tie_word_embeddings=False)
    head = model.get_output_embeddings()
    head.weight = torch.nn.Parameter(head.weight.detach() + 0.1)
    model.save_pretrained(tmp_path)
    AutoTokenizer.from_pretrained(folder).save_pretrained(tmp_path)
    with pytest.raises(
        ValueError, match="has other vectors of words than its embeddings\n  accepted: a head that"
    ):
        model_of(tmp_path)


def test_an_unknown_architecture_is_refused_not_guessed(bare: Path):
    config = Encoder.load(bare).backbone.config
    config.model_type = "mpnet"
    with pytest.raises(ValueError, match="is a mpnet model\n  accepted: bert, camembert"):
        heads.layout_of(config, bare)


def test_tied_only_is_the_embeddings_and_nothing_else(bare: Path):
    encoder = Encoder.load(bare)
    u = torch.randn(3, encoder.width)
    expected = u @ encoder.backbone.get_input_embeddings().weight.T
    assert torch.allclose(heads.tied_head(encoder)(u), expected)


def test_a_random_head_is_of_its_stream(bare: Path):
    encoder = Encoder.load(bare)
    one, two, other = (heads.untrained_head(encoder, torch_stream(seed, "init", "head")) for seed in (0, 0, 1))
    assert torch.equal(one.transform.dense.weight, two.transform.dense.weight)
    assert not torch.equal(one.transform.dense.weight, other.transform.dense.weight)
    assert not one.bias.any()
    assert one.transform.norm.eps == encoder.backbone.config.layer_norm_eps


@pytest.mark.parametrize("source", ["pretrained", "tied_only", "untied"])
def test_what_is_saved_is_what_is_loaded(folder: Path, tmp_path: Path, source: str):
    from sentence_transformers import SentenceTransformer

    encoder = Encoder.load(folder, readout="mean")
    head = heads.tied_head(encoder) if source == "tied_only" else heads.pretrained_head(encoder, folder)
    model = WordEncoder(encoder, head, {"head_source": source}).eval()
    if source == "untied":
        model.head.untie()
        with torch.no_grad():
            model.head.decoder.add_(0.1)
    model.save(tmp_path / "model")
    loaded = WordEncoder.load(tmp_path / "model")
    tokens = model.encoder.tokenise(["a small vessel", "the river"])
    with torch.inference_mode():
        assert torch.equal(model(tokens), loaded(tokens))
    assert loaded.about == {"head_source": source}
    vectors = SentenceTransformer(str(tmp_path / "model"), device="cpu").encode(["a small vessel"])
    assert vectors == pytest.approx(model.encoder.encode(["a small vessel"]), abs=1e-5)
