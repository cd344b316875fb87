"""What is measured: on this family's own pairs; and, for encoders of every family, whether word order counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from semray.extending import Benchmark, Score, Task, Tasks, score_of_items
from semray_partners.corpus import Corpus, held_out_fingerprint, load
from semray_partners.settings import Data

Encode = Callable[[Sequence[str]], np.ndarray]  # N texts -> (N, D) float32, of length 1

ORDERS = (  # a sentence, what says the same, and the same words saying another thing
    ("the dog chases the cat", "the dog is chasing the cat", "the cat chases the dog"),
    ("the child feeds the bird", "the child is feeding the bird", "the bird feeds the child"),
    ("water runs over stone", "water is running over stone", "stone runs over water"),
    ("the town needs the river", "the town is in need of the river", "the river needs the town"),
)


def of_corpus(data: Data) -> Tasks:
    """The tasks that only this family has, on the pairs it does not train on."""
    benchmark = Benchmark(fingerprint=lambda: held_out_fingerprint(data), load=lambda: load(data))
    partners = Task(
        name="partners",
        metrics={"partners/margin": True, "partners/recall@1": True},  # whether more is better
        headline="partners/margin",
        benchmark=benchmark,
        texts=lambda corpus: [text for pair in corpus.test for text in pair],
        score=_partners,
        source="the held-out pairs",
    )
    return {partners.name: partners}


def for_every_encoder(path: str | None) -> Tasks:
    """The tasks that studies of any family may name once this package is installed. path: their data.path."""
    name = "partners/word_order"
    order = Task(
        name=name,
        metrics={f"{name}/accuracy": True},
        headline=f"{name}/accuracy",
        benchmark=Benchmark(fingerprint=lambda: repr(ORDERS), load=lambda: ORDERS),
        texts=lambda rows: [text for row in rows for text in row],
        score=lambda rows, encode: _word_order(f"{name}/accuracy", rows, encode),
        source="made up here",
    )
    return {name: order}


def _partners(corpus: Corpus, encode: Encode) -> list[Score]:
    """How much nearer is a text's own partner than the nearest other, and is it nearer at all?

    One item a pair; pairs with one partner share a group.
    """
    left, right = (encode([pair[side] for pair in corpus.test]) for side in (0, 1))  # (N, D) each
    cosines = left @ right.T  # (N, N)
    groups = [pair[1] for pair in corpus.test]
    others = np.array([[mine != other for other in groups] for mine in groups])  # (N, N)
    margin = np.diag(cosines) - np.where(others, cosines, -1.0).max(axis=1)
    items = [f"{number}" for number, _ in enumerate(corpus.test)]
    figures = {"partners/margin": margin, "partners/recall@1": margin > 0}
    return [
        score_of_items(metric, "mean", items, groups, values.astype(np.float64))
        for metric, values in figures.items()
    ]


def _word_order(metric: str, rows: Sequence[tuple[str, str, str]], encode: Encode) -> list[Score]:
    """Is what says the same nearer than the same words in another order?"""
    text, alike, other = (encode([row[column] for row in rows]) for column in range(3))  # (N, D) each
    right = (text * alike).sum(axis=1) > (text * other).sum(axis=1)
    names = [row[0] for row in rows]
    return [score_of_items(metric, "mean", names, names, right.astype(np.float64))]
