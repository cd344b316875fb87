"""Masked-LM backbones made on the fly, in the shapes of BERT and RoBERTa with tokenizers of their kind, and a corpus."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from corpora.defsent.records import DefinitionRows, DefsentCorpus, Inferences
from corpora.store.columns import Texts
from tests.tiny import SPECIAL, WORDS

SHAPES = ("bert", "roberta")
WIDTH = 32


def masked_lm(folder: Path, shape: str, *, dropout: float = 0.1, layers: int = 2) -> Path:
    """A small masked LM with a head in hub format; every word of WORDS is one entry of its vocabulary."""
    import torch
    from transformers import BertConfig, BertForMaskedLM, RobertaConfig, RobertaForMaskedLM

    tokenizer = wordpiece() if shape == "bert" else byte_level()
    config, model = (BertConfig, BertForMaskedLM) if shape == "bert" else (RobertaConfig, RobertaForMaskedLM)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        made = model(
            config(
                vocab_size=len(tokenizer),
                hidden_size=WIDTH,
                num_hidden_layers=layers,
                num_attention_heads=4,
                intermediate_size=2 * WIDTH,
                max_position_embeddings=66,
                hidden_dropout_prob=dropout,
                attention_probs_dropout_prob=dropout,
                initializer_range=0.2,
                layer_norm_eps=1e-12 if shape == "bert" else 1e-5,
                pad_token_id=tokenizer.pad_token_id,
            )
        )
        torch.nn.init.normal_(made.get_output_embeddings().bias, std=0.1)
    folder.mkdir(parents=True, exist_ok=True)
    made.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def wordpiece() -> Any:
    from transformers import BertTokenizer

    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    pieces = dict.fromkeys([*SPECIAL, *letters, *(f"##{letter}" for letter in letters), *WORDS])
    return BertTokenizer(vocab={piece: at for at, piece in enumerate(pieces)}, model_max_length=64)


def byte_level() -> Any:
    """Byte-level BPE as RoBERTa has it, trained on WORDS inside of text: each with its leading space is one entry."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    from transformers import RobertaTokenizer

    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    bpe.train_from_iterator(
        [" " + " ".join(WORDS)] * 5,
        trainers.BpeTrainer(
            vocab_size=2000,
            special_tokens=special,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    model = json.loads(bpe.to_str())["model"]
    merges = [tuple(merge) for merge in model["merges"]]
    return RobertaTokenizer(vocab=model["vocab"], merges=merges, model_max_length=64)


def definitions(count: int = 60, seed: int = 0) -> DefsentCorpus:
    """Made-up definitions of WORDS: a word is defined by itself between two others, so that it can be learnt."""
    rng = np.random.default_rng(seed)
    words = [WORDS[at % len(WORDS)] for at in range(count)]
    texts = [" ".join([*rng.choice(WORDS, 1 + at % 5), word]) for at, word in enumerate(words)]
    words[-1] = "zzzq"  # of several pieces in every vocabulary
    cut = (0, count * 8 // 10, count * 9 // 10, count)
    rows = {
        name: DefinitionRows(
            texts_of(f"{at:016x}" for at in range(cut[part], cut[part + 1])),
            texts_of(words[cut[part] : cut[part + 1]]),
            texts_of(texts[cut[part] : cut[part + 1]]),
            texts_of(words[cut[part] : cut[part + 1]]),
        )
        for part, name in enumerate(("train", "dev", "test"))
    }
    pairs = Inferences(
        "made up",
        texts_of(" ".join(rng.choice(WORDS, 3 + at % 4)) for at in range(18)),
        texts_of(" ".join(rng.choice(WORDS, 3 + at % 3)) for at in range(18)),
        np.arange(18, dtype=np.uint8) % 3,
    )
    return DefsentCorpus(
        rows=rows,
        inferences=pairs,
        plain_texts=(),
        text_overlap="drop_from_train",
        fingerprint=f"made up {count} {seed}",
        digests={},
    )


def texts_of(values: Any) -> Texts:
    listed: Sequence[str] = list(values)
    return Texts(pa.array(listed, pa.large_string()))
