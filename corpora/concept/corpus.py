"""The concept family's corpus: what a study may ask for, its fingerprint, and loading it from the cache.

    corpus = load(ConceptData(n_id=2000))
    left, right = corpus.texts[corpus.t2d.left[0]], corpus.texts[corpus.t2d.right[0]]

Built once (under a minute), then mapped from the cache in under a second.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from corpora.concept.build import build_concept
from corpora.concept.tables import read_corpus, write_corpus
from corpora.sources.wordnet import read
from corpora.sources.wordnet_files import locate
from corpora.store.cache import entry, key_of
from corpora.store.errors import CorpusError
from corpora.store.records import ConceptCorpus

# Part of every fingerprint: raise it whenever the same sources and settings would give other rows.
BUILDER = 1
LEXICONS = ("wordnet",)
EVALUATED = ("test_concepts", "stress_concepts")  # fields that choose test rows alone


@dataclass(frozen=True, kw_only=True)
class ConceptData:
    """The `data:` block of a concept study. CorpusError names a field whose value is not accepted.

    wordnet: folder or zip of WordNet 3.0; None looks where it is usually kept. n_hh, n_id, n_dev: concepts held
    out as head-holdout, in-domain test and dev. test_concepts, stress_concepts: evaluate on the first so many
    concepts of the in-domain test, stress-test the first so many of each split; None for all.
    mask_scope: take every lemma of the synset out of a training definition, or only the row's own term (pools
    always use the synset). mask_token: put this in place of a deleted term. mask_derivations: also mask
    derivationally related words. The last four belong to the hard negatives (corpora.concept.negatives).
    """

    lexicons: tuple[str, ...] = ("wordnet",)
    wordnet: str | None = None
    split: Literal["in-domain"] = "in-domain"
    split_seed: int = 0
    n_hh: int = 2000
    n_id: int = 2000
    n_dev: int = 1000
    test_concepts: int | None = None
    stress_concepts: int | None = None
    mask_scope: Literal["synset", "term"] = "synset"
    mask_token: str | None = None
    mask_derivations: bool = False
    negatives_seed: int = 0
    antonym_fallback: Literal["none", "random_same_pos"] = "none"
    prefix_fallback: Literal["initial3", "none"] = "initial3"
    type_mode: Literal["replace", "edit"] = "replace"

    def __post_init__(self) -> None:
        for name, accepted in CHOICES.items():
            if getattr(self, name) not in accepted:
                raise CorpusError(f"data.{name} = {getattr(self, name)!r}\n  accepted: {', '.join(accepted)}")
        if not self.lexicons or set(self.lexicons) - set(LEXICONS):
            raise CorpusError(f"data.lexicons = {list(self.lexicons)!r}\n  accepted: {', '.join(LEXICONS)}")
        for name in ("n_hh", "n_id", "n_dev", "test_concepts", "stress_concepts"):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise CorpusError(f"data.{name} = {value!r}\n  accepted: a whole number of 0 or more")


CHOICES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "split": ("in-domain",),
        "mask_scope": ("synset", "term"),
        "antonym_fallback": ("none", "random_same_pos"),
        "prefix_fallback": ("initial3", "none"),
        "type_mode": ("replace", "edit"),
    }
)


def fingerprint(data: ConceptData) -> str:
    """Names the rows to train on: sha256 of the source files' digests, the settings and the builder's version.

    Reads the sources (about 0.1 s) and builds nothing. Where the files lie does not matter, what they hold does.
    """
    return _named({name: value for name, value in _settings(data).items() if name not in EVALUATED}, data)


def fingerprint_of_all(data: ConceptData) -> str:
    """Names training rows and test rows together: the name of the built corpus in the cache."""
    return _named(_settings(data), data)


def load(data: ConceptData) -> ConceptCorpus:
    """The corpus, from the cache; built first when it is not there. CorpusError when the sources are at fault."""

    def build(folder: Path) -> None:
        write_corpus(folder, build_concept(data, read(locate(data.wordnet))))

    folder, digests = entry("concept", fingerprint_of_all(data), build)
    return read_corpus(folder, fingerprint(data), digests)


def _settings(data: ConceptData) -> dict[str, Any]:
    return {field.name: getattr(data, field.name) for field in fields(data) if field.name != "wordnet"}


def _named(settings: Mapping[str, Any], data: ConceptData) -> str:
    return key_of({"builder": BUILDER, "sources": locate(data.wordnet).digests(), "settings": settings})
