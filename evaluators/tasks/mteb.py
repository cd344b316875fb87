"""Any task of texts of the `mteb` package, run by mteb itself on our encoder, under the name `mteb/…`.

    task("mteb/STS17", path="data")       # Task, headline "mteb/STS17/cosine_spearman"

The figure is mteb's: the mean of its main score over the task's splits and subsets, each of which has a metric of
its own where there are several. What the figure is made of is kept with it: pairs, test rows, queries.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from corpora.benchmarks import mteb
from evaluators.metrics.scores import Score
from evaluators.tasks.mteb_items import CLASSES_OF_PAIRS, scores_of_items, texts_of_items
from evaluators.tasks.task import Benchmark, EncodeTexts, Task

if TYPE_CHECKING:
    from mteb.abstasks import AbsTask

PREFIX = "mteb/"
BATCH = 4096  # texts that mteb hands over at a time; the encoder sorts and packs them itself
AGREE = 1e-4  # mteb rounds some of its figures to five digits


def task(name: str, path: str | None) -> Task[AbsTask, str]:
    """The task of this name; path: a folder to look in before $SEMRAY_DATA.

    LookupError, in words of what is accepted, where mteb has no such task of texts or is not installed.
    """
    known = name.removeprefix(PREFIX)
    about = mteb.find(known)
    headline = f"{name}/{about.metadata.main_score}"
    metrics = [headline, *(f"{name}/{place}{about.metadata.main_score}" for place in _places(about))]
    if about.metadata.type == CLASSES_OF_PAIRS:
        metrics += [f"{name}/{place}auc" for place in _places(about)]
    return Task(
        name=name,
        metrics=dict.fromkeys(metrics, True),
        headline=headline,
        benchmark=Benchmark(
            fingerprint=lambda: mteb.fingerprint(mteb.find(known), path),
            load=lambda: mteb.loaded(mteb.find(known), path),
        ),
        texts=lambda of: (),  # mteb asks for them as it goes
        score=partial(_scores, name),
        item_texts=partial(_told, name),
        unscaled=True,
        version=3,  # 1 named items by their places, and brought vectors to length 1; 2 named them without marks
        source=f"mteb; {about.metadata.reference}",
    )


def _places(of: AbsTask) -> dict[str, tuple[str, str]]:
    """What stands before a metric of one split and subset, "" where the task has one of both -> split, subset."""
    splits, subsets = list(of.eval_splits), list(of.hf_subsets)

    def place(split: str, subset: str) -> str:
        return "".join(f"{part}/" for part, among in ((subset, subsets), (split, splits)) if len(among) > 1)

    return {place(split, subset): (split, subset) for split in splits for subset in subsets}


def _scores(name: str, of: AbsTask, encode: EncodeTexts) -> list[Score]:
    main = of.metadata.main_score
    figures, predictions = _run(of, encode)
    scores: list[Score] = []
    if len(figures) > 1:
        scores.append(Score(metric=f"{name}/{main}", value=float(np.mean(list(figures.values())))))
    for place, (split, subset) in _places(of).items():
        metric, figure = f"{name}/{place}{main}", figures[split, subset]
        of_split = predictions.get(subset, {}).get(split)
        items = [] if of_split is None else scores_of_items(f"{name}/{place}", of, split, subset, of_split)
        # A few tasks compute their figure otherwise than by these items: it is then recorded without items.
        items = [one for one in items if one.metric != metric or abs(one.value - figure) < AGREE]
        if all(one.metric != metric for one in items):
            scores.append(Score(metric=metric, value=figure))
        scores += items
    return scores


def _told(name: str, of: AbsTask, metric: str) -> dict[str, str]:
    """What a person reads of the items of one split and subset."""
    for place, (split, subset) in _places(of).items():
        if metric in (f"{name}/{place}{of.metadata.main_score}", f"{name}/{place}auc"):
            return texts_of_items(of, split, subset)
    return {}


def _run(of: AbsTask, encode: EncodeTexts) -> tuple[dict[tuple[str, str], float], Mapping[str, Any]]:
    """mteb's main score of each (split, subset), and predictions for single items: subset -> split -> those."""
    import mteb as package
    from mteb.models.abs_encoder import AbsEncoder
    from mteb.models.model_meta import ModelMeta

    class Ours(AbsEncoder):
        mteb_model_meta = ModelMeta.create_empty()

        def encode(self, inputs: Any, **about: Any) -> np.ndarray:
            return encode([text for batch in inputs for text in batch["text"]])

    with tempfile.TemporaryDirectory() as folder, mteb.quiet():
        result = package.evaluate(
            Ours(),
            of,
            cache=None,
            co2_tracker=False,
            encode_kwargs={"batch_size": BATCH, "show_progress_bar": False},
            prediction_folder=folder,
            show_progress_bar=False,
        )
        file = Path(folder) / of.prediction_file_name
        predictions = json.loads(file.read_text()) if file.exists() else {}
    (found,) = result.task_results
    figures = {
        (split, one["hf_subset"]): float(one["main_score"]) for split, ones in found.scores.items() for one in ones
    }
    return figures, predictions
