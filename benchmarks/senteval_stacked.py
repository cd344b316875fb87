"""SentEval's nested cross-validation on MR: all fits in stacks, against fit by fit as the toolkit does it.

    SEMRAY_DATA=FOLDER python benchmarks/senteval_stacked.py

Vectors are those of the frozen all-MiniLM-L6-v2, encoded beforehand. One thread; CPU time, since a shared machine
disturbs wall time more. Fit by fit is timed on the first two inner folds with all four weight decays; beside the
times stands how far its accuracies are from those of the stack.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import numpy as np
import torch
from tables import save

from corpora.benchmarks import senteval
from evaluators.metrics import probing
from evaluators.metrics.linear_probe import Fit, fit_stacked
from trainers.encoders.backbones import resolve_backbone
from trainers.encoders.encoder import Encoder

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.evaluators.metrics import senteval_reference as reference

FOLDS = 2  # inner folds that are gone through fit by fit
FITS = 10 * (10 * 4 + 1)  # of the whole protocol


def inner_folds(y: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """The first inner folds of the first outer fold, as rows of the whole set."""
    train, _ = next(reference.folds(1111).split(y, y))
    parts = list(reference.folds(1111).split(train, y[train]))[:FOLDS]
    return [(train[rows], train[held]) for rows, held in parts]


def fit_by_fit(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Accuracy on the held-out rows of each fold and weight decay."""
    found = []
    for rows, held in inner_folds(y):
        for l2reg in reference.REGULARISERS:
            classifier = reference.Classifier(x.shape[1], 2, l2reg, 1111)
            found.append(classifier.fit(x[rows], y[rows], validation_data=(x[held], y[held])))
    return np.array(found).reshape(FOLDS, -1)


def main() -> None:
    torch.set_num_threads(1)
    rows = senteval.read("MR", path=os.environ.get("SEMRAY_DATA"))["all"]
    x = Encoder.load(resolve_backbone("all-MiniLM-L6-v2"), max_length=256).encode(rows.sides[0])
    y = rows.labels
    began = time.process_time()
    alone = fit_by_fit(x, y)
    plain = (time.process_time() - began) / alone.size
    asked = [Fit(train, held, probing.toolkit().grid) for train, held in inner_folds(y)]
    stacked = np.stack([fitted.accuracy for fitted in fit_stacked(x, y, asked, classes=2)])
    began = time.process_time()
    said = probing.nested(x, y, 2, probing.toolkit())
    whole = time.process_time() - began
    save(
        "senteval_stacked",
        "SentEval's nested protocol, stacked",
        [
            {
                "set": "MR",
                "fits": FITS,
                "fit by fit, CPU s a fit": plain,
                "stacked, CPU s a fit": whole / FITS,
                "gain": plain * FITS / whole,
                "stacked, CPU s in all": whole,
                "accuracy": float((said == y).mean()),
                "largest difference in accuracy of a fit": float(np.abs(stacked - alone).max()),
            }
        ],
        [
            f"fit by fit: {alone.size} of {FITS} fits, done as in tests/evaluators/metrics/senteval_reference.py",
            "stacked: all fits of the protocol, folds and tests included",
            f"{len(y)} sentences, frozen all-MiniLM-L6-v2, one thread, float32",
        ],
        packages=("torch", "scikit-learn"),
    )


if __name__ == "__main__":
    main()
