"""The batch of a concept step: a pure function of (seed, step, view), then sliced by worker.

Resuming, or another number of workers, changes nothing about the data that a step sees.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from trainers.encoders.tokens import Tokens, within
from trainers.engine.limits import check_shared
from trainers.engine.streams import number, numpy_stream

if TYPE_CHECKING:
    from corpora.concept.records import ConceptCorpus, PairRows, RuleNegatives
    from trainers.concept.settings import Settings
    from trainers.engine.world import World


@dataclass(frozen=True, eq=False)
class View:
    """This worker's b of a view's B rows. keep (b, B): possible negatives. own (b,): the positive's column."""

    name: str
    weight: float
    keep: np.ndarray
    own: np.ndarray


@dataclass(frozen=True, eq=False)
class ConceptBatch:
    """The texts that one worker encodes in one step.

    pairs: for each view b left texts, then b right texts. negatives: N texts; owner (N,): the t2d row of each. A
    worker whose rows have no negatives gets a dummy text, with N = 0, so that all workers encode equally often;
    negatives is None if no worker has any. negatives_of_each: the number of negatives of each worker.
    texts_of_all: the number of texts of all workers together. keep_negatives (b, all workers' negatives): False
    for another row's negative that equals the row's own definition. stream: seed of the dropout stream of
    negatives.
    """

    views: tuple[View, ...]
    pairs: Tokens
    negatives: Tokens | None
    owner: np.ndarray
    negatives_of_each: tuple[int, ...]
    keep_negatives: np.ndarray
    texts_of_all: int
    stream: int

    @property
    def negatives_of_all(self) -> int:
        return sum(self.negatives_of_each)

    def __len__(self) -> int:
        return self.texts_of_all


