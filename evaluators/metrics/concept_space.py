"""Is a space of occurrences arranged by lemma or by concept? Gap, silhouettes, and agreement with the taxonomy.

Source: CALE, section 6.
"""

from __future__ import annotations

import numpy as np

from evaluators.metrics.vectors import ROUNDING, unit

BLOCK = 2048  # rows whose distances to every cluster are held at once
METRICS = {
    f"space/{figure}": True
    for figure in ("gap", "silhouette_concept", "silhouette_ub", "wup_all", "wup_same_pos", "wup_dc_sl")
}


def gap(distances: np.ndarray, category: np.ndarray) -> float:
    """Mean distance of one lemma's different concepts less that of one concept's different lemmas.

    distances, category (N,) -> scalar: below 0 where lemmas hold together, above 0 where concepts do; nan when
    either category is empty.
    """
    apart, together = distances[category == 2], distances[category == 1]  # DC/SL, SC/DL
    if not (len(apart) and len(together)):
        return float("nan")
    return float(apart.mean(dtype=np.float64) - together.mean(dtype=np.float64))


def silhouette(vectors: np.ndarray, labels: np.ndarray) -> float:
    """Mean over rows of (b - a) / max(a, b), cosine distance. (N, D), (N,) -> scalar in [-1, 1].

    a: mean distance to the others of the own cluster; b: to the nearest other cluster; 0 for a cluster of one. The
    mean distance to a cluster is 1 - the product with its mean unit vector, so no N x N matrix is made. nan with
    fewer than two clusters. Source: Rousseeuw 1987.
    """
    rows = unit(vectors.astype(np.float64))  # float32 is noise where all rows lie within 1e-6 of each other
    _, label, size = np.unique(labels, return_inverse=True, return_counts=True)
    if len(size) < 2:
        return float("nan")
    order = np.argsort(label, kind="stable")
    sums = np.add.reduceat(rows[order], np.cumsum(size) - size)  # (K, D)
    return float(np.concatenate([
        _widths(rows[start : start + BLOCK] @ sums.T, label[start : start + BLOCK], size)
        for start in range(0, len(rows), BLOCK)
    ]).mean())  # fmt: skip


def _widths(cosines: np.ndarray, own: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Silhouette of each row. cosines (B, K): summed over each cluster; own (B,) clusters; size (K,) -> (B,)."""
    at = np.arange(len(own))
    inside = (size[own] - cosines[at, own]) / np.maximum(size[own] - 1, 1)  # its own distance to itself is 0
    distances = 1 - cosines / size
    distances[at, own] = np.inf
    outside = distances.min(1)
    widest = np.maximum(inside, outside)
    defined = (size[own] > 1) & (widest > ROUNDING)
    return np.divide(outside - inside, widest, out=np.zeros(len(own)), where=defined)
