"""Claims on made-up paired seeds, and their verdicts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from evaluators.significance.claims import Claim
from evaluators.significance.comparisons import PairedSeeds
from evaluators.significance.judge import judge
from evaluators.significance.paired_items import ItemScores
from evaluators.significance.sequential import Sequential
from evaluators.significance.verdict import Verdict

BASE = (
    0.61, 0.62, 0.6, 0.63, 0.64, 0.615, 0.605, 0.59, 0.6, 0.61,
    0.625, 0.585, 0.615, 0.6, 0.63, 0.62, 0.61, 0.6, 0.59, 0.6,
)  # fmt: skip
DELTAS = [0.6, 0.2, 0.9, -0.1, 0.4, 0.7, 0.3, 0.5, 0.35, 0.8, 0.1, 0.45]
EIGHT = [0.6, 0.2, 0.9, -0.1, 0.4, 0.7, 0.3, 0.5]


def claim(expect: str = "better", name: str = "H1", **declared: object) -> Claim:
    return Claim(claim=name, treatment="A", control="B", metric="score", expect=expect, **declared)  # type: ignore[arg-type]


def paired(deltas: list[float] | np.ndarray, **more: object) -> PairedSeeds:
    control = BASE[: len(deltas)]
    treatment = tuple(float(c + d) for c, d in zip(control, deltas, strict=True))
    return PairedSeeds(seeds=tuple(range(len(deltas))), treatment=treatment, control=control, **more)  # type: ignore[arg-type]


def verdict(deltas: list[float] | np.ndarray, expect: str = "better", **declared: object) -> Verdict:
    return judge([(claim(expect, **declared), paired(deltas))])[0]


def mean_items(
    n: int, m: int, *, seed_sd: float, item_sd: float, noise: float, effect: float = 0.0, seed: int = 0
) -> PairedSeeds:
    """Item scores whose treatment minus control is effect + seed effect + item effect + residual."""
    rng = np.random.default_rng(seed)
    delta = effect + rng.normal(0, seed_sd, (n, 1)) + rng.normal(0, item_sd, m) + rng.normal(0, noise, (n, m))
    control = rng.normal(0.5, 0.1, (n, m))
    return with_items(delta + control, control)


def with_items(
    treatment: np.ndarray, control: np.ndarray, kind: str = "mean", gold: np.ndarray | None = None
) -> PairedSeeds:
    from evaluators.metrics.item_metrics import aggregate

    ids = tuple(map(str, range(treatment.shape[1])))
    items = ItemScores(
        aggregate=kind, treatment=treatment, control=control, gold=gold, item_ids=ids, group_ids=ids
    )  # type: ignore[arg-type]
    scores = [tuple(aggregate(items.aggregate, row, gold) for row in rows) for rows in (treatment, control)]
    return PairedSeeds(seeds=tuple(range(len(treatment))), treatment=scores[0], control=scores[1], items=items)


def isolated(against_control: list[float], against_matched: list[float], **more: object) -> Verdict:
    pairs = paired(against_control)
    matched = tuple(t - d for t, d in zip(pairs.treatment, against_matched, strict=True))
    declared = claim(matched_control="C", signal="hard negatives", **more)
    return judge([(declared, replace(pairs, matched_control=matched))])[0]


def grown(deltas: list[float] | np.ndarray, expect: str = "better", **declared: object) -> Verdict:
    return judge([(claim(expect, **declared), paired(deltas))], sequential=Sequential())[0]
