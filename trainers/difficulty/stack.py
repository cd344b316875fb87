"""Train one stack of adapters on one task: models of equal shape, each with its own arm, seed and weights.

Source of objective and schedule: Hwang 2026, equation 8 and section 4.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from trainers.difficulty.adapters import (
    Mix,
    initial,
    pair_heads,
    pair_layout,
    pair_scores,
    sentence_layout,
    sentence_vectors,
    working,
)
from trainers.difficulty.data import TaskData
from trainers.difficulty.settings import PAIR_FORMS, SENTENCE_FORMS, Settings
from trainers.difficulty.stack_arithmetic import (
    Layout,
    Terms,
    anchor_loss,
    batch_rows,
    descend,
    rank_loss,
    squared_error,
)
from trainers.engine.streams import torch_stream

CURVE_POINTS = 40
CACHED_BYTES = 16 << 20  # parameters and both moments of a stack stay near this: the arms of a seed together


@dataclass(frozen=True)
class Model:
    """One member of a stack. gamma: the one to train with, which for `pair_ungated_matched` is smaller."""

    settings: Settings
    seed: int
    gamma: float


@dataclass(frozen=True, eq=False)
class TrainedAdapter:
    """One trained member: its parameters as a row (P,) on the CPU, and weighted loss terms by step.

    broken: a message on the first step whose loss was not finite; "" for a usable model.
    """

    model: Model
    row: Tensor
    curve: tuple[tuple[int, dict[str, float]], ...]
    broken: str = ""


def layout_of(settings: Settings, d: int) -> Layout:
    """The parameter layout of one model for embeddings of width d. ValueError if its sizes do not fit that."""
    d_h, m = settings.sizes(d)
    if settings.init == "identity" and d_h != d:
        raise ValueError(
            f"init = 'identity' with d_h = {d_h}\n  accepted: d_h: full, since the identity needs d_h = {d}, the"
            " embedding's width"
        )
    if settings.form in PAIR_FORMS:
        return pair_layout(d, d_h, m)
    if d_h > d:
        raise ValueError(f"d_h = {d_h}\n  accepted for {settings.form}: at most {d}, the embedding's width")
    return sentence_layout(d, d_h, m)


def stack_key(settings: Settings, d: int) -> tuple[object, ...]:
    """Members with equal keys can be trained in one stack: same shapes, batches and optimiser."""
    s, form = settings, PAIR_FORMS.get(settings.form)
    taught = form is not None and form.taught
    return (form is not None, taught, s.sizes(d), s.steps, s.batch_size, s.learning_rate, s.weight_decay, s.tau)


def models_per_stack(layout: Layout) -> int:
    """How many models a stack should hold so that parameters and moments stay in the cache; at least one.

    Models in one stack share the cost of each operation; beyond the cache more of them gain nothing.
    """
    return max(1, CACHED_BYTES // (3 * 4 * layout.size))


def train(
    models: Sequence[Model], data: TaskData, *, device: str, advance: Callable[[int], None]
) -> list[TrainedAdapter]:
    """Train models of one stack key together. advance: called with the model-steps done since its last call."""
    first = models[0].settings
    layout = layout_of(first, data.x.shape[1])
    starts = [
        initial(layout, torch_stream(model.seed, "init"), identity=model.settings.init == "identity")
        for model in models
    ]
    rows = torch.stack(starts).to(device)
    terms = (_pair_terms if first.form in PAIR_FORMS else _sentence_terms)(models, data, device)
    every = max(1, first.steps // CURVE_POINTS)
    kept: list[tuple[int, dict[str, list[float]]]] = []

    def watch(step: int, found: Terms) -> None:
        if step % every == 0 or step == first.steps - 1:
            kept.append((step, {name: value.tolist() for name, value in found.items()}))
            advance(len(models) * (step + 1 - (0 if len(kept) < 2 else kept[-2][0] + 1)))

    broken = descend(
        rows,
        layout,
        terms,
        steps=first.steps,
        learning_rate=first.learning_rate,
        weight_decay=first.weight_decay,
        watch=watch,
    )
    rows = rows.detach().cpu()
    return [
        TrainedAdapter(
            model,
            rows[i].clone(),
            tuple((step, {k: v[i] for k, v in found.items()}) for step, found in kept),
            broken[i],
        )
        for i, model in enumerate(models)
    ]


@dataclass(frozen=True, eq=False)
class _Batches:
    """Training rows as tensors: x (n, d); a, b, gold, anchor (N,); order (steps, S, B), a stream per seed.

    gold: the regression target, which is the label or, for distilled arms, the judge's score.
    seed_of (M,): the index of each model's seed. Arms of one seed read the same rows, so quantities that depend on
    rows alone are gathered once per seed; with a single seed they are never copied.
    """

    x: Tensor
    a: Tensor
    b: Tensor
    gold: Tensor
    anchor: Tensor
    order: Tensor
    seed_of: Tensor

    def sentences(self, step: int) -> Tensor:
        """Sentence rows of both sides of a step's batch. (S, 2 B)."""
        rows = self.order[step]
        return torch.cat([self.a[rows], self.b[rows]], 1)

    def row_each(self, of_seeds: Tensor) -> Tensor:
        """(S, ...) -> (M, ...); with one seed (1, ...) unchanged, for arithmetic that broadcasts."""
        return of_seeds if len(of_seeds) == 1 else of_seeds[self.seed_of]

    def per_model(self, of_seeds: Tensor) -> Tensor:
        """(S, ...) -> (M, ...); a view if there is one seed."""
        return self.row_each(of_seeds).expand(len(self.seed_of), *of_seeds.shape[1:])


