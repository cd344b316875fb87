"""The optimiser's settings: layer-wise learning rates, weight decay, the schedule, and gradient clipping."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from trainers.errors import TrainerError

# Names of a layer's parameters: GPT-2 keeps its layers in `h`, T5 in `block`, XLM in four lists.
LAYER = re.compile(r"(?:^|\.)(?:layers?|h|blocks?|attentions|ffns|layer_norm[12])\.(\d+)\.")
# Names of embeddings: GPT-2 has `wte` and `wpe`, T5 `shared`; MPNet's one table of relative positions counts too.
EMBEDDINGS = re.compile(r"(?:^|\.)(?:\w*embed\w*|wte|wpe|shared|relative_attention_bias)\.")
# Names of what is learnt beside the backbone: the layer mixture, its gate, and heads on single layers.
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
    """Optimizer groups that hold every trainable parameter exactly once.

    Rates: layer l of L has base · layer_decay^(L - l), embeddings base · layer_decay^L, parameters above the
    layers the base rate; the layer mixture, its gate and heads on layers have base · readout_multiplier.
    Parameters of one dimension (biases, normalisations, the mixture) have no weight decay. Each group has params,
    lr, weight_decay and a name. Raises TrainerError for layer_decay < 1 on a backbone whose layers share all
    weights.
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


def merge_groups(groups: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Merge groups of equal settings, dropping their names: on a GPU every group costs launches of its own."""
    kinds: dict[tuple[tuple[str, float], ...], list[nn.Parameter]] = {}
    for group in groups:
        kind = tuple(sorted((name, group[name]) for name in group.keys() - {"name", "params"}))
        kinds.setdefault(kind, []).extend(group["params"])
    return [{"params": parameters, **dict(kind)} for kind, parameters in kinds.items()]


def parameters_of(groups: Iterable[Mapping[str, Any]]) -> list[nn.Parameter]:
    """All parameters of an optimiser's groups, in its order."""
    return [parameter for group in groups for parameter in group["params"]]


def schedule(step: int, *, steps: int, warmup: int) -> float:
    """Factor on the base rate at a step counted from 0: linear up over `warmup` steps, then linear down to 0.

    It is 1 / warmup at the first step and above 0 at the last; 0 would be reached at step `steps`.
    """
    if step < warmup:
        return (step + 1) / warmup
    return (steps - step) / max(1, steps - warmup)


def clip(parameters: Iterable[nn.Parameter], limit: float, *, workers: int = 1) -> None:
    """Scale all gradients together to a norm of at most `limit`, in place.

        g ← g · min(1, limit / (‖g‖ + 1e-6)),    ‖g‖ = √Σ_p ‖g_p‖²

    Gives the same digits as DeepSpeed's clipping in fp32, which copies constants from the host and so waits for
    the GPU at every step. workers: how many hold the same gradients; their norms are averaged as DeepSpeed's are,
    which with three or eight gives other last digits than the norm itself. Sparse gradients (`row_gradients`) must
    have been summed.
    """
    present = [parameter.grad for parameter in parameters if parameter.grad is not None]
    if not present:
        return
    gradients = [gradient.values() if gradient.is_sparse else gradient for gradient in present]
    norms = torch._foreach_norm(gradients)  # a few launches on a GPU instead of some 200, one for each gradient
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
