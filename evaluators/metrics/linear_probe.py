"""SentEval's classifier without hidden layer, many fits at once: a linear layer each, softmax cross-entropy, Adam.

Every fit of the toolkit is seeded anew, so fits on equally many rows draw the same batches by place, and fits on
the same rows that differ only in weight decay read the very same batches. Such fits train in lockstep as one
stack, with the numbers each would have alone up to the order of float32 sums.
Source: SentEval, tools/classifier.py.

The rules, as the toolkit has them: Adam at 1e-3 with weight decay added to the gradient, of the bias too; batches
of 64; a round is 4 passes; after each round the accuracy on held-out rows is looked at, the first best model is
kept, and the sixth round without a new best, counted over the whole fit, ends it, as does the 51st round.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from corpora.store.telling import aloud

SEED = 1111
BATCH = 64
RATE, BETAS, EPSILON = 1e-3, (0.9, 0.999), 1e-8
PASSES = 4  # of a round
ROUNDS = 51
TENACITY = 5  # rounds without a new best that are forgiven
HELD_OUT = 0.05  # of the rows, where no held-out rows are given
PORTION = 10  # fits on different rows in lockstep; fastest of 4, 10, 20, 50 with 384 features on one thread


@dataclass(frozen=True, eq=False)
class Fit:
    """Training rows, development rows (None: a random twentieth of the training rows), and weight decays."""

    train: np.ndarray
    dev: np.ndarray | None
    decays: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Fitted:
    """One model for each decay: weights (R, C, D + 1), the bias last; accuracy (R,) on the development rows."""

    weights: np.ndarray
    accuracy: np.ndarray

    def predicted(self, features: np.ndarray, which: int) -> np.ndarray:
        """Classes of rows by the model of one decay. (N, D) -> (N,)."""
        weights = torch.from_numpy(self.weights[which])
        return _logits(weights, _with_ones(features)).argmax(0).numpy()


def fit_stacked(features: np.ndarray, labels: np.ndarray, fits: Sequence[Fit], classes: int) -> list[Fitted]:
    """Train all fits. features (N, D) float32, labels (N,) from 0; the rows of a fit are places in these."""
    x, y = _with_ones(features), torch.from_numpy(labels)
    stacks: dict[tuple[int, bool, int], list[int]] = {}
    for place, fit in enumerate(fits):
        stacks.setdefault((len(fit.train), fit.dev is None, len(fit.decays)), []).append(place)
    done: dict[int, Fitted] = {}
    for members in stacks.values():
        for start in range(0, len(members), PORTION):
            portion = members[start : start + PORTION]
            doing = f"fitting classifiers, {len(done):,} of {len(fits):,} done"
            fitted = _lockstep(x, y, [fits[place] for place in portion], classes, doing)
            done |= zip(portion, fitted, strict=True)
    return [done[place] for place in range(len(fits))]


def _lockstep(x: Tensor, y: Tensor, fits: Sequence[Fit], classes: int, doing: str) -> Iterator[Fitted]:
    """Fits on equally many rows, with equally many decays: G fits, R decays, C classes. doing: told by round."""
    shuffled = np.random.RandomState(SEED)  # the toolkit's own stream
    train, dev = _split(fits, shuffled)
    decays = torch.tensor([fit.decays for fit in fits], dtype=torch.float32)  # (G, R)
    weights = _initial(classes, x.shape[1]).repeat(len(fits), decays.shape[1], 1)  # (G, R·C, D + 1)
    one_hot = torch.nn.functional.one_hot(y, classes).float()  # (N, C)
    adam = _Adam(weights, decays.repeat_interleave(classes, 1)[:, :, None])
    best = weights.clone().view(*decays.shape, classes, -1)
    accuracy, missed = np.full(decays.shape, -1.0), np.zeros(decays.shape, int)
    active = np.arange(len(fits))
    for turn in range(1, ROUNDS + 1):
        aloud(f"{doing}, round {turn} of at most {ROUNDS}")
        for _ in range(PASSES):
            rows = train[active][:, torch.from_numpy(shuffled.permutation(train.shape[1]))]  # (G, n)
            for start in range(0, rows.shape[1], BATCH):
                adam.step(_gradient(adam.weights, x, one_hot, rows[:, start : start + BATCH]))
        found = adam.weights.view(len(active), *best.shape[1:])
        for place, fit in enumerate(active):
            classes_of = _logits(found[place].flatten(0, 1), x[dev[fit]]).view(*best.shape[1:3], -1).argmax(1)
            right = (classes_of == y[dev[fit]]).sum(1).numpy() / len(dev[fit])  # (R,)
            better = (right > accuracy[fit]) & (missed[fit] <= TENACITY)
            best[fit, better] = found[place, better]
            accuracy[fit] = np.where(better, right, accuracy[fit])
            missed[fit] += ~better
        going = np.any(missed[active] <= TENACITY, axis=1)
        if not going.any():
            break
        adam.keep(going)
        active = active[going]
    return (Fitted(best[fit].numpy(), accuracy[fit]) for fit in range(len(fits)))


def _split(fits: Sequence[Fit], shuffled: np.random.RandomState) -> tuple[Tensor, list[Tensor]]:
    """The training rows (G, n), and the development rows of each fit. Drawing them is the stream's first use."""
    if fits[0].dev is not None:
        held = [torch.from_numpy(fit.dev) for fit in fits if fit.dev is not None]
        return torch.from_numpy(np.stack([fit.train for fit in fits])), held
    count = len(fits[0].train)
    order, cut = shuffled.permutation(count), int(HELD_OUT * count)
    train = np.stack([fit.train[order[cut:]] for fit in fits])
    return torch.from_numpy(train), [torch.from_numpy(fit.train[order[:cut]]) for fit in fits]


