"""Many tiny models trained as one: the arithmetic of a whole stack, each model as if it were alone.

Every tensor of a stack has the models first, `(M, ...)`. A model's numbers do not depend, to the last bit, on who
else is in the stack (float32, one CPU thread, heads of a multiple of 8; of other widths below 8 products may round
otherwise). Four rules keep that true:

1. A head with one output is a product and a sum. As a matrix product it becomes another kernel for one model than
   for many, and rounds differently.
2. Vector loops take 32 numbers at a time and treat what is left over with other roundings: in the fused AdamW, in
   sigmoid, tanh, softplus. So a model's parameters are one row padded to a multiple of 32, and its batch has a
   multiple of 32 rows: nothing of it is ever left over, wherever in the stack it lies.
3. LayerNorm without affine; its gain and bias are applied here.
4. One clipping expression, row by row.

The loss of a stack is the SUM of the models' losses: with a mean every gradient would shrink by M.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from trainers.difficulty.settings import VECTOR
from trainers.engine.transfers import Arriving

LAYER_NORM_EPS = 1e-5
CLIP_NORM, CLIP_EPS = 1.0, 1e-6  # the second as in torch.nn.utils.clip_grad_norm_

Terms = Mapping[str, Tensor]


@dataclass(frozen=True)
class Layout:
    """Where each named parameter lies in a model's row of numbers."""

    shapes: Mapping[str, tuple[int, ...]]

    @property
    def size(self) -> int:
        """Numbers in one row, padding included."""
        used = sum(math.prod(shape) for shape in self.shapes.values())
        return -(-used // VECTOR) * VECTOR

    def views(self, rows: Tensor) -> dict[str, Tensor]:
        """Named views `(M, *shape)` into the rows `(M, size)`; writing to one writes to the other."""
        found, start = {}, 0
        for name, shape in self.shapes.items():
            length = math.prod(shape)
            found[name] = rows[:, start : start + length].view(len(rows), *shape)
            start += length
        return found


def batch_rows(n: int, steps: int, batch_size: int, generator: torch.Generator) -> Tensor:
    """Training rows of every step, `(steps, B)`: permutations of n laid end to end and cut into batches."""
    passes = -(-steps * batch_size // n)
    order = torch.cat([torch.randperm(n, generator=generator) for _ in range(passes)])
    return order[: steps * batch_size].view(steps, batch_size)


def affine(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """x W + b per model. (M, R, I), (M, I, O), (M, O) -> (M, R, O)."""
    return torch.baddbmm(bias[:, None], x, weight)


def one_output(hidden: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """A layer with one output, rule 1. (M, R, H), (M, H), (M, 1) -> (M, R)."""
    return (hidden * weight[:, None]).sum(-1) + bias


def layer_norm(z: Tensor, gain: Tensor, bias: Tensor) -> Tensor:
    """LayerNorm over the last axis, rule 3. (M, R, D), (M, D), (M, D) -> (M, R, D)."""
    return torch.addcmul(bias[:, None], F.layer_norm(z, z.shape[-1:], eps=LAYER_NORM_EPS), gain[:, None])


def squared_error(predicted: Tensor, target: Tensor) -> Tensor:
    """Mean squared error per model. (M, B), (M, B) or one row for all -> (M,)."""
    return (predicted - target).square().mean(-1)


def rank_loss(scores: Tensor, gold: Tensor, tau: float) -> Tensor:
    """softplus(-(s_i - s_j) / tau), mean over the ordered pairs of a batch with gold_i > gold_j strictly.

    (M, B), gold (M, B) or one row for all -> (M,); 0 where a batch has no such pair.
    Source: Hwang 2026, section 3.6.
    """
    above = (gold[:, :, None] > gold[:, None, :]).to(scores.dtype)  # (M, B, B) or (1, B, B)
    scaled = scores / tau
    behind = scaled[:, None, :] - scaled[:, :, None]  # (M, B, B), s_j - s_i
    total = (F.softplus(behind) * above).sum((1, 2))
    return total / above.sum((1, 2)).clamp(min=1)


def anchor_loss(vectors: Tensor, baseline: Tensor) -> Tensor:
    """1 - cosine to the frozen vectors, mean over the rows. (M, R, D) twice -> (M,). Hwang 2026, section 3.6."""
    return (1 - F.cosine_similarity(vectors, baseline, dim=-1)).mean(-1)


def clip_rows_(gradients: Tensor) -> Tensor:
    """Shorten each model's gradient to CLIP_NORM, in place. (M, P) -> its norms before, (M,)."""
    norms = torch.linalg.vector_norm(gradients, dim=1)
    gradients.mul_((CLIP_NORM / (norms + CLIP_EPS)).clamp(max=1.0)[:, None])
    return norms


def descend(
    rows: Tensor,
    layout: Layout,
    loss_terms: Callable[[int, dict[str, Tensor]], Terms],
    *,
    steps: int,
    learning_rate: float,
    weight_decay: float,
    watch: Callable[[int, Terms], None],
) -> list[str]:
    """Train the rows `(M, P)` in place: AdamW without schedule, each model's gradient clipped to norm 1.

    loss_terms(step, parameters) gives the weighted terms of each model, every one (M,); `watch` sees them.
    Returns in words, per model, where its loss was first not finite; "" where it never was. Models are rows of
    their own: one that has lost its numbers does not touch another's.
    """
    broken = [""] * len(rows)
    rows.grad = torch.zeros_like(rows)
    optimiser = torch.optim.AdamW([rows], lr=learning_rate, weight_decay=weight_decay, fused=True)
    parameters = {name: view.requires_grad_() for name, view in layout.views(rows).items()}
    gradients = layout.views(rows.grad)
    earlier: tuple[int, Arriving, Terms] | None = None  # looked at a step later: a card goes on meanwhile
    for step in range(steps):
        terms = loss_terms(step, parameters)
        losses = torch.stack(list(terms.values())).sum(0)  # (M,)
        said = Arriving(losses.detach())
        found = torch.autograd.grad(losses.sum(), list(parameters.values()), allow_unused=True)
        for name, gradient in zip(parameters, found, strict=True):
            gradients[name].zero_() if gradient is None else gradients[name].copy_(gradient)
        clip_rows_(rows.grad)
        optimiser.step()
        watch(step, terms)
        if earlier:
            _note_broken(broken, *earlier)
        earlier = step, said, terms
    if earlier:
        _note_broken(broken, *earlier)
    return broken


def _note_broken(broken: list[str], step: int, losses: Arriving, terms: Terms) -> None:
    for model, loss in enumerate(losses.read()):
        if math.isfinite(loss):
            continue
        values = ", ".join(f"{name} = {float(value[model].detach()):g}" for name, value in terms.items())
        broken[model] = broken[model] or f"loss is not finite at step {step + 1}: {values}"
