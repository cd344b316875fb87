"""A cloze test filled by counts: the word that fits its neighbours best, of those of the same part of speech.

    cloze = Cloze.of(count(texts), resolve)
    score(w) = log p(w) + sum over k of  weight_k * [log P_k(w | neighbour_k) - log p(w)]
    P_k(w | n) = (count_k(n, w) + K p(w)) / (count_k(n) + K)

with neighbours one and two places to the left and right; a masked, absent or unknown neighbour is ignored.
Positions are filled from left to right, so a filled word is context for the next. This needs no network and no
training: it stands in for a masked language model where none is available.

count_k(n) is the same for every word, and a word never seen beside the neighbour gains nothing from it. So the
candidates are the words seen beside a neighbour, and the most frequent word of the same kind. Logarithms are whole
multiples of 2^-16, so that sums are exact on every machine.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa

from corpora.san.english_tokens import spans, tokens_of
from corpora.san.importance import CODE, POS, SPECIAL
from corpora.san.lexicon import Resolve, tags_of
from corpora.san.mask_predict import UNKNOWN, Batch, TaggedTokens
from corpora.store.arrow_files import mapped_columns, write_columns

PLACES = (-1, 1, -2, 2)  # of the neighbours
WEIGHTS = (1.0, 1.0, 0.35, 0.35)
SMOOTHING = 20.0  # K
ADDED = 0.1  # to each word's count, for p
VOCABULARY = 30_000
WIDTH = 256  # so many words of one part of speech are kept beside one neighbour
UNIT = 2.0**16
LONGEST_CACHE = 1 << 20  # words in the cache of ids and tags
KINDS = len(POS)


@dataclass(frozen=True, eq=False)
class Cloze:
    """Counts as tables. words: the vocabulary by falling frequency; tags (V,) uint8; prior (V,) int32: log p.

    word, gain (int32): the words of kind t seen beside neighbour n at place k, and their gains, are at indices
    starts[k, n * KINDS + t] to starts[k, n * KINDS + t + 1]. resolve: tags words outside the vocabulary. source:
    the counted texts, in words. budget: tokens of a batch.
    """

    words: tuple[str, ...]
    tags: np.ndarray
    prior: np.ndarray
    starts: np.ndarray
    word: np.ndarray
    gain: np.ndarray
    resolve: Resolve
    source: str
    budget: int = 1 << 15

    @property
    def name(self) -> str:
        return self.named(self.source)

    @staticmethod
    def named(source: str) -> str:
        return f"cloze by counts of {source} (a stand-in for a masked language model)"

    @property
    def surfaces(self) -> Sequence[str]:
        return self.words

    @cached_property
    def fingerprint(self) -> str:
        """sha256 of all tables."""
        digest = hashlib.sha256("\n".join(self.words).encode())
        for table in (self.tags, self.prior, self.starts, self.word, self.gain):
            digest.update(np.ascontiguousarray(table).data)
        return digest.hexdigest()

    @cached_property
    def _places(self) -> dict[str, int]:
        return {word: place for place, word in enumerate(self.words)}

    @cached_property
    def _first(self) -> list[int]:
        """The most frequent word of each kind that may fill a mask; UNKNOWN if there is none."""
        found = [UNKNOWN] * KINDS
        for place in np.flatnonzero(_may_fill(self.words, self.tags))[::-1].tolist():
            found[self.tags[place]] = place
        return found

    @cached_property
    def _known(self) -> dict[str, tuple[int, int]]:
        """Id and tag of a word, filled as words are met."""
        return {}

    def encode(self, texts: Sequence[str], most: int) -> list[TaggedTokens]:
        return [self._encoded(text, most) for text in texts]

    def _encoded(self, text: str, most: int) -> TaggedTokens:
        low = text.lower() if len(text.lower()) == len(text) else text
        found = list(spans(text))[:most]
        known = [self._known.get(low[a:b]) or self._look_up(low[a:b]) for a, b in found]
        ids, tags = zip(*known, strict=True) if known else ((), ())
        start, end = zip(*found, strict=True) if found else ((), ())
        return TaggedTokens(
            np.array(ids, np.int32), np.array(tags, np.uint8), np.array(start, np.int32), np.array(end, np.int32)
        )

    def _look_up(self, token: str) -> tuple[int, int]:
        place = self._places.get(token.lower(), UNKNOWN)
        tag = int(self.tags[place]) if place != UNKNOWN else CODE[self.resolve(token.lower())]
        if len(self._known) < LONGEST_CACHE:
            self._known[token] = (place, tag)
        return place, tag

    def fill(self, batch: Batch, masked: np.ndarray, noise: np.ndarray | None) -> np.ndarray:
        """As Generator.fill. A masked word stays if the vocabulary has no word of its kind."""
        filled = batch.ids.copy()
        scratch = np.zeros(len(self.words), np.int32)
        for row in np.flatnonzero(masked.any(1)).tolist():
            places = np.flatnonzero(masked[row]).tolist()
            here = filled[row].tolist()
            kinds = batch.tags[row].tolist()
            before = [here[place] for place in places]
            for place in places:
                here[place] = UNKNOWN
            for place, original in zip(places, before, strict=True):
                drawn = None if noise is None else noise[row, place]
                best = self._best(here, place, kinds[place], scratch, drawn)
                here[place] = original if best == UNKNOWN else best
            filled[row] = here
        return filled

    def _best(self, here: list[int], place: int, kind: int, scratch: np.ndarray, noise: np.ndarray | None) -> int:
        first = self._first[kind]
        if first == UNKNOWN:
            return UNKNOWN
        candidates: list[np.ndarray] = []
        for table, offset in enumerate(PLACES):
            at = place + offset
            beside = here[at] if 0 <= at < len(here) else UNKNOWN
            if beside == UNKNOWN:
                continue
            column = beside * KINDS + kind
            begin, end = self.starts[table, column], self.starts[table, column + 1]
            if begin < end:
                words = self.word[begin:end]
                scratch[words] += self.gain[begin:end]  # a column has each word once
                candidates.append(words)
        if noise is None and not candidates:
            return first
        every = np.concatenate([*candidates, [first]]) if candidates else np.array([first])
        score = self.prior[every] + scratch[every]
        scratch[every] = 0
        if noise is None:
            return int(every[np.argmax(score)])
        return _sampled(every, score, noise)

    @staticmethod
    def of(counts: Counts, resolve: Resolve) -> Cloze:
        """The tables of counted texts. Words outside ASCII are context only, and never fill a mask."""
        size = len(counts.words)
        tags = tags_of(counts.words, resolve)
        frequency = (counts.frequency + ADDED) / (counts.frequency.sum() + ADDED * size)
        starts, columns, gains = [], [], []
        may_fill = _may_fill(counts.words, tags)
        begin = 0
        for (beside, word, count), weight in zip(counts.pairs, WEIGHTS, strict=True):
            keep = may_fill[word]
            beside, word, count = beside[keep], word[keep], count[keep]
            column = beside * KINDS + tags[word]
            order = np.lexsort((word, -count, column))
            column, word, count = column[order], word[order], count[order]
            rank = np.arange(len(column)) - np.searchsorted(column, column)  # within its column
            column, word, count = (part[rank < WIDTH] for part in (column, word, count))
            starts.append(begin + np.searchsorted(column, np.arange(size * KINDS + 1)))
            columns.append(word)
            gains.append(np.rint(UNIT * weight * np.log1p(count / (SMOOTHING * frequency[word]))))
            begin += len(column)
        return Cloze(
            words=counts.words,
            tags=tags,
            prior=np.rint(UNIT * np.log(frequency)).astype(np.int32),
            starts=np.stack(starts),
            word=np.concatenate(columns).astype(np.int32),
            gain=np.concatenate(gains).astype(np.int32),
            resolve=resolve,
            source=counts.source,
        )

    def save(self, folder: Path) -> None:
        vocabulary = pa.array(self.words, pa.large_string())
        write_columns(
            folder / "words.arrow",
            {"word": vocabulary, "tag": pa.array(self.tags), "prior": pa.array(self.prior)},
        )
        write_columns(folder / "columns.arrow", {"word": pa.array(self.word), "gain": pa.array(self.gain)})
        write_columns(folder / "starts.arrow", {str(k): pa.array(row) for k, row in enumerate(self.starts)})

    @staticmethod
    def load(folder: Path, resolve: Resolve, source: str) -> Cloze:
        words, columns = mapped_columns(folder / "words.arrow"), mapped_columns(folder / "columns.arrow")
        starts = mapped_columns(folder / "starts.arrow")
        return Cloze(
            words=tuple(words["word"].to_pylist()),
            tags=words["tag"].to_numpy(),
            prior=words["prior"].to_numpy(),
            starts=np.stack([starts[str(k)].to_numpy() for k in range(len(PLACES))]),
            word=columns["word"].to_numpy(),
            gain=columns["gain"].to_numpy(),
            resolve=resolve,
            source=source,
        )


def _may_fill(words: Sequence[str], tags: np.ndarray) -> np.ndarray:
    return np.array([word.isascii() for word in words], bool) & (tags != SPECIAL)


def _sampled(words: np.ndarray, score: np.ndarray, noise: np.ndarray) -> int:
    """The best of the k best words after Gumbel noise is added. The more frequent word wins a tie."""
    distinct, at = np.unique(words, return_index=True)
    ranked = np.lexsort((distinct, -score[at]))[: len(noise)]
    return int(distinct[ranked[np.argmax(score[at][ranked] / UNIT + noise[: len(ranked)])]])


@dataclass(frozen=True, eq=False)
class Counts:
    """Counts of texts: words by falling frequency, frequency (V,), and pairs for each place of PLACES.

    pairs: (neighbour, word, count), (N,) int64 each. source: the texts, in words.
    """

    words: tuple[str, ...]
    frequency: np.ndarray
    pairs: tuple[tuple[np.ndarray, np.ndarray, np.ndarray], ...]
    source: str


def count(texts: Iterable[str], *, source: str, most: int = VOCABULARY) -> Counts:
    """Count words and neighbours. Words seen once, or not among the `most` frequent, are unknown."""
    sentences = [tokens_of(text) for text in texts]
    seen = Counter(token for sentence in sentences for token in sentence)
    words = tuple(
        sorted((word for word, times in seen.items() if times > 1), key=lambda word: (-seen[word], word))
    )[:most]
    places = {word: place for place, word in enumerate(words)}
    gap = [UNKNOWN, UNKNOWN]  # no neighbour reaches over the end of a sentence
    line = np.array(
        [place for sentence in sentences for place in (*(places.get(token, UNKNOWN) for token in sentence), *gap)],
        np.int64,
    )
    size = max(len(words), 1)
    pairs = []
    for offset in PLACES:
        word, beside = (line[:-offset], line[offset:]) if offset > 0 else (line[-offset:], line[:offset])
        both = (word != UNKNOWN) & (beside != UNKNOWN)
        key, times = np.unique(beside[both] * size + word[both], return_counts=True)
        pairs.append((key // size, key % size, times))
    return Counts(words, np.array([seen[word] for word in words], float), tuple(pairs), source)
