"""Tasks as data, and `evaluate`, which encodes every text once and scores task after task.

A task owns its benchmark: the rows it is measured on and their fingerprint. Tables of tasks are functions that
return {name: task}, one for each family (`concept.tasks(data)`) and each public benchmark. A task whose rows or
scoring change gets a new name, or a higher version.

    for task, scores in evaluate([table["t2d"], table["stress"]], {"texts": encoder.encode}): ...
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Generic, TypeVar

import numpy as np

from evaluators.metrics.item_metrics import check_items, repeated
from evaluators.metrics.scores import Score

Data = TypeVar("Data")
Text = TypeVar("Text", bound=Hashable)  # what is encoded: a string, or a word in its sentence

Encode = Callable[[Sequence[Any]], Any]  # N texts -> (N, D) float32; or N answers of another kind
EncodeTexts = Callable[[Sequence[str]], np.ndarray]  # N texts -> (N, D) float32
Readers = Mapping[str, Encode]  # what an encoder reads ("texts", "occurrences", …) -> how it encodes that
MADE_UP_WIDTH = 8  # of made-up vectors; any width yields the same figures
UNSCALED = "unscaled"  # the reader that does not normalise vectors


def made_up_vectors(draws: np.random.Generator, texts: Sequence[Any]) -> np.ndarray:
    """Random vectors for N texts, (N, MADE_UP_WIDTH) float32."""
    return draws.standard_normal((len(texts), MADE_UP_WIDTH), np.float32)


@dataclass(frozen=True, kw_only=True)
class Benchmark(Generic[Data]):
    """The data of a task.

    fingerprint: a fingerprint of its rows, which may read sources but builds nothing. load: returns the rows. Both
    raise CorpusError, naming every place searched, if a source is missing. fingerprint_of: a fingerprint of the
    rows behind these metrics, if each metric has rows of its own.
    """

    fingerprint: Callable[[], str]
    load: Callable[[], Data]
    fingerprint_of: Callable[[Collection[str]], str] | None = None


@dataclass(frozen=True, kw_only=True)
class Task(Generic[Data, Text]):
    """A benchmark with the function that scores an encoder on it.

    metrics: the metrics that `score` can yield, True if larger is better; `score` may yield further figures, such
    as a threshold, which are only recorded. headline: the metric that decides. texts(data): all texts that `score`
    will encode. score(data, encode): the scores with their items; encode maps N texts to (N, D) float32. reads:
    the kind of these texts; encoders declare the kinds that they read. unscaled: the lengths of vectors matter, so
    that texts are encoded without normalising if the encoder can. own_unit: its figures are not scores but, say,
    distances, to which the published spread of scores does not apply. made_up: random answers to N texts, to try
    the task with before training. item_texts(data, metric): item name -> text for people; None if names suffice.
    counted: the plural of what a group of items is ("concepts"), if people would count groups; "" if they count
    items. version: raised when the same rows would be scored otherwise.
    """

    name: str
    metrics: Mapping[str, bool]
    headline: str
    benchmark: Benchmark[Data]
    texts: Callable[[Data], Iterable[Text]]
    score: Callable[[Data, Callable[[Sequence[Text]], Any]], list[Score]]
    source: str
    reads: str = "texts"
    unscaled: bool = False
    own_unit: bool = False
    item_texts: Callable[[Data, str], Mapping[str, str]] | None = None
    counted: str = ""
    made_up: Callable[[np.random.Generator, Sequence[Any]], Any] = made_up_vectors
    version: int = 1

    @property
    def fingerprint(self) -> str:
        """16 hex digits from the task's name, its version and its rows."""
        return self.fingerprint_of(self.version)

    def fingerprint_of(self, version: int) -> str:
        """The fingerprint with another version, by which scores of earlier versions are found."""
        content = json.dumps([self.name, version, self.benchmark.fingerprint()])
        return hashlib.sha256(content.encode()).hexdigest()[:16]


Tasks = Mapping[str, Task[Any, Any]]


Find = Callable[[str], Task[Any, Any]]


class Table(dict[str, Task[Any, Any]]):
    """Tasks by name. Names with certain prefixes are not listed but looked up on access.

    finds: prefix -> a function from a name with it to the task, which raises LookupError, with what is accepted,
    if there is none. broken: messages about packages whose tasks could not be loaded.
    """

    def __init__(self, listed: Tasks, finds: Mapping[str, Find], broken: Sequence[str] = ()) -> None:
        super().__init__(listed)
        self.broken = tuple(broken)
        self.finds = {prefix: cache(find) for prefix, find in finds.items()}

    def __missing__(self, name: str) -> Task[Any, Any]:
        if not self.looks_up(name):
            raise KeyError(name)
        return self._find(name)

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or (
            isinstance(name, str) and self.looks_up(name) and not self.why_not(name)
        )

    def looks_up(self, name: str) -> bool:
        """True for a name that is not listed and has a prefix of `finds`."""
        return not super().__contains__(name) and name.startswith(tuple(self.finds))

    def why_not(self, name: str) -> str:
        """The message of the LookupError for such a name; "" if it has a task."""
        try:
            self._find(name)
        except LookupError as error:
            return str(error)
        return ""

    def _find(self, name: str) -> Task[Any, Any]:
        return next(find for prefix, find in self.finds.items() if name.startswith(prefix))(name)