def _batches(models: Sequence[Model], data: TaskData, device: str) -> _Batches:
    side, s = data.train, models[0].settings
    seeds = list(dict.fromkeys(model.seed for model in models))
    streams = [batch_rows(len(side.pairs), s.steps, s.batch_size, torch_stream(seed, "data")) for seed in seeds]
    form = PAIR_FORMS.get(s.form)
    target = side.gold if form is None or not form.taught else side.judgement()
    return _Batches(
        x=torch.from_numpy(data.x).to(device),
        a=torch.from_numpy(side.a).to(device),
        b=torch.from_numpy(side.b).to(device),
        gold=torch.from_numpy(target.astype(np.float32)).to(device),
        anchor=torch.from_numpy(side.anchor).to(device),
        order=torch.stack(streams, 1).to(device),
        seed_of=torch.tensor([seeds.index(model.seed) for model in models], device=device),
    )


def _column(values: Sequence[float], device: str) -> Tensor:
    return torch.tensor(values, dtype=torch.float32, device=device)[:, None]  # (M, 1)


def _weights(models: Sequence[Model], field: str, device: str) -> Tensor:
    return torch.tensor([getattr(model.settings, field) for model in models], device=device)  # (M,)


def _pair_terms(models: Sequence[Model], data: TaskData, device: str) -> Callable[[int, dict[str, Tensor]], Terms]:
    forms = [PAIR_FORMS[model.settings.form] for model in models]
    batches = _batches(models, data, device)
    gated = _column([float(form.gated) for form in forms], device)
    gamma = _column([model.gamma for model in models], device)
    rank, hard = _weights(models, "lambda_rank", device), _weights(models, "lambda_hard", device)
    hard = hard * torch.tensor([float(form.target is not None) for form in forms], device=device)
    targets = torch.stack([pair_target(model, data) for model in models]).to(device)  # (M, N)
    tau = models[0].settings.tau

    def terms(step: int, p: dict[str, Tensor]) -> Terms:
        rows = batches.order[step]  # (S, B)
        h = working(p, batches.per_model(batches.x[batches.sentences(step)]))  # (M, 2 B, d_h)
        residual, hardness = pair_heads(p, *h.chunk(2, 1))
        scores = pair_scores(batches.per_model(batches.anchor[rows]), residual, hardness, gamma, gated)
        gold = batches.row_each(batches.gold[rows])
        return {
            "mse": squared_error(scores, gold),
            "rank": rank * rank_loss(scores, gold, tau),
            "hard": hard * squared_error(hardness, targets.gather(1, batches.per_model(rows))),
        }

    return terms


def pair_target(model: Model, data: TaskData) -> Tensor:
    """The hardness target of every training pair, (N,); zeros for an arm without one.

    A shuffled control gets the same values in a seeded order: one permutation for the whole run.
    """
    form = PAIR_FORMS[model.settings.form]
    if form.target is None:
        return torch.zeros(len(data.train.pairs))
    target = torch.from_numpy(data.train.target(form.target, model.settings.ce_map).astype(np.float32))
    if form.shuffled:
        target = target[torch.randperm(len(target), generator=torch_stream(model.seed, "shuffled-target"))]
    return target


