"""Graded sets beside STS-B as pair tasks: SICK-R with its own training part, STS 2012 to 2014 without one.

The yearly sets are test sets, all parts of a year one after another, read whole and capped like any task. An
adapter learns from STS-B's training rows. STS-B was drawn from these sets: rows that share a sentence with the
evaluated year, whatever its blanks, signs and case, are left out of training.
"""

from __future__ import annotations

from dataclasses import replace

from corpora.benchmarks import sts
from corpora.benchmarks.pairs import Pairs, joined, letters_of

YEARS = {"sts12": "STS12", "sts13": "STS13", "sts14": "STS14"}
SETS = ("sickr", *YEARS)


def read_set(task: str, *, test: bool, path: str | None) -> tuple[Pairs, Pairs, str]:
    """Training rows, evaluation rows, gold from 0 to 1, and what they are.

    CorpusError, naming every place that was looked at, where they are not at hand.
    """
    if task == "sickr":
        part = "SICK-R" if test else "SICK-R/trial"
        rows = [_scaled(name, path, sts.SICK_LEAST) for name in ("SICK-R/train", part)]
        return rows[0], rows[1], f"SICK: train, {'test' if test else 'trial'}"
    evaluation, train = (_scaled(name, path, 0.0) for name in (YEARS[task], "STS-B/train"))
    seen = {letters_of(text) for text in (*evaluation.a, *evaluation.b)}
    kept = [
        row for row in range(len(train)) if seen.isdisjoint((letters_of(train.a[row]), letters_of(train.b[row])))
    ]
    return train.take(kept), evaluation, f"STS-B's {len(kept)} training rows without a sentence of {YEARS[task]}"


def _scaled(name: str, path: str | None, least: float) -> Pairs:
    """All subsets of a set, whose gold runs from `least`, with gold from 0 to 1."""
    pairs = joined(sts.read(name, path=path).values())
    return replace(pairs, gold=(pairs.gold - least) / (sts.LARGEST - least))
