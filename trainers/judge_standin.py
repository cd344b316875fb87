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
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from corpora.cache import digest_of
from corpora.pairs import STANDIN
from corpora.pairs_rows import Pairs
from corpora.surface import AUXILIARIES, COORDINATORS, PREPOSITIONS, SUBORDINATORS, tokens
from trainers.frozen import DEFINING, quiet

BATCH = 64
MAX_TOKENS = 128
FUNCTION_WORDS = (
    AUXILIARIES | COORDINATORS | PREPOSITIONS | SUBORDINATORS | {"a", "an", "the", "it", "its", "he", "she"}
)
NEGATIONS = {"no", "not", "never", "nobody", "nothing", "none", "neither", "without", "cannot"}
NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


@dataclass(frozen=True, eq=False)
class TokenMatchStandin:
    """Mean of a ridge and a boosted-tree regression on 30 features of a pair, clipped to [0, 1].

    folder: the encoder whose token vectors are matched. held_out: the pairs it is fitted to, at the first use.
    """

    folder: Path
    held_out: Pairs
    device: str = "cpu"
    name: str = STANDIN
    saw: tuple[str, ...] = ("stsb",)

    @cached_property
    def identity(self) -> Mapping[str, Any]:
        files = sorted(path for path in self.folder.rglob("*") if path.suffix in DEFINING)
        digests = {str(path.relative_to(self.folder)): digest_of(path) for path in files}
        return {STANDIN: 1, "files": digests, "held_out": self.held_out.sha256()}

    def score(self, a: Sequence[str], b: Sequence[str]) -> np.ndarray:
        features = self.features(a, b)
        ridge, trees = self._fitted
        return np.clip((ridge.predict(features) + trees.predict(features)) / 2, 0.0, 1.0)

    def features(self, a: Sequence[str], b: Sequence[str]) -> np.ndarray:
        """22 of matched token vectors (last layer and input embeddings), 8 of wording. -> (N, 30)."""
        wording = np.array([wording_features(*pair) for pair in zip(a, b, strict=True)])
        order = sorted(range(len(a)), key=lambda row: len(a[row]) + len(b[row]))
        matched = np.empty((len(a), 22))
        for start in range(0, len(order), BATCH):
            rows = order[start : start + BATCH]
            matched[rows] = self._matched([a[row] for row in rows], [b[row] for row in rows])
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
    def _model(self) -> tuple[Any, Any]:
        from transformers import AutoModel, AutoTokenizer

        with quiet():
            model = AutoModel.from_pretrained(self.folder, use_safetensors=True, dtype=torch.float32)
        return model.to(self.device).eval(), AutoTokenizer.from_pretrained(self.folder)

    @cached_property
    def _idf(self) -> Mapping[int, float]:
        """log((1 + n) / (1 + sentences with the token)) over the held-out sentences; unseen tokens count none."""
        sentences = list(dict.fromkeys((*self.held_out.a, *self.held_out.b)))
        ids = self._model[1](sentences, truncation=True, max_length=MAX_TOKENS)["input_ids"]
        seen = Counter(token for row in ids for token in set(row))
        found = {token: math.log((1 + len(sentences)) / (1 + count)) for token, count in seen.items()}
        return {**found, -1: math.log(1 + len(sentences))}

    def _matched(self, a: Sequence[str], b: Sequence[str]) -> np.ndarray:
        """Features of both layers for one batch of pairs. -> (B, 22)."""
        model, tokenizer = self._model
        encoded = tokenizer(
            [*a, *b], padding=True, truncation=True, max_length=MAX_TOKENS, return_tensors="pt"
        ).to(self.device)
        special = torch.tensor(tokenizer.all_special_ids, device=self.device)
        words = encoded["attention_mask"].bool() & ~torch.isin(encoded["input_ids"], special)  # (2 B, T)
        idf = [[self._idf.get(token, self._idf[-1]) for token in row] for row in encoded["input_ids"].tolist()]
        weights = torch.tensor(idf, device=self.device) * words
        with torch.no_grad():
            last = model(**encoded).last_hidden_state
            first = model.get_input_embeddings()(encoded["input_ids"])
            parts = [
                match_features(*layer.chunk(2), *words.chunk(2), *weights.chunk(2)) for layer in (last, first)
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
