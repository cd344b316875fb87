"""Filling masks by a model: masked positions alone, in kind, the same in any company."""

from __future__ import annotations

import json
import shutil
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from corpora.san.generate import Rewriter, rows
from corpora.san.importance import CODE, SPECIAL
from corpora.san.lexicon import resolver
from corpora.san.mask_predict import batched, batches
from corpora.san.recipe import SetRecipe
from tests.tiny import tiny_backbone
from tests.trainers.masked_lm import masked_lm
from trainers.encoders.backbones import BackboneError
from trainers.san.masked_model import MaskedModel, vocabulary_of

TEXTS = [
    "The old dog runs in the town.",
    "A small bird is on the stone",
    "zq holds fire, water or metal; it grows!",
    "the",
    "One person made a large vessel for hot food and cold drink by the river in the old town.",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny BERT with a head that fills masks."""
    from transformers import BertConfig, BertForMaskedLM

    place = tiny_backbone(tmp_path_factory.mktemp("masked"))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        BertForMaskedLM(BertConfig.from_pretrained(place)).save_pretrained(place)
    return place


@pytest.fixture(scope="module")
def model(folder: Path) -> MaskedModel:
    return MaskedModel.load(str(folder), resolver(), device="cpu")


def batch_of(model: MaskedModel, texts: list[str]):
    return batched(model.encode(texts, 128), texts, np.arange(len(texts), dtype=np.uint64))


def rewriter(model: MaskedModel, **recipe) -> Rewriter:
    return Rewriter(generator=model, recipe=SetRecipe(**recipe), negate=lambda texts: list(texts))


def test_places_in_the_text(model):
    tokens = model.encode(["The zq dog."], 128)[0]
    pieces = [
        ("The zq dog."[a:b], model.surfaces[i])
        for i, a, b in zip(*tokens[:1], tokens.start, tokens.end, strict=True)
    ]
    assert pieces == [("The", "the"), ("z", "z"), ("q", "q"), ("dog", "dog"), (".", ".")]
    assert [bool(model.vocabulary.initial[i]) for i in tokens.ids] == [True, True, False, True, True]


def test_places_in_the_text_of_a_byte_level_tokenizer(tmp_path):
    """The first word has the entry that it has anywhere else."""
    model = MaskedModel.load(str(masked_lm(tmp_path, "roberta")), resolver(), device="cpu")
    text = "dog zq dog."
    for most, length in ((128, 6), (2, 2)):
        tokens = model.encode([text], most)[0]
        assert len(tokens.ids) == len(tokens.start) == len(tokens.end) == length
    tokens = model.encode([text], 128)[0]
    found = [text[a:b].strip() for a, b in zip(tokens.start, tokens.end, strict=True)]
    assert found == [model.surfaces[place] for place in tokens.ids] == ["dog", "", "z", "q", "dog", "."]
    assert model.vocabulary.initial[tokens.ids].tolist() == [True, True, False, False, True, False]
    assert tokens.ids[0] == tokens.ids[4]
    assert (tokens.start[0], tokens.end[-1]) == (0, len(text))


def test_a_tokenizer_that_pads_of_its_own_accord(folder, tmp_path):
    """As that of all-MiniLM-L6-v2 does, to 128: a sentence has its own tokens, whatever ran before."""
    from transformers import AutoTokenizer

    shutil.copytree(folder, tmp_path / "padding")
    padding = AutoTokenizer.from_pretrained(folder)
    padding.backend_tokenizer.enable_padding(length=16)
    padding.backend_tokenizer.enable_truncation(6)
    padding.backend_tokenizer.save(str(tmp_path / "padding" / "tokenizer.json"))
    model = MaskedModel.load(str(tmp_path / "padding"), resolver(), device="cpu")
    assert [len(each.ids) for each in model.encode(TEXTS[:2], 128)] == [8, 7]


def of_kind(folder: Path, place: Path, kind: str, *, seed: int, more_rows: int = 0) -> MaskedModel:
    """The same in the modules of another kind, and an embedding that may have more rows than there are entries."""
    from transformers import AutoConfig, AutoModelForMaskedLM, BertConfig

    shutil.copytree(folder, place, dirs_exist_ok=True)
    shape = BertConfig.from_pretrained(folder)
    config = AutoConfig.for_model(
        kind,
        vocab_size=shape.vocab_size + more_rows,
        hidden_size=shape.hidden_size,
        num_hidden_layers=2,
        num_attention_heads=shape.num_attention_heads,
        intermediate_size=shape.intermediate_size,
        pad_token_id=shape.pad_token_id,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        AutoModelForMaskedLM.from_config(config).save_pretrained(place)
    return MaskedModel.load(str(place), resolver(), device="cpu")


@pytest.fixture(scope="module")
def of_roberta(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> MaskedModel:
    return of_kind(folder, tmp_path_factory.mktemp("roberta"), "roberta", seed=2, more_rows=8)


@pytest.fixture(scope="module")
def of_mpnet(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> MaskedModel:
    """One that is read in padded rectangles."""
    return of_kind(folder, tmp_path_factory.mktemp("mpnet"), "mpnet", seed=3)


@pytest.mark.parametrize("kind", ["model", "of_roberta", "of_mpnet"])
@pytest.mark.parametrize("places", [[1, 3], [0, 1, 2, 4]])
def test_fills_as_the_whole_model_would(request, kind, places):
    """Beside a shorter sentence, against logits of every position of it alone, best entry of the kind."""
    model = request.getfixturevalue(kind)
    text = "zq holds fire or water"
    batch = batch_of(model, ["the dog.", text])
    masked = np.zeros(batch.ids.shape, bool)
    masked[0, 1] = masked[1, places] = True
    begins = model.vocabulary.initial[batch.ids[1, places]]
    assert set(begins) == {True, False}
    ids = batch.ids[1].astype(np.int64)
    ids[places] = model.tokenizer.mask_token_id
    read = [model._ends[0], *ids, model._full_stop, model._ends[1]]
    whole = deepcopy(model.model)
    whole.set_attn_implementation("eager")
    logits = whole(torch.tensor([read])).logits[0, 1:-2][places][:, : len(model.surfaces)]
    allowed = torch.from_numpy(model.vocabulary.fills & (model.vocabulary.initial == begins[:, None]))
    best = logits.masked_fill(~allowed, -torch.inf).sort(descending=True)
    noise = np.random.default_rng(0).gumbel(scale=2.0, size=(*batch.ids.shape, 5))
    noisy = (best.values[:, :5] + torch.from_numpy(noise[1, places])).argmax(-1, keepdim=True)
    assert noisy.any()
    for given, chosen in ((None, best.indices[:, 0]), (noise, best.indices.gather(1, noisy)[:, 0])):
        filled = model.fill(batch, masked, given)
        assert filled[1, places].tolist() == chosen.tolist()
        assert (filled[~masked] == batch.ids[~masked]).all()


def test_a_kind_that_nothing_fills_stays(model):
    """A vocabulary in which no piece may stand inside a word."""
    vocabulary = replace(model.vocabulary, fills=model.vocabulary.fills & model.vocabulary.initial)
    batch = batch_of(model, [TEXTS[2]])
    filled = replace(model, vocabulary=vocabulary).fill(batch, np.ones(batch.ids.shape, bool), None)
    inside = ~model.vocabulary.initial[batch.ids]
    assert inside.any()
    assert (filled[inside] == batch.ids[inside]).all()


def test_of_fewer_entries_than_may_be_drawn_all_are_drawn(model):
    """Where two words alone may begin one, noise of the third to the fifth best has none that it could be of."""
    few = np.isin(model.surfaces, ["dog", "cat"])
    narrow = replace(model, vocabulary=replace(model.vocabulary, fills=few))
    batch = batch_of(model, ["the bird"])
    noise = np.zeros((*batch.ids.shape, 5))
    drawn = set()
    for noise[..., 1] in (-99, 99):
        noise[..., 2:] = 999
        drawn |= {model.surfaces[place] for place in narrow.fill(batch, np.ones(batch.ids.shape, bool), noise)[0]}
    assert drawn == {"dog", "cat"}


def test_batches_go_by_length(model):
    """As it is read: "the" with its full stop is as long as "dog."."""
    texts = [*TEXTS, "", "the dog", "dog."]
    tokens = model.encode(texts, 128)
    (every,) = batches(tokens, texts, 2048)
    assert every[:4] == [5, 3, 7, 6]
    assert sorted(every) == list(range(len(texts)))
    assert [len(group) for group in batches(tokens[:1] * 5, TEXTS[:1] * 5, 16)] == [2, 2, 1]
    assert batches(tokens, texts, 1) == [[row] for row in every]


def test_a_sentence_without_a_mark_reads_a_full_stop(model):
    batch = batch_of(model, ["the dog", "the dog."])
    read, attended = model._framed(batch, np.zeros(batch.ids.shape, bool))
    ends = [
        model.tokenizer.convert_ids_to_tokens(row[seen == 1]) for row, seen in zip(read, attended, strict=True)
    ]
    assert ends == [["[CLS]", "the", "dog", ".", "[SEP]"]] * 2


@pytest.mark.parametrize(("kind", "before"), [("model", 0), ("of_roberta", 1), ("of_mpnet", 2)])
@pytest.mark.parametrize(("mark", "beside"), [(" .", 2), ("", 3)])
def test_a_text_longer_than_the_model_reads_is_cut_to_it(request, kind, before, mark, beside):
    """Beside the two special tokens, and the full stop that a text without a mark at its end gets.

    RoBERTa's positions begin after the padding's id, here 0; MPNet's after 1, whatever the padding is.
    """
    model = request.getfixturevalue(kind)
    text = "the dog " * 300 + mark
    room = model.model.config.max_position_embeddings - before - beside
    assert [len(one.ids) for most in (512, 8) for one in model.encode([text], most)] == [room, 8]
    table = rows(rewriter(model, max_tokens=512, scale=9.0, iterations=1), [text])
    assert table["san"][0].as_py() != text


def test_pieces_stay_in_kind_and_specials_out(model):
    batch = batch_of(model, TEXTS)
    masked = batch.tags != SPECIAL
    for noise in (None, np.random.default_rng(0).gumbel(size=(*batch.ids.shape, 5))):
        filled = model.fill(batch, masked, noise)
        initial = model.vocabulary.initial
        assert (initial[filled[masked]] == initial[batch.ids[masked]]).all()
        assert model.vocabulary.fills[filled[masked]].all()
        assert (filled != model.tokenizer.mask_token_id).all()


@pytest.mark.parametrize("kind", ["model", "of_mpnet"])
@pytest.mark.parametrize("decode", ["argmax", "topk"])
def test_company_changes_nothing(request, kind, decode):
    """Alone, together and in another order: the same negatives."""
    using = rewriter(request.getfixturevalue(kind), decode=decode, scale=15.0)
    together = rows(using, TEXTS)["san"].to_pylist()
    assert rows(using, TEXTS[::-1])["san"].to_pylist() == together[::-1]
    assert [rows(using, [text])["san"][0].as_py() for text in TEXTS] == together
    assert together != TEXTS


def test_the_text_is_its_own_but_for_the_fillings(model):
    table = rows(rewriter(model, iterations=1), TEXTS).to_pydict()
    for text, new, masked in zip(table["text"], table["san"], table["n_masked"], strict=True):
        tokens = model.encode([text], 128)[0]
        changed = sum(a != b for a, b in zip(tokens.ids, model.encode([new], 128)[0].ids, strict=False))
        assert masked[0] or new == text
        assert changed == 0 or masked[0]


def test_a_backbone_without_the_head(tmp_path):
    with pytest.raises(BackboneError, match=r"lacks cls\.predictions.*head that fills masks(.|\n)*or cloze"):
        MaskedModel.load(str(tiny_backbone(tmp_path / "bare")), resolver(), device="cpu")


def test_a_head_that_lies_elsewhere_is_refused(folder, tmp_path):
    with pytest.raises(BackboneError, match=r"is a DistilBertForMaskedLM, whose head is not where(.|\n)*or cloze"):
        of_kind(folder, tmp_path / "distilbert", "distilbert", seed=4)


def test_a_tokenizer_without_a_mask_is_refused(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "maskless")
    for file in ("tokenizer_config.json", "special_tokens_map.json"):
        if (place := tmp_path / "maskless" / file).is_file():
            held = json.loads(place.read_text())
            held.update(mask_token=None)
            place.write_text(json.dumps(held))
    with pytest.raises(BackboneError, match=r"has no tokenizer with places in the text and a mask token\n  acc"):
        MaskedModel.load(str(tmp_path / "maskless"), resolver(), device="cpu")


def test_it_fills_in_the_precision_that_it_is_loaded_in(folder, model):
    rounded = MaskedModel.load(str(folder), resolver(), device="cpu", precision="bf16")
    for one, kind in ((model, torch.float32), (rounded, torch.bfloat16)):
        assert {weight.dtype for weight in one.model.parameters()} == {kind}
    batch = batch_of(model, TEXTS)
    filled = rounded.fill(batch, batch.tags != SPECIAL, None)
    assert rounded.vocabulary.fills[filled[batch.tags != SPECIAL]].all()


def test_word_pieces_that_fill_and_their_tags(folder, model):
    """Words, pieces of words and marks of ASCII; nothing reserved or special, no single symbol of another kind. A
    piece inside a word is none of a kind of word, whatever the word is of which it has the letters."""
    from transformers import BertTokenizer

    entries = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        "[unused0]",
        "cat",
        "##s",
        "…",
        "##é",
        "où",
        "-",
        "dog",
    ]
    vocabulary = vocabulary_of(BertTokenizer(vocab={entry: at for at, entry in enumerate(entries)}))
    assert [entry for entry, fills in zip(entries, vocabulary.fills, strict=True) if fills] == [
        "cat", "##s", "où", "-", "dog",
    ]  # fmt: skip
    assert [entry for entry, begins in zip(entries, vocabulary.initial, strict=True) if not begins] == [
        "##s",
        "##é",
    ]
    inside = ~model.vocabulary.initial
    assert inside.any()
    assert set(model.tags[inside]) == {CODE["X"]}
    assert CODE["X"] not in model.tags[[model.surfaces.index(word) for word in ("dog", "runs", "small")]]


def test_byte_level_vocabulary(tmp_path):
    """`Ġ` begins a word, halves of a letter and special tokens fill nothing."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    entries = ["<s>", "</s>", "<pad>", "<unk>", "<mask>", "Ġcat", "s", ".", "Ã", "ÃÃ", "Ã©s", "Ġ"]
    bpe = Tokenizer(models.BPE({entry: i for i, entry in enumerate(entries)}, [], unk_token="<unk>"))
    bpe.pre_tokenizer, bpe.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    special = {
        "bos_token": "<s>",
        "eos_token": "</s>",
        "pad_token": "<pad>",
        "unk_token": "<unk>",
        "mask_token": "<mask>",
    }
    vocabulary = vocabulary_of(PreTrainedTokenizerFast(tokenizer_object=bpe, **special))
    assert vocabulary.surfaces[5:8] == ("cat", "s", ".")
    assert [entry for entry, begins in zip(entries, vocabulary.initial, strict=True) if begins] == ["Ġcat", "Ġ"]
    assert [entry for entry, fills in zip(entries, vocabulary.fills, strict=True) if fills] == [
        "Ġcat", "s", ".", "Ã©s",
    ]  # fmt: skip
