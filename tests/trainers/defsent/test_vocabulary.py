"""Words as entries of a vocabulary, for tokenizers of every kind, and the leading space that must not be lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from corpora.defsent.records import Definition
from tests.trainers.masked_lm import byte_level, definitions, masked_lm, wordpiece
from tests.trainers.tokenizers_of_every_kind import tokenizer_of
from trainers.defsent import heads, vocabulary
from trainers.defsent.encoder import NO_WORD, WordEncoder
from trainers.defsent.vocabulary import with_leading_space, word_pieces
from trainers.encoders.encoder import Encoder


def test_the_unknown_token_is_no_word():
    tokenizer = wordpiece()
    assert len(tokenizer("日本", add_special_tokens=False)["input_ids"]) >= 1
    pieces = word_pieces(tokenizer, ["vessel", "日", "vessels", "Vessel", ""])
    assert pieces.tolist() == [
        tokenizer.convert_tokens_to_ids("vessel"),
        -1,
        -1,
        tokenizer.convert_tokens_to_ids("vessel"),  # an uncased vocabulary
        -1,
    ]


def test_a_byte_level_word_begins_with_its_space():
    """As it is, the tokenizer has no entry for a bare "vessel": it spells it out, and the word would be lost."""
    plain, spaced = byte_level(), with_leading_space(byte_level())
    assert word_pieces(plain, ["vessel"]).tolist() == [-1]
    (piece,) = word_pieces(spaced, ["vessel"])
    assert spaced.decode([piece]) == " vessel"
    assert word_pieces(spaced, ["vesselful"]).tolist() == [-1]


@pytest.mark.parametrize("kind", ["bpe", "bpe-untrimmed"])
def test_the_space_survives_saving(kind: str, tmp_path: Path):
    """A generic fast tokenizer notes the keyword add_prefix_space, and goes on without the space: not so here."""
    from transformers import AutoTokenizer, RobertaConfig

    tokenizer = with_leading_space(tokenizer_of(kind))
    assert tokenizer("jury").input_ids == tokenizer(" jury").input_ids
    tokenizer.save_pretrained(tmp_path)
    RobertaConfig().save_pretrained(tmp_path)
    again = AutoTokenizer.from_pretrained(tmp_path)
    assert again("jury said").input_ids == tokenizer("jury said").input_ids == tokenizer(" jury said").input_ids


@pytest.mark.parametrize("kind", ["wordpiece", "sentencepiece"])
def test_other_kinds_need_nothing(kind: str):
    tokenizer = tokenizer_of(kind)
    before = tokenizer("The jury said").input_ids
    assert with_leading_space(tokenizer)("The jury said").input_ids == before


def test_a_tokenizer_that_does_not_tell_its_rules_is_refused(tmp_path: Path):
    from transformers import BertJapaneseTokenizer

    (tmp_path / "vocab.txt").write_text("[UNK]\n[PAD]\n[CLS]\n[SEP]\n[MASK]\na\n")
    pieces = {"word_tokenizer_type": "basic", "subword_tokenizer_type": "character"}
    with pytest.raises(ValueError, match="does not tell its rules\n  accepted: a fast tokenizer"):
        with_leading_space(BertJapaneseTokenizer(str(tmp_path / "vocab.txt"), **pieces))


def test_training_and_use_read_alike(tmp_path: Path):
    """Definitions and sentences, in the run and in whatever loads its folder."""
    folder = masked_lm(tmp_path / "backbone", "roberta")
    encoder = Encoder.load(folder, readout="mean")
    encoder.tokenizer = with_leading_space(encoder.tokenizer)
    WordEncoder(encoder, heads.pretrained_head(encoder, folder)).save(tmp_path / "saved")
    loaded = WordEncoder.load(tmp_path / "saved")
    first = loaded.encoder.tokenise(["vessel of wood"]).ids.tolist()
    assert first == encoder.tokenise(["vessel of wood"]).ids.tolist()
    assert loaded.encoder.tokenizer.decode([first[1]]) == " vessel"
    assert (loaded.places([Definition("holds water", "vessel")]) != NO_WORD).all()


def test_a_definition_is_asked_for_several_words(tmp_path: Path):
    folder = masked_lm(tmp_path, "bert")
    encoder = Encoder.load(folder, readout="cls")
    model = WordEncoder(encoder, heads.pretrained_head(encoder, folder)).eval()
    asked = [Definition("holds water", "vessel"), Definition("holds water", "cup"), Definition("runs", "zzz")]
    found = model.readers["definitions"](asked)
    assert found.shape == (3, 1)
    assert found[2, 0] == NO_WORD
    logits = model(encoder.tokenise(["holds water"]))[0]
    for row, word in ((0, "vessel"), (1, "cup")):
        own = encoder.tokenizer.convert_tokens_to_ids(word)
        assert found[row, 0] == 1 + sum(value >= logits[own] for at, value in enumerate(logits) if at != own)
    assert model.places([Definition("runs", "zzz")]).tolist() == [[NO_WORD]]


def test_chunks_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = masked_lm(tmp_path, "bert")
    encoder = Encoder.load(folder, readout="mean")
    model = WordEncoder(encoder, heads.pretrained_head(encoder, folder)).eval()
    asked = [Definition(f"the {word}", word) for word in ("cup", "dog", "fire", "stone", "water")]
    whole = model.places(asked)
    monkeypatch.setattr("trainers.defsent.encoder.LOGITS_BYTES", 4 * len(model.head.decoder) * 2)
    assert model.places(asked).tolist() == whole.tolist()


def test_the_table_of_entries_is_made_once_for_a_tokenizer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SEMRAY_CACHE", str(tmp_path))
    made = []
    whole = vocabulary.word_pieces
    monkeypatch.setattr(vocabulary, "word_pieces", lambda *given: made.append(1) or whole(*given))
    corpus, tokenizer = definitions(), wordpiece()
    first = vocabulary.piece_table(tokenizer, corpus)
    tokenizer(["a cup of water"], truncation=True, max_length=3, padding=True)  # leaves its mark on the tokenizer
    again = vocabulary.piece_table(tokenizer, corpus)
    assert len(made) == 3
    assert {name: table.tolist() for name, table in again.items()} == {
        name: whole(tokenizer, list(rows.words)).tolist() for name, rows in corpus.rows.items()
    }
    assert first["train"].tolist() == again["train"].tolist()
    vocabulary.piece_table(with_leading_space(byte_level()), corpus)
    vocabulary.piece_table(byte_level(), corpus)
    assert len(made) == 9
