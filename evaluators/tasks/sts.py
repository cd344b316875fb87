"""Semantic textual similarity: does cosine follow graded similarity? The seven sets of the papers, raw text.

    table = tasks("data")          # {"sts/STS12": Task, ..., "sts/STS12/dedup": Task, ..., "dev/sts/STS-B": Task}

Protocol: SentEval's "all" setting, Spearman over the concatenation of a year's subsets, as the papers report it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from corpora.benchmarks import sts
from corpora.benchmarks.pairs import Pairs, joined
from corpora.benchmarks.sts import IN_STSB, SUBSETS, Subsets
from evaluators.metrics.scores import Score
from evaluators.metrics.sts import metric_names, sts_scores
from evaluators.metrics.vectors import aligned_cosines
from evaluators.tasks.named_items import pair_items, subset_item_texts
from evaluators.tasks.task import Benchmark, EncodeTexts, Task, small

SubsetTask = Task[Subsets, str]  # subset, or split -> pairs

SETS = ("STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R")
SEVEN = tuple(f"sts/{name}" for name in SETS)  # what papers average
SEVEN_DEDUP = tuple(f"{name}/dedup" for name in SEVEN)
VERSIONS = {"dev/sts/STS-B": 2}  # 1 named one text otherwise, whose letters can be encoded in two ways


def tasks(path: str | None) -> dict[str, SubsetTask]:
    """Every STS task by name; path: a folder to look in before $SEMRAY_DATA.

    SICK-R is SentEval's test part, SICK-R/all all three parts together, which is what MTEB calls SICK-R. A task of
    the name `…/dedup` leaves out the pairs of STS-B train and dev. dev/sts/SICK-R is SICK's trial part.
    """
    whole = {f"sts/{name}": partial(sts.read, name, path=path) for name in (*SETS, "SICK-R/all")}
    dedup = {f"sts/{name}/dedup": partial(sts.read_dedup, name, path=path) for name in SETS}
    parts = {"STS-B": "STS-B/dev", "SICK-R": "SICK-R/trial"}
    dev = {f"dev/sts/{name}": partial(sts.read, part, path=path) for name, part in parts.items()}
    read = {**whole, **dedup, **dev}
    return {name: _task(name, rows) for name, rows in read.items()}


def subsets_at_hand(read: Callable[[], Subsets]) -> Benchmark[Subsets]:
    """A benchmark that is read once as a whole, with a fingerprint of its texts and gold."""
    return small(read, sts.fingerprint)


def pair_texts(subsets: Subsets) -> list[str]:
    return [text for pairs in subsets.values() for side in (pairs.a, pairs.b) for text in side]


def pair_cosines(pairs: Pairs, encode: EncodeTexts) -> np.ndarray:
    """Cosine of both sentences of each pair, in float64. -> (N,)."""
    return aligned_cosines(encode(pairs.a), encode(pairs.b))


def _task(name: str, read: Callable[[], Subsets]) -> SubsetTask:
    def score(subsets: Subsets, encode: EncodeTexts) -> list[Score]:
        pairs = joined(subsets.values())
        subset = np.repeat(list(subsets), [len(part) for part in subsets.values()])
        return sts_scores(name, pair_items(pairs), subset, pair_cosines(pairs, encode), pairs.gold)

    published = name.split("/")[1]
    emptied = IN_STSB.get(published, ()) if name.endswith("/dedup") else ()
    return SubsetTask(
        name=name,
        metrics=metric_names(name, [subset for subset in SUBSETS.get(published, ()) if subset not in emptied]),
        headline=f"{name}/spearman",
        benchmark=subsets_at_hand(read),
        texts=pair_texts,
        score=score,
        item_texts=subset_item_texts,
        source="Agirre et al., SemEval 2012-2016; Cer et al. 2017; Marelli et al. 2014; protocol: SentEval",
        version=VERSIONS.get(name, 1),
    )
