"""What is measured: tasks as data, and `evaluate`, which encodes every text once and scores them all.

A family keeps its tasks in a table of its own (`concept_tasks`, `cale_tasks`). A task whose data or scoring
changes gets a new name.

    scores = evaluate(TASKS, ["t2d", "stress"], corpus, encoder.encode)
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from evaluators.metrics.scores import Score

Corpus = TypeVar("Corpus")
Text = TypeVar("Text", bound=Hashable)  # what the encoder encodes: a string, or a word in its sentence


@dataclass(frozen=True, kw_only=True)
class Task(Generic[Corpus, Text]):
    """metrics: what `score` can yield, True where larger is better. headline: the one that decides.

    A threshold is no metric: `score` may yield figures that are neither better nor worse, to be recorded alone.
    texts(corpus): everything `score` will want encoded. score(corpus, encode): the figures with their items, where
    encode takes N of those texts to (N, D) float32.
    """

    name: str
    metrics: Mapping[str, bool]
    headline: str
    texts: Callable[[Corpus], Iterable[Text]]
    score: Callable[[Corpus, Callable[[Sequence[Text]], np.ndarray]], list[Score]]
    source: str


Table = Mapping[str, Task[Corpus, Text]]


def metric_names(table: Table[Corpus, Text], names: Sequence[str]) -> dict[str, bool]:
    """Every metric these tasks can yield, True where larger is better.

    What the corpus has no items for (a kind of negative, say) yields no figure. ValueError for an unknown task.
    """
    return {metric: larger for task in _named(table, names) for metric, larger in task.metrics.items()}


def headlines(table: Table[Corpus, Text], names: Sequence[str]) -> tuple[str, ...]:
    """The metric that decides each of these tasks. ValueError for an unknown task."""
    return tuple(task.headline for task in _named(table, names))


def evaluate(
    table: Table[Corpus, Text],
    names: Sequence[str],
    corpus: Corpus,
    encode: Callable[[Sequence[Text]], np.ndarray],
) -> list[Score]:
    """The scores of these tasks, every distinct text encoded once, in one call.

    ValueError for an unknown task, and, naming task and text, when the encoding of a text is not usable.
    """
    tasks = _named(table, names)
    wanted = {task.name: tuple(task.texts(corpus)) for task in tasks}
    row_of = {text: row for row, text in enumerate(dict.fromkeys(t for texts in wanted.values() for t in texts))}
    vectors = np.asarray(encode(list(row_of)), np.float32)  # (N, D)
    _check_vectors(vectors, row_of, wanted)

    def look_up(texts: Sequence[Text]) -> np.ndarray:
        return vectors[[row_of[text] for text in texts]]

    return [score for task in tasks for score in task.score(corpus, look_up)]


def _named(table: Table[Corpus, Text], names: Sequence[str]) -> list[Task[Corpus, Text]]:
    unknown = [name for name in names if name not in table]
    if unknown:
        raise ValueError(f"no task {unknown[0]!r}; accepted: {', '.join(table)}")
    return [table[name] for name in dict.fromkeys(names)]


def _check_vectors(vectors: np.ndarray, row_of: Mapping[Text, int], wanted: Mapping[str, Sequence[Text]]) -> None:
    """ValueError unless there is one finite row with a direction for each text."""
    if vectors.ndim != 2 or len(vectors) != len(row_of):
        raise ValueError(
            f"{', '.join(wanted)}: {len(row_of)} texts, the first {next(iter(row_of), '')!r}, "
            f"were encoded as an array of shape {vectors.shape}; expected ({len(row_of)}, D)"
        )
    usable = np.isfinite(vectors).all(axis=1) & vectors.any(axis=1)
    for task, texts in wanted.items():
        for text in texts:
            if not usable[row_of[text]]:
                raise ValueError(f"{task}: the encoding of {text!r} is all zeros or not finite")
