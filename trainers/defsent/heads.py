"""The head that names words: a masked-LM's transform and decoder, applied to the vector of a whole sentence.

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
    """Where an architecture keeps its head. The decoder's matrix is that of the word embeddings."""

    dense: str
    norm: str
    bias: str


_BERT = HeadLayout(
    "cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm", "cls.predictions.bias"
)
_ROBERTA = HeadLayout("lm_head.dense", "lm_head.layer_norm", "lm_head.bias")
# By model_type. An architecture that is not here has another head: it is refused, never guessed by its names.
LAYOUTS: Mapping[str, HeadLayout] = {
    "bert": _BERT,
    "camembert": _ROBERTA,
    "roberta": _ROBERTA,
    "xlm-roberta": _ROBERTA,
}


class Transform(nn.Module):
    """u -> LayerNorm(gelu(W u + b)), with the exact gelu."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.dense = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width, eps=eps)

    def forward(self, u: Tensor) -> Tensor:
        """(N, D) -> (N, D)."""
        return self.norm(F.gelu(self.dense(u)))


class PredictionHead(nn.Module):
    """Sentence vectors to the logits of every word. transform and bias are None where a head has neither."""

    def __init__(self, decoder: nn.Parameter, transform: Transform | None, bias: nn.Parameter | None) -> None:
        super().__init__()
        self.decoder = decoder
        self.transform = transform
        self.bias = bias

    def forward(self, u: Tensor) -> Tensor:
        """(N, D) -> (N, V), in float32 whatever surrounds it: 30,000 classes are too many for half precision."""
        with torch.autocast(u.device.type, enabled=False):
            return F.linear(self.transformed(u.float()), self.decoder, self.bias)

    def transformed(self, u: Tensor) -> Tensor:
        """What the decoder multiplies. (N, D) -> (N, D)."""
        return u if self.transform is None else self.transform(u)

    def untie(self) -> None:
        """Give the head a decoder of its own, equal to what it shared.

        Loading a tied checkpoint as untied instead leaves the decoder at random in transformers 5.23.
        """
        shared = self.decoder
        self.decoder = nn.Parameter(shared.detach().clone())
        assert torch.equal(self.decoder, shared)


def pretrained_head(encoder: Encoder, folder: Path) -> PredictionHead:
    """The masked-LM head in this folder over the encoder's own embeddings.

    ValueError when the architecture's head is not known, and when the folder has none.
    """
    layout = layout_of(encoder.backbone.config, folder)
    model, missing = load_masked_lm(folder)
    if any(name.startswith((layout.dense, layout.norm, layout.bias)) for name in missing):
        raise ValueError(without_head(folder))
    embeddings = embeddings_of(encoder)
    decoder = model.get_output_embeddings().weight.to(embeddings.device)
    assert torch.equal(decoder, embeddings), "the decoder is not the word embeddings"
    transform = Transform(encoder.width, encoder.backbone.config.layer_norm_eps)
    transform.dense.load_state_dict(model.get_submodule(layout.dense).state_dict())
    transform.norm.load_state_dict(model.get_submodule(layout.norm).state_dict())
    bias = model.get_parameter(layout.bias).detach().clone()
    return PredictionHead(embeddings, transform, nn.Parameter(bias))


def untrained_head(encoder: Encoder, stream: torch.Generator) -> PredictionHead:
    """A transform as torch initialises its layers, drawn from `stream`, and a bias of zeros."""
    embeddings = embeddings_of(encoder)
    transform = Transform(encoder.width, getattr(encoder.backbone.config, "layer_norm_eps", 1e-12))
    draw_linear(transform.dense, stream)
    return PredictionHead(embeddings, transform, nn.Parameter(torch.zeros(len(embeddings))))


def tied_head(encoder: Encoder) -> PredictionHead:
    """The word embeddings alone: logits = E u."""
    return PredictionHead(embeddings_of(encoder), None, None)


def embeddings_of(encoder: Encoder) -> nn.Parameter:
    """The matrix of word embeddings, (V, D), the very parameter. ValueError when its rows are not as wide as u."""
    weight: Any = encoder.backbone.get_input_embeddings().weight
    if weight.shape[1] != encoder.width:
        raise ValueError(
            f"backbones: embeddings of {weight.shape[1]} values, sentence vectors of {encoder.width}\n"
            "  accepted: an architecture whose word embeddings are as wide as its layers"
        )
    return weight


def layout_of(config: Any, folder: Path) -> HeadLayout:
    """Where this architecture keeps its head. ValueError for one that is not known."""
    if config.model_type not in LAYOUTS or getattr(config, "hidden_act", "gelu") != "gelu":
        raise ValueError(
            f"train.head_source = 'pretrained', and {folder.name} is a {config.model_type} model\n"
            f"  accepted: {', '.join(LAYOUTS)} with gelu, or head_source tied_only, random or, with a mask token,"
            " mlm_fit"
        )
    return LAYOUTS[config.model_type]


def without_head(folder: Path) -> str:
    """The complaint about a backbone that is a bare encoder."""
    return (
        f"train.head_source = 'pretrained', and {folder} has no masked-LM head\n"
        "  accepted: a backbone that kept its head, or head_source mlm_fit, tied_only or random, which are not the"
        " paper's and are never compared with it"
    )


def has_head(folder: Path, layout: HeadLayout) -> bool:
    """Whether the weights in this folder hold a head, by their names alone: nothing is loaded."""
    from safetensors import safe_open

    for file in folder.glob("model*.safetensors"):
        with safe_open(file, "np") as weights:
            if f"{layout.dense}.weight" in weights.keys():  # noqa: SIM118 - not a dict
                return True
    return False
