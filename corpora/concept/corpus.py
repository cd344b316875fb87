"""The concept family's corpus: its fingerprint, and loading it from the cache.

    corpus = load(ConceptData(n_id=2000))
    left, right = corpus.texts[corpus.t2d.left[0]], corpus.texts[corpus.t2d.right[0]]

Built once (under a minute), then mapped from the cache in under a second.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from corpora.concept.build import build_concept
from corpora.concept.data import ADDED, EVALUATED, PLACES, ConceptData
from corpora.concept.records import ConceptCorpus
from corpora.concept.tables import read_corpus, write_corpus
from corpora.sources import dbpedia, gcide, wiktextract
from corpora.sources.wordnet import read
from corpora.sources.wordnet_files import locate
from corpora.store.cache import digest_of, entry, key_of

# Part of every fingerprint: raise it whenever the same sources and settings would give other rows.
BUILDER = 1
COUNTED = "by every sense of a dictionary"  # in fingerprints, as old corpora counted only the senses kept


def fingerprint(data: ConceptData) -> str:
    """A hash of the training rows: the sources' digests, the settings and the builder's version.

    Reads the sources and builds nothing. Their places do not matter, only their content.
    """
    return _named({name: value for name, value in _settings(data).items() if name not in EVALUATED}, data)


def fingerprint_of_all(data: ConceptData) -> str:
    """A hash of training and test rows together, which names the built corpus in the cache."""
    return _named(_settings(data), data)


def load(data: ConceptData) -> ConceptCorpus:
    """The corpus from the cache, built if missing. CorpusError for a bad source."""

    def build(folder: Path) -> None:
        write_corpus(folder, build_concept(data, read(locate(data.wordnet))))

    folder, digests = entry("concept", fingerprint_of_all(data), build)
    return read_corpus(folder, fingerprint(data), digests)


def _settings(data: ConceptData) -> dict[str, Any]:
    """The settings on which rows depend. With one source, those on pairs across sources are left out."""
    given = {field.name: getattr(data, field.name) for field in fields(data) if field.name not in PLACES}
    alone = data.crosses and data.d2d_monosemous
    given["d2d_monosemous"] = COUNTED if alone else ADDED["d2d_monosemous"]
    return {name: value for name, value in given.items() if name not in ADDED or value != ADDED[name]}


def _named(settings: Mapping[str, Any], data: ConceptData) -> str:
    sources: dict[str, Any] = dict(locate(data.wordnet).digests())
    if "gcide" in data.lexicons:
        sources["gcide"] = digest_of(gcide.locate(data.gcide))
    if "wiktextract" in data.lexicons:
        sources["wiktextract"] = digest_of(wiktextract.locate(data.wiktextract))
    if data.ontology == "dbpedia":
        sources["dbpedia"] = digest_of(dbpedia.locate(data.dbpedia))
    return key_of({"builder": BUILDER, "sources": sources, "settings": settings})