def _initial(classes: int, width: int) -> Tensor:
    """The initial weights and bias of torch's linear layer after `torch.manual_seed(SEED)`. -> (C, D + 1)."""
    generator = torch.Generator().manual_seed(SEED)
    bound = (width - 1) ** -0.5
    weights = torch.empty(classes, width - 1).uniform_(-bound, bound, generator=generator)
    bias = torch.empty(classes).uniform_(-bound, bound, generator=generator)
    return torch.cat([weights, bias[:, None]], 1)


def _gradient(weights: Tensor, x: Tensor, one_hot: Tensor, rows: Tensor) -> Tensor:
    """The gradient of each model's mean cross-entropy on its batch. (G, R·C, D + 1), rows (G, b) -> as weights."""
    batch = x[rows]  # (G, b, D + 1)
    logits = torch.bmm(weights, batch.transpose(1, 2))  # (G, R·C, b)
    fits, width, size = logits.shape
    classes = one_hot.shape[1]
    chance = torch.softmax(logits.view(fits, width // classes, classes, size), 2)
    wrong = (chance - one_hot[rows].transpose(1, 2)[:, None]).view(fits, width, size)
    return torch.bmm(wrong, batch).div_(size)


def _logits(weights: Tensor, x: Tensor) -> Tensor:
    """(K, D + 1), (n, D + 1) -> (K, n)."""
    return weights @ x.T


def _with_ones(features: np.ndarray) -> Tensor:
    """Append a column of ones, whose weight is the bias. (N, D) -> (N, D + 1)."""
    x = torch.from_numpy(np.ascontiguousarray(features, np.float32))
    return torch.cat([x, torch.ones(len(x), 1)], 1)


class _Adam:
    """Torch's Adam over a stack whose members have their own decays. weights (G, K, D + 1), decays (G, K, 1)."""

    def __init__(self, weights: Tensor, decays: Tensor) -> None:
        self.weights, self.decays = weights, decays
        self.mean, self.square = torch.zeros_like(weights), torch.zeros_like(weights)
        self.steps = 0

    def step(self, gradient: Tensor) -> None:
        self.steps += 1
        gradient.addcmul_(self.weights, self.decays)
        self.mean.lerp_(gradient, 1 - BETAS[0])
        self.square.mul_(BETAS[1]).addcmul_(gradient, gradient, value=1 - BETAS[1])
        spread = self.square.sqrt().div_((1 - BETAS[1] ** self.steps) ** 0.5).add_(EPSILON)
        self.weights.addcdiv_(self.mean, spread, value=-RATE / (1 - BETAS[0] ** self.steps))

    def keep(self, chosen: np.ndarray) -> None:
        """Continue with only these members. (G,) bool."""
        if not chosen.all():
            kept = torch.from_numpy(chosen)
            self.weights, self.decays = self.weights[kept], self.decays[kept]
            self.mean, self.square = self.mean[kept], self.square[kept]
