"""SentEval's classification, fit by fit, plainly: what the stacked version must agree with.

The control flow is the toolkit's (tools/classifier.py, tools/validation.py): global seeds set at every construction, a
permutation a pass, patience that is never reset, regulariser by rounded mean accuracy. Only what cannot run is left
out: moving everything to CUDA, and hidden layers.
"""

from __future__ import annotations

import copy

import numpy as np
import torch
from sklearn.model_selection import StratifiedKFold
from torch import nn

REGULARISERS = [10**exponent for exponent in range(-5, -1)]


class Classifier:
    def __init__(self, inputs: int, classes: int, l2reg: float, seed: int) -> None:
        np.random.seed(seed)  # noqa: NPY002
        torch.manual_seed(seed)
        self.batch_size, self.epoch_size, self.max_epoch, self.tenacity = 64, 4, 200, 5
        self.model = nn.Sequential(nn.Linear(inputs, classes))
        self.loss = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.Adam(self.model.parameters())
        self.optimizer.param_groups[0]["weight_decay"] = l2reg
        self.epochs = 0

    def fit(self, X, y, validation_data=None, validation_split=None) -> float:
        best, stop, count = -1.0, False, 0
        if validation_data is not None:
            dev_X, dev_y = validation_data
        else:
            order = np.random.permutation(len(X))  # noqa: NPY002
            cut = int(validation_split * len(X))
            dev_X, dev_y = X[order[:cut]], y[order[:cut]]
            X, y = X[order[cut:]], y[order[cut:]]
        X, y = torch.from_numpy(X).float(), torch.from_numpy(y).long()
        while not stop and self.epochs <= self.max_epoch:
            self.train_epochs(X, y)
            accuracy = self.score(dev_X, dev_y)
            if accuracy > best:
                best, kept = accuracy, copy.deepcopy(self.model)
            else:
                if count >= self.tenacity:
                    stop = True
                count += 1
        self.model = kept
        return best

    def train_epochs(self, X, y) -> None:
        self.model.train()
        for _ in range(self.epoch_size):
            order = np.random.permutation(len(X))  # noqa: NPY002
            for start in range(0, len(X), self.batch_size):
                rows = torch.from_numpy(order[start : start + self.batch_size]).long()
                loss = self.loss(self.model(X[rows]), y[rows])
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
        self.epochs += self.epoch_size

    def predict(self, X) -> np.ndarray:
        self.model.eval()
        with torch.no_grad():
            return self.model(torch.from_numpy(X).float()).max(1)[1].numpy()

    def score(self, X, y) -> float:
        return float((self.predict(X) == y).sum()) / len(X)


def folds(seed: int, k: int = 10) -> StratifiedKFold:
    return StratifiedKFold(n_splits=k, shuffle=True, random_state=seed)


def nested(X, y, classes: int = 2, seed: int = 1111, outer: int = 10) -> tuple[float, float, np.ndarray]:
    """Dev and test accuracy x 100 of the toolkit's nested cross-validation, and each row's prediction.

    outer: how many of the ten outer folds are gone through.
    """
    dev, test, said = [], [], np.full(len(y), -1)
    for train_rows, test_rows in list(folds(1111).split(X, y))[:outer]:
        X_train, y_train = X[train_rows], y[train_rows]
        scores = []
        for l2reg in REGULARISERS:
            found = []
            for inner_train, inner_test in folds(1111).split(X_train, y_train):
                classifier = Classifier(X.shape[1], classes, l2reg, seed)
                held = (X_train[inner_test], y_train[inner_test])
                classifier.fit(X_train[inner_train], y_train[inner_train], validation_data=held)
                found.append(classifier.score(*held))
            scores.append(round(100 * np.mean(found), 2))
        dev.append(np.max(scores))
        classifier = Classifier(X.shape[1], classes, REGULARISERS[np.argmax(scores)], seed)
        classifier.fit(X_train, y_train, validation_split=0.05)
        said[test_rows] = classifier.predict(X[test_rows])
        test.append(round(100 * classifier.score(X[test_rows], y[test_rows]), 2))
    return round(np.mean(dev), 2), round(np.mean(test), 2), said


def tuned(X, y, test_X, test_y, classes: int, seed: int = 1111) -> tuple[float, float, np.ndarray]:
    """Regulariser by cross-validation on train, then test."""
    scores = []
    for l2reg in REGULARISERS:
        found = []
        for train_rows, held_rows in folds(seed).split(X, y):
            classifier = Classifier(X.shape[1], classes, l2reg, seed)
            held = (X[held_rows], y[held_rows])
            classifier.fit(X[train_rows], y[train_rows], validation_data=held)
            found.append(classifier.score(*held))
        scores.append(round(100 * np.mean(found), 2))
    classifier = Classifier(X.shape[1], classes, REGULARISERS[np.argmax(scores)], seed)
    classifier.fit(X, y, validation_split=0.05)
    return np.max(scores), round(100 * classifier.score(test_X, test_y), 2), classifier.predict(test_X)


def with_dev(X, y, dev_X, dev_y, test_X, classes: int, seed: int = 1111) -> tuple[float, np.ndarray]:
    """Regulariser by accuracy on dev, then test."""
    scores = []
    for l2reg in REGULARISERS:
        classifier = Classifier(X.shape[1], classes, l2reg, seed)
        classifier.fit(X, y, validation_data=(dev_X, dev_y))
        scores.append(round(100 * classifier.score(dev_X, dev_y), 2))
    classifier = Classifier(X.shape[1], classes, REGULARISERS[np.argmax(scores)], seed)
    classifier.fit(X, y, validation_data=(dev_X, dev_y))
    return np.max(scores), classifier.predict(test_X)
