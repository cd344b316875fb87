"""What each layer of an encoder holds, and what its readout takes of each.

Layers are counted as papers do: 0 are the embeddings, L is the last. Source: Concept, section 5.1, figure 3 and
the theorem on readout invariance.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evaluators.metrics.geometry import figures
from evaluators.metrics.item_metrics import reciprocal, score_of_items
from evaluators.metrics.retrieval import cosine_ranks
from evaluators.metrics.scores import Score

PROFILE = {"layers/last_gain": True}
READOUT = {"readout/shift": True, "readout/divergence": False}

# (L + 1, D) token means, and (L + 1,) what the readout takes of each
Reading = tuple[np.ndarray, np.ndarray | None]


def profile_scores(
    queries: np.ndarray,
    candidates: np.ndarray,
    texts: np.ndarray,
    gold: Sequence[Sequence[int]],
    item_ids: Sequence[str],
    group_ids: Sequence[str],
) -> list[Score]:
    """Each layer's reciprocal rank and geometry, and what the last layer gains over the one below it.

    queries (Q, L + 1, D), candidates (C, L + 1, D), texts (N, L + 1, D): token means. The gain is per query, so it
    can be judged; the figures of single layers are recorded alone.
    """
    depth = queries.shape[1]
    ranked = [reciprocal(cosine_ranks(queries[:, layer], candidates[:, layer], gold)) for layer in range(depth)]
    scores = [score_of_items("layers/last_gain", "mean", item_ids, group_ids, ranked[-1] - ranked[-2])]
    for layer in range(depth):
        scores.append(Score(metric=f"layers/{layer}/mrr", value=float(ranked[layer].mean())))
        shape = figures(texts[:, layer])
        scores += [
            Score(metric=f"layers/{layer}/anisotropy", value=shape["anisotropy"], larger_is_better=False),
            Score(metric=f"layers/{layer}/effective_rank", value=shape["effective_rank"]),
        ]
    return scores


def readout_scores(means: np.ndarray, taken: np.ndarray) -> list[Score]:
    """How far a mixture of layers is from uniform, and how far it puts texts from their last layer.

    means (N, L + 1, D) token means, not normalised; taken (N, L + 1) what the readout takes of each layer, rows of
    sum 1; the mixed layers are those of which any text takes something.
      shift        mean over texts of max_l |α_l - 1/K|; 0 where one layer is read, since nothing is mixed
      divergence   mean over texts of ‖r_α - z_L‖, r_α the mixture and z_L the last layer
      eta          greatest ‖z_l - z_L‖ over texts and mixed layers; the theorem takes it to be small
      bound_sharp  greatest Σ_l α_l ‖z_l - z_L‖ of a text, at most bound_l1 = max ‖α - β‖₁ · eta with β all on the
                   last layer, at most bound_2eta. Every divergence is at most each of the three.
    """
    last = means[:, -1]
    mixed = np.flatnonzero(taken.any(axis=0))  # (K,)
    away = np.linalg.norm(means[:, mixed] - last[:, None], axis=-1)  # (N, K)
    alpha = taken[:, mixed].astype(np.float64)  # (N, K)
    apart = np.linalg.norm(np.einsum("nk,nkd->nd", alpha, means[:, mixed]) - last, axis=-1)  # (N,)
    eta = float(away.max())
    to_last = np.abs(taken - np.eye(taken.shape[1])[-1]).sum(axis=1)  # (N,) ‖α - β‖₁
    entropy = -(alpha * np.log(np.where(alpha > 0, alpha, 1.0))).sum(axis=1)
    values = {
        "shift": np.abs(alpha - 1 / len(mixed)).max(axis=1).mean(),
        "divergence": apart.mean(),
        "divergence_max": apart.max(),
        "eta": eta,
        "eta_relative": eta / np.linalg.norm(last, axis=-1).mean(),
        "bound_sharp": (alpha * away).sum(axis=1).max(),
        "bound_l1": to_last.max() * eta,
        "bound_2eta": 2 * eta,
        "entropy": entropy.mean(),
        "largest_weight": alpha.max(axis=1).mean(),
        **{f"alpha_{layer}": taken[:, layer].mean() for layer in mixed},
    }
    return [
        Score(metric=f"readout/{name}", value=float(value), larger_is_better=READOUT.get(f"readout/{name}", True))
        for name, value in values.items()
    ]
