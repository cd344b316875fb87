"""SentEval's three protocols, which differ in how the regulariser is chosen and which rows are tested.

`toolkit` trains the toolkit's own classifier, all fits of a protocol stacked; `logistic` is sklearn's logistic
regression, whose figures are other figures. Source: SentEval, tools/validation.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from corpora.store.telling import aloud, counted

FOLDS = 10
SEED = 1111  # the toolkit's default, and the seed that its nested protocol has for both cross-validations


class Predictor(Protocol):
    """One classifier for each setting of a grid; accuracy (R,) on the rows held out."""

    @property
    def accuracy(self) -> np.ndarray: ...

    def predicted(self, features: np.ndarray, which: int) -> np.ndarray: ...


# Rows to train on, rows held out (None: no others than a part of the training rows), settings of the grid.
Asked = tuple[np.ndarray, np.ndarray | None, tuple[float, ...]]


@dataclass(frozen=True)
class Probe:
    """fit(features, labels, asked, classes) answers each of `asked`.

    grid: settings where dev or inner folds choose; long_grid: where folds of a training part choose.
    """

    fit: Callable[[np.ndarray, np.ndarray, Sequence[Asked], int], Sequence[Predictor]]
    grid: tuple[float, ...]
    long_grid: tuple[float, ...]


def nested(x: np.ndarray, y: np.ndarray, classes: int, probe: Probe) -> np.ndarray:
    """Each row's class, by a classifier that never saw it: regulariser by inner folds, ten outer folds.

    x (N, D), y (N,) in the order in which the folds are dealt -> (N,).
    """
    outer = _folds(y)
    inner = [(train[rows], train[held], probe.grid) for train, _ in outer for rows, held in _folds(y[train])]
    scanned = probe.fit(x, y, inner, classes)
    chosen = [_best(scanned[start : start + FOLDS]) for start in range(0, len(scanned), FOLDS)]
    refits = [(train, None, (probe.grid[best],)) for (train, _), best in zip(outer, chosen, strict=True)]
    said = np.empty(len(y), np.int64)
    for (_, test), fitted in zip(outer, probe.fit(x, y, refits, classes), strict=True):
        said[test] = fitted.predicted(x[test], 0)
    return said


def tuned(x: np.ndarray, y: np.ndarray, test: np.ndarray, classes: int, probe: Probe) -> np.ndarray:
    """Classes of test rows: regulariser by ten folds of the training part, then one fit on all of it. -> (M,)."""
    scanned = probe.fit(x, y, [(rows, held, probe.long_grid) for rows, held in _folds(y)], classes)
    setting = probe.long_grid[_best(scanned)]
    (fitted,) = probe.fit(x, y, [(np.arange(len(y)), None, (setting,))], classes)
    return fitted.predicted(test, 0)


def with_dev(
    x: np.ndarray,
    y: np.ndarray,
    dev: tuple[np.ndarray, np.ndarray],
    test: np.ndarray,
    classes: int,
    probe: Probe,
) -> np.ndarray:
    """Classes of test rows: regulariser by accuracy on dev, whose classifier is tested as it is. -> (M,).

    The toolkit fits once more with what it chose; seeded anew, that fit is the one it chose.
    """
    features, labels = np.concatenate([x, dev[0]]), np.concatenate([y, dev[1]])
    rows = (np.arange(len(y)), np.arange(len(y), len(labels)), probe.grid)
    scanned = probe.fit(features, labels, [rows], classes)
    return scanned[0].predicted(test, _best(scanned))


def _folds(y: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    from sklearn.model_selection import StratifiedKFold

    return list(StratifiedKFold(FOLDS, shuffle=True, random_state=SEED).split(y, y))


def _best(scanned: Sequence[Predictor]) -> int:
    """The setting with the highest mean accuracy in per cent, rounded to two places; of equals the first."""
    by_setting = zip(*(fitted.accuracy.tolist() for fitted in scanned), strict=True)
    return int(np.argmax([round(100 * np.mean(found), 2) for found in by_setting]))


def toolkit() -> Probe:
    """The toolkit's linear layer, trained by torch; the grid is of weight decays."""
    from evaluators.metrics.linear_probe import Fit, Fitted, fit_stacked

    def fit(x: np.ndarray, y: np.ndarray, asked: Sequence[Asked], classes: int) -> list[Fitted]:
        return fit_stacked(x, y, [Fit(*one) for one in asked], classes)

    decays = (1e-5, 1e-4, 1e-3, 1e-2)
    return Probe(fit, decays, decays)


def logistic() -> Probe:
    """sklearn's logistic regression; the grid is of C. It converges, so it needs no held-out rows to stop at.

    Departure: solved by L-BFGS, as liblinear, the toolkit's solver of its day, no longer takes six classes.
    """
    return Probe(_fit_logistic, tuple(2.0**t for t in range(-2, 4)), tuple(2.0**t for t in range(-1, 6)))


@dataclass(frozen=True, eq=False)
class _Logistic:
    models: Sequence
    accuracy: np.ndarray

    def predicted(self, features: np.ndarray, which: int) -> np.ndarray:
        return self.models[which].predict(features)


def _fit_logistic(x: np.ndarray, y: np.ndarray, asked: Sequence[Asked], classes: int) -> list[_Logistic]:
    from sklearn.linear_model import LogisticRegression

    count = counted("fitting classifiers", sum(len(grid) for _, _, grid in asked), aloud)

    def model(rows: np.ndarray, c: float) -> LogisticRegression:
        fitted = LogisticRegression(C=c, random_state=SEED, max_iter=1000).fit(x[rows], y[rows])
        count(1)
        return fitted

    found = []
    for train, held, grid in asked:
        models = [model(train, c) for c in grid]
        scores = [0.0 if held is None else one.score(x[held], y[held]) for one in models]
        found.append(_Logistic(models, np.array(scores)))
    return found
