"""Headroom before training: how much can be gained on a task, and do difficulty signals know where?

Source: Hwang 2026, section 4, the headroom diagnostic. Computed from frozen cosines alone. The check of training
targets against the label is ours: a target that is 1 - gold in disguise makes the gate a second label head.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from corpora.difficulty.rows import PairTask
from corpora.difficulty.surface import hard_lex, per_sentence, surface_complexity, tokens
from evaluators.metrics.item_metrics import pearson, spearman

ALIGNED = 0.1  # a signal that correlates less with the error has nothing to say about it
LABEL = 0.8  # a target that correlates more with 1 - gold is the label
SATURATED_SPEARMAN, SMALL_SPREAD = 0.85, 0.15


@dataclass(frozen=True, kw_only=True)
class Headroom:
    """One task before training. err is |cos - gold| of a pair; alignments are Pearson correlations with it.

    alignment: signals of a pair. sentence_alignment: signals of a sentence, with the mean err of its pairs.
    target_is_label: training targets, with 1 - gold. flags and advice are for people.
    """

    task: str
    pairs: int
    spearman: float
    pearson: float
    err_mean: float
    err_std: float
    share_zero: float
    share_one: float
    alignment: Mapping[str, float]
    sentence_alignment: Mapping[str, float]
    target_is_label: Mapping[str, float]
    flags: tuple[str, ...]
    advice: str


def headroom(
    task: PairTask,
    cosine: np.ndarray,
    signals: Mapping[str, np.ndarray],
    targets: Mapping[str, np.ndarray],
) -> Headroom:
    """The headroom of one task. cosine (N,): of its evaluation pairs. signals: name -> (N,) for the same pairs.

    targets: name -> supervision targets of the TRAINING pairs. The signals hard_lex, length and surface label,
    which depend on the wording alone, are added here.
    """
    pairs = task.evaluation
    found = {"hard_lex": hard_lex(pairs.a, pairs.b, pairs.gold), **signals}
    error = np.abs(cosine - pairs.gold)
    numbers = measured(cosine, pairs.gold, found)
    label = {name: pearson(1 - task.train.gold, target) for name, target in targets.items()}
    flags = _flags(numbers["alignment"], label)
    return Headroom(
        task=task.name,
        pairs=len(pairs),
        **numbers,
        share_zero=float((pairs.gold == 0).mean()),
        share_one=float((pairs.gold == 1).mean()),
        sentence_alignment=_of_sentences(task, error, found["hard_lex"]),
        target_is_label=label,
        flags=flags,
        advice=_advice(numbers, label),
    )


def measured(cosine: np.ndarray, gold: np.ndarray, signals: Mapping[str, np.ndarray]) -> dict:
    """Baseline correlations, mean and population spread of the error, alignment of each signal with it."""
    error = np.abs(cosine - gold)
    return {
        "spearman": spearman(gold, cosine),
        "pearson": pearson(gold, cosine),
        "err_mean": float(error.mean()),
        "err_std": float(error.std()),
        "alignment": {name: pearson(error, signal) for name, signal in signals.items()},
    }


def _of_sentences(task: PairTask, error: np.ndarray, lexical: np.ndarray) -> dict[str, float]:
    """Length, surface label and mean hard_lex of a sentence against the mean error of its evaluation pairs."""
    pairs = task.evaluation
    mean_error = per_sentence(pairs.a, pairs.b, error)
    mean_lexical = per_sentence(pairs.a, pairs.b, lexical)
    sentences = list(mean_error)
    errors = np.array(list(mean_error.values()))
    return {
        "length": pearson(errors, np.array([float(len(tokens(sentence))) for sentence in sentences])),
        "surface": pearson(errors, surface_complexity(sentences)),
        "hard_lex": pearson(errors, np.array([mean_lexical[sentence] for sentence in sentences])),
    }


def _flags(alignment: Mapping[str, float], label: Mapping[str, float]) -> tuple[str, ...]:
    """Below, `not >` so that an undefined correlation is flagged as well."""
    return (
        *(f"no aligned headroom: {name} ({r:+.2f})" for name, r in alignment.items() if not abs(r) > ALIGNED),
        *(f"target is the label: {name} ({r:+.2f})" for name, r in label.items() if abs(r) > LABEL),
    )


def _advice(numbers: Mapping, label: Mapping[str, float]) -> str:
    """One sentence on what to do next."""
    aligned = {name: r for name, r in numbers["alignment"].items() if r > ALIGNED}
    honest = {name: r for name, r in aligned.items() if abs(label.get(name, 0.0)) <= LABEL}
    if numbers["spearman"] > SATURATED_SPEARMAN and numbers["err_std"] < SMALL_SPREAD:
        state = f"The frozen baseline is near its ceiling (Spearman {numbers['spearman']:.3f}, small errors)"
    else:
        state = f"The frozen baseline leaves room (Spearman {numbers['spearman']:.3f})"
    disguised = {name: r for name, r in aligned.items() if name not in honest}
    if disguised:
        best = max(disguised, key=disguised.__getitem__)
        state += (
            f"; {best} follows its errors ({disguised[best]:+.2f}), but as a target it is nearly 1 - gold: only"
            " pair_label_target can tell that difficulty from the label"
        )
    if honest:
        best = max(honest, key=honest.__getitem__)
        return f"{state}; {best} knows where it errs ({honest[best]:+.2f}): compare it with its shuffled control."
    if disguised:
        return f"{state}."
    return (
        f"{state}, but no signal follows its errors: a gated adapter would learn a constant; find another signal."
    )
