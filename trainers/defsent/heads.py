"""The word-prediction head: a masked-LM's transform and decoder, applied to a sentence vector.

    logits = D · LayerNorm(gelu(W u + b)) + c

Source: DefSent, section 2.3. The decoder D is the matrix of word embeddings, shared or copied.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from trainers.encoders.masked_lm import load_masked_lm
from trainers.engine.streams import draw_linear

if TYPE_CHECKING:
    from trainers.encoders.encoder import Encoder


@dataclass(frozen=True)
class HeadLayout:
    """Names of an architecture's head modules. The decoder's matrix is that of the word embeddings."""

    dense: str
    norm: str
    bias: str


_BERT = HeadLayout(
    "cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm", "cls.predictions.bias"
)
_ROBERTA = HeadLayout("lm_head.dense", "lm_head.layer_norm", "lm_head.bias")
# By model_type. Other architectures are refused, as their heads may compute something else under the same names.
LAYOUTS: Mapping[str, HeadLayout] = {
    "bert": _BERT,
    "camembert": _ROBERTA,
    "roberta": _ROBERTA,
    "xlm-roberta": _ROBERTA,
}


class Transform(nn.Module):
    """u -> LayerNorm(gelu(W u + b)), with exact gelu."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.dense = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width, eps=eps)

    def forward(self, u: Tensor) -> Tensor:
        """(N, D) -> (N, D)."""
        return self.norm(F.gelu(self.dense(u)))


class PredictionHead(nn.Module):
    """Maps sentence vectors to logits over the vocabulary. transform and bias are None for a head without them."""

    def __init__(self, decoder: nn.Parameter, transform: Transform | None, bias: nn.Parameter | None) -> None:
        super().__init__()
        self.decoder = decoder
        self.transform = transform
        self.bias = bias

    def forward(self, u: Tensor) -> Tensor:
        """(N, D) -> (N, V), in float32 even under autocast: 30,000 classes are too many for half precision."""
        with torch.autocast(u.device.type, enabled=False):
            return F.linear(self.transformed(u.float()), self.decoder, self.bias)

    def transformed(self, u: Tensor) -> Tensor:
        """The decoder's input. (N, D) -> (N, D)."""
        return u if self.transform is None else self.transform(u)

    def untie(self) -> None:
        """Replace the decoder, which is the word embeddings, by a copy of it.

        In transformers 5.23, loading a tied checkpoint as untied would leave the decoder at random.
        """
        shared = self.decoder
        self.decoder = nn.Parameter(shared.detach().clone())
        assert torch.equal(self.decoder, shared)


def pretrained_head(encoder: Encoder, folder: Path) -> PredictionHead:
    """The masked-LM head in this folder, with the encoder's word embeddings as decoder.

    Raises ValueError if the architecture's head is not known, or the folder has none, or one that was not tied.
    """
    layout = layout_of(encoder.backbone.config, folder)
    model, missing = load_masked_lm(folder)
    if any(name.startswith((layout.dense, layout.norm, layout.bias)) for name in missing):
        raise ValueError(missing_head(folder))
    embeddings = embeddings_of(encoder)
    decoder = model.get_output_embeddings().weight.to(embeddings.device)
    if not torch.equal(decoder, embeddings):
        raise ValueError(
            f"train.head_source = 'pretrained', and the head of {folder} has other vectors of words than its"
            " embeddings\n  accepted: a head that shares them, or head_source mlm_fit, tied_only or random"
        )
    transform = Transform(encoder.width, encoder.backbone.config.layer_norm_eps)
    transform.dense.load_state_dict(model.get_submodule(layout.dense).state_dict())
    transform.norm.load_state_dict(model.get_submodule(layout.norm).state_dict())
    bias = model.get_parameter(layout.bias).detach().clone()
    return PredictionHead(embeddings, transform, nn.Parameter(bias))


def untrained_head(encoder: Encoder, stream: torch.Generator) -> PredictionHead:
    """A head with torch's initial transform, drawn from `stream`, and a bias of zeros."""
    embeddings = embeddings_of(encoder)
    transform = Transform(encoder.width, getattr(encoder.backbone.config, "layer_norm_eps", 1e-12))
    draw_linear(transform.dense, stream)
    return PredictionHead(embeddings, transform, nn.Parameter(torch.zeros(len(embeddings))))


def tied_head(encoder: Encoder) -> PredictionHead:
    """A head of the word embeddings alone: logits = E u."""
    return PredictionHead(embeddings_of(encoder), None, None)


def embeddings_of(encoder: Encoder) -> nn.Parameter:
    """The encoder's parameter of word embeddings, (V, D). Raises ValueError if D is not the width of u."""
    weight: Any = encoder.backbone.get_input_embeddings().weight
    if weight.shape[1] != encoder.width:
        raise ValueError(
            f"backbones: embeddings of {weight.shape[1]} values, sentence vectors of {encoder.width}\n"
            "  accepted: an architecture whose word embeddings are as wide as its layers"
        )
    return weight


def layout_of(config: Any, folder: Path) -> HeadLayout:
    """The head layout of this architecture. Raises ValueError for an unknown one."""
    if config.model_type not in LAYOUTS or getattr(config, "hidden_act", "gelu") != "gelu":
        raise ValueError(
            f"train.head_source = 'pretrained', and {folder.name} is a {config.model_type} model\n"
            f"  accepted: {', '.join(LAYOUTS)} with gelu, or head_source tied_only, random or, with a mask token,"
            " mlm_fit"
        )
    return LAYOUTS[config.model_type]


def missing_head(folder: Path) -> str:
    """The error message for a backbone without a masked-LM head."""
    return (
        f"train.head_source = 'pretrained', and {folder} has no masked-LM head\n"
        "  accepted: a backbone that kept its head, or head_source mlm_fit, tied_only or random, which are not the"
        " paper's and are never compared with it"
    )


def has_head(folder: Path, layout: HeadLayout) -> bool:
    """True if the weights in this folder include a head; reads only their names."""
    from safetensors import safe_open

    for file in folder.glob("model*.safetensors"):
        with safe_open(file, "np") as weights:
            if f"{layout.dense}.weight" in weights.keys():  # noqa: SIM118 - not a dict
                return True
    return False
