"""Wiktionary as the wiktextract project publishes it: one JSON object a line, gzip or plain, read as a stream.

    skipped = Counter()
    for sense in read(locate("raw-wiktextract-data.jsonl.gz"), skipped): print(sense.term, sense.definition)

The extract has all languages and is far larger than memory, so only the current line is kept.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO, TypeVar

from corpora.sources.dictionary import DictionarySense, Word, says_enough
from corpora.sources.texts import norm, word_set
from corpora.store.errors import CorpusError
from corpora.store.places import named_path

VARIABLE = "SEMRAY_WIKTEXTRACT"
ACCEPTED = "an extract of English Wiktionary as JSON lines (.jsonl or .jsonl.gz), from the wiktextract project"
POS = {"noun": "n", "name": "n", "verb": "v", "adj": "a", "adv": "r"}
NOT_A_SENSE = word_set("form-of alt-of misspelling")  # of another word's entry, or of none
NOT_A_FORM = word_set("table-tags inflection-template class romanization")  # of a table, not of the word
LONGEST_SYNONYM = 5  # words
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")  # one half of a character, as JSON may write it
Kind = TypeVar("Kind")


def locate(path: str | None = None) -> Path:
    """The extract at `path`, else at $SEMRAY_WIKTEXTRACT. CorpusError names the places and how to get it."""
    named, origin = (path, "data.wiktextract") if path else (os.environ.get(VARIABLE), f"${VARIABLE}")
    if not named:
        raise CorpusError(f"corpora: data.wiktextract is not set, nor ${VARIABLE}\n  accepted: {ACCEPTED}")
    place = named_path(named)
    if not place.is_file():
        raise CorpusError(f"corpora: {origin} = {named!r} is no file\n  accepted: {ACCEPTED}")
    return place


def read(
    place: Path, skipped: Counter[str] | None = None, counts: Counter[Word] | None = None
) -> Iterator[DictionarySense]:
    """Every English sense with a definition of its own, in the order of the file.

    skipped: gets reason -> number left out. counts: gets the number of senses of every word, also of those without
    a usable gloss, but not of forms of other words. CorpusError if the file is cut; a line that is no JSON object,
    or is not in the extract's form, is counted and skipped.
    """
    reasons: Counter[str] = Counter() if skipped is None else skipped
    try:
        with _opened(place) as lines:
            for line in lines:
                yield from _senses_in(line, reasons, counts)
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise CorpusError(f"corpora: the extract at {place} cannot be read: {error}") from error


def _opened(place: Path) -> TextIO:
    return gzip.open(place, "rt", encoding="utf-8") if place.suffix == ".gz" else place.open(encoding="utf-8")


def _senses_in(line: str, skipped: Counter[str], counts: Counter[Word] | None) -> list[DictionarySense]:
    """The senses of a line: all, or none if any part of it is broken."""
    try:
        entry = json.loads(line)
        if not _is_wanted(entry, skipped):
            return []
        if _SURROGATE.search(line):
            json.dumps(entry, ensure_ascii=False).encode()  # half of a surrogate pair cannot be stored
        return [*_senses(entry, skipped, counts)]
    except (ValueError, RecursionError):
        skipped["broken line"] += 1
        return []


def _is_wanted(entry: Any, skipped: Counter[str]) -> bool:
    """Whether this is the entry of an English noun, verb, adjective or adverb. ValueError for no entry at all."""
    if not isinstance(entry, dict):
        raise ValueError("no object")
    if "pos" not in entry:
        skipped["redirect"] += 1
    elif entry.get("lang_code") != "en":
        skipped["other language"] += 1
    elif _text(entry, "pos") not in POS:
        skipped["other part of speech"] += 1
    elif not norm(_text(entry, "word")):
        skipped["no word"] += 1  # hyphens alone
    elif not entry.get("senses"):
        skipped["no senses"] += 1
    else:
        return True
    return False


def _senses(
    entry: Mapping[str, Any], skipped: Counter[str], counts: Counter[Word] | None
) -> Iterator[DictionarySense]:
    word, pos = entry["word"], POS[entry["pos"]]
    written = ((_text(form, "form"), _list(form, "tags", str)) for form in _list(entry, "forms", dict))
    forms = tuple(
        dict.fromkeys(
            form for form, tags in written if len(form) > 1 and norm(form) and NOT_A_FORM.isdisjoint(tags)
        )
    )
    for index, sense in enumerate(_list(entry, "senses", dict)):
        # Nested glosses come outermost first: the last is the definition.
        *_, gloss = ("", *_list(sense, "glosses", str))
        tags = _list(sense, "tags", str)
        if sense.get("form_of") or sense.get("alt_of") or not NOT_A_SENSE.isdisjoint(tags):
            skipped["form of another word"] += 1
            continue
        if counts is not None:
            counts["wkt", norm(word), pos] += 1
        if not says_enough(gloss):
            skipped["no usable gloss"] += 1
        else:
            yield DictionarySense(
                f"wkt:{word}:{entry.get('etymology_number', 0)}:{index}-{pos}",
                word,
                gloss.rstrip(". "),
                forms,
                _synonyms(word, _listed(entry, sense)),
            )


def _listed(entry: Mapping[str, Any], sense: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The items listed with the sense, and those of the entry's list that belong to it: all if the entry has one
    sense, else those that name its gloss."""
    alone, glosses = len(entry["senses"]) == 1, _list(sense, "glosses", str)
    of_entry = (one for one in _list(entry, "synonyms", dict) if alone or one.get("sense") in glosses)
    return [*_list(sense, "synonyms", dict), *of_entry]


def _synonyms(word: str, listed: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Words of at most five words, none the word itself, each surface once."""
    found: dict[str, str] = {}
    for one in listed:
        synonym = _text(one, "word")
        surface = norm(synonym)
        if surface and surface != norm(word) and len(surface.split()) <= LONGEST_SYNONYM:
            found.setdefault(surface, synonym)
    return tuple(found.values())


def _text(record: Mapping[str, Any], name: str) -> str:
    """A field's text; "" if missing. ValueError for another type."""
    value = record.get(name)
    if not isinstance(value, str | None):
        raise ValueError(name)
    return value or ""


def _list(record: Mapping[str, Any], name: str, kind: type[Kind]) -> list[Kind]:
    """A field's list of one type; empty if missing. ValueError for another type."""
    value = record.get(name) or []
    if not isinstance(value, list) or not all(isinstance(one, kind) for one in value):
        raise ValueError(name)
    return value
