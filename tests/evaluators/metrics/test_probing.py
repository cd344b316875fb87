"""The stacked fits against the toolkit's own way, fit by fit, and the three protocols built of them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from corpora.benchmarks.senteval import LEAST
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


def test_patience_is_counted_over_the_whole_fit_and_ends_it_at_the_sixth_miss(monkeypatch):
    """Accuracies on ten held-out rows, round by round, as if the toolkit had seen them."""
    from evaluators.metrics import linear_probe

    rights = iter([3, 2, 4, 4, 1, 5, 0, 0, 0, 9])  # misses: rounds 2, 4, 5, 7, 8 and 9; the tenth is never run
    x, y = clouds(60, 4)
    dev = np.arange(10)

    def said(weights: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        right = next(rights)
        classes = np.where(np.arange(10) < right, y[:10], 1 - y[:10])
        return torch.from_numpy(np.eye(2)[classes].T)

    monkeypatch.setattr(linear_probe, "_logits", said)
    (fitted,) = fit_stacked(x, y, [Fit(np.arange(10, 60), dev, (1e-4,))], classes=2)
    assert fitted.accuracy.tolist() == [0.5]
    assert list(rights) == [9]


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
    from sklearn.model_selection import GridSearchCV, StratifiedKFold

    x, y = clouds(260, 6, classes=3)
    folds = StratifiedKFold(10, shuffle=True, random_state=1111)
    model = LogisticRegression(max_iter=1000, random_state=1111)
    search = GridSearchCV(model, {"C": [2.0**t for t in range(-1, 6)]}, cv=folds).fit(x[:200], y[:200])
    assert (probing.tuned(x[:200], y[:200], x[200:], 3, probing.logistic()) == search.predict(x[200:])).all()
