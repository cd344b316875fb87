"""The tasks of encoders of words in context. Source: CALE, sections 5 and 6, appendices C and D."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial

import numpy as np
import pyarrow as pa

from corpora.cale.corpus import fingerprint_of_test, lin_of, load
from corpora.cale.data import CaleData
from corpora.cale.records import CATEGORIES, POS, CaleCorpus, OccurrencePairs
from corpora.sources.occurrences import Occurrence
from evaluators.metrics import concept_differentiation, concept_space
from evaluators.metrics.concept_differentiation import PairItems, best_threshold
from evaluators.metrics.item_metrics import score_of_items
from evaluators.metrics.scores import Score
from evaluators.metrics.vectors import cosine_distances
from evaluators.tasks.named_items import marked
from evaluators.tasks.task import Benchmark, Task, is_dev
from evaluators.tasks.words_in_context import OCCURRENCES, EncodeOccurrences

PairsTask = Task[CaleCorpus, Occurrence]


def tasks(data: CaleData) -> dict[str, Task]:
    """The family's tasks, on held-out pairs of this corpus."""
    pairs = Benchmark(fingerprint=cache(lambda: fingerprint_of_test(data)), load=lambda: load(data))
    return {task.name: task for task in (*pair_tasks(pairs), lin(pairs, lambda corpus: lin_of(corpus, data)))}


def lin(benchmark: Benchmark[CaleCorpus], similarity: Callable[[CaleCorpus], np.ndarray]) -> Task:
    """Spearman of cosine and Lin's similarity, over test pairs of two nouns or two verbs."""

    def loaded() -> tuple[CaleCorpus, np.ndarray]:
        corpus = benchmark.load()
        return corpus, similarity(corpus)

    return Task(
        name="space/lin",
        metrics={"space/lin": True},
        headline="space/lin",
        benchmark=Benchmark(fingerprint=benchmark.fingerprint, load=loaded),
        texts=lambda both: _test_occurrences(both[0]),
        score=_lin_scores,
        source="CALE, section 6, footnote 5",
        reads=OCCURRENCES,
    )


def _lin_scores(both: tuple[CaleCorpus, np.ndarray], encode: EncodeOccurrences) -> list[Score]:
    corpus, similar = both
    pairs, rows = corpus.pairs["test"], np.flatnonzero(~np.isnan(similar))
    if not len(rows) or not np.ptp(similar[rows]):
        return []
    distances, items = _distances(corpus, pairs, encode), _items(corpus, pairs)
    return [score_of_items("space/lin", "spearman", *items.take(rows), 1 - distances[rows], similar[rows])]


def pair_tasks(benchmark: Benchmark[CaleCorpus]) -> tuple[PairsTask, ...]:
    """The tasks on pairs of a corpus; a search may choose by dev/..."""
    on_pairs = partial(PairsTask, benchmark=benchmark, item_texts=_sentences, reads=OCCURRENCES)
    return (
        on_pairs(
            name="spcd",
            metrics=concept_differentiation.metric_names("spcd/test")
            | concept_differentiation.DISTANCE_METRICS
            | concept_differentiation.BASELINE_METRICS,
            headline="spcd/test/ba_all",
            texts=lambda corpus: _occurrences(corpus, corpus.pairs["test"], *_known(corpus)),
            score=_score_spcd,
            source="CALE, table 1, appendix C and figure 1",
        ),
        on_pairs(
            name="spcd/unseen",
            metrics=concept_differentiation.metric_names("spcd/unseen"),
            headline="spcd/unseen/ba_all",
            texts=lambda corpus: (
                _occurrences(corpus, _unseen(corpus), *_known(corpus)) if len(corpus.unseen) else []
            ),
            score=lambda corpus, encode: (
                _told_apart("spcd/unseen", corpus, _unseen(corpus), encode) if len(corpus.unseen) else []
            ),
            source="ours: the test pairs of `data: {held_sentences: …}` whose sentences no pair trains",
        ),
        on_pairs(
            name="spcd/ranking",
            metrics=concept_differentiation.ranking_names("spcd/ranking"),
            headline="spcd/ranking/auc_all",
            texts=_test_occurrences,
            score=_score_ranking,
            source="ours: what no threshold decides",
        ),
        on_pairs(
            name="dev/spcd",
            metrics=concept_differentiation.metric_names("dev/spcd"),
            headline="dev/spcd/ba_all",
            texts=lambda corpus: _occurrences(corpus, *_known(corpus)),
            score=lambda corpus, encode: _told_apart("dev/spcd", corpus, corpus.pairs["val"], encode),
            source="CALE, section 5.1, on the validation split; appendix B does not say by what it chose",
        ),
        on_pairs(
            name="space",
            metrics=concept_space.METRICS,
            headline="space/wup_all",
            texts=_test_occurrences,
            score=_score_space,
            source="CALE, section 6, table 5",
            version=3,  # 1 took silhouettes in float32, which is noise where all rows are near; 2 had no wup_dc_sl
        ),
    )


