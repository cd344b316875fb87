"""Words as single entries of a vocabulary, and the leading space that a byte-level vocabulary expects."""

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
    """Make the tokenizer read the first word of a text like any later word. Changes it in place and returns it.

    Byte-level BPE distinguishes "good" and " good", and its entries for whole words begin with the space. The
    change is saved with the tokenizer, so it also holds for a model that is loaded later. The keyword
    add_prefix_space of transformers is not enough: generic fast tokenizers record and ignore it. WordPiece and
    SentencePiece need no change. Raises ValueError for a tokenizer that is not fast.
    """
    if not tokenizer.is_fast:
        raise ValueError(
            f"backbones: {tokenizer.name_or_path}: its tokenizer does not tell its rules"
            "\n  accepted: a fast tokenizer"
        )
    backend = tokenizer.backend_tokenizer
    state = json.loads(backend.to_str())
    byte_levels = [node for node in _nodes(state["pre_tokenizer"]) if node.get("type") == "ByteLevel"]
    if not byte_levels:
        return tokenizer
    for node in byte_levels:
        node["add_prefix_space"] = True
    backend.pre_tokenizer = type(backend).from_str(json.dumps(state)).pre_tokenizer
    tokenizer.add_prefix_space = True
    tokenizer.init_kwargs["add_prefix_space"] = True
    ids = tokenizer(PROBE, add_special_tokens=False)["input_ids"]
    decoded = str(tokenizer.decode(ids, clean_up_tokenization_spaces=False))
    assert decoded.startswith(" "), f"the tokenizer reads {PROBE!r} as {decoded!r}"
    return tokenizer


def _nodes(state: Any) -> list[dict[str, Any]]:
    """The states of a pre-tokenizer and, if it is a sequence, of all its parts."""
    if state is None:
        return []
    return [state, *(node for part in state.get("pretokenizers", ()) for node in _nodes(part))]


def word_pieces(tokenizer: PreTrainedTokenizerBase, words: Sequence[str]) -> np.ndarray:
    """The id of each word that the tokenizer reads as one entry, -1 for others. -> (N,) int64."""
    distinct = list(dict.fromkeys(words))
    if not distinct:
        return np.zeros(0, np.int64)
    ids = tokenizer(distinct, add_special_tokens=False, return_attention_mask=False)["input_ids"]
    piece_of = dict(zip(distinct, pieces_of(ids, tokenizer.unk_token_id).tolist(), strict=True))
    return np.array([piece_of[word] for word in words], np.int64)


def words_known(
    tokenizer: PreTrainedTokenizerBase, corpus: DefsentCorpus, backbone: str
) -> tuple[dict[str, np.ndarray], Kept]:
    """The `piece_table`, and the training rows whose words are entries. Raises ValueError if there are none."""
    pieces = piece_table(tokenizer, corpus)
    kept = kept_rows(corpus, pieces)
    if not len(kept.rows):
        raise ValueError(
            f"data: no word of the training rows is one entry of the vocabulary of {backbone}"
            "\n  accepted: rows of its words, or another backbone"
        )
    return pieces, kept


def piece_table(tokenizer: PreTrainedTokenizerBase, corpus: DefsentCorpus) -> dict[str, np.ndarray]:
    """Split -> the entry of each row's word, -1 for none. It is cached, as 150,000 words take seconds.

    The cache key includes the tokenizer's rules: vocabulary, case and leading space each change the table.
    """
    state = json.loads(tokenizer.backend_tokenizer.to_str())
    rules = {name: part for name, part in state.items() if name not in ("truncation", "padding")}
    key = key_of({"tokenizer": rules, "unknown": tokenizer.unk_token_id, "corpus": corpus.fingerprint})

    def build(folder: Path) -> None:
        for name, rows in corpus.rows.items():
            np.save(folder / f"{name}.npy", word_pieces(tokenizer, list(rows.words)))

    folder, _ = entry("defsent-pieces", key, build)
    return {name: np.load(folder / f"{name}.npy", allow_pickle=False) for name in corpus.rows}
