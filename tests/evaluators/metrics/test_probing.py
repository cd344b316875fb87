"""The stacked fits against the toolkit's own way, fit by fit, and the three protocols built of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_predict

from corpora.benchmarks.senteval import LEAST
from corpora.store.telling import heard_by
from evaluators.metrics import probing
from evaluators.metrics.linear_probe import Fit, fit_stacked
from tests.evaluators.metrics import senteval_reference as reference


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def clouds(rows: int, width: int, classes: int = 2, seed: int = 0, apart: float = 0.6):
    """Overlapping clouds of one size, shuffled: no classifier gets all of them right."""
    rng = np.random.default_rng(seed)
    labels = np.arange(rows) % classes
    middles = rng.normal(size=(classes, width)) * apart
    features = (rng.normal(size=(rows, width)) + middles[labels]) * 0.3
    order = rng.permutation(rows)
    return features[order].astype(np.float32), labels[order].astype(np.int64)


def test_every_fit_of_a_stack_is_the_fit_it_would_be_alone():
    """Fits of three lengths, with and without held-out rows, several decays: weights, bias and accuracy."""
    x, y = clouds(150, 5, classes=3)
    rng = np.random.default_rng(1)
    rows = [rng.permutation(150) for _ in range(4)]
    decays = (1e-5, 1e-2)
    fits = [
        Fit(row[:length], row[length:], decays) for row, length in zip(rows, (100, 100, 101, 130), strict=True)
    ]
    fits += [Fit(row[:120], None, (1e-3,)) for row in rows]
    for fit, fitted in zip(fits, fit_stacked(x, y, fits, classes=3), strict=True):
        for which, decay in enumerate(fit.decays):
            alone = reference.Classifier(5, 3, decay, seed=1111)
            held = None if fit.dev is None else (x[fit.dev], y[fit.dev])
            share = None if held else 0.05
            best = alone.fit(x[fit.train], y[fit.train], validation_data=held, validation_split=share)
            layer = alone.model[0]
            expected = torch.cat([layer.weight, layer.bias[:, None]], 1).detach().numpy()
            assert fitted.accuracy[which] == best
            np.testing.assert_allclose(fitted.weights[which], expected, atol=5e-5)
            assert (fitted.predicted(x, which) == alone.predict(x)).all()


def test_fits_say_how_far_they_are():
    """A stack of ten in every round, which may take minutes; sklearn's one by one."""
    x, y = clouds(60, 4)
    told = list[str]()
    with heard_by(told.append):
        probing.nested(x, y, 2, replace(probing.toolkit(), grid=(1e-4,)))
    assert told[0] == "fitting classifiers, 0 of 100 done, round 1 of at most 51"
    assert told[1] == "fitting classifiers, 0 of 100 done, round 2 of at most 51"
    assert "fitting classifiers, 90 of 100 done, round 1 of at most 51" in told
    told.clear()
    with heard_by(told.append):
        probing.tuned(x, y, x, 2, replace(probing.logistic(), long_grid=(1.0, 2.0)))
    assert told[:2] == ["fitting classifiers, 1 of 20 done", "fitting classifiers, 2 of 20 done"]
    assert told[-1] == "fitting classifiers, 1 of 1 done"