def _known(corpus: CaleCorpus) -> tuple[OccurrencePairs, OccurrencePairs]:
    """The validation and training pairs by which the threshold is chosen."""
    return corpus.pairs["val"], corpus.pairs["train"].take(corpus.threshold)


def _threshold(corpus: CaleCorpus, encode: EncodeOccurrences) -> float:
    """The best threshold for the run on all validation pairs and the fixed sample of train pairs.

    Departure: CALE takes all train pairs, as does `data: {threshold_pairs: null}`.
    """
    pairs = _known(corpus)
    distances = np.concatenate([_distances(corpus, part, encode) for part in pairs])
    return best_threshold(distances, np.concatenate([part.label for part in pairs]))


def _distances(corpus: CaleCorpus, pairs: OccurrencePairs, encode: EncodeOccurrences) -> np.ndarray:
    """Cosine distance of each pair, (N,) float32."""
    rows, place = np.unique(np.concatenate([pairs.anchor, pairs.partner]), return_inverse=True)
    return cosine_distances(encode(corpus.occurrences.take(rows)), place[: len(pairs)], place[len(pairs) :])


def _occurrences(corpus: CaleCorpus, *parts: OccurrencePairs) -> list[Occurrence]:
    """Every occurrence of these pairs, once."""
    rows = np.unique(np.concatenate([side for pairs in parts for side in (pairs.anchor, pairs.partner)]))
    return corpus.occurrences.take(rows)


def _test_occurrences(corpus: CaleCorpus) -> list[Occurrence]:
    return _occurrences(corpus, corpus.pairs["test"])


def _items(corpus: CaleCorpus, pairs: OccurrencePairs) -> PairItems:
    """Pairs named like "say br-a01:1:2 | tell br-b03:4:5", with the anchor's concept and lemma as groups.

    Pairs are not independent: the test split was drawn by whole concepts and lemmas, and an anchor has up to four
    pairs. Pairs of two lemmas are resampled by concept, pairs within one lemma by lemma.
    """
    table = corpus.occurrences

    def names(rows: np.ndarray) -> list[str]:
        ids = table.ids.take(pa.array(rows)).to_pylist()
        return [f"{table.lemmas[lemma]} {place}" for lemma, place in zip(table.lemma[rows], ids, strict=True)]

    sides = zip(names(pairs.anchor), names(pairs.partner), strict=True)
    concepts = [table.concepts[concept] for concept in table.concept[pairs.anchor]]
    lemmas = [table.lemmas[lemma] for lemma in table.lemma[pairs.anchor]]
    return PairItems([f"{anchor} | {partner}" for anchor, partner in sides], concepts, lemmas)


