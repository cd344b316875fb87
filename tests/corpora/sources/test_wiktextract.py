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
