"""SentEval's classification by a linear classifier on frozen vectors. Accuracy, and F1 for MRPC.

    table = tasks("data")          # {"senteval/MR": Task, ..., "senteval-sklearn/MR": Task, ...}

`senteval/…` uses the toolkit's own classifier and protocol; `senteval-sklearn/…` uses sklearn's logistic
regression instead. Figures of the two are never compared. Source: Conneau and Kiela 2018.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np

from corpora.benchmarks import senteval
from corpora.benchmarks.pairs import Pairs
from corpora.benchmarks.senteval import Labelled, Splits
from evaluators.metrics.item_metrics import score_of_items
from evaluators.metrics.scores import Items, Score
from evaluators.tasks.named_items import pair_items, text_items
from evaluators.tasks.task import Benchmark, EncodeTexts, Task, small

if TYPE_CHECKING:
    from evaluators.metrics.probing import Probe

SentEvalTask = Task[Splits, str]
ProbeName = Literal["toolkit", "logistic"]

TOOLKIT, SKLEARN = "senteval/", "senteval-sklearn/"  # prefixes of the tasks of each classifier
SEVEN = tuple(f"{TOOLKIT}{name}" for name in senteval.NAMES)
SEVEN_SKLEARN = tuple(f"{SKLEARN}{name}" for name in senteval.NAMES)


def tasks(path: str | None) -> dict[str, SentEvalTask]:
    """Every task by name, with both probes; path: a folder to look in before $SEMRAY_DATA."""
    table = {}
    for set_name in senteval.NAMES:
        benchmark = small(partial(senteval.read, set_name, path=path), senteval.fingerprint)
        table[f"{TOOLKIT}{set_name}"] = _task(f"{TOOLKIT}{set_name}", benchmark, "toolkit")
        table[f"{SKLEARN}{set_name}"] = _task(f"{SKLEARN}{set_name}", benchmark, "logistic")
    return table


def _task(name: str, benchmark: Benchmark[Splits], probe: ProbeName) -> SentEvalTask:
    paired = name.endswith("/MRPC")

    def score(splits: Splits, encode: EncodeTexts) -> list[Score]:
        from evaluators.metrics import probing

        classes = predicted(splits, encode, getattr(probing, probe)())
        tested = _tested(splits)
        items = items_of(tested)
        right = (classes == tested.labels).astype(np.float64)
        scores = [score_of_items(f"{name}/accuracy", "mean", *items, right)]
        if paired:
            scores.append(score_of_items(f"{name}/f1", "f1", *items, classes.astype(np.float64), tested.labels))
        return scores

    return SentEvalTask(
        name=name,
        metrics={f"{name}/accuracy": True} | ({f"{name}/f1": True} if paired else {}),
        headline=f"{name}/accuracy",
        benchmark=benchmark,
        texts=lambda splits: [text for rows in splits.values() for side in rows.sides for text in side],
        score=score,
        item_texts=lambda splits, metric: item_texts_of(_tested(splits)),
        source="Conneau and Kiela 2018" + ("; classifier: sklearn" if probe == "logistic" else ""),
        unscaled=True,
        version=3,  # 1 named items by their lines, and brought vectors to length 1; 2 gave "." and "*" one name
    )


def _tested(splits: Splits) -> Labelled:
    return splits["all" if "all" in splits else "test"]


def predicted(splits: Splits, encode: EncodeTexts, probe: Probe) -> np.ndarray:
    """The predicted class of each tested row, by the protocol for the set's splits. -> (N,)."""
    from evaluators.metrics import probing

    if "all" in splits:
        rows = splits["all"]
        return probing.nested(features(rows, encode), rows.labels, _classes(splits), probe)
    train, test = splits["train"], splits["test"]
    x, tested = features(train, encode), features(test, encode)
    if "dev" in splits:
        dev = (features(splits["dev"], encode), splits["dev"].labels)
        return probing.with_dev(x, train.labels, dev, tested, _classes(splits), probe)
    return probing.tuned(x, train.labels, tested, _classes(splits), probe)


def features(rows: Labelled, encode: EncodeTexts) -> np.ndarray:
    """Vectors of single texts, (N, D); or of pairs [|a - b|; a·b], (N, 2 D)."""
    sides = [encode(side) for side in rows.sides]
    if len(sides) == 1:
        return sides[0]
    a, b = sides
    return np.concatenate([np.abs(a - b), a * b], axis=1)


def _classes(splits: Splits) -> int:
    return 1 + max(int(rows.labels.max()) for rows in splits.values())


def items_of(rows: Labelled) -> Items:
    """Names of the rows, the same in every task, and the groups in which they are resampled."""
    if len(rows.sides) == 1:
        return text_items(rows.sides[0])
    a, b = rows.sides
    return pair_items(Pairs((), a, b, rows.labels.astype(np.float64)))


def item_texts_of(rows: Labelled) -> dict[str, str]:
    """Display texts of `items_of`: the text or both texts of a row."""
    return dict(zip(items_of(rows).ids, map(" | ".join, zip(*rows.sides, strict=True)), strict=True))
