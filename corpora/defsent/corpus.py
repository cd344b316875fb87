"""The defsent family's corpus: its fingerprint, and loading it from the cache.

    corpus = load(DefsentData())
    corpus.rows["test"].words[0], corpus.rows["test"].definitions[0]

Built once (about 5 s for WordNet), then mapped from the cache.
"""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

from corpora.defsent import inferences, oxford
from corpora.defsent.build import build_rows
from corpora.defsent.data import SIZES, DefsentData
from corpora.defsent.records import DefsentCorpus, Questions
from corpora.defsent.tables import read_rows, words_of, write_rows
from corpora.sources import gcide, wordnet_files
from corpora.store.cache import digest_of, entry, key_of
from corpora.store.errors import CorpusError
from corpora.store.places import every_line, named_path

# Part of every fingerprint: raise it whenever the same sources and settings would give other rows.
BUILDER = 1
PLACES = ("wordnet", "gcide", "oxford", "path", "plain_text")  # places, whose content counts


def fingerprint(data: DefsentData) -> str:
    """A hash of the training data: the sources' content, the settings and the builder's version.

    Reads the sources and builds nothing. Their places do not matter, only their content.
    """
    return _fingerprint(data, _rows_key(data))


def asked_fingerprint(data: DefsentData, split: str) -> str:
    """A hash of what `questions` gives for the split."""
    apart = data.overlap == "drop_from_eval"
    return key_of(
        {"rows": _rows_key(data), "split": split, "apart": apart, "size": getattr(data, f"{split}_definitions")}
    )


def questions(data: DefsentData, split: str) -> Questions:
    """The first rows of dev or test, as many as the study asks for, each with the words that share its
    definition."""
    folder, _ = _built(data)
    rows = read_rows(folder, eval_only=data.overlap == "drop_from_eval")[split]
    size = getattr(data, f"{split}_definitions")
    if size is not None and size < len(rows):
        rows = rows.take(range(size))
    return Questions(rows, words_of(folder, rows))


def load(data: DefsentData) -> DefsentCorpus:
    """The corpus; its rows come from the cache, and are built if missing. CorpusError for a bad source."""
    folder, digests = _built(data)
    return DefsentCorpus(
        rows=read_rows(folder, eval_only=data.overlap == "drop_from_eval"),
        inferences=inferences.read(data.nli, data.path),
        plain_texts=_plain_texts(data.plain_text),
        text_overlap=data.overlap,
        fingerprint=fingerprint(data),
        digests=digests,
    )


def source_digests(data: DefsentData) -> dict[str, Any]:
    """sha256 of the files of each dictionary that the study names."""
    found: dict[str, Any] = {}
    if "wordnet" in data.sources:
        found["wordnet"] = wordnet_files.locate(data.wordnet).digests()
    if "gcide" in data.sources:
        found["gcide"] = digest_of(gcide.locate(data.gcide))
    if "oxford" in data.sources:
        folder = oxford.locate(data.oxford)
        found["oxford"] = {name: digest_of(folder / name) for name in oxford.FILES}
    return found


def _built(data: DefsentData) -> tuple[Path, dict[str, str]]:
    """The folder of the rows of every split."""
    return entry("defsent", _rows_key(data), lambda folder: write_rows(folder, build_rows(data)))


def _rows_key(data: DefsentData) -> str:
    settings = {
        field.name: getattr(data, field.name)
        for field in fields(data)
        if field.name not in (*PLACES, *SIZES, "text_overlap", "nli")  # which only loading uses
    }
    return key_of({"builder": BUILDER, "sources": source_digests(data), "settings": settings})


def _fingerprint(data: DefsentData, rows: str) -> str:
    plain = None if data.plain_text is None else digest_of(_plain_file(data.plain_text))
    nli = inferences.identity(data.nli, data.path)
    return key_of({"rows": rows, "text_overlap": data.overlap, "nli": nli, "plain": plain})


def _plain_file(path: str) -> Path:
    file = named_path(path)
    if not file.is_file():
        raise CorpusError(f"data.plain_text = {path!r}\n  accepted: a text file, one text a line")
    return file


def _plain_texts(path: str | None) -> tuple[str, ...]:
    if path is None:
        return ()
    return tuple(line.strip() for line in every_line(_plain_file(path)) if line.strip())
