"""What the items that moved most say, for the report: their names alone tell a person little.

Texts are of the benchmarks, not of the ledger: they are shown where this machine has them, and nothing is built.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from corpora.store.cache import built_alone
from corpora.store.errors import CorpusError
from evaluators.tasks.task import named
from orchestration.families.registry import family

if TYPE_CHECKING:
    from orchestration.study.study import Study
    from orchestration.verdicts.findings import Finding, Findings


def with_item_texts(findings: Findings, study: Study) -> Findings:
    """For each metric whose task can tell, the texts of the items that are shown."""
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
    return [item.item_id for item in finding.told.items]