def batches(
    settings: Settings, corpus: ConceptCorpus, tokenise: Callable[[Sequence[str]], Tokens], seed: int, world: World
) -> Callable[[int], ConceptBatch]:
    """The function from step to batch. Texts are tokenised step by step: 2 ms each, against 10 s in advance.

    Raises ValueError as `views_of`.
    """
    weights, views = settings.weights, views_of(settings, corpus, world.size)
    share = settings.batch_size // world.size
    mine = slice(world.rank * share, (world.rank + 1) * share)

    take = draw_of_epoch if settings.draw == "each_epoch" else draw

    def batch(step: int) -> ConceptBatch:
        drawn = {name: take(rows, settings.batch_size, seed, step) for name, rows in views.items()}
        sides = [
            side
            for name, rows in drawn.items()
            for side in (views[name].left[rows[mine]], views[name].right[rows[mine]])
        ]
        values, owner = np.zeros(0, np.int64), np.zeros(0, np.int64)
        if settings.hard_negatives and "t2d" in drawn:
            values, owner = draw_negatives(
                corpus.negatives, drawn["t2d"], settings.negatives_per_definition, seed, step
            )
        local = (owner >= mine.start) & (owner < mine.stop)
        defined = views["t2d"].right[drawn["t2d"][mine]] if "t2d" in drawn else np.zeros(0, np.int64)
        return ConceptBatch(
            views=tuple(_view(name, views[name], rows, weights[name], mine) for name, rows in drawn.items()),
            pairs=tokenise(corpus.texts.take(np.concatenate(sides))),
            negatives=tokenise(corpus.texts.take(values[local] if local.any() else values[:1]))
            if len(values)
            else None,
            owner=owner[local] - mine.start,
            negatives_of_each=tuple(np.bincount(owner // share, minlength=world.size).tolist()),
            keep_negatives=values[None, :] != defined[:, None],
            texts_of_all=2 * settings.batch_size * len(drawn) + len(values),
            stream=number(seed, "dropout/negatives", step, world.rank),
        )

    return batch


def views_of(settings: Settings, corpus: ConceptCorpus, workers: int) -> dict[str, PairRows]:
    """The views that a step draws from: those with weight and rows.

    ValueError as `check_views` raises it, or when one is smaller than the batch.
    """
    weights, size = settings.weights, settings.batch_size
    held = (rows for rows in (corpus.syn, corpus.t2d, corpus.d2d, corpus.c2l) if rows is not None)
    views = {rows.view: rows for rows in held if weights.get(rows.view) and len(rows)}
    check_views(settings, views, workers)
    fewest = min(views.values(), key=len)
    if len(fewest) < size:
        raise ValueError(
            f"train.batch_size = {size}\n  accepted: at most {len(fewest)}, the {fewest.view} pairs there are"
        )
    return views


def check_views(settings: Settings, held: Collection[str], workers: int) -> None:
    """ValueError when no view with weight is held, or when workers cannot share the batch."""
    weights = settings.weights
    if not any(weights.get(view) for view in held):
        if settings.rows == "ontology":
            raise ValueError("train.rows = 'ontology'\n  accepted: lexicons, or with data.ontology: dbpedia")
        given = ", ".join(f"train.{name}_weight = {weight:g}" for name, weight in weights.items())
        raise ValueError(f"{given}\n  accepted: at least one view with weight and rows")
    check_shared(settings.batch_size, workers)


def draw(rows: PairRows, count: int, seed: int, step: int) -> np.ndarray:
    """Rows of a view for one step, without repetition within it. -> (count,) int64."""
    return numpy_stream(seed, "data", rows.view, step).choice(len(rows), count, replace=False)


def draw_of_epoch(rows: PairRows, count: int, seed: int, step: int) -> np.ndarray:
    """Rows of a view for one step, without repetition within an epoch. -> (count,) int64.

    An epoch has as many steps as whole batches; the few rows left over differ between epochs.
    """
    epoch, place = divmod(step, len(rows) // count)
    order = _order(len(rows), number(seed, "data", rows.view, "epoch", epoch))
    return order[place * count : (place + 1) * count]


@lru_cache(maxsize=6)  # two epochs of three views, so that no order is drawn twice at an epoch's end
def _order(size: int, stream: int) -> np.ndarray:
    """The order of so many rows by a stream's seed. -> (size,) int64."""
    return np.random.default_rng(stream).permutation(size)


def draw_negatives(
    negatives: RuleNegatives, rows: np.ndarray, each: int | None, seed: int, step: int
) -> tuple[np.ndarray, np.ndarray]:
    """At most `each` negatives of each of the step's t2d rows: text indices (N,), and the row of each (N,)."""
    offsets = negatives.texts.offsets
    counts = offsets[rows + 1] - offsets[rows]
    owner = np.repeat(np.arange(len(rows)), counts)
    place = within(counts)
    values = negatives.texts.values[offsets[rows][owner] + place].astype(np.int64)
    if each is None:
        return values, owner
    chance = numpy_stream(seed, "negatives", step).random(len(values))
    order = np.lexsort((chance, owner))  # owners stay in order, a random order within each
    kept = np.sort(order[place < each])
    return values[kept], owner[kept]


def keep_mask(ids: Sequence[Sequence[object]] | Sequence[np.ndarray]) -> np.ndarray:
    """Which cells of a batch may serve as negatives: True where i = j or rows i and j share no id. -> (B, B) bool.

    ids holds B rows of any hashable ids. Two rows of one concept are no negatives of each other.
    """
    holders: dict[object, list[int]] = {}
    for row, members in enumerate(ids):
        for member in members:
            holders.setdefault(int(member) if isinstance(member, np.integer) else member, []).append(row)
    keep = np.ones((len(ids), len(ids)), bool)
    for rows in holders.values():
        if len(rows) > 1:
            keep[np.ix_(rows, rows)] = False
    np.fill_diagonal(keep, True)
    return keep


def _view(name: str, rows: PairRows, drawn: np.ndarray, weight: float, mine: slice) -> View:
    keep = keep_mask([rows.concept_ids[row] for row in drawn])  # (B, B)
    return View(name, weight, keep[mine], np.arange(mine.start, mine.stop))
