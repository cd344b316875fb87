"""What each parameter learns at: layer-wise rates, who is decayed, the schedule, and how far a step may go."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from trainers.errors import TrainerError

# The parameters of a layer: GPT-2's stand in `h`, T5's in `block`, XLM's in four lists.
LAYER = re.compile(r"(?:^|\.)(?:layers?|h|blocks?|attentions|ffns|layer_norm[12])\.(\d+)\.")
# GPT-2's are `wte` and `wpe`, T5's are `shared`; MPNet keeps one table of relative positions for all layers.
EMBEDDINGS = re.compile(r"(?:^|\.)(?:\w*embed\w*|wte|wpe|shared|relative_attention_bias)\.")
# What is learnt beside the backbone: the mixture of layers, fixed or told by a gate, and heads on single layers.
BESIDE = re.compile(r"(?:^|\.)(layer_logits|layer_gate|layer_heads)(?:\.|$)")


def parameter_groups(
    model: nn.Module,
    *,
    depth: int,
    learning_rate: float,
    weight_decay: float,
    layer_decay: float = 1.0,
    readout_multiplier: float = 1.0,
) -> list[dict[str, Any]]:
    """Optimizer groups in which every trainable parameter is exactly once.

    Layer l of L learns at base · layer_decay^(L - l), embeddings at base · layer_decay^L, what lies above the
    layers at the base rate, the layer mixture, its gate and heads on layers at base · readout_multiplier. Biases,
    normalisations and the mixture, whatever has one dimension, are not decayed. Each group carries params, lr,
    weight_decay and a name. TrainerError for a layer_decay where no parameter is of one layer alone.
    """
    members: dict[tuple[str, bool], list[nn.Parameter]] = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            place = _place(name)
            decayed = parameter.ndim > 1
            members.setdefault((place, decayed), []).append(parameter)
    if layer_decay < 1 and not any(place.startswith("layer ") for place, _ in members):
        raise TrainerError(
            f"layer_decay = {layer_decay}: no weight of this backbone is of one layer alone\n  accepted: 1.0"
        )
    return [
        {
            "name": place + ("" if decayed else ", not decayed"),
            "params": parameters,
            "lr": learning_rate * _factor(place, depth, layer_decay, readout_multiplier),
            "weight_decay": weight_decay if decayed else 0.0,
        }
        for (place, decayed), parameters in members.items()
    ]


def alike_as_one(groups: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Groups that learn alike as one, without their names: each costs a GPU's processor an update of its own."""
    kinds: dict[tuple[tuple[str, float], ...], list[nn.Parameter]] = {}
    for group in groups:
        kind = tuple(sorted((name, group[name]) for name in group.keys() - {"name", "params"}))
        kinds.setdefault(kind, []).extend(group["params"])
    return [{"params": parameters, **dict(kind)} for kind, parameters in kinds.items()]


def schedule(step: int, *, steps: int, warmup: int) -> float:
    """Share of the base rate at a step counted from 0: linear up over `warmup` steps, then linear down to 0.

    The first step already moves (1 / warmup) and the last still does; 0 would be reached at step `steps`.
    """
    if step < warmup:
        return (step + 1) / warmup
    return max(0.0, (steps - step) / max(1, steps - warmup))


def clip(parameters: Iterable[nn.Parameter], limit: float, *, workers: int = 1) -> None:
    """Shorten the gradients together to a norm of at most `limit`, in place.

        g ← g · min(1, limit / (‖g‖ + 1e-6)),    ‖g‖ = √Σ_p ‖g_p‖²

    Figure for figure what DeepSpeed does in fp32, whose own constants each come from this machine's memory, for
    which it waits until a GPU has done all it was asked for. workers: all hold the same gradients. Those of rows
    (`row_gradients`) are summed.
    """
    given = [parameter.grad for parameter in parameters if parameter.grad is not None]
    if not given:
        return
    gradients = [gradient.values() if gradient.is_sparse else gradient for gradient in given]
    norms = torch._foreach_norm(gradients)  # a few launches on a GPU, where one each of 200 would keep it waiting
    norm = torch.stack(norms).pow(2.0).sum().pow(0.5)
    if workers > 1:
        norm = norm / float(workers)
        dist.all_reduce(norm)
    share = torch.full_like(norm, limit) / (norm + 1e-6)
    torch._foreach_mul_(gradients, share.clamp(max=1.0))


def _place(name: str) -> str:
    beside = BESIDE.search(name)
    if beside:
        return beside.group(1)
    layer = LAYER.search(name)
    if layer:
        return f"layer {int(layer.group(1)) + 1}"
    return "embeddings" if EMBEDDINGS.search(name) else "top"


def _factor(place: str, depth: int, layer_decay: float, readout_multiplier: float) -> float:
    if BESIDE.match(place):
        return readout_multiplier
    if place == "top":
        return 1.0
    below = depth if place == "embeddings" else depth - int(place.split()[1])
    return layer_decay**below
