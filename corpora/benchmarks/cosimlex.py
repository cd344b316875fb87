"""CoSimLex: how similar two words are in each of two contexts that hold them both.

    pairs = read("en", path="data")     # data/cosimlex/cosimlex_en.tsv

Both words stand marked `<strong>...</strong>` and inflected in each context.
"""

from __future__ import annotations

import logging
import re

from corpora.benchmarks.records import SimilarityPair
from corpora.sources.occurrences import Occurrence
from corpora.store.errors import CorpusError
from corpora.store.places import found, number_in, tab_separated

log = logging.getLogger(__name__)
LANGUAGES = ("en", "fi", "hr", "sl")
COLUMNS = ("word1", "word2", "context1", "context2", "sim1", "sim2", "word1_context1", "word1_context2")
LARGEST = 10.0
_MARKED = re.compile(r"<strong>(.*?)</strong>")


def read(language: str, *, path: str | None) -> tuple[SimilarityPair, ...]:
    """The pairs of a language in file order. Rows whose two words cannot be told apart are left out and counted.

    The published files have no such row. CorpusError when the file is absent or a score odd.
    """
    name = f"cosimlex_{language}.tsv"
    file = found(
        f"CoSimLex ({language})",
        (name, f"cosimlex/{name}"),
        path=path,
        holds=f"cosimlex/{name}",
        source="https://www.clarin.si/repository/xmlui/handle/11356/1308",
    )
    pairs, skipped = [], 0
    for number, row in tab_separated(file, COLUMNS):
        first, second = _context(row, 1), _context(row, 2)
        if first and second:
            at = f"corpora: {file}, line {number}"
            sims = (number_in(row, column, LARGEST, at) for column in ("sim1", "sim2"))
            pairs.append(SimilarityPair(row["word1"], row["word2"], first, second, *sims))
        else:
            skipped += 1
    if skipped:
        log.warning("corpora: %s: %d rows skipped: their context does not mark two words", file, skipped)
    if not pairs:
        raise CorpusError(f"corpora: {file} has no usable row\n  accepted: contexts with two words in <strong>")
    return tuple(pairs)


def _context(row: dict[str, str], which: int) -> tuple[Occurrence, Occurrence] | None:
    """The context without its marks, once for word 1 and once for word 2; None when they cannot be told apart."""
    text, spans, read_to = "", [], 0
    written = row[f"context{which}"]
    for mark in _MARKED.finditer(written):
        text += written[read_to : mark.start()]
        spans.append((len(text), len(text) + len(mark[1])))
        text += mark[1]
        read_to = mark.end()
    text += written[read_to:]
    if len(spans) != 2:
        return None
    form = row[f"word1_context{which}"].strip().casefold()
    is_word1 = [text[start:end].strip().casefold() == form for start, end in spans]
    if is_word1[0] == is_word1[1]:
        return None
    word1, word2 = spans if is_word1[0] else reversed(spans)
    return Occurrence(text, *word1, row["word1"]), Occurrence(text, *word2, row["word2"])
