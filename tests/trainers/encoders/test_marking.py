"""Marked words: where tags go, which pieces are the target's, and how a long sentence is cut around it."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpora.sources.occurrences import Occurrence
from tests.trainers.tokenizers_of_every_kind import KINDS, tokenizer_of
from trainers.encoders.marking import TAGS, add_tags, bare, mark, tokens_around
from trainers.encoders.tokens import Tokens

tokenizer = lru_cache(tokenizer_of)
PREFIX = "left: "
SAID = Occurrence("The jury said Friday naïve people", 9, 13, "say")
LONG = Occurrence("the people from left to right say things that run and run again .", 30, 33, "say")


@pytest.mark.parametrize(
    ("text", "start", "end", "marked"),
    [
        ("The jury said Friday", 9, 13, "The jury <t> said </t> Friday"),
        ("Said the jury", 0, 4, "<t> Said </t> the jury"),
        ("the jury said", 9, 13, "the jury <t> said </t>"),
        ("said", 0, 4, "<t> said </t>"),
        ('"said", he said', 1, 5, '" <t> said </t> ", he said'),
        ("run and run", 8, 11, "run and <t> run </t>"),
    ],
)
def test_tags_stand_apart_around_the_target(text: str, start: int, end: int, marked: str):
    spanned = mark(Occurrence(text, start, end, "say"))
    assert spanned.text == marked
    assert spanned.text[spanned.begin : spanned.end] == f"<t> {text[start:end]} </t>"
    assert bare(Occurrence(text, start, end, "say")) == (text, start, end)


def text_of(kind: str, tokens: Tokens, among: np.ndarray | None = None) -> str:
    """The characters of these tokens, without blanks: what WordPiece, SentencePiece and byte-level BPE put there."""
    ids = tokens.ids if among is None else tokens.ids[among]
    words = tokenizer(kind).decode(ids, skip_special_tokens=True)
    return "".join(words.split())


@pytest.mark.parametrize("prefix", ["", PREFIX])
@pytest.mark.parametrize("kind", KINDS)
def test_pieces_are_those_of_the_whole_text(kind: str, prefix: str):
    """What fits is what the tokenizer gives for the marked sentence, and the span holds the tagged word."""
    marked = mark(SAID)
    tokens = tokens_around(tokenizer(kind), [marked], max_length=128, prefix=prefix)
    assert tokens.ids.tolist() == tokenizer(kind)(prefix + marked.text)["input_ids"]
    assert tokens.truncated == 0
    assert tokens.read is not None
    assert text_of(kind, tokens, tokens.read) == "<t>said</t>"
    target = tokens_around(tokenizer(kind), [bare(SAID)], max_length=128, prefix=prefix)
    assert text_of(kind, target, target.read) == "said"
    assert text_of(kind, target, ~target.read if target.read is not None else None).lower() in (
        f"{prefix.strip()}thejuryfridaynaïvepeople",
        f"{prefix.strip()}thejuryfridaynaivepeople",
    )


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40, deadline=None)
@given(st.integers(0, 12), st.integers(30, 60), st.booleans(), st.sampled_from(["", PREFIX]))
def test_a_long_text_is_cut_around_its_span(kind: str, word: int, max_length: int, tagged: bool, prefix: str):
    """Span, prefix and special tokens stay; left keeps min(L, max(room // 2, room - R)), right what remains."""
    ahead = len(tokenizer(kind)(prefix.strip(), add_special_tokens=False)["input_ids"])
    words = LONG.text.split()
    start = len(" ".join(words[:word])) + (word > 0)
    occurrence = Occurrence(LONG.text, start, start + len(words[word]), words[word])
    spanned = (mark if tagged else bare)(occurrence)
    whole = tokens_around(tokenizer(kind), [spanned], max_length=10_000, prefix=prefix)
    tokens = tokens_around(tokenizer(kind), [spanned], max_length=max_length, prefix=prefix)
    assert whole.read is not None
    assert tokens.read is not None
    assert tokens.ids[tokens.read].tolist() == whole.ids[whole.read].tolist()
    assert len(tokens.ids) == min(max_length, len(whole.ids))
    assert tokens.truncated == (len(whole.ids) > max_length)
    assert tokens.ids[-1] == whole.ids[-1]
    assert tokens.ids[: 1 + ahead].tolist() == whole.ids[: 1 + ahead].tolist()
    first, last = np.flatnonzero(whole.read)[[0, -1]]
    left, right = first - 1 - ahead, len(whole.ids) - 2 - last
    room = max_length - 2 - ahead - (last + 1 - first)
    kept = min(left, max(room // 2, room - right))
    assert np.flatnonzero(tokens.read)[0] == 1 + ahead + kept
    inner = whole.ids[first - kept : last + 1 + min(right, room - kept)]
    assert tokens.ids[1 + ahead : -1].tolist() == inner.tolist()


def test_a_target_that_cannot_fit_is_refused():
    with pytest.raises(
        ValueError, match=r"train\.max_length = 8: '<t> said </t>' alone .*\n  accepted: at least \d+"
    ) as refused:
        tokens_around(tokenizer("wordpiece"), [mark(SAID)], max_length=8)
    least = int(str(refused.value).split()[-1])
    fitting = tokens_around(tokenizer("wordpiece"), [mark(SAID)], max_length=least)
    assert fitting.lengths.tolist() == [least]
    assert text_of("wordpiece", fitting) == "<t>said</t>"
    with pytest.raises(ValueError, match=f"at least {least}"):
        tokens_around(tokenizer("wordpiece"), [mark(SAID)], max_length=least - 1)


def test_texts_keep_their_places_and_a_prefix_is_not_cut():
    texts = [mark(LONG), mark(SAID)]
    together = tokens_around(tokenizer("bpe"), texts, max_length=40, prefix="left: ")
    alone = [tokens_around(tokenizer("bpe"), [text], max_length=40, prefix="left: ") for text in texts]
    assert together.ids.tolist() == [piece for tokens in alone for piece in tokens.ids]
    assert together.lengths.tolist() == [len(tokens.ids) for tokens in alone]
    assert together.truncated == 1
    start = tokenizer("bpe")("left:")["input_ids"][:-1]
    assert all(tokens.ids[: len(start)].tolist() == start for tokens in alone)


@pytest.mark.parametrize("kind", KINDS)
def test_added_tags_are_one_token_each_with_the_mean_of_their_pieces(kind: str):
    import torch
    from transformers import BertConfig, BertModel

    own = tokenizer_of(kind)
    alone = len(own("a", add_special_tokens=False)["input_ids"])
    pieces = {tag: own(f"a {tag}", add_special_tokens=False)["input_ids"][alone:] for tag in TAGS}
    padded = len(own) + 7  # tables are often larger than the vocabulary, and must not shrink
    config = BertConfig(
        vocab_size=padded, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8
    )
    with torch.random.fork_rng():
        model: Any = BertModel(config, add_pooling_layer=False)
    before = model.get_input_embeddings().weight.detach().clone()
    add_tags(model, own)
    add_tags(model, own)  # nothing is left to do
    table = model.get_input_embeddings().weight.detach()
    assert len(table) == padded
    tokens = tokens_around(own, [mark(SAID)], max_length=128)
    inner = [own.decode([piece]) for piece in tokens.ids[tokens.read]]
    assert (inner[0].strip(), inner[-1].strip()) == TAGS
    for tag in TAGS:
        assert len(pieces[tag]) > 1
        assert torch.allclose(table[own.convert_tokens_to_ids(tag)], before[pieces[tag]].mean(0), atol=1e-6)
    words = tokens.ids[~np.isin(tokens.ids, own.convert_tokens_to_ids(list(TAGS)))]
    assert words.tolist() == own(SAID.text)["input_ids"]  # no blank is left over beside a tag
