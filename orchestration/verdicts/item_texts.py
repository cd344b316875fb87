"""Adds to findings the texts of the items that moved most, as names alone say little to a reader.

The texts come from the benchmarks. They are shown if this machine has them; nothing is downloaded or built.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING

from corpora.store.cache import without_building
from corpora.store.errors import CorpusError
from evaluators.tasks.task import named
from orchestration.families.registry import family
from orchestration.verdicts.findings import TakenFor

if TYPE_CHECKING:
    from orchestration.ledger.ledger import Ledger
    from orchestration.study.study import Study
    from orchestration.verdicts.findings import Finding, Findings


Confused = tuple[str, str, str]  # a pool of candidates, an item, and what it was confused with there


def with_item_texts(findings: Findings, study: Study, ledger: Ledger) -> Findings:
    """The findings with confusions of the shown items, and the texts of all of them if the task has texts."""
    shown = {item.item_id for finding in findings.findings for item in finding.shown_moves.items}
    read = cache(partial(_taken_for, ledger, shown))  # many claims share an entry
    findings = replace(findings, findings=tuple(_with_confusions(finding, read) for finding in findings.findings))
    tasks = named(family(study.family).tasks(study.data), study.evaluate)
    texts_by_metric: dict[str, Mapping[str, str]] = {}
    for metric in dict.fromkeys(finding.verdict.metric for finding in findings.findings if finding.items):
        task = next((task for task in tasks if metric in task.metrics), None)
        if task is None or task.item_texts is None:
            continue
        try:
            with without_building():
                texts = task.item_texts(task.benchmark.load(), metric)
        except CorpusError:
            continue  # names are shown without texts
        shown = {name for one in findings.findings if one.verdict.metric == metric for name in _names(one)}
        texts_by_metric[metric] = {name: texts[name] for name in sorted(shown & texts.keys())}
    return replace(findings, item_texts=texts_by_metric)


def _names(finding: Finding) -> list[str]:
    others = [one.other for confusions in finding.taken_for.values() for one in confusions]
    return [*(item.item_id for item in finding.shown_moves.items), *others]


def _taken_for(ledger: Ledger, shown: Collection[str], entry: str) -> list[Confused] | None:
    """What these items were confused with in one entry; None if it did not record it."""
    table = ledger.taken_for(entry)
    if table is None:
        return None
    columns = (table[name].to_pylist() for name in ("metric", "item_id", "taken_for"))
    return [(_pool(metric), item, other) for metric, item, other in zip(*columns, strict=True) if item in shown]


def _with_confusions(finding: Finding, read: Callable[[str], list[Confused] | None]) -> Finding:
    """The finding with the most frequent confusion of each shown item. Old entries hold ranks only."""
    shown = {item.item_id for item in finding.shown_moves.items}
    by_item: dict[str, list[TakenFor]] = {}
    for arm, entries in finding.scored.items() if shown else ():
        recorded = [rows for entry in entries if (rows := read(entry)) is not None]
        for item, others in _counts(recorded, _pool(finding.verdict.metric), shown).items():
            other, times = others.most_common(1)[0]
            by_item.setdefault(item, []).append(TakenFor(arm=arm, other=other, times=times, runs=len(recorded)))
    return replace(finding, taken_for={item: tuple(by_arm) for item, by_arm in by_item.items()})


def _counts(recorded: Sequence[Sequence[Confused]], pool: str, shown: Collection[str]) -> dict[str, Counter[str]]:
    """Shown item -> how often it was confused with which item, in one pool of candidates.

    A confusion in a whole ranking (np/strict) also counts for its parts (np/strict/modal).
    """
    counts: dict[str, Counter[str]] = {}
    for rows in recorded:
        for within, item, other in rows:
            if item in shown and f"{pool}/".startswith(f"{within}/"):
                counts.setdefault(item, Counter())[other] += 1
    return counts


def _pool(metric: str) -> str:
    """`t2d` for `t2d/recall@10`: figures of one ranking differ only in their last part."""
    return metric.rpartition("/")[0]
