"""An offline stand-in for a judge: token matching and wording, fitted to a held-out part of STS-B.

It is NOT a cross-encoder. It reads the same encoder as the frozen baseline, so its errors are not independent of
the baseline's, and it has learned STS-B scores. Every artefact names it. It exists so that a study can be
rehearsed where no cross-encoder can be fetched. The pooled cosine, which it is meant to doubt, is not among its
features.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from corpora.benchmarks.pairs import Pairs
from corpora.difficulty.pairs import STANDIN, STANDIN_SAW
from corpora.difficulty.surface import AUXILIARIES, COORDINATORS, PREPOSITIONS, SUBORDINATORS, tokens
from corpora.store.telling import counted
from trainers.encoders.frozen_encoder import SentenceEncoder

BATCH = 64
FUNCTION_WORDS = (
    AUXILIARIES | COORDINATORS | PREPOSITIONS | SUBORDINATORS | {"a", "an", "the", "it", "its", "he", "she"}
)
NEGATIONS = {"no", "not", "never", "nobody", "nothing", "none", "neither", "without", "cannot"}
NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


@dataclass(frozen=True, eq=False)
class TokenMatchStandin:
    """Mean of a ridge and a boosted-tree regression on 30 features of a pair, clipped to [0, 1].

    encoder: whose token vectors are matched. held_out: the pairs it is fitted to, at the first use.
    """

    encoder: SentenceEncoder
    held_out: Pairs
    name: str = STANDIN
    saw: tuple[str, ...] = STANDIN_SAW

    @cached_property
    def identity(self) -> Mapping[str, Any]:
        return {STANDIN: 2, "encoder": dict(self.encoder.identity), "held_out": self.held_out.sha256()}

    def score(self, a: Sequence[str], b: Sequence[str]) -> np.ndarray:
        features = self.features(a, b)
        ridge, trees = self._fitted
        return np.clip((ridge.predict(features) + trees.predict(features)) / 2, 0.0, 1.0)

    def features(self, a: Sequence[str], b: Sequence[str]) -> np.ndarray:
        """22 of matched token vectors (last layer and input embeddings), 8 of wording. -> (N, 30)."""
        wording = np.array([wording_features(*pair) for pair in zip(a, b, strict=True)])
        order = sorted(range(len(a)), key=lambda row: len(a[row]) + len(b[row]))
        matched, count = np.empty((len(a), 22)), counted("judging pairs", len(a), self.encoder.tell)
        for start in range(0, len(order), BATCH):
            rows = order[start : start + BATCH]
            matched[rows] = self._matched([*(a[row] for row in rows), *(b[row] for row in rows)])
            count(len(rows))
        return np.hstack([matched, wording])

    @cached_property
    def _fitted(self) -> tuple[Any, Any]:
        from sklearn.ensemble import HistGradientBoostingRegressor
        from sklearn.linear_model import Ridge
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        features = self.features(self.held_out.a, self.held_out.b)
        ridge = make_pipeline(StandardScaler(), Ridge(alpha=10.0))
        trees = HistGradientBoostingRegressor(
            max_iter=200, learning_rate=0.05, max_leaf_nodes=15, min_samples_leaf=20, l2_regularization=1.0,
            early_stopping=False, random_state=0,
        )  # fmt: skip
        return ridge.fit(features, self.held_out.gold), trees.fit(features, self.held_out.gold)

    @cached_property
    def _idf(self) -> Tensor:
        """log((1 + n) / (1 + sentences with the token)) over the n held-out sentences. (V,)."""
        sentences = list(dict.fromkeys((*self.held_out.a, *self.held_out.b)))
        seen = torch.zeros(len(self.encoder.input_vectors), device=self.encoder.device)
        for words in self.encoder.words(sentences):
            seen[words.ids.unique()] += 1
        return torch.log((1 + len(sentences)) / (1 + seen))

    def _matched(self, sentences: Sequence[str]) -> np.ndarray:
        """Features of both layers for a batch of pairs: sides a, then sides b. 2 B sentences -> (B, 22)."""
        words = self.encoder.words(sentences)
        ids = pad_sequence([one.ids for one in words], batch_first=True)  # (2 B, T)
        last = pad_sequence([one.states for one in words], batch_first=True)  # (2 B, T, D)
        lengths = torch.tensor([len(one.ids) for one in words], device=ids.device)
        mask = torch.arange(ids.shape[1], device=ids.device) < lengths[:, None]
        weights = self._idf[ids] * mask
        parts = [
            match_features(*layer.chunk(2), *mask.chunk(2), *weights.chunk(2))
            for layer in (last, self.encoder.input_vectors[ids])
        ]
        return torch.cat(parts, 1).cpu().numpy()


def match_features(
    a: Tensor, b: Tensor, mask_a: Tensor, mask_b: Tensor, weight_a: Tensor, weight_b: Tensor
) -> Tensor:
    """Greedy matches of two sentences' tokens. (B, T, D), (B, T) masks and weights -> (B, 11).

    Precision, recall and their harmonic mean, plain and weighted; the worst match of either side; the lower
    quartile of all matches; the worst weighted match of either side. A side without tokens matches nothing: 0.
    """
    cosines = F.normalize(a, dim=-1) @ F.normalize(b, dim=-1).transpose(1, 2)  # (B, T, T)
    cosines = cosines.masked_fill(~(mask_a[:, :, None] & mask_b[:, None, :]), -1.0)
    best_a, best_b = cosines.amax(2).clamp(min=0), cosines.amax(1).clamp(min=0)  # (B, T)
    found = []
    for one, other in ((mask_a.float(), mask_b.float()), (weight_a, weight_b)):
        precision = (best_a * one).sum(1) / one.sum(1).clamp(min=1e-9)
        recall = (best_b * other).sum(1) / other.sum(1).clamp(min=1e-9)
        found += [precision, recall, 2 * precision * recall / (precision + recall).clamp(min=1e-9)]
    for best, mask in ((best_a, mask_a), (best_b, mask_b)):
        found.append(best.masked_fill(~mask, 1.0).amin(1))
    both = torch.cat([best_a.masked_fill(~mask_a, math.nan), best_b.masked_fill(~mask_b, math.nan)], 1)
    found.append(both.nanquantile(0.25, dim=1).nan_to_num(0.0))
    for best, weight in ((best_a, weight_a), (best_b, weight_b)):
        share = weight / weight.amax(1, keepdim=True).clamp(min=1e-9)
        found.append(1 - (share * (1 - best)).amax(1))
    return torch.stack(found, 1)


def wording_features(a: str, b: str) -> list[float]:
    """Jaccard of tokens, content words and character trigrams; lengths; numbers and negation that disagree."""
    words_a, words_b = tokens(a), tokens(b)
    lengths = len(words_a), len(words_b)
    return [
        jaccard(set(words_a), set(words_b)),
        jaccard(set(words_a) - FUNCTION_WORDS, set(words_b) - FUNCTION_WORDS),
        jaccard(trigrams(a), trigrams(b)),
        float(abs(lengths[0] - lengths[1])),
        min(lengths) / max(*lengths, 1),
        float(sum(lengths)),
        float(set(NUMBER.findall(a)) != set(NUMBER.findall(b))),
        float(negated(words_a) != negated(words_b)),
    ]


def jaccard(a: set[str], b: set[str]) -> float:
    return len(a & b) / len(a | b) if a | b else 1.0


def trigrams(text: str) -> set[str]:
    plain = unicodedata.normalize("NFKC", text).lower()
    return {plain[i : i + 3] for i in range(len(plain) - 2)}


def negated(words: Sequence[str]) -> bool:
    return any(word in NEGATIONS or word.endswith("n't") for word in words)
