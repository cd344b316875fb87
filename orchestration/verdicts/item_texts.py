"""What the items that moved most say, for the report: their names alone tell a person little.

Texts are of the benchmarks, not of the ledger: they are shown where this machine has them, and nothing is built.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING

from corpora.store.cache import built_alone
from corpora.store.errors import CorpusError
from evaluators.tasks.task import named
from orchestration.families.registry import family
from orchestration.verdicts.findings import TakenFor

if TYPE_CHECKING:
    from orchestration.ledger.ledger import Ledger
    from orchestration.study.study import Study
    from orchestration.verdicts.findings import Finding, Findings


Confused = tuple[str, str, str]  # a pool of candidates, an item, and what of the pool it was taken for


def with_item_texts(findings: Findings, study: Study, ledger: Ledger) -> Findings:
    """What the items that are shown were taken for; and of each metric whose task can tell, the texts of both."""
    shown = {item.item_id for one in findings.findings for item in one.told.items}
    read = cache(partial(_taken_for, ledger, shown))  # many claims rest on one entry
    findings = replace(findings, findings=tuple(_with_confusions(one, read) for one in findings.findings))
    tasks = named(family(study.family).tasks(study.data), study.evaluate)
    found: dict[str, Mapping[str, str]] = {}
    for metric in dict.fromkeys(one.verdict.metric for one in findings.findings if one.items):
        task = next((task for task in tasks if metric in task.metrics), None)
        if task is None or task.item_texts is None:
            continue
        try:
            with built_alone():
                texts = task.item_texts(task.benchmark.load(), metric)
        except CorpusError:
            continue  # the names stand alone
        shown = {name for one in findings.findings if one.verdict.metric == metric for name in _names(one)}
        found[metric] = {name: texts[name] for name in sorted(shown & texts.keys())}
    return replace(findings, item_texts=found)


def _names(finding: Finding) -> list[str]:
    others = [one.other for told in finding.taken_for.values() for one in told]
    return [*(item.item_id for item in finding.told.items), *others]


def _taken_for(ledger: Ledger, shown: Collection[str], entry: str) -> list[Confused] | None:
    """What these items were taken for in one entry; None where it does not tell."""
    table = ledger.taken_for(entry)
    if table is None:
        return None
    columns = (table[name].to_pylist() for name in ("metric", "item_id", "taken_for"))
    return [(_pool(metric), item, other) for metric, item, other in zip(*columns, strict=True) if item in shown]


def _with_confusions(finding: Finding, read: Callable[[str], list[Confused] | None]) -> Finding:
    """What each item that is shown was taken for, where entries tell: old ones hold ranks alone."""
    shown = {item.item_id for item in finding.told.items}
    found: dict[str, list[TakenFor]] = {}
    for arm, entries in finding.scored.items() if shown else ():
        told = [rows for entry in entries if (rows := read(entry)) is not None]
        for item, others in _confused(told, _pool(finding.verdict.metric), shown).items():
            other, times = others.most_common(1)[0]
            found.setdefault(item, []).append(TakenFor(arm=arm, other=other, times=times, runs=len(told)))
    return replace(finding, taken_for={item: tuple(of_arms) for item, of_arms in found.items()})


def _confused(told: Sequence[Sequence[Confused]], pool: str, shown: Collection[str]) -> dict[str, Counter[str]]:
    """Of these items how often each was taken for what, in one pool of candidates.

    What is told of a whole ranking (np/strict) holds for its parts (np/strict/modal).
    """
    found: dict[str, Counter[str]] = {}
    for rows in told:
        for of, item, other in rows:
            if item in shown and f"{pool}/".startswith(f"{of}/"):
                found.setdefault(item, Counter())[other] += 1
    return found


def _pool(metric: str) -> str:
    """t2d of t2d/recall@10: figures of one ranking differ in their last part."""
    return metric.rpartition("/")[0]
