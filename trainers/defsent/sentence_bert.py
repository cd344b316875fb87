"""Sentence-BERT: two sentences through one encoder, and a classifier over [u; v; |u - v|].

Source: Reimers and Gurevych (2019), as DefSent describes it in section 2.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from corpora.defsent.records import LABELS
from trainers.engine.streams import draw_linear
from trainers.engine.transfers import moved

if TYPE_CHECKING:
    from trainers.defsent.batches import LabelledBatch
    from trainers.defsent.encoder import WordEncoder
    from trainers.encoders.tokens import Tokens
    from trainers.engine.loop import Encode
    from trainers.engine.world import World


def pair_features(u: Tensor, v: Tensor) -> Tensor:
    """[u; v; |u - v|]. (N, D), (N, D) -> (N, 3 D)."""
    return torch.cat([u, v, (u - v).abs()], dim=1)


class SiameseEncoder(nn.Module):
    """Maps b premises followed by b hypotheses to logits over LABELS.

    Departure: the classifier has a bias, which the formula lacks and the original library has.
    """

    def __init__(self, model: WordEncoder, stream: torch.Generator) -> None:
        super().__init__()
        encoder = self.encoder = model.encoder
        self.head = model.head  # unused here; under ZeRO 3, `world.look` needs it gathered with this module
        self.classifier = nn.Linear(3 * encoder.width, len(LABELS))
        draw_linear(self.classifier, stream)

    def forward(self, tokens: Tokens) -> Tensor:
        """2 b texts -> (b, 3), float32."""
        u, v = self.encoder.pooled(tokens).chunk(2)
        with torch.autocast(u.device.type, enabled=False):
            return self.classifier(pair_features(u.float(), v.float()))


def inference_loss(encode: Encode, batch: LabelledBatch, world: World) -> dict[str, Tensor]:
    """Mean cross-entropy of the labels over the step's pairs; and the accuracy, without gradient."""
    logits = encode(batch.tokens)[: len(batch.target)]  # (b, 3)
    target = moved(batch.target, logits.device)
    share = world.size / batch.rows_of_all
    return {
        "inference": share * F.cross_entropy(logits, target, reduction="sum"),
        "accuracy": share * (logits.detach().argmax(1) == target).sum().float(),
    }
