"""The cale family's corpus: what a study may ask for, its fingerprint, and loading it from the cache.

    corpus = load(CaleData())
    corpus.occurrences[corpus.pairs["train"].anchor[0]]

SPCD is built once (well under a minute) and then mapped from the cache.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from corpora.cale import spcd_published
from corpora.cale.build import from_published, from_semcor
from corpora.cale.records import CATEGORIES, CaleCorpus, Occurrences, Pairs
from corpora.cale.spcd import rules_of
from corpora.cale.tables import Spcd, read_spcd, write_spcd
from corpora.sources import semcor_files, wordnet_files
from corpora.sources.texts import keyed_sha256
from corpora.sources.wordnet import read as read_wordnet
from corpora.store.cache import entry, key_of
from corpora.store.errors import CorpusError

# Part of every fingerprint: raise it whenever the same sources and settings would give other rows or files.
BUILDER = 2


@dataclass(frozen=True, kw_only=True)
class CaleData:
    """The `data:` block of a cale study. CorpusError names a field whose value is not accepted.

    semcor, wordnet: folder or archive; None looks where they are usually kept. spcd: the published pairs instead,
    by hub name or folder; the rules of the build are then left unused. path: a folder to look in first for the
    sets that tasks are measured on (dwug_<language>, cosimlex, wic, …).
    seed: of splits and partners, never that of a training run. length_unit, min_len, max_len: length of a sentence
    in annotated words or in tokens. multi_sense: a word with several senses counts with its first, or is dropped.
    min_count: occurrences a lemma must have with one part of speech. val, test: share of lemmas, and of concepts,
    held out. partner_pool: val and test anchors may take partners from train (one_sided) or not (strict).
    train_pairs, val_pairs, test_pairs: a fixed sample of so many pairs; None for all. threshold_pairs: how many
    train pairs help choose the decision threshold; None for all.
    """

    semcor: str | None = None
    wordnet: str | None = None
    spcd: str | None = None
    path: str | None = None
    seed: int = 42
    length_unit: Literal["annotated", "tokens"] = "annotated"
    min_len: int = 10
    max_len: int = 100
    multi_sense: Literal["first", "drop"] = "first"
    min_count: int = 10
    partner_pool: Literal["one_sided", "strict"] = "one_sided"
    val: float = 0.05
    test: float = 0.10
    train_pairs: int | None = None
    val_pairs: int | None = None
    test_pairs: int | None = None
    threshold_pairs: int | None = 20_000

    def __post_init__(self) -> None:
        for name, accepted in CHOICES.items():
            value = getattr(self, name)
            if value not in accepted:
                raise CorpusError(f"data.{name} = {value!r}\n  accepted: {', '.join(accepted)}")
        for name in ("min_len", "max_len", "min_count", *SIZES):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise CorpusError(f"data.{name} = {value!r}\n  accepted: a whole number of 1 or more")
        if self.min_len > self.max_len:
            raise CorpusError(f"data.min_len = {self.min_len!r}\n  accepted: at most max_len, {self.max_len}")
        for name in ("val", "test"):
            if not 0 < getattr(self, name) < 1 - (self.val if name == "test" else 0):
                raise CorpusError(
                    f"data.{name} = {getattr(self, name)!r}\n  accepted: shares that leave some to train"
                )


SIZES = ("train_pairs", "val_pairs", "test_pairs", "threshold_pairs")
CHOICES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "length_unit": ("annotated", "tokens"),
        "multi_sense": ("first", "drop"),
        "partner_pool": ("one_sided", "strict"),
    }
)


def fingerprint(data: CaleData) -> str:
    """Names what is trained on: sha256 of what the sources hold, the settings and the builder's version.

    Reads the sources (about a second) and builds nothing. Where they lie does not matter, what they hold does.
    """
    return key_of({"spcd": _spcd(data)[0], "train_pairs": data.train_pairs})


def fingerprint_of_test(data: CaleData) -> str:
    """Names the pairs to evaluate on, and those that choose the decision threshold."""
    return key_of({"spcd": _spcd(data)[0], "sizes": {name: getattr(data, name) for name in SIZES}})


def former_fingerprint(data: CaleData) -> str:
    """The one name of all rows in ledgers of before scores had entries of their own, without sets of others."""
    none = hashlib.sha256(repr({"lscd": {}, "cosimlex": {}, "wic": {}}).encode()).hexdigest()
    sizes = {name: getattr(data, name) for name in SIZES}
    return key_of({"spcd": _spcd(data)[0], "sizes": sizes, "evaluation": none})


def load(data: CaleData) -> CaleCorpus:
    """The corpus, SPCD from the cache; built first when it is not there. CorpusError when a source is at fault."""
    key, build = _spcd(data)
    folder, _ = entry("cale", key, lambda folder: write_spcd(folder, build()))
    spcd = read_spcd(folder)
    pairs, wu_palmer = dict(spcd.pairs), spcd.wu_palmer
    for split, size in (("train", data.train_pairs), ("val", data.val_pairs), ("test", data.test_pairs)):
        if size is not None:
            rows = sample(spcd.occurrences, pairs[split], size)
            pairs[split] = pairs[split].take(rows)
            wu_palmer = wu_palmer[rows] if split == "test" else wu_palmer
    return CaleCorpus(
        occurrences=spcd.occurrences,
        pairs=pairs,
        wu_palmer=wu_palmer,
        threshold=sample(spcd.occurrences, pairs["train"], data.threshold_pairs),
        fingerprint=key_of({"spcd": key, "train_pairs": data.train_pairs}),
        digests=spcd.digests,
    )


def sample(occurrences: Occurrences, pairs: Pairs, size: int | None) -> np.ndarray:
    """Rows of `size` pairs, ascending: those with the smallest hash of ids and category; None for all.

    The same pairs whatever the run's seed, and a smaller sample is part of a larger one.
    """
    if size is None or size >= len(pairs):
        return np.arange(len(pairs))
    anchors, partners = (
        occurrences.ids.take(pa.array(side)).to_pylist() for side in (pairs.anchor, pairs.partner)
    )
    names = zip(anchors, partners, pairs.category.tolist(), strict=True)
    keys = np.array([keyed_sha256("sample", a, b, CATEGORIES[category]) for a, b, category in names], np.uint64)
    return np.sort(np.argsort(keys, kind="stable")[:size])


def _spcd(data: CaleData) -> tuple[str, Callable[[], Spcd]]:
    """What SPCD is made of, as a key, and how it is made."""
    wordnet = wordnet_files.locate(data.wordnet)
    content: dict[str, Any] = {"builder": BUILDER, "wordnet": wordnet.digests()}
    if data.spcd is not None:
        published = spcd_published.read(data.spcd)
        content |= {"published": spcd_published.digest_of(published), "repeats": "left out"}
        return key_of(content), lambda: from_published(published, read_wordnet(wordnet))
    semcor = semcor_files.locate(data.semcor)
    content |= {"semcor": semcor.digests(), "rules": rules_of(data)}
    return key_of(content), lambda: from_semcor(data, semcor, read_wordnet(wordnet))
