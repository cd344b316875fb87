"""Reads GCIDE, the Collaborative International Dictionary of English, in Debian's package for dictd.

    for entry in read(locate()): print(entry.head, entry.senses)

An entry begins in column 0 with `Head \\Pron\\`; its body is indented, its senses are numbered, quotations are
paragraphs of their own.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from corpora.sources.dictionary import DictionarySense, Word, says_enough
from corpora.sources.texts import norm
from corpora.store.errors import CorpusError
from corpora.store.places import named_file

VARIABLE = "SEMRAY_GCIDE"
FILE = "gcide.dict.dz"
DEBIAN = Path("/usr/share/dictd")
MENDING = (
    "apt-get download dict-gcide && dpkg -x dict-gcide_*.deb gcide (installing it would start a server),\n"
    f"    then: export {VARIABLE}=$PWD/gcide/usr/share/dictd"
)
ACCEPTED = f"GCIDE as Debian packs it: {MENDING}"
_HEAD = re.compile(r"(?P<head>\S[^\\]*?) \\(?P<said>[^\\]*)\\")
_BRACKET = re.compile(r"\[[^\[\]]*\]")
_SENSE = re.compile(r"^ {1,6}\d+\.[ \n]", re.M)
_REMARK = re.compile(r"^\s*(?:Syn|Note|Usage):", re.M)
_BLANK = re.compile(r"\n[ \t]*\n")
_SAID = r"""\([^()]*["`*][^()]*\)"""  # pronunciation that wrapped into the next line
_MARK = (
    r"\((?:[A-Z][^()]*|[a-z])\)|(?:pl|sing|n|a|adj|adv|v\. t|v\. i|v|prep|conj|interj|prop|imp|p\. p)\.(?=[ ,])"
)
_LABEL = re.compile(rf"(?:{_SAID}|{_MARK})[ ,:.]*")
# What follows a definition: its author, the headword's other forms, a second sense under the same number.
_AFTER = re.compile(r"""\s--\s?[A-Z]|\s--\s(?:n|a|v)\.\s|\s\(b\)\s|\s"[A-Z]""")
_POS = re.compile(r"\b(?P<n>n)\.|\b(?P<v>v)\.|\b(?P<r>adv)\.|\b(?P<a>a(?:dj)?)\.")
_PROPER = re.compile(r"\bprop(?:er)?\. ?(?:n|a|adj)\.")
_FURTHER = re.compile(r"\s\([b-z]\)\s")  # a second sense under the same number, and those after it
_EXAMPLES = re.compile(r"; as, |; -- |\. (?:See|Cf\.|Compare)\b")  # and pointers to other entries
LEAST_WORDS = 2


@dataclass(frozen=True, slots=True)
class GcideEntry:
    """A headword with its definitions. pos is n, v, a, r, or empty where the header names none.

    head is in lower case unless the entry is marked as a proper noun: GCIDE begins every headword with a capital.
    from_wordnet: the entry, or a part of it, was taken from WordNet. counted: the entry's number of senses in
    the dictionary, with those not kept here: single words, and all but the first under one number.
    """

    head: str
    pos: str
    senses: tuple[str, ...]
    from_wordnet: bool
    counted: int


def locate(path: str | None = None) -> Path:
    """gcide.dict.dz at `path` or in that folder, else at $SEMRAY_GCIDE, else where Debian puts it.

    If a named place lacks the file, no other is used. CorpusError names the places and how to get the file.
    """
    if place := named_file(path, setting="data.gcide", variable=VARIABLE, file=FILE, mending=MENDING):
        return place
    if not (DEBIAN / FILE).is_file():
        raise CorpusError(
            f"corpora: GCIDE not found; looked at\n    data.gcide: not set\n    ${VARIABLE}: not set\n"
            f"    {DEBIAN / FILE}\n  to get it: {MENDING}"
        )
    return DEBIAN / FILE


def read(place: Path) -> Iterator[GcideEntry]:
    """Every entry that has a definition, in its order. CorpusError when the file is cut or changed."""
    return (entry for entry in _entries(place) if entry.senses)


def _entries(place: Path) -> Iterator[GcideEntry]:
    try:
        with gzip.open(place, "rt", encoding="cp1252", errors="replace") as file:
            text = file.read()
    except (OSError, EOFError, zlib.error) as error:
        raise CorpusError(f"corpora: GCIDE at {place} cannot be read: {error}") from error
    held: list[str] = []
    for line in text.split("\n"):
        if line[:1].strip() and held:
            yield from _entry(held)
            held = []
        if held or _HEAD.match(line):
            held.append(line)
    if held:
        yield from _entry(held)


def senses(
    place: Path, skipped: Counter[str] | None = None, counts: Counter[Word] | None = None
) -> Iterator[DictionarySense]:
    """Every usable definition, of entries without text from WordNet.

    8,317 senses of GCIDE are WordNet's, a quarter of them word for word: pairs across the two dictionaries would
    be copies. Entries without a part of speech are left out. skipped: gets reason -> number left out. counts: gets
    the number of senses of every word, including those left out.
    """
    reasons: Counter[str] = Counter() if skipped is None else skipped
    numbers = count()
    for entry in _entries(place):
        number = next(numbers) if entry.senses else None
        if counts is not None:
            counts["gcide", norm(entry.head), entry.pos] += entry.counted
        if entry.from_wordnet or not entry.pos:
            reasons["from WordNet" if entry.from_wordnet else "no part of speech"] += len(entry.senses)
            continue
        for index, definition in enumerate(entry.senses):
            text = _EXAMPLES.split(definition, maxsplit=1)[0].rstrip(".;, ")
            if says_enough(text):
                yield DictionarySense(f"gcide:{number}:{index}-{entry.pos}", entry.head, text)
            else:
                reasons["no usable definition"] += 1


def _entry(lines: list[str]) -> Iterator[GcideEntry]:
    """The entry of these lines, the first of which is its header, if it has a sense."""
    match = _HEAD.match(lines[0])
    assert match is not None
    whole = "\n".join([lines[0][match.end() :], *lines[1:]])
    from_wordnet = any("WordNet" in mark for mark in _BRACKET.findall(whole))
    header, _, body = _without_brackets(whole).partition("\n")
    body = re.sub(r"[{}]", "", body)
    parts = _SENSE.split(body)
    senses = [(definition_of(part), part) for part in (parts[1:] or parts)]
    kept = tuple(dict.fromkeys(sense for sense, _ in senses if len(sense.split()) >= LEAST_WORDS))
    counted = sum(1 + len(_FURTHER.findall(part)) for sense, part in senses if sense)
    if counted:
        head, pos = match["head"].strip(), _POS.search(header)
        proper = _PROPER.search(header)
        yield GcideEntry(
            head if proper else head.lower(),
            (pos and pos.lastgroup) or "",
            kept,
            from_wordnet=from_wordnet,
            counted=counted,
        )


def _without_brackets(text: str) -> str:
    """The text without brackets, also nested: provenance, etymology, usage ([Obs.]) and pronunciation ([=a])."""
    before = None
    while before != text:
        before, text = text, _BRACKET.sub("", text)
    return text


def definition_of(sense: str) -> str:
    """The definition of a sense: its first paragraph, before a quotation, its author, a remark or a second sense.

    Marks of a field or part of speech at its beginning are left out.
    """
    text = _BLANK.split(_REMARK.split(sense, maxsplit=1)[0].strip(), maxsplit=1)[0]
    text = _AFTER.split(" ".join(text.split()), maxsplit=1)[0]
    while label := _LABEL.match(text):
        text = text[label.end() :]
    return text.strip()