def _sentences(corpus: CaleCorpus, metric: str) -> dict[str, str]:
    """Display texts of pairs: both sentences."""
    pairs = corpus.pairs["val" if is_dev(metric) else "test"]
    sides = (map(marked, corpus.occurrences.take(rows)) for rows in (pairs.anchor, pairs.partner))
    named = zip(_items(corpus, pairs).ids, *sides, strict=True)
    return {name: f"{anchor} | {partner}" for name, anchor, partner in named}


def _score_spcd(corpus: CaleCorpus, encode: EncodeOccurrences) -> list[Score]:
    pairs, threshold = corpus.pairs["test"], _threshold(corpus, encode)
    distances, items = _distances(corpus, pairs, encode), _items(corpus, pairs)
    return [
        *concept_differentiation.pair_scores("spcd/test", items, distances, pairs.category, threshold),
        Score(metric="spcd/threshold", value=threshold),
        *concept_differentiation.distance_scores(items, distances, pairs.category),
        *concept_differentiation.baseline_scores(pairs.category),
    ]


def _unseen(corpus: CaleCorpus) -> OccurrencePairs:
    return corpus.pairs["test"].take(corpus.unseen)


def _told_apart(name: str, corpus: CaleCorpus, pairs: OccurrencePairs, encode: EncodeOccurrences) -> list[Score]:
    """Of other pairs as `spcd`, by the same threshold."""
    threshold = _threshold(corpus, encode)
    distances, items = _distances(corpus, pairs, encode), _items(corpus, pairs)
    return concept_differentiation.pair_scores(name, items, distances, pairs.category, threshold)


def _score_ranking(corpus: CaleCorpus, encode: EncodeOccurrences) -> list[Score]:
    pairs = corpus.pairs["test"]
    distances, items = _distances(corpus, pairs, encode), _items(corpus, pairs)
    return concept_differentiation.ranking_scores("spcd/ranking", items, distances, pairs.category)


def _score_space(corpus: CaleCorpus, encode: EncodeOccurrences) -> list[Score]:
    """Gap, silhouettes and agreement with the taxonomy, on the test pairs and their anchors.

    Departure: the silhouette by concept leaves out concepts with one anchor, which would count as 0; CALE does not
    mention them. Undefined figures are left out: a gap without pairs of both kinds, a silhouette of one cluster,
    an agreement with constant similarities.
    """
    table, pairs = corpus.occurrences, corpus.pairs["test"]
    distances, items = _distances(corpus, pairs, encode), _items(corpus, pairs)
    one_pos = table.pos[pairs.anchor] == table.pos[pairs.partner]
    same_pos = np.flatnonzero(one_pos & _noun_or_verb(corpus, pairs.anchor))
    anchors = np.unique(pairs.anchor)
    repeated = anchors[np.bincount(table.concept[anchors])[table.concept[anchors]] > 1]
    rooted = anchors[_noun_or_verb(corpus, anchors)]
    scores = [Score(metric="space/gap", value=concept_space.gap(distances, pairs.category))]
    for metric, rows, labels in (
        ("space/silhouette_concept", repeated, table.concept),
        ("space/silhouette_ub", rooted, table.lexname),
    ):
        value = concept_space.silhouette(encode(table.take(rows)), labels[rows])
        scores.append(Score(metric=metric, value=value))
    for metric, rows in (
        ("space/wup_all", np.arange(len(pairs))),
        ("space/wup_same_pos", same_pos),
        ("space/wup_dc_sl", np.flatnonzero(pairs.category == CATEGORIES.index("DC/SL"))),
    ):
        if len(rows):
            columns = (*items.take(rows), 1 - distances[rows], corpus.wu_palmer[rows])
            scores.append(score_of_items(metric, "spearman", *columns))
    return [score for score in scores if not math.isnan(score.value)]


def _noun_or_verb(corpus: CaleCorpus, rows: np.ndarray) -> np.ndarray:
    """True for nouns and verbs, whose synsets are in a hierarchy. (N,) -> (N,) bool."""
    return np.isin(corpus.occurrences.pos[rows], (POS.index("n"), POS.index("v")))
