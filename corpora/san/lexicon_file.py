"""A lexicon in a file: a word, a tab and its part of speech in every line.

    resolve = by_file(Path("tags.tsv"), otherwise)

`paste vocab.txt tags.txt` makes one of a vocabulary and a table with one tag a line, which is the form of SAN's
authors. Pieces may keep `##` and `Ġ`: a piece that begins no word is X, whatever its line says.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from corpora.san.importance import CODE
from corpora.san.lexicon import Resolve
from corpora.store.errors import CorpusError

ACCEPTED = f"lines of word, tab and one of {', '.join(CODE)}"


def by_file(path: Path, otherwise: Resolve) -> Resolve:
    """A function that tags lower-case words by the file, else by `otherwise`. CorpusError names a bad line.

    Of lines that differ only in case, the one in lower case counts, else the first.
    """
    tags: dict[str, str] = {}
    small: set[str] = set()
    text = _content(path).decode("utf-8-sig", "replace").removesuffix("\n")
    lines = text.split("\n") if text else []  # `splitlines` cuts at U+2028, which is an entry
    for number, line in enumerate(lines, start=1):
        entry, _, tag = line.removesuffix("\r").partition("\t")
        if tag not in CODE:
            raise CorpusError(f"corpora: lexicon {path}:{number}: {line!r}\n  accepted: {ACCEPTED}")
        word = entry.removeprefix("Ġ")
        if word.islower() and word not in small:
            small.add(word)
            tags[word] = tag
        else:
            tags.setdefault(word.lower(), tag)
    return lambda word: tags.get(word) or otherwise(word)


def digest_of(path: Path) -> str:
    """sha256 of the file. CorpusError when it cannot be read."""
    return hashlib.sha256(_content(path)).hexdigest()


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise CorpusError(
            f"corpora: lexicon {path} cannot be read: {error.strerror or error}\n"
            f"  accepted: auto, spacy, or a file: {ACCEPTED}"
        ) from error
