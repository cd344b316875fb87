"""The cale family's corpus: its fingerprint, and loading it from the cache.

    corpus = load(CaleData())
    corpus.occurrences[corpus.pairs["train"].anchor[0]]

SPCD is built once (well under a minute) and then mapped from the cache.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from corpora.cale import spcd_published
from corpora.cale.build import from_published, from_semcor
from corpora.cale.data import SIZES, CaleData
from corpora.cale.records import CATEGORIES, CaleCorpus, OccurrencePairs, Occurrences
from corpora.cale.spcd import rules_of, synset_id
from corpora.cale.tables import Spcd, read_spcd, write_spcd
from corpora.sources import semcor_files, wordnet_files
from corpora.sources.lin import Lin
from corpora.sources.texts import keyed_sha256
from corpora.sources.wordnet import read as read_wordnet
from corpora.store.cache import entry, key_of

# Part of every fingerprint: raise it whenever the same sources and settings would give other rows or files.
BUILDER = 2


def fingerprint(data: CaleData) -> str:
    """A hash of the training data: the sources' content, the settings and the builder's version.

    Reads the sources (about a second) and builds nothing. Their places do not matter, only their content.
    """
    return key_of({"spcd": _spcd(data)[0], "train_pairs": data.train_pairs, **_held(data)})


def fingerprint_of_test(data: CaleData) -> str:
    """A hash of the pairs to evaluate on, and of those that choose the decision threshold."""
    sizes = {name: getattr(data, name) for name in SIZES}
    return key_of({"spcd": _spcd(data)[0], "sizes": sizes, **_held(data)})


def former_fingerprint(data: CaleData) -> str:
    """The fingerprint of all rows in old ledgers, which had no separate entries for scores."""
    none = hashlib.sha256(repr({"lscd": {}, "cosimlex": {}, "wic": {}}).encode()).hexdigest()
    sizes = {name: getattr(data, name) for name in SIZES}
    return key_of({"spcd": _spcd(data)[0], "sizes": sizes, "evaluation": none})


def load(data: CaleData) -> CaleCorpus:
    """The corpus; SPCD comes from the cache, and is built if missing. CorpusError for a bad source."""
    key, build = _spcd(data)
    folder, _ = entry("cale", key, lambda folder: write_spcd(folder, build()))
    spcd = read_spcd(folder)
    pairs, wu_palmer = dict(spcd.pairs), spcd.wu_palmer
    if data.held_sentences:
        pairs["train"] = pairs["train"].take(~_either(pairs["train"], _in_held_sentence(spcd.occurrences, data)))
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
        unseen=_unseen(spcd.occurrences, pairs),
        fingerprint=key_of({"spcd": key, "train_pairs": data.train_pairs, **_held(data)}),
        digests=spcd.digests,
    )


def lin_of(corpus: CaleCorpus, data: CaleData) -> np.ndarray:
    """Lin's similarity of the concepts of each test pair; nan unless both are nouns or verbs. (N_test,)."""
    similarity = Lin(read_wordnet(wordnet_files.locate(data.wordnet)))
    synsets, pairs = list(map(synset_id, corpus.occurrences.concepts)), corpus.pairs["test"]
    sides = zip(
        *(corpus.occurrences.concept[side].tolist() for side in (pairs.anchor, pairs.partner)), strict=True
    )
    return np.array([similarity(synsets[a], synsets[b]) for a, b in sides], np.float64)


def sample(occurrences: Occurrences, pairs: OccurrencePairs, size: int | None) -> np.ndarray:
    """Rows of `size` pairs, ascending: those with the smallest hash of ids and category; None for all.

    The pairs do not depend on the run's seed, and a smaller sample is part of a larger one.
    """
    if size is None or size >= len(pairs):
        return np.arange(len(pairs))
    anchors, partners = (
        occurrences.ids.take(pa.array(side)).to_pylist() for side in (pairs.anchor, pairs.partner)
    )
    names = zip(anchors, partners, pairs.category.tolist(), strict=True)
    keys = np.array([keyed_sha256("sample", a, b, CATEGORIES[category]) for a, b, category in names], np.uint64)
    return np.sort(np.argsort(keys, kind="stable")[:size])


def _in_held_sentence(occurrences: Occurrences, data: CaleData) -> np.ndarray:
    """Whether each occurrence is in a sentence held out from training. (N,) bool."""
    keys = [keyed_sha256(data.seed, "sentence", text) for text in occurrences.sentences]
    return (np.array(keys, np.uint64) / 2.0**64 < data.held_sentences)[occurrences.sentence]


def _unseen(occurrences: Occurrences, pairs: Mapping[str, OccurrencePairs]) -> np.ndarray:
    """Rows of the test pairs whose two sentences are in no train pair. (K,)."""
    train, sentence = pairs["train"], occurrences.sentence
    seen = np.isin(sentence, sentence[np.concatenate([train.anchor, train.partner])])
    return np.flatnonzero(~_either(pairs["test"], seen))


def _either(pairs: OccurrencePairs, marked: np.ndarray) -> np.ndarray:
    """Whether one side of each pair is marked. marked (N occurrences,) bool -> (N pairs,) bool."""
    return marked[pairs.anchor] | marked[pairs.partner]


def _held(data: CaleData) -> dict[str, Any]:
    """The settings that choose held-out sentences; empty without any, as in old ledgers."""
    return {"held": [data.seed, data.held_sentences]} if data.held_sentences else {}


def _spcd(data: CaleData) -> tuple[str, Callable[[], Spcd]]:
    """The cache key of SPCD, and the function that builds it."""
    wordnet = wordnet_files.locate(data.wordnet)
    content: dict[str, Any] = {"builder": BUILDER, "wordnet": wordnet.digests()}
    if data.spcd is not None:
        published = spcd_published.read(data.spcd)
        content |= {"published": spcd_published.fingerprint(published), "repeats": "left out"}
        return key_of(content), lambda: from_published(published, read_wordnet(wordnet))
    semcor = semcor_files.locate(data.semcor)
    content |= {"semcor": semcor.digests(), "rules": rules_of(data)}
    return key_of(content), lambda: from_semcor(data, semcor, read_wordnet(wordnet))
