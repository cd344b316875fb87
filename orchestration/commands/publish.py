"""Writes a study's report as files and to MLflow. `semray sync` does only the latter."""

from __future__ import annotations

import json
from argparse import Namespace
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from orchestration.commands.standing import current_findings, for_report
from orchestration.commands.terminal import DONE, SOME_FAILED, ledger_of, say, shown_path, study_of
from orchestration.commands.waiting import DRAWING, doing
from orchestration.ledger.beside import reports
from orchestration.ledger.ledger import Ledger
from orchestration.ledger.place import at
from orchestration.study.names import typed
from orchestration.study.study import Study

if TYPE_CHECKING:
    from orchestration.tracking.sync import SyncReport
    from orchestration.verdicts.findings import Findings


def sync(options: Namespace) -> int:
    """Bring MLflow up to date with the ledger."""
    from orchestration.tracking.reaching import at_mlflow
    from orchestration.verdicts.distributions import with_distributions
    from orchestration.verdicts.published import with_published

    study, ledger = study_of(options), ledger_of(options)
    _, findings = current_findings(study, ledger)
    findings = with_distributions(with_published(findings, study), ledger)
    done = _sync(findings, ledger, options.mlflow)
    next_command = typed("ui", options.study, *at(ledger.url), *at_mlflow(options.mlflow))
    say(done.line, *([] if done.problem else [f"next    {next_command}"]))
    if options.json:
        print(json.dumps(asdict(done), default=str))
    return SOME_FAILED if done.problem else DONE


def publish(findings: Findings, study: Study, ledger: Ledger, folder: Path, uri: str | None) -> None:
    """Write the report's files, bring MLflow up to date, and link the report to it."""
    from orchestration.report.forms import write
    from orchestration.verdicts.distributions import with_distributions

    with doing(DRAWING):
        findings = for_report(with_distributions(findings, ledger), study, ledger)
        page = write(findings, folder)
    done = _sync(findings, ledger, uri)
    if done.links:
        page = write(findings, folder, done.links)
    if done.problem:
        say(done.line)
    say(f"report  {shown_path(page)}")


def report_folder(options: Namespace, study: Study, ledger: Ledger) -> Path:
    """`--out`, else reports/<study> beside a local ledger or here."""
    if getattr(options, "out", None):
        return Path(options.out)
    return reports(ledger.url, study.name)


def _sync(findings: Findings, ledger: Ledger, uri: str | None) -> SyncReport:
    """Mirror the findings in MLflow."""
    from orchestration.tracking.sync import sync

    with doing("bringing MLflow up to what the ledger holds"):
        return sync(findings, ledger, uri)
