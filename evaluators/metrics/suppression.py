"""Feature suppression: does cosine follow the words two sentences share, or what they mean?

Two slices of graded pairs tell: alike in meaning with few words in common (hi_lo), and unlike with many (lo_hi).
Source: SAN, section on feature suppression, which prints hi_lo alone and does not define overlap; Jaccard is the
one usual measure that admits all its examples. lo_hi and `partial` are added, for a narrower space concentrates
hi_lo too. The slices by Dice stand beside them, to tell what hangs on the choice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from corpora.sources.shared_words import dice, jaccard
from evaluators.metrics.item_metrics import score_of_items, spearman
from evaluators.metrics.scores import Items, Score

ALIKE, UNLIKE = 4.0, 2.0  # gold from here up, and up to here
SHARED = 0.6  # overlap from here up is high
NEAR = 0.8  # cosine from here up counts as near
SLICES = {"hi_lo": True, "lo_hi": False}  # slice -> whether a larger cosine is better there
USUAL = "jaccard"  # whose figures stand without its name
OVERLAPS: Mapping[str, Callable[[str, str], float]] = {USUAL: jaccard, "dice": dice}
GRID = np.linspace(-1.0, 1.0, 512)  # of the density whose peak is the mode


def metric_names(name: str) -> dict[str, bool]:
    """Every figure that may be claimed; quantiles, mode and number of pairs are recorded beside them."""
    figures = {"partial": False}
    for part, larger in SLICES.items():
        figures |= {f"{part}/mean": larger, f"{part}/standardised": larger, f"{part}/near": larger}
        figures[f"{part}/sd"] = False
    places = [place_of(name, measure) for measure in OVERLAPS]
    return {f"{place}/{figure}": larger for place in places for figure, larger in figures.items()}


def place_of(name: str, measure: str) -> str:
    """What stands before the figures by a measure of overlap."""
    return name if measure == USUAL else f"{name}/{measure}"


def partial_spearman(x: np.ndarray, y: np.ndarray, given: np.ndarray) -> float:
    """Rank correlation of x with y when what each shares with `given` is taken out. (N,) three times -> [-1, 1].

    nan when a column is constant or follows `given` exactly.
    """
    xy, xz, yz = spearman(x, y), spearman(x, given), spearman(y, given)
    rest = (1 - xz**2) * (1 - yz**2)
    return float((xy - xz * yz) / np.sqrt(rest)) if rest > 0 else float("nan")


def suppression_scores(
    name: str, items: Items, cosines: np.ndarray, gold: np.ndarray, overlaps: np.ndarray, random: np.ndarray
) -> list[Score]:
    """Both slices, and how far cosine follows overlap at equal gold.

    cosines, gold, overlaps (N,) of the pairs; random (R,) cosines of random pairs of their texts, by whose mean
    and standard deviation `standardised` is measured. A slice without pairs yields nothing.
    """
    partial = partial_spearman(cosines, overlaps, gold)
    scores = [] if np.isnan(partial) else [Score(metric=f"{name}/partial", value=partial, larger_is_better=False)]
    for part, rows in (
        ("hi_lo", np.flatnonzero((gold >= ALIKE) & (overlaps < SHARED))),
        ("lo_hi", np.flatnonzero((gold <= UNLIKE) & (overlaps >= SHARED))),
    ):
        if len(rows):
            scores += _slice(f"{name}/{part}", SLICES[part], items.take(rows), cosines[rows], random)
    return scores


def _slice(place: str, larger: bool, items: Items, cosines: np.ndarray, random: np.ndarray) -> Iterator[Score]:
    standard = (cosines - random.mean()) / random.std()
    for figure, values in (("mean", cosines), ("standardised", standard), ("near", cosines >= NEAR)):
        yield score_of_items(f"{place}/{figure}", "mean", *items, values, larger_is_better=larger)
    q05, q25, q50, q75, q95 = np.quantile(cosines, (0.05, 0.25, 0.5, 0.75, 0.95))
    described = {"n": len(cosines), "median": q50, "iqr": q75 - q25, "q05": q05, "q95": q95}
    if np.ptp(cosines) > 0:
        from scipy import stats

        density = stats.gaussian_kde(cosines)(GRID)  # Scott's bandwidth
        described["mode"] = GRID[np.argmax(density)]
        yield score_of_items(f"{place}/sd", "sd", *items, cosines, larger_is_better=False)
    for figure, value in described.items():
        yield Score(metric=f"{place}/{figure}", value=float(value))
