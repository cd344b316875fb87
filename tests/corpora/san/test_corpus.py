"""Sentences from their sources, and the corpus a study asks for: built once, named by what it is made of."""

from __future__ import annotations

from pathlib import Path

import pytest

from corpora.san import negation, shards
from corpora.san.build import cloze, cloze_manifest, names_of, selected
from corpora.san.corpus import fingerprint, load
from corpora.san.data import SanData
from corpora.san.generate import rows
from corpora.san.lexicon_file import by_file
from corpora.san.lexicon_sources import lexicon, rewriter
from corpora.san.recipe import SetRecipe
from corpora.san.records import NONE
from corpora.san.sentences import digest, read, wordnet_texts
from corpora.san.set_report import report, shown
from corpora.sources import spacy_model
from corpora.store.errors import CorpusError
from corpora.store.telling import heard_by

LINES = [
    f"the {kind} boat was {deed} in the harbour ." for kind in ("old", "new") for deed in ("sold", "built", "seen")
]


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "lines.txt"
    path.write_text("\n".join(["", *LINES, "  ", "one two"]) + "\n")
    return str(path)


@pytest.fixture
def data(file: str, small_folder: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("SEMRAY_DATA", raising=False)
    return lambda **given: SanData(**{"sentences": file, "wordnet": str(small_folder), "most_words": 12} | given)


def test_a_file_of_lines(file):
    assert read(file).texts == [*LINES, "one two"]
    assert read(file).entailed is None


def test_chosen_sentences_have_the_wanted_lengths_and_a_sample_depends_on_their_texts(data, tmp_path):
    place = tmp_path / "more.txt"

    def chosen(lines: list[str], **given: int) -> list[str]:
        place.write_text("\n".join(lines))
        return selected(data(sentences=str(place), **given)).texts

    lines = [" ".join(["word"] * count) for count in range(1, 10)]
    assert chosen(lines, least_words=3, most_words=6) == lines[2:6]
    lines = [f"sentence number {number}" for number in range(40)]
    few, many, turned = chosen(lines, sample=5), chosen(lines, sample=20), chosen(lines[::-1], sample=20)
    assert (len(few), len(many)) == (5, 20)
    assert set(few) < set(many) == set(turned)
    assert many == [line for line in lines if line in many] != lines[:20]


def test_texts_of_wordnet_have_four_words(small):
    texts = list(wordnet_texts(small))
    assert {"put letters on paper", "have in a hand and not let go"} <= set(texts)
    assert {"of high warmth", "like frozen water", "a cold room"}.isdisjoint(texts)


def test_a_lexicon_in_a_file(data, tmp_path):
    """It goes before all else, small letters first; its content is part of the corpus's name."""
    table = tmp_path / "tags.tsv"
    table.write_text("[PAD]\tSPECIAL\nBoat\tPROPN\nboat\tVERB\nOld\tX\n##s\tX\n")
    given = data(lexicon=str(table))
    found = lexicon(given.lexicon, wordnet_at=given.wordnet)
    assert [found.resolve(word) for word in ("boat", "old", "the")] == ["VERB", "X", "DET"]
    assert found.name == "tags.tsv, closed lists, WordNet"
    before = fingerprint(given)
    assert before != fingerprint(data())
    table.write_text("boat\tNOUN\n")
    assert fingerprint(given) != before
    table.write_text("boat\tNOUN\nold ADJ\n")
    with pytest.raises(CorpusError, match=r"tags\.tsv:2: 'old ADJ'\n  accepted: lines of word, tab"):
        lexicon(str(table), wordnet_at=given.wordnet)
    with pytest.raises(
        CorpusError, match=r"lexicon spacey cannot be read: .*\n  accepted: auto, spacy, or a file"
    ):
        fingerprint(data(lexicon="spacey"))


def test_a_lexicon_is_read_by_its_lines_alone(data, tmp_path):
    """A mark before the first letter is no part of a word, and some vocabularies have a separator as an entry."""
    table = tmp_path / "tags.tsv"
    table.write_text("boat\tVERB\r\n\u2028\tSYM\r\nhoofd\tNOUN\r\n", encoding="utf-8-sig", newline="")
    given = data(lexicon=str(table))
    found = lexicon(given.lexicon, wordnet_at=given.wordnet)
    assert [found.resolve(word) for word in ("boat", "\u2028", "hoofd")] == ["VERB", "SYM", "NOUN"]
    table.write_text("")
    assert by_file(table, lambda word: "")("boat") == ""


def test_triplets(tmp_path):
    (tmp_path / "t.csv").write_text('sent0,sent1,hard_neg\n"a, b",c,d\ne,f,\n')
    found = read(str(tmp_path / "t.csv"))
    assert (found.texts, found.entailed, found.contradicted) == (["a, b"], ["c"], ["d"])
    (tmp_path / "t.csv").write_text('sent0,sent1,hard_neg\na,"b,c\nd,e,f\n')  # with its row it would take the next
    with pytest.raises(CorpusError, match="unexpected end of data"):
        read(str(tmp_path / "t.csv"))
    (tmp_path / "t.csv").write_text("sent0,sent1\na,b\n")
    with pytest.raises(CorpusError, match="lacks the column 'hard_neg'"):
        read(str(tmp_path / "t.csv"))


def test_snli(tmp_path):
    """Of each premise the k-th entailed with the k-th contradicted hypothesis."""
    rows = [
        ("p", "e1", "entailment"),
        ("p", "n", "neutral"),
        ("p", "c1", "contradiction"),
        ("p", "c2", "contradiction"),
    ]
    rows += [("q", "c", "contradiction"), ("p", "e2", "entailment")]
    (tmp_path / "snli").mkdir()
    for name, column in zip(("s1", "s2", "labels"), zip(*rows, strict=True), strict=True):
        (tmp_path / "snli" / f"{name}.dev").write_text("\n".join(column) + "\n")
    found = read("snli_dev", path=str(tmp_path))
    assert found.texts == ["p", "p"]
    assert (found.entailed, found.contradicted) == (["e1", "e2"], ["c1", "c2"])
    whole = digest("snli_dev", path=str(tmp_path))
    with (tmp_path / "snli" / "labels.dev").open("a") as labels:
        labels.write("neutral\n")
    assert digest("snli_dev", path=str(tmp_path)) != whole
    with pytest.raises(
        CorpusError, match=r"s1\.dev has 6 lines, .*s2\.dev has 6 lines, .*labels\.dev has 7 lines"
    ):
        read("snli_dev", path=str(tmp_path))


@pytest.mark.parametrize(("name", "text"), [("t.txt", " \n\n"), ("t.csv", "sent0,sent1,hard_neg\na,b,\n")])
def test_a_file_without_a_usable_row_is_no_corpus(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    with pytest.raises(CorpusError, match=rf"{name} holds no (sentence|triplet)"):
        read(str(tmp_path / name))


def test_a_name_stands_for_no_other(tmp_path, monkeypatch):
    """The sample is not the million lines."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    (tmp_path / "wiki1m_sample").mkdir()
    (tmp_path / "wiki1m_sample" / "wiki1m_for_simcse.txt").write_text("one line\n")
    assert read("wiki1m_sample", path=str(tmp_path)).texts == ["one line"]
    with pytest.raises(CorpusError, match=r"wiki1m not found(.|\n)*the hub:"):
        read("wiki1m", path=str(tmp_path))
    with pytest.raises(CorpusError, match="no such file\n  accepted: wordnet, semcor, wiki1m"):
        read("wiki")


def test_wordnet_sentences(small_folder):
    texts = read("wordnet", wordnet_at=str(small_folder)).texts
    assert texts
    assert all(len(text.split()) >= 4 for text in texts)


def test_what_another_negator_writes_is_another_corpus(data, monkeypatch):
    by_rule, by_parse = data(), data(negatives={"san": SetRecipe(negator="parse")})
    monkeypatch.setattr(spacy_model, "named", lambda: "en_core_web_sm 0")
    before = fingerprint(by_rule), fingerprint(by_parse)
    monkeypatch.setattr(negation, "PARSE", 1)
    assert fingerprint(by_rule) == before[0]
    assert fingerprint(by_parse) != before[1]
    monkeypatch.setattr(negation, "RULE", 1)
    assert fingerprint(by_rule) != before[0]


def test_selection(data):
    assert selected(data()).texts == [*LINES, "one two"]
    assert selected(data(least_words=3)).texts == LINES
    few, more = (selected(data(least_words=3, sample=size)).texts for size in (2, 4))
    assert len(few) == 2
    assert set(few) < set(more) < set(LINES)
    with pytest.raises(CorpusError, match=r"no sentence of data\.least_words = 50"):
        selected(data(least_words=50, most_words=None))


def test_loading(data):
    asked = data(negatives={"san": SetRecipe(scale=10.0), "other": SetRecipe(scale=10.0, seed=1)})
    named = fingerprint(asked)
    corpus = load(asked)
    assert corpus.fingerprint == named
    assert list(corpus.sentences) == [*LINES, "one two"]
    assert len(corpus.soft) == len(corpus) == 7
    assert corpus.soft[0] == "the old boat was not sold in the harbour ."
    assert "stand-in" in corpus.sets["san"].generator
    assert "stand-in" in corpus.negator
    assert list(corpus.sets["san"].last) != list(corpus.sets["other"].last)
    assert corpus.sets["san"].id != corpus.sets["other"].id
    negatives = corpus.negatives("san", rule="semray")
    assert all(negatives.take(range(7))[row] for row in range(7) if negatives.source[row] != NONE)
    assert list(load(asked).sets["san"].last) == list(corpus.sets["san"].last)


@pytest.mark.parametrize(
    "other",
    [
        {"sample": 3},
        {"least_words": 3},
        {"negatives": {"san": SetRecipe(scale=30.0)}},
        {"negatives": {"san": SetRecipe(law="uniform")}},
        {"negatives": {"dull": SetRecipe()}},
    ],
)
def test_what_changes_the_fingerprint(data, other):
    assert fingerprint(data(**other)) != fingerprint(data())


def test_how_far_a_set_is_made_is_said_aloud(data, monkeypatch):
    monkeypatch.setattr("corpora.san.corpus.SHARD", 4)
    told = list[str]()
    with heard_by(told.append):
        load(data(least_words=3))
    assert told == [f"making the negatives 'san', {done} of 6 done" for done in (4, 6)]


def test_a_set_made_before(data, tmp_path):
    """The folder of a set gives the rows that the cache would build, and only for the same sentences."""
    asked, recipe = data(), SetRecipe()
    found = lexicon("auto", wordnet_at=asked.wordnet)
    names, texts = names_of(asked), selected(asked).texts
    folder = tmp_path / "set"
    shards.begin(folder, cloze_manifest(names, recipe), texts)
    using = rewriter(cloze(names.cloze, texts, found), recipe, found)
    shards.write_shard(folder, 0, rows(using, texts))
    given = data(negatives={"san": str(folder)})
    assert list(load(given).sets["san"].last) == list(load(asked).sets["san"].last)
    assert fingerprint(given) == fingerprint(asked)  # what it holds counts, not who made it
    with pytest.raises(CorpusError, match="made from other sentences"):
        load(data(negatives={"san": str(folder)}, least_words=3))
    said = report(shards.read(folder))
    assert said.sentences == 7
    assert 0 <= said.kept <= 1
    assert "kept" in shown(said)


def test_a_mask_token_in_a_negative_is_refused(data, tmp_path):
    (tmp_path / "bad.txt").write_text("the [MASK] was sold in the harbour\n")
    with pytest.raises(CorpusError, match=r"row 0 of the set holds \[MASK\]"):
        load(data(sentences=str(tmp_path / "bad.txt")))


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"sample": 0}, "sample"),
        ({"least_words": 5, "most_words": 4}, "most_words"),
        ({"negatives": {}}, "negatives"),
        ({"negatives": {"a": SetRecipe(), "b": SetRecipe(negator="parse")}}, "negatives"),
    ],
)
def test_a_block_that_cannot_be(given, field):
    with pytest.raises(ValueError, match=rf"^(data\.)?{field}( = .*\n  |: )accepted"):
        SanData(**given)
