"""Retrieval of an ontology's label by its comment. Items are comments, resampled by label."""

from __future__ import annotations

from corpora.concept.ontology import OntologyRows, fingerprint, load
from evaluators.metrics import retrieval
from evaluators.metrics.scores import Score
from evaluators.tasks.task import Benchmark, EncodeTexts, Task

NAME = "dbpedia_comments"


def tasks(dbpedia: str | None, seed: int) -> dict[str, Task[OntologyRows, str]]:
    """The task on the DBpedia ontology at this path. Candidates are the labels of both test and train rows."""
    task = Task(
        name=NAME,
        metrics=dict.fromkeys(retrieval.metric_names(NAME), True),
        headline=f"{NAME}/recall@10",
        benchmark=Benchmark(fingerprint=lambda: fingerprint(dbpedia, seed), load=lambda: load(dbpedia, seed)),
        texts=lambda rows: [*(row.comment for row in rows.test), *_pool(rows)],
        score=_score,
        source="after Concept, sections 4.5 and 5.6; the queries are the ontology's comments",
    )
    return {task.name: task}


def _pool(rows: OntologyRows) -> list[str]:
    return list(dict.fromkeys(row.label for row in (*rows.test, *rows.train)))


def _score(rows: OntologyRows, encode: EncodeTexts) -> list[Score]:
    pool = _pool(rows)
    place = {label: number for number, label in enumerate(pool)}
    gold = [(place[row.label],) for row in rows.test]
    ranks, rivals = retrieval.cosine_ranks_and_rivals(
        encode([row.comment for row in rows.test]), encode(pool), gold
    )
    names, labels = [f"{row.name}: {row.comment}" for row in rows.test], [row.label for row in rows.test]
    return retrieval.ranking_scores(NAME, ranks, names, labels, retrieval.named(rivals, pool))
