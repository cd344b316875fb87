"""Predictions of trained adapters for a task's evaluation pairs: scores, input of retrieval, and diagnostics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from trainers.difficulty.adapters import corrections, pair_heads, sentence_vectors, working
from trainers.difficulty.data import Side, TaskData
from trainers.difficulty.settings import PAIR_FORMS, SENTENCE_FORMS
from trainers.difficulty.stack import TrainedAdapter, frozen_at_width, layout_of, mixture
from trainers.engine.streams import torch_stream

SATURATED = 0.99  # a residual with |delta| above this no longer distinguishes pairs


@dataclass(frozen=True, eq=False)
class Predictions:
    """Scores and frozen cosines of the evaluation pairs, (N,) each, and scores of the training pairs.

    Retrieval ranks candidates either by `vectors`, queries (N, D) and candidates (K, D); or by
    `pair_score(rows, columns)` of query-candidate pairs, which differs by at most `reach` from their frozen
    cosines `anchor` (N, K). Without retrieval both are None.
    """

    scores: np.ndarray
    frozen: np.ndarray
    train_scores: np.ndarray | None = None
    vectors: tuple[np.ndarray, np.ndarray] | None = None
    pair_score: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None
    anchor: np.ndarray | None = None
    reach: float = 0.0
    diagnostics: Mapping[str, float] = field(default_factory=dict)


def candidate_anchor(data: TaskData) -> np.ndarray:
    """Frozen cosine of every query (side a) to every distinct side-b text. (N, K) float32."""
    first, _ = data.task.evaluation.candidates()
    side = data.evaluation
    return (torch.from_numpy(data.x[side.a]) @ torch.from_numpy(data.x[side.b[first]]).T).numpy()


def baseline(data: TaskData, *, retrieval: bool) -> Predictions:
    """Predictions by the frozen cosine."""
    first, _ = data.task.evaluation.candidates()
    side = data.evaluation
    vectors = (data.x[side.a], data.x[side.b[first]]) if retrieval else None
    return Predictions(side.anchor, side.anchor, data.train.anchor, vectors)


def judge_scorer(data: TaskData) -> Predictions:
    """Predictions by the judge, without retrieval, for which it would have to read every query-candidate pair."""
    return Predictions(data.evaluation.judgement(), data.evaluation.anchor)


def pair_predictions(
    trained: TrainedAdapter, data: TaskData, anchor: np.ndarray | None, *, device: str
) -> Predictions:
    """Predictions of a pair arm. anchor (N, K): from `candidate_anchor`, or None for no retrieval."""
    gated, gamma = PAIR_FORMS[trained.model.settings.form].gated, trained.model.gamma
    p = _parameters(trained, data, device)
    h = _working(p, data, device)

    def score(a: np.ndarray, b: np.ndarray, frozen: np.ndarray) -> np.ndarray:
        rows = (torch.from_numpy(side).to(device) for side in (a, b))
        return frozen + np.float32(gamma) * corrections(p, h, *rows, gated=gated).cpu().numpy()

    side = data.evaluation

    def score_candidates(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        assert anchor is not None
        return score(side.a[rows], pool[columns], anchor[rows, columns])

    pool = side.b[data.task.evaluation.candidates()[0]]
    return Predictions(
        scores=score(side.a, side.b, side.anchor),
        frozen=side.anchor,
        train_scores=score(data.train.a, data.train.b, data.train.anchor),
        pair_score=None if anchor is None else score_candidates,
        anchor=anchor,
        reach=gamma,  # |c delta| never exceeds 1
        diagnostics=_pair_diagnostics(trained, *_heads(p, h, side), side),
    )


def mean_gate(trained: TrainedAdapter, data: TaskData, *, device: str) -> float:
    """Mean predicted hardness over the training pairs."""
    p = _parameters(trained, data, device)
    _, hardness = _heads(p, _working(p, data, device), data.train)
    return float(hardness.mean(dtype=np.float64))


def _working(p: dict[str, Tensor], data: TaskData, device: str) -> Tensor:
    """h (Eq. 1) of every sentence, (n, d_h)."""
    with torch.no_grad():
        return working(p, torch.from_numpy(data.x)[None].to(device))[0]


def _heads(p: dict[str, Tensor], h: Tensor, side: Side) -> tuple[np.ndarray, np.ndarray]:
    """Residual and hardness of a split's pairs. (N,) each."""
    with torch.no_grad():
        residual, hardness = pair_heads(p, h[torch.from_numpy(side.a)][None], h[torch.from_numpy(side.b)][None])
    return residual[0].cpu().numpy(), hardness[0].cpu().numpy()


