"""Lines as wiktextract writes them, made up here: what is a sense, what is passed over, and why."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from corpora.sources.dictionary import DictionarySense, says_enough
from corpora.sources.wiktextract import locate, read
from corpora.store.errors import CorpusError


def entry(word: str, pos: str, *senses: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"word": word, "pos": pos, "lang_code": "en", "senses": list(senses), **more}


LINES: tuple[Any, ...] = (
    entry(
        "jug",
        "noun",
        {"glosses": ["A serving vessel of some kind.", "A deep one with a narrow mouth."]},
        {"glosses": ["A prison for small thieves."], "tags": ["slang"], "synonyms": [{"word": "clink"}]},
        etymology_number=1,
        forms=[{"form": "jugs", "tags": ["plural"]}, {"form": "no-table-tags", "tags": ["table-tags"]}],
        synonyms=[{"word": "cooler", "sense": "A prison for small thieves."}, {"word": "pitcher"}],
    ),
    entry("jugs", "noun", {"glosses": ["plural of the word jug"], "form_of": [{"word": "jug"}]}),
    entry("jugg", "noun", {"glosses": ["Misspelling of the word jug."], "tags": ["misspelling"]}),
    entry("jugge", "noun", {"glosses": ["Older spelling of the word"], "alt_of": [{"word": "jug"}]}),
    entry(
        "to-morrow",
        "adv",
        {"glosses": ["On the day after today."]},
        synonyms=[
            {"word": "To morrow"},
            {"word": "the day after this very day"},
            {"word": "mañana"},
            {"word": ""},
        ],
    ),
    entry("Paris", "name", {"glosses": ["The capital city of France."]}),
    entry(
        "run", "verb", {"glosses": ["To move fast."]}, {"glosses": []}, {}, {"glosses": ["See the noun run here"]}
    ),
    entry("grand", "adj", {"glosses": [":Template:lb great in size"]}, {"glosses": ["Great in size or"] * 2}),
    entry("the", "article", {"glosses": ["a word before a noun"]}),
    {"word": "krug", "pos": "noun", "lang_code": "de", "senses": [{"glosses": ["a jug or a pub there"]}]},
    {"title": "Jugs", "redirect": "jug"},
    entry("empty", "noun"),
    ["no object"],
)


SENSE = {"glosses": ["a small device used for cooking fish"]}


@pytest.fixture(params=["words.jsonl", "words.jsonl.gz"])
def extract(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    file = tmp_path / request.param
    text = "\n".join([*map(json.dumps, LINES), "{broken"]) + "\n"
    file.write_bytes(gzip.compress(text.encode()) if file.suffix == ".gz" else text.encode())
    return file


def test_senses_and_what_is_passed_over(extract: Path) -> None:
    skipped: Counter[str] = Counter()
    assert list(read(extract, skipped)) == [
        DictionarySense("wkt:jug:1:0-n", "jug", "A deep one with a narrow mouth", ("jugs",)),
        DictionarySense("wkt:jug:1:1-n", "jug", "A prison for small thieves", ("jugs",), ("clink", "cooler")),
        DictionarySense("wkt:to-morrow:0:0-r", "to-morrow", "On the day after today", (), ("mañana",)),
        DictionarySense("wkt:Paris:0:0-n", "Paris", "The capital city of France"),
        DictionarySense("wkt:run:0:0-v", "run", "To move fast"),
        DictionarySense("wkt:grand:0:1-a", "grand", "Great in size or"),
    ]
    assert skipped == {
        "form of another word": 3,
        "no usable gloss": 4,
        "other part of speech": 1,
        "other language": 1,
        "redirect": 1,
        "no senses": 1,
        "broken line": 2,
    }


def test_a_word_of_hyphens_alone_is_none_and_such_a_form_hides_nothing(tmp_path: Path) -> None:
    words = ("", "-", "_ -", "blorf")
    forms = [{"form": form} for form in ("--", "- ", "", "blorfs")]
    skipped: Counter[str] = Counter()
    file = tmp_path / "words.jsonl"
    file.write_text("\n".join(json.dumps(entry(word, "noun", SENSE, forms=forms)) for word in words))
    assert list(read(file, skipped)) == [
        DictionarySense("wkt:blorf:0:0-n", "blorf", "a small device used for cooking fish", ("blorfs",))
    ]
    assert skipped == {"no word": 3}


@pytest.mark.parametrize("name", ["forms", "synonyms", "tags", "form_of", "word", "senses"])
def test_null_is_nothing(tmp_path: Path, name: str) -> None:
    """A line whose word or senses are null is left out; what else may be null is empty."""
    file = tmp_path / "words.jsonl"
    file.write_text(json.dumps({**entry("blorf", "noun", {**SENSE, name: None}), name: None}))
    kept = [] if name in ("word", "senses") else ["a small device used for cooking fish"]
    assert [sense.definition for sense in read(file)] == kept


@pytest.mark.parametrize(
    "broken",
    [
        {"forms": [None]},
        {"forms": [{"form": 3}]},
        {"senses": ["a small device used for cooking fish"]},
        {"senses": [{"glosses": [None]}]},
        {"senses": [{**SENSE, "tags": [{}]}]},
        {"synonyms": [{"word": ["x"]}]},
        {"synonyms": {"word": "x"}},
        {"pos": ["noun"]},
        {"word": 7},
        {"word": "blo\ud83drf"},
        {"senses": [{"glosses": ["a small \ud83d device used for cooking fish"]}]},
        {"synonyms": [{"word": "fo\ud83do"}]},
        {"forms": [{"form": "fo\ude00os"}]},
    ],
)
def test_a_line_of_another_shape_is_counted_and_passed_over(tmp_path: Path, broken: dict[str, Any]) -> None:
    """So is half a surrogate pair, which no file can hold; a whole one is a character."""
    skipped: Counter[str] = Counter()
    whole = entry("blorf", "noun", SENSE)
    file = tmp_path / "words.jsonl"
    file.write_text("\n".join(map(json.dumps, ({**whole, **broken}, {**whole, "word": "\U0001f41f"}))))
    assert [sense.term for sense in read(file, skipped)] == ["\U0001f41f"]
    assert skipped == {"broken line": 1}


def test_a_cut_file_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "cut.jsonl.gz"
    file.write_bytes(gzip.compress(json.dumps(LINES[0]).encode() * 50)[:-20])
    with pytest.raises(CorpusError, match="cannot be read"):
        list(read(file))


def test_where_it_is_looked_for(extract: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SEMRAY_WIKTEXTRACT", raising=False)
    with pytest.raises(CorpusError, match="not set, nor"):
        locate()
    with pytest.raises(CorpusError, match=r"data\.wiktextract = '/nowhere'"):
        locate("/nowhere")
    monkeypatch.setenv("SEMRAY_WIKTEXTRACT", str(extract))
    assert locate() == extract


@pytest.mark.parametrize(
    ("definition", "enough"),
    [
        ("a deep vessel", True),
        ("a vessel", False),
        (" ".join(["word"] * 60), True),
        (" ".join(["word"] * 61), False),
        ("(of jugs) deep and wide", False),
        ("from the ??? a jug", False),
        ("See the other jug", False),
        ("Seeds of some plant", True),
    ],
)
def test_what_says_enough(definition: str, enough: bool) -> None:
    assert says_enough(definition) == enough