def _sentence_terms(
    models: Sequence[Model], data: TaskData, device: str
) -> Callable[[int, dict[str, Tensor]], Terms]:
    batches = _batches(models, data, device)
    mix = mixture(models, device)
    hats = torch.from_numpy(frozen_at_width(data.x, models[0].settings.sizes(data.x.shape[1])[0])).to(device)
    targets = torch.stack([sentence_target(model, data) for model in models]).to(device)  # (M, n)
    supervised = [float(SENTENCE_FORMS[model.settings.form].target is not None) for model in models]
    hard = _weights(models, "lambda_hard", device) * torch.tensor(supervised, device=device)
    rank, anchor = _weights(models, "lambda_rank", device), _weights(models, "lambda_anchor", device)
    tau, size = models[0].settings.tau, models[0].settings.batch_size
    permuted = _permutations(models, size, device)

    def terms(step: int, p: dict[str, Tensor]) -> Terms:
        sentences = batches.sentences(step)  # (S, 2 B)
        x, x_hat = (batches.per_model(table[sentences]) for table in (batches.x, hats))  # (M, 2 B, d or d_h)
        u, c = sentence_vectors(p, x, x_hat, permuted[step], mix)
        scores = (u[:, :size] * u[:, size:]).sum(-1)
        gold = batches.row_each(batches.gold[batches.order[step]])
        return {
            "mse": squared_error(scores, gold),
            "rank": rank * rank_loss(scores, gold, tau),
            "anchor": anchor * anchor_loss(u, x_hat),
            "hard": hard * squared_error(c, targets.gather(1, batches.per_model(sentences))),
        }

    return terms


def _permutations(models: Sequence[Model], size: int, device: str) -> Tensor:
    """The row from which each row takes its shuffled complexity, the same on both sides. (steps, M, 2 B)."""
    drawn = {}
    for seed in dict.fromkeys(model.seed for model in models):
        generator = torch_stream(seed, "shuffled-complexity")
        order = torch.stack([
            torch.randperm(size, generator=generator) for _ in range(models[0].settings.steps)
        ])  # fmt: skip
        drawn[seed] = torch.cat([order, order + size], 1)
    return torch.stack([drawn[model.seed] for model in models], 1).to(device)


def sentence_target(model: Model, data: TaskData) -> Tensor:
    """The complexity target of every sentence, (n,); zeros for an arm without one."""
    match SENTENCE_FORMS[model.settings.form].target:
        case "surface":
            return torch.from_numpy(data.surface.astype(np.float32))
        case "hard_lex":
            return torch.from_numpy(data.sentence_hard_lex.astype(np.float32))
        case _:
            return torch.zeros(len(data.x))


def mixture(models: Sequence[Model], device: str) -> Mix:
    """The coefficients by which the per-sentence arms of a stack differ."""
    forms = [SENTENCE_FORMS[model.settings.form] for model in models]

    def of_source(name: str, value: float) -> Tensor:
        return _column([value if form.source == name else 0.0 for form in forms], device)

    def kept(model: Model, blended: bool) -> float:
        if not blended:
            return 0.0
        return 1.0 - model.gamma if model.settings.interp_form == "interpolate" else 1.0

    pairs = list(zip(models, forms, strict=True))
    return Mix(
        own=of_source("own", 1.0),
        shuffled=of_source("shuffled", 1.0),
        learned=of_source("global", 1.0),
        constant=of_source("half", 0.5),
        alpha0=_column([0.0 if form.source is None else model.settings.alpha0 for model, form in pairs], device),
        keep=_column([kept(model, form.blended) for model, form in pairs], device),
        add=_column([model.gamma if form.blended else 1.0 for model, form in pairs], device),
    )


def frozen_at_width(x: np.ndarray, d_h: int) -> np.ndarray:
    """The frozen vectors at width d_h: unchanged, or by a fixed orthonormal projection, normalised to length 1.

    (n, d) -> (n, d_h). The projection is the same for every seed and arm and is never trained.
    """
    if d_h == x.shape[1]:
        return x
    draw = torch.randn(x.shape[1], d_h, generator=torch_stream(0, "projection"), dtype=torch.float64)
    basis = torch.linalg.qr(draw).Q.float().numpy()
    projected = x @ basis
    return projected / np.linalg.norm(projected, axis=1, keepdims=True)