@pytest.mark.parametrize(
    ("rights", "best", "left"),
    [
        ([3, 2, 4, 4, 1, 5, 0, 0, 0, 60], 5, [60]),  # misses: rounds 2, 4, 5, 7, 8 and 9; the tenth is never run
        (range(1, 61), 51, list(range(52, 61))),  # no miss: the 51st round is the last
    ],
)
def test_patience_is_counted_over_the_whole_fit_and_ends_it_at_the_sixth_miss(monkeypatch, rights, best, left):
    """Right answers on sixty held-out rows, round by round, as if the toolkit had seen them."""
    from evaluators.metrics import linear_probe

    rights = iter(rights)
    x, y = clouds(110, 4)
    dev = np.arange(60)

    def said(weights: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        classes = np.where(dev < next(rights), y[dev], 1 - y[dev])
        return torch.from_numpy(np.eye(2)[classes].T)

    monkeypatch.setattr(linear_probe, "_logits", said)
    (fitted,) = fit_stacked(x, y, [Fit(np.arange(60, 110), dev, (1e-4,))], classes=2)
    assert fitted.accuracy.tolist() == [best / 60]
    assert list(rights) == left


def test_seeding_touches_no_global_stream():
    x, y = clouds(40, 3)
    np.random.seed(3)  # noqa: NPY002
    torch.manual_seed(3)
    before = (np.random.get_state()[1].copy(), torch.get_rng_state())  # noqa: NPY002
    first = fit_stacked(x, y, [Fit(np.arange(30), None, (1e-5,))], classes=2)
    assert (np.random.get_state()[1] == before[0]).all()  # noqa: NPY002
    assert torch.equal(torch.get_rng_state(), before[1])
    np.random.seed(4)  # noqa: NPY002
    second = fit_stacked(x, y, [Fit(np.arange(30), None, (1e-5,))], classes=2)
    assert (first[0].weights == second[0].weights).all()


def test_the_fewest_rows_of_a_class_have_a_row_in_every_fold_of_every_fold():
    """And leave the classifier that is fitted last a row to stop by."""
    y = np.repeat([0, 1], LEAST)
    x = np.eye(2, 4, dtype=np.float32)[y]
    assert set(probing.nested(x, y, 2, probing.toolkit()).tolist()) <= {0, 1}


def test_nested_agrees_with_the_toolkit():
    x, y = clouds(120, 4)
    _, _, expected = reference.nested(x, y, outer=1)
    said = probing.nested(x, y, 2, probing.toolkit())
    gone_through = expected >= 0
    assert gone_through.sum() == 12
    assert (said[gone_through] == expected[gone_through]).all()
    assert set(said.tolist()) == {0, 1}


class Ridge(ClassifierMixin, BaseEstimator):
    """Least squares to -1 and 1 with a decay: a classifier that is fitted at once and whose decay matters."""

    def __init__(self, decay: float = 1.0) -> None:
        self.decay = decay

    def fit(self, x, y):
        self.classes_ = np.unique(y)
        self.weights_ = np.linalg.solve(x.T @ x + self.decay * np.eye(x.shape[1]), x.T @ (2.0 * y - 1))
        return self

    def predict(self, x):
        return (x @ self.weights_ > 0).astype(int)


@dataclass
class Fitted:
    """A `Ridge` for each decay, as `Probe.fit` returns them; accuracy: on the rows held out."""

    models: list[Ridge]
    accuracy: np.ndarray

    def predicted(self, features, which):
        return self.models[which].predict(features)


def fit_ridges(x, y, asked, classes):
    found = []
    for train, held, grid in asked:
        models = [Ridge(decay).fit(x[train], y[train]) for decay in grid]
        held = train if held is None else held
        found.append(Fitted(models, np.array([model.score(x[held], y[held]) for model in models])))
    return found


DECAYS, LONG = (1e-3, 0.1, 1.0, 10.0), (0.03, 3.0, 30.0)
RIDGE = probing.Probe(fit_ridges, DECAYS, LONG)


def test_folds_and_what_they_choose_are_sklearns():
    """Its search within its cross-validation, of a classifier whose predictions depend on both."""
    x, y = clouds(90, 16, seed=3, apart=0.3)
    folds = StratifiedKFold(10, shuffle=True, random_state=1111)
    search = GridSearchCV(Ridge(), {"decay": DECAYS}, cv=folds)
    assert probing.nested(x, y, 2, RIDGE).tolist() == cross_val_predict(search, x, y, cv=folds).tolist()
    search = GridSearchCV(Ridge(), {"decay": LONG}, cv=folds).fit(x[:70], y[:70])
    assert probing.tuned(x[:70], y[:70], x[70:], 2, RIDGE).tolist() == search.predict(x[70:]).tolist()
    dev = [Ridge(decay).fit(x[:50], y[:50]).score(x[50:70], y[50:70]) for decay in DECAYS]
    chosen = Ridge(DECAYS[dev.index(max(dev))]).fit(x[:50], y[:50])
    said = probing.with_dev(x[:50], y[:50], (x[50:70], y[50:70]), x[70:], 2, RIDGE)
    assert said.tolist() == chosen.predict(x[70:]).tolist()


def test_accuracies_are_compared_in_per_cent_to_two_places():
    """As the toolkit compares them; of equals the first is chosen."""
    x, y = np.ones((20, 1)), np.arange(20) % 2
    for accuracy, first in (((0.80001, 0.80004, 0.8), 0), ((0.8001, 0.8003, 0.8), 1)):
        settings = [Ridge().fit(x, np.full(20, which)) for which in (0, 1)]
        told = Fitted([*settings, settings[0]], np.array(accuracy))
        probe = probing.Probe(lambda *asked, told=told: [told], (1.0, 1.0, 1.0), ())
        assert set(probing.with_dev(x, y, (x, y), x, 2, probe)) == {first}


def test_the_grids_are_the_toolkits():
    """Of the logistic regression, as SentEval's validation.py has it: 2^t for t from -2 to 3, and from -1 to 5."""
    assert probing.toolkit().grid == probing.toolkit().long_grid == tuple(reference.REGULARISERS)
    assert probing.logistic().grid == (0.25, 0.5, 1, 2, 4, 8)
    assert probing.logistic().long_grid == (0.5, 1, 2, 4, 8, 16, 32)


def test_tuned_agrees_with_the_toolkit():
    x, y = clouds(160, 6, classes=3)
    _, _, expected = reference.tuned(x[:120], y[:120], x[120:], y[120:], classes=3)
    assert (probing.tuned(x[:120], y[:120], x[120:], 3, probing.toolkit()) == expected).all()


def test_with_dev_agrees_with_the_toolkit_which_fits_once_more():
    x, y = clouds(300, 5)
    _, expected = reference.with_dev(x[:200], y[:200], x[200:250], y[200:250], x[250:], classes=2)
    said = probing.with_dev(x[:200], y[:200], (x[200:250], y[200:250]), x[250:], 2, probing.toolkit())
    assert (said == expected).all()


def test_logistic_regression_is_sklearns():
    """The protocol written down once more, with sklearn's own search for the best C."""
    from sklearn.linear_model import LogisticRegression

    x, y = clouds(260, 6, classes=3)
    folds = StratifiedKFold(10, shuffle=True, random_state=1111)
    model = LogisticRegression(max_iter=1000, random_state=1111)
    search = GridSearchCV(model, {"C": [2.0**t for t in range(-1, 6)]}, cv=folds).fit(x[:200], y[:200])
    assert (probing.tuned(x[:200], y[:200], x[200:], 3, probing.logistic()) == search.predict(x[200:])).all()
