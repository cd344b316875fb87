"""The two adapters on frozen embeddings, for a stack of models: one changes vectors, one corrects pair scores.

Source: Hwang 2026, sections 3.1, 3.2 and 3.4. M models, R rows, d inputs, d_h working width, m hidden units.
The first layers of the two heads read the same features and are stored as one matrix, for one product.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from trainers.difficulty.stack_arithmetic import Layout, affine, layer_norm, one_output

Parameters = Mapping[str, Tensor]
CACHED_PAIRS = 1024  # pairs of a block; fastest of 512 to 4,096 on one core with 1 MB of private cache


def pair_layout(d: int, d_h: int, m: int) -> Layout:
    heads = {"heads.w1": (2 * d_h, 2 * m), "heads.b1": (2 * m,)}
    ends = {"residual.w2": (m,), "residual.b2": (1,), "hardness.w2": (m,), "hardness.b2": (1,)}
    return Layout({**_working(d, d_h), **heads, **ends})


def sentence_layout(d: int, d_h: int, m: int) -> Layout:
    heads = {"heads.w1": (d_h, 2 * m), "heads.b1": (2 * m,)}
    scale = {"scale.c": (m,), "scale.w2": (m, d_h), "scale.b2": (d_h,)}
    ends = {"complexity.w2": (m,), "complexity.b2": (1,), "theta": (1,)}
    return Layout({**_working(d, d_h), **heads, **scale, **ends})


def _working(d: int, d_h: int) -> dict[str, tuple[int, ...]]:
    return {"working.w": (d, d_h), "working.b": (d_h,), "norm.gain": (d_h,), "norm.bias": (d_h,)}


ZERO_AT_START = ("residual.w2", "residual.b2", "scale.w2", "scale.b2", "theta", "norm.bias")


def initial(layout: Layout, generator: torch.Generator, *, identity: bool) -> Tensor:
    """One model's row `(size,)` of starting values.

    Layers start as torch.nn.Linear does: uniform within ±1/sqrt(inputs), weights and biases. The last layers of
    the residual and of the scale start at zero, so that every arm starts at its anchor. identity: the working
    layer starts as the identity (needs d_h = d). Every parameter is drawn, in the layout's order, even if the draw
    is overwritten, so that arms of one seed and shape start from the same numbers.
    """
    row = torch.zeros(1, layout.size)
    views = layout.views(row)
    for name, view in views.items():
        view.uniform_(-1.0, 1.0, generator=generator).div_(math.sqrt(_inputs(layout, name)))
    for name in ZERO_AT_START:
        if name in views:
            views[name].zero_()
    views["norm.gain"].fill_(1.0)
    if identity:
        views["working.w"].copy_(torch.eye(*layout.shapes["working.w"]))
        views["working.b"].zero_()
    return row[0]


def _inputs(layout: Layout, name: str) -> int:
    """The number of inputs of the layer that a parameter belongs to."""
    if name.startswith("working"):
        return layout.shapes["working.w"][0]
    if name.startswith("heads"):
        return layout.shapes["heads.w1"][0]
    if name == "scale.c":
        return layout.shapes["heads.w1"][0] + 1  # the scale head reads [h; c]
    return layout.shapes["heads.w1"][1] // 2  # second layers read m hidden units


def working(p: Parameters, x: Tensor) -> Tensor:
    """h = LayerNorm(W x + b), equation 1. (M, R, d) -> (M, R, d_h)."""
    return layer_norm(affine(x, p["working.w"], p["working.b"]), p["norm.gain"], p["norm.bias"])


def pair_heads(p: Parameters, h_a: Tensor, h_b: Tensor) -> tuple[Tensor, Tensor]:
    """Raw residual in (-1, 1), equation 4, and predicted hardness in (0, 1). (M, R, d_h) twice -> (M, R) twice."""
    features = torch.cat([(h_a - h_b).abs(), h_a * h_b], -1)  # (M, R, 2 d_h)
    of_residual, of_hardness = F.gelu(affine(features, p["heads.w1"], p["heads.b1"])).chunk(2, -1)  # (M, R, m)
    residual = torch.tanh(one_output(of_residual, p["residual.w2"], p["residual.b2"]))
    hardness = torch.sigmoid(one_output(of_hardness, p["hardness.w2"], p["hardness.b2"]))
    return residual, hardness


def corrections(p: Parameters, h: Tensor, a: Tensor, b: Tensor, *, gated: bool) -> Tensor:
    """The corrections of one trained model to pairs' anchors, before gamma: c delta if gated, else delta.

    p: a stack with M = 1. h (n, d_h): from `working`; a, b (N,): rows of it -> (N,). Equals `pair_heads` up to
    rounding at half the cost: no gradient, buffers that fit the cache, and no hardness unless gated.
    """
    d_h, m = h.shape[1], p["residual.w2"].shape[1]
    used = slice(None) if gated else slice(m)  # columns of the first layer
    w1, b1 = p["heads.w1"][0, :, used].contiguous(), p["heads.b1"][0, used]
    result = h.new_empty(len(a))
    block = CACHED_PAIRS if h.device.type == "cpu" else max(1, len(a))
    h_a, h_b, features = h.new_empty(block, d_h), h.new_empty(block, d_h), h.new_empty(block, 2 * d_h)
    for start in range(0, len(a), block):
        rows = slice(start, min(start + block, len(a)))
        n = rows.stop - start
        left, right, both = h_a[:n], h_b[:n], features[:n]
        torch.index_select(h, 0, a[rows], out=left)
        torch.index_select(h, 0, b[rows], out=right)
        torch.sub(left, right, out=both[:, :d_h]).abs_()
        torch.mul(left, right, out=both[:, d_h:])
        hidden = F.gelu(torch.addmm(b1, both, w1))  # (n, m), or (n, 2 m) with the hardness head
        delta = torch.tanh(torch.addmv(p["residual.b2"][0], hidden[:, :m], p["residual.w2"][0]))
        if gated:
            delta *= torch.sigmoid(torch.addmv(p["hardness.b2"][0], hidden[:, m:], p["hardness.w2"][0]))
        result[rows] = delta
    return result


def pair_scores(anchor: Tensor, residual: Tensor, hardness: Tensor, gamma: Tensor, gated: Tensor) -> Tensor:
    """cos + gamma c delta if gated is 1 (equation 6), cos + gamma delta if it is 0 (equation 5).

    (M, R) each; gamma and gated (M, 1) -> (M, R).
    """
    return anchor + gamma * (gated * hardness + (1 - gated)) * residual


@dataclass(frozen=True)
class Mix:
    """Coefficients that define per-sentence arms, one per model: every field is (M, 1).

    The scale head reads  own c + shuffled c[permuted] + learned sigmoid(theta) + constant;  alpha0 = 0 disables
    it. The vector is  Normalize(keep x_hat + add u).
    """

    own: Tensor
    shuffled: Tensor
    learned: Tensor
    constant: Tensor
    alpha0: Tensor
    keep: Tensor
    add: Tensor


def sentence_vectors(p: Parameters, x: Tensor, x_hat: Tensor, permuted: Tensor, mix: Mix) -> tuple[Tensor, Tensor]:
    """Unit vectors and predicted complexity of a batch of sentences, equation 2 and its interpolations.

    x (M, R, d), x_hat (M, R, d_h), permuted (M, R) row numbers -> vectors (M, R, d_h), c (M, R).
    """
    h = working(p, x)
    first = affine(h, p["heads.w1"], p["heads.b1"])  # (M, R, 2 m)
    m = p["complexity.w2"].shape[-1]
    c = torch.sigmoid(one_output(F.gelu(first[..., m:]), p["complexity.w2"], p["complexity.b2"]))
    scale_input = mix.own * c + mix.shuffled * c.gather(1, permuted)
    # theta as a full row per model: rule 2 of trainers.difficulty.stack_arithmetic
    learned = torch.sigmoid(p["theta"] + torch.zeros_like(c))
    scale_input = scale_input + mix.learned * learned + mix.constant  # (M, R)
    hidden = F.gelu(first[..., :m] + scale_input[..., None] * p["scale.c"][:, None])
    alpha = 1 + mix.alpha0[..., None] * torch.tanh(affine(hidden, p["scale.w2"], p["scale.b2"]))
    u = F.normalize(alpha * h, dim=-1)
    return F.normalize(mix.keep[..., None] * x_hat + mix.add[..., None] * u, dim=-1), c
