"""The rows that a claim is declared on: the training data of its arms and the test data of its metrics.

Other rows, chosen after a look, make another test.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from orchestration.study.names import listed
from orchestration.study.run import canonical
from orchestration.verdicts.seen import could_be_seen, measured_on

if TYPE_CHECKING:
    from evaluators.significance.claims import Declared
    from orchestration.study.run import Run
    from orchestration.verdicts.records import StudyRecords


def rows_of(records: StudyRecords, claim: Declared) -> dict[str, Any]:
    """The fields declared with a claim: a digest of its rows, and the fingerprints of each arm and task.

    Of a file of scores these are the rows of the claim's own metrics: the study may read others from it later.
    """
    return _rows(records, claim, _measured(records, claim) | _measured_by_metric(records, claim))


def digests_of_rows(records: StudyRecords, claim: Declared) -> Iterator[str]:
    """The digest of the claim's rows, then that of old ledgers, which counts all metrics of a file of scores."""
    yield rows_of(records, claim)["rows"]
    yield _rows(records, claim, _measured(records, claim))["rows"]


def on_other_rows(written: Mapping[str, Any], records: StudyRecords, claim: Declared) -> bool:
    """Whether a claim was declared on other rows than the study has now; False for old ledgers without rows."""
    return "made_on" in written and written["rows"] not in digests_of_rows(records, claim)


def _rows(records: StudyRecords, claim: Declared, measured: Mapping[str, str]) -> dict[str, Any]:
    runs = _runs(records, claim)
    trained = {run.corpus_fingerprint for run in runs if run.seed is not None}
    rows = canonical([sorted(trained), sorted(set(measured.values()))])
    return {
        "rows": hashlib.sha256(rows).hexdigest()[:16],
        "made_on": {"arms": {run.arm: run.corpus_fingerprint for run in runs}, "tasks": dict(measured)},
    }


def _measured(records: StudyRecords, claim: Declared) -> dict[str, str]:
    """Task -> its fingerprint in the runs."""
    tasks = [task.name for task in measured_on(records, claim.resolved(records.study.figures))]
    return {task: run.tasks[task] for run in _runs(records, claim) for task in tasks if task in run.tasks}


def _measured_by_metric(records: StudyRecords, claim: Declared) -> dict[str, str]:
    """Task -> the fingerprint of the claim's own metrics, for tasks whose metrics have rows of their own."""
    resolved = claim.resolved(records.study.figures)
    figures = {figure for part in resolved.parts for figure in records.study.figures_of(part.metric)}
    tasks = measured_on(records, resolved)
    return {task.name: of(figures) for task in tasks if (of := task.benchmark.fingerprint_of)}


def seen_there(written: Mapping[str, Any], records: StudyRecords, claim: Declared) -> bool:
    """Whether the outcome of a claim could be seen on the rows that it was declared on."""
    arms, tasks = written["made_on"]["arms"], written["made_on"]["tasks"]
    runs = [
        replace(
            run,
            corpus_fingerprint=arms.get(run.arm, ""),
            tasks={task: tasks.get(task, rows) for task, rows in run.tasks.items()},
            former="",
        )
        for run in _runs(records, claim)
    ]
    known = arms.keys() >= {run.arm for run in runs}  # an arm renamed since may have had other rows
    return not known or could_be_seen(replace(records, runs=runs, held=None), claim)


def other_rows_in_words(claims: Sequence[str]) -> str:
    """The note for a reader on claims declared on other rows, and what would confirm them."""
    were, are = ("was", "is") if len(claims) == 1 else ("were", "are")
    return (
        f"{listed(claims)} {were} declared on other rows, or by another script, and {are} judged on these: "
        "exploratory, and counted as declared; fresh seeds in a new study would show it"
    )


def _runs(records: StudyRecords, claim: Declared) -> list[Run]:
    arms = set(claim.arms)
    return [run for (arm, _), runs in records.runs_of.items() if arm in arms for run in runs]
