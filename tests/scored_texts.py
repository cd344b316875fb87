"""Texts for an encoder, its dropout, and a score of vectors that gives each of their numbers a gradient of its own."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from semray.testing import WORDS
from trainers.encoders.encoder import Encoder
from trainers.encoders.tokens import Tokens


def texts_of(encoder: Encoder, count: int, longest: int = 30, seed: int = 0) -> Tokens:
    """Made-up texts of fewer than `longest` words."""
    draw = np.random.default_rng(seed)
    return encoder.tokenise([" ".join(draw.choice(WORDS, draw.integers(1, longest))) for _ in range(count)])


def rated(encoder: Encoder, rate: float) -> Encoder:
    """With this rate of dropout everywhere."""
    for site in encoder.modules():
        if isinstance(site, torch.nn.Dropout):
            site.p = rate
    return encoder


def score(vectors: Tensor) -> Tensor:
    """Of vectors (N, D)."""
    places = torch.arange(vectors.numel(), dtype=torch.float32, device=vectors.device).view_as(vectors)
    return (vectors * places.cos()).sum()
