"""An encoder that is small enough to train in a test: a randomly initialised BERT with a vocabulary of its own."""

from __future__ import annotations

import json
from pathlib import Path

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
WORDS = [
    "a", "an", "the", "of", "in", "on", "to", "for", "with", "that", "which", "who", "is", "are", "was", "not",
    "or", "and", "by", "at", "from", "as", "it", "its", "one", "any", "person", "animal", "plant", "cat", "dog",
    "bird", "horse", "house", "town", "river", "stone", "fire", "water", "metal", "wood", "tool", "vessel",
    "pot", "cup", "drink", "food", "small", "large", "hot", "cold", "old", "young", "quick", "slow", "red",
    "green", "made", "used", "holds", "runs", "grows",
]  # fmt: skip


def tiny_backbone(
    folder: Path,
    *,
    layers: int = 3,
    width: int = 32,
    heads: int = 4,
    dropout: float = 0.1,
    seed: int = 0,
    vocabulary: int = 0,
) -> Path:
    """Write a BERT of `layers` x `width` in hub format (safetensors) into `folder` and return it.

    Every lower-case ASCII word has a tokenisation: `WORDS` are one piece, others are split into letters. The same
    arguments give the same bytes of weights; the caller's random state does not change. vocabulary: the least
    number of rows of the word table, as unused rows cost time and memory too.
    """
    import torch
    from transformers import BertConfig, BertModel, BertTokenizer

    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)] + list("0123456789'-,.;")
    pieces = dict.fromkeys([*SPECIAL, *letters, *(f"##{letter}" for letter in letters), *WORDS])
    vocab = {piece: index for index, piece in enumerate(pieces)}
    config = BertConfig(
        vocab_size=max(len(vocab), vocabulary),
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=4 * width,
        max_position_embeddings=128,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
        initializer_range=0.2,  # at 0.02 a tiny net gives every text the same vector
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = BertModel(config, add_pooling_layer=False)
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    BertTokenizer(vocab=vocab, model_max_length=128).save_pretrained(folder)
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 128}))
    return folder