def _pair_diagnostics(
    trained: TrainedAdapter, residual: np.ndarray, hardness: np.ndarray, side: Side
) -> dict[str, float]:
    """Mean gate, saturation and mean correction; MSE of the predicted hardness, and the target's variance."""
    settings = trained.model.settings
    form = PAIR_FORMS[settings.form]
    gate = hardness if form.gated else np.ones_like(hardness)
    diagnostics = {
        "gamma": trained.model.gamma,
        "mean_gate": float(gate.mean(dtype=np.float64)),
        "saturated": float((np.abs(residual) > SATURATED).mean()),
        "mean_correction": float(np.abs(trained.model.gamma * gate * residual).mean(dtype=np.float64)),
    }
    if form.target is not None:
        target = side.target(form.target, settings.ce_map)
        diagnostics["hardness_mse"] = float(((hardness - target) ** 2).mean())
        diagnostics["hardness_variance"] = float(target.var())
    return diagnostics


def sentence_predictions(trained: TrainedAdapter, data: TaskData, *, retrieval: bool, device: str) -> Predictions:
    """Predictions of a per-sentence arm. The shuffled control permutes pairs once per split, by its seed."""
    p = _parameters(trained, data, device)
    mix = mixture([trained.model], device)
    hats = frozen_at_width(data.x, trained.model.settings.sizes(data.x.shape[1])[0])

    def vectors(side: Side, split: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        order = torch.randperm(
            len(side.a), generator=torch_stream(trained.model.seed, f"shuffled-complexity/{split}")
        )
        permuted = torch.cat([order, order + len(order)])[None].to(device)
        sentences = np.concatenate([side.a, side.b])
        x, x_hat = (torch.from_numpy(table[sentences])[None].to(device) for table in (data.x, hats))
        with torch.no_grad():
            u, c = sentence_vectors(p, x, x_hat, permuted, mix)
        left, right = u[0].cpu().numpy().reshape(2, len(side.a), -1)
        return left, right, c[0].cpu().numpy()

    left, right, c = vectors(data.evaluation, "evaluation")
    train_left, train_right, _ = vectors(data.train, "train")
    first, _ = data.task.evaluation.candidates()
    return Predictions(
        scores=np.einsum("nd,nd->n", left, right),
        frozen=data.evaluation.anchor,
        train_scores=np.einsum("nd,nd->n", train_left, train_right),
        vectors=(left, right[first]) if retrieval else None,
        diagnostics=_sentence_diagnostics(trained, c, data),
    )


def _sentence_diagnostics(trained: TrainedAdapter, c: np.ndarray, data: TaskData) -> dict[str, float]:
    """Mean predicted complexity; its MSE against the evaluation split's target, and the target's variance."""
    form = SENTENCE_FORMS[trained.model.settings.form]
    diagnostics = {"mean_complexity": float(c.mean(dtype=np.float64))}
    if form.target is not None:
        sentences = np.concatenate([data.evaluation.a, data.evaluation.b])
        targets = data.surface if form.target == "surface" else data.evaluated_sentence_hard_lex
        target = targets[sentences]
        diagnostics["complexity_mse"] = float(((c - target) ** 2).mean())
        diagnostics["complexity_variance"] = float(target.var())
    return diagnostics


def _parameters(trained: TrainedAdapter, data: TaskData, device: str) -> dict[str, Tensor]:
    """The named parameters of one model, as a stack with M = 1."""
    layout = layout_of(trained.model.settings, data.x.shape[1])
    return layout.views(trained.row[None].to(device))