def _sha256(rows: object) -> str:
    return hashlib.sha256(repr(rows).encode()).hexdigest()


def small(read: Callable[[], Data], named: Callable[[Data], str] = _sha256) -> Benchmark[Data]:
    """A benchmark that reads a few whole files once. named: computes the fingerprint of the rows."""
    rows = cache(read)
    return Benchmark(fingerprint=lambda: named(rows()), load=rows)


def is_dev(name: str) -> bool:
    """True for a task on development data, which a search may use."""
    return name.startswith("dev/")


def metric_names(tasks: Iterable[Task[Any, Any]]) -> dict[str, bool]:
    """Every metric that these tasks can yield, True if larger is better.

    A metric for which a benchmark has no items (such as a kind of negative) yields no figure.
    """
    return {metric: larger for task in tasks for metric, larger in task.metrics.items()}


def named(table: Tasks, names: Iterable[str]) -> list[Task[Any, Any]]:
    """The tasks of these names, each once. Raises ValueError for an unknown name."""
    names = list(names)
    unknown = [name for name in names if name not in table]
    if unknown:
        raise ValueError(f"no task {unknown[0]!r}\n  accepted: {', '.join(table)}")
    return [table[name] for name in dict.fromkeys(names)]


def evaluate(tasks: Sequence[Task[Any, Any]], readers: Readers) -> Iterator[tuple[Task[Any, Any], list[Score]]]:
    """Yield each task with its scores. Every distinct text of all tasks is encoded once, in one call a kind.

    Texts that a task did not list in `texts` are encoded when it asks for them. Raises ValueError, naming task and
    text, for an unusable encoding, a task of a kind that the encoder does not read, or malformed scores.
    """
    unread = [task for task in tasks if task.reads not in readers]
    if unread:
        raise ValueError(
            f"evaluate: {unread[0].name} reads {unread[0].reads}\n"
            f"  accepted: tasks that read {' or '.join(readers)}, as this encoder does"
        )
    benchmarks = {id(task.benchmark): task.benchmark for task in tasks}
    loaded = {key: benchmark.load() for key, benchmark in benchmarks.items()}
    data = {task.name: loaded[id(task.benchmark)] for task in tasks}
    kinds = {task.name: UNSCALED if task.unscaled and UNSCALED in readers else task.reads for task in tasks}
    encoded = {
        kind: _encoded([task for task in tasks if kinds[task.name] == kind], data, readers[kind])
        for kind in dict.fromkeys(kinds.values())
    }
    for task in tasks:
        yield task, _checked_scores(task, task.score(data[task.name], encoded[kinds[task.name]]))


def _checked_scores(task: Task[Any, Any], scores: Any) -> list[Score]:
    """Check a task's scores: a list of Score, at most one a metric, made up of items, better where the task says.

    ValueError otherwise.
    """
    if not isinstance(scores, Sequence) or not all(isinstance(score, Score) for score in scores):
        raise ValueError(f"{task.name}: its score gives a {type(scores).__name__}\n  accepted: a list of Score")
    if (twice := repeated([score.metric for score in scores])) is not None:
        raise ValueError(f"{task.name}: two scores of {twice}\n  accepted: one for each metric")
    for score in scores:
        larger = task.metrics.get(score.metric, score.larger_is_better)
        if score.larger_is_better != larger:
            raise ValueError(
                f"{task.name}: {score.metric}: larger_is_better is {score.larger_is_better} in its score"
                f"\n  accepted: {larger}, as in the task's metrics"
            )
        try:
            check_items(score)
        except ValueError as error:
            raise ValueError(f"{task.name}: {error}") from None
    return list(scores)


def _encoded(tasks: Sequence[Task[Any, Any]], data: Mapping[str, Any], encode: Encode) -> Encode:
    """Encode the texts of these tasks; return a function that looks them up, and encodes any other text."""
    wanted = {task.name: tuple(task.texts(data[task.name])) for task in tasks}
    row_of = {text: row for row, text in enumerate(dict.fromkeys(t for texts in wanted.values() for t in texts))}
    answers = _checked(encode(list(row_of)), row_of, wanted) if row_of else None
    return partial(_look_up, answers, row_of, encode)


def _look_up(answers: Any, row_of: Mapping[Hashable, int], encode: Encode, texts: Sequence[Hashable]) -> Any:
    if not all(text in row_of for text in texts):
        place = {text: row for row, text in enumerate(dict.fromkeys(texts))}
        return _look_up(_checked(encode(list(place)), place, {"a task's own texts": texts}), place, encode, texts)
    rows = [row_of[text] for text in texts]
    return answers[rows] if isinstance(answers, np.ndarray) else [answers[row] for row in rows]


def _checked(answers: Any, row_of: Mapping[Hashable, int], wanted: Mapping[str, Sequence[Hashable]]) -> Any:
    if not isinstance(answers, np.ndarray):
        return answers
    answers = answers.astype(np.float32, copy=False)  # (N, D)
    _check_vectors(answers, row_of, wanted)
    return answers


def _check_vectors(
    vectors: np.ndarray, row_of: Mapping[Hashable, int], wanted: Mapping[str, Sequence[Hashable]]
) -> None:
    """Raise ValueError unless there is one row for each text, finite and not all zeros."""
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
