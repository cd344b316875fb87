"""Tokenizers of every kind of vocabulary, trained on two sentences: WordPiece, SentencePiece, byte-level BPE."""

from __future__ import annotations

import json
from typing import Any

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import BertTokenizer, PreTrainedTokenizerFast, RobertaTokenizer, XLMRobertaTokenizer

SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
TEXTS = [
    "The jury said Friday an investigation of Atlanta 's recent election produced no evidence .",
    "She said : naïve people say things that run , and running runs from left to right again .",
] * 20
KINDS = ("wordpiece", "sentencepiece", "bpe", "bpe-untrimmed")


def tokenizer_of(kind: str) -> Any:
    """As BERT, XLM-R, RoBERTa and ModernBERT have them."""
    if kind == "wordpiece":
        special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
        letters = sorted(set("".join(TEXTS).lower() + "ef<>/"))
        pieces = dict.fromkeys([*special, *letters, *(f"##{letter}" for letter in letters), "jury", "##ing"])
        return BertTokenizer(vocab={piece: at for at, piece in enumerate(pieces)})
    if kind == "sentencepiece":
        unigram = Tokenizer(models.Unigram())
        parts = [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]
        unigram.pre_tokenizer = pre_tokenizers.Sequence(parts)
        how = trainers.UnigramTrainer(
            vocab_size=90,
            special_tokens=SPECIAL,
            unk_token="<unk>",
            initial_alphabet=list("<>/"),
            show_progress=False,
        )
        unigram.train_from_iterator(TEXTS, how)
        return XLMRobertaTokenizer(vocab=[tuple(row) for row in json.loads(unigram.to_str())["model"]["vocab"]])
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    bpe.train_from_iterator(
        TEXTS,
        trainers.BpeTrainer(
            vocab_size=330, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
        ),
    )
    if kind == "bpe":
        model = json.loads(bpe.to_str())["model"]
        return RobertaTokenizer(vocab=model["vocab"], merges=[tuple(merge) for merge in model["merges"]])
    bpe.decoder = decoders.ByteLevel()
    bpe.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    return PreTrainedTokenizerFast(tokenizer_object=bpe, pad_token="<pad>", cls_token="<s>", sep_token="</s>")
