"""Words as single entries of a vocabulary, and the space that a byte-level vocabulary wants before them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from corpora.defsent.overlap import Kept, kept_rows
from corpora.defsent.splits import pieces_of
from corpora.store.cache import entry, key_of

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from corpora.defsent.records import DefsentCorpus

PROBE = "word"


def with_leading_space(tokenizer: PreTrainedTokenizerBase) -> PreTrainedTokenizerBase:
    """The tokenizer as it reads the first word of every text like a word inside of one; changed in place.

    Byte-level BPE keeps "good" and " good" apart, and its entries for whole words begin with the space. What is
    set here is saved with the tokenizer: definitions, sentences and whoever loads the model later read alike. The
    keyword add_prefix_space of transformers alone does not do: generic fast tokenizers note it and go on as
    before. WordPiece and SentencePiece need nothing. ValueError for one that does not tell its rules.
    """
    if not tokenizer.is_fast:
        raise ValueError(
            f"backbones: {tokenizer.name_or_path}: its tokenizer does not tell its rules"
            "\n  accepted: a fast tokenizer"
        )
    backend = tokenizer.backend_tokenizer
    state = json.loads(backend.to_str())
    levels = [node for node in _nodes(state["pre_tokenizer"]) if node.get("type") == "ByteLevel"]
    if not levels:
        return tokenizer
    for node in levels:
        node["add_prefix_space"] = True
    backend.pre_tokenizer = type(backend).from_str(json.dumps(state)).pre_tokenizer
    tokenizer.add_prefix_space = True
    tokenizer.init_kwargs["add_prefix_space"] = True
    ids = tokenizer(PROBE, add_special_tokens=False)["input_ids"]
    said = str(tokenizer.decode(ids, clean_up_tokenization_spaces=False))
    assert said.startswith(" "), f"the tokenizer reads {PROBE!r} as {said!r}"
    return tokenizer


def _nodes(state: Any) -> list[dict[str, Any]]:
    """A pre-tokenizer with the parts of a sequence."""
    if state is None:
        return []
    return [state, *(node for part in state.get("pretokenizers", ()) for node in _nodes(part))]


def word_pieces(tokenizer: PreTrainedTokenizerBase, words: Sequence[str]) -> np.ndarray:
    """The one entry that each word is, -1 for none; read by the tokenizer, never looked up. -> (N,) int64."""
    distinct = list(dict.fromkeys(words))
    if not distinct:
        return np.zeros(0, np.int64)
    ids = tokenizer(distinct, add_special_tokens=False, return_attention_mask=False)["input_ids"]
    of = dict(zip(distinct, pieces_of(ids, tokenizer.unk_token_id).tolist(), strict=True))
    return np.array([of[word] for word in words], np.int64)


def words_known(
    tokenizer: PreTrainedTokenizerBase, corpus: DefsentCorpus, backbone: str
) -> tuple[dict[str, np.ndarray], Kept]:
    """The `piece_table`, and the training rows that it leaves. ValueError where it leaves none."""
    pieces = piece_table(tokenizer, corpus)
    kept = kept_rows(corpus, pieces)
    if not len(kept.rows):
        raise ValueError(
            f"data: no word of the training rows is one entry of the vocabulary of {backbone}"
            "\n  accepted: rows of its words, or another backbone"
        )
    return pieces, kept


def piece_table(tokenizer: PreTrainedTokenizerBase, corpus: DefsentCorpus) -> dict[str, np.ndarray]:
    """By split the entry of each row's word, -1 for none; kept in the cache, since 150,000 words take seconds.

    Named by the tokenizer's rules, so that a vocabulary, its case or its leading space each have their table.
    """
    state = json.loads(tokenizer.backend_tokenizer.to_str())
    rules = {name: part for name, part in state.items() if name not in ("truncation", "padding")}
    key = key_of({"tokenizer": rules, "unknown": tokenizer.unk_token_id, "corpus": corpus.fingerprint})

    def build(folder: Path) -> None:
        for name, rows in corpus.rows.items():
            np.save(folder / f"{name}.npy", word_pieces(tokenizer, list(rows.words)))

    folder, _ = entry("defsent-pieces", key, build)
    return {name: np.load(folder / f"{name}.npy", allow_pickle=False) for name in corpus.rows}
