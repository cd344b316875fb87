"""SNCSE's templates with tokenizers of three kinds: which pieces, which are read, how a long text is cut."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from corpora.store.errors import CorpusError
from tests.tiny import tiny_backbone
from tests.trainers.tokenizers_of_every_kind import tokenizer_of
from trainers.encoders.backbones import BackboneError
from trainers.san.templates import OTHER_VIEW, VIEW, ended, in_template

MASKED = ("wordpiece", "sentencepiece", "bpe")


@pytest.mark.parametrize("kind", MASKED)
@pytest.mark.parametrize("template", [VIEW, OTHER_VIEW])
def test_it_is_the_sentence_in_its_template_as_one_text(kind: str, template: Any):
    tokenizer = tokenizer_of(kind)
    sentences = ["The jury said things.", "running"]
    tokens = in_template(tokenizer, sentences, template, max_length=200)
    whole = [
        f"{template.before}{sentence}{template.after.format(mask=tokenizer.mask_token)}"
        for sentence in ("The jury said things.", "running .")
    ]
    assert tokens.ids.tolist() == [piece for text in whole for piece in tokenizer(text)["input_ids"]]
    assert tokens.read is not None
    assert (tokens.ids[tokens.read] == tokenizer.mask_token_id).all()
    assert tokens.read.sum() == 2
    assert tokens.truncated == 0


@pytest.mark.parametrize("kind", MASKED)
def test_a_long_text_is_cut_and_its_template_is_not(kind: str):
    tokenizer = tokenizer_of(kind)
    empty = len(in_template(tokenizer, ["."], VIEW, max_length=500).ids)
    tokens = in_template(tokenizer, ["run " * 300], VIEW, max_length=empty + 5)
    assert tokens.lengths.tolist() == [empty + 5]
    assert tokens.truncated == 1
    tail = tokenizer(f"a{VIEW.after.format(mask=tokenizer.mask_token)}")["input_ids"][-4:]
    assert tokens.ids[-4:].tolist() == tail


def test_bert_leaves_22_pieces_for_the_text(tmp_path):
    """Its template is: this sentence : " … " means [MASK] . between [CLS] and [SEP], ten pieces."""
    from transformers import BertTokenizer

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "this", "sentence", "means", ":", '"', ".", "of", "a"]
    tokenizer = BertTokenizer(vocab={word: at for at, word in enumerate(words)})
    tokens = in_template(tokenizer, ["a " * 50, "a", "a " * 21], VIEW, max_length=32)
    assert tokens.lengths.tolist() == [32, 12, 32]
    assert tokens.truncated == 1  # 21 pieces and a full stop just fit
    assert (tokens.ids[:32] == words.index("a")).sum() == 22
    assert np.flatnonzero(tokens.read[:32]).tolist() == [29]


def test_what_cannot_be_read_is_refused():
    tokenizer = tokenizer_of("wordpiece")
    with pytest.raises(CorpusError, match=r"'a \[MASK\] b' holds \[MASK\]\n  accepted"):
        in_template(tokenizer, ["fine", "a [MASK] b"], VIEW, max_length=64)
    with pytest.raises(ValueError, match=r"train\.max_length = 8\n  accepted: \d+ or more") as refused:
        in_template(tokenizer, ["fine"], VIEW, max_length=8)
    fewest = int(re.findall(r"\d+", str(refused.value))[-1])
    assert in_template(tokenizer, ["run " * 9], VIEW, max_length=fewest).lengths.tolist() == [fewest]
    with pytest.raises(ValueError, match="accepted"):
        in_template(tokenizer, ["fine"], VIEW, max_length=fewest - 1)
    with pytest.raises(BackboneError, match="no mask token"):
        in_template(tokenizer_of("bpe-untrimmed"), ["fine"], VIEW, max_length=64)


def test_a_sentence_gets_its_full_stop():
    assert [ended(text) for text in ("A dog", "A dog.", " A dog! ", "", "so “far”")] == [
        "A dog .",
        "A dog.",
        "A dog!",
        ".",
        "so “far”",
    ]


def test_the_tiny_backbone_can_be_prompted(tmp_path):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tiny_backbone(tmp_path))
    assert len(in_template(tokenizer, ["a dog"], OTHER_VIEW, max_length=64)) == 1
