"""Where a study's report goes: its files, and MLflow. `semray sync` is the second alone."""

from __future__ import annotations

import json
from argparse import Namespace
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from orchestration.commands.terminal import DONE, SOME_FAILED, say, study_of
from orchestration.ledger.beside import beside
from orchestration.ledger.ledger import Ledger
from orchestration.plan.held import as_scored, scored_before
from orchestration.study.study import Study

if TYPE_CHECKING:
    from orchestration.tracking.sync import SyncReport
    from orchestration.verdicts.findings import Findings


def sync(options: Namespace) -> int:
    """Bring MLflow up to what the ledger holds."""
    from orchestration.verdicts.distributions import with_distributions
    from orchestration.verdicts.find import find
    from orchestration.verdicts.growing import grown

    study, ledger = study_of(options), Ledger(options.ledger)
    asked, before = as_scored(study, ledger)
    findings = told_of_versions(find(study, grown(asked, ledger).runs, ledger), before)
    done = _sync(with_distributions(findings, ledger), ledger, options.mlflow)
    if options.json:
        print(json.dumps(asdict(done), default=str))
    return SOME_FAILED if done.problem else DONE


def publish(findings: Findings, ledger: Ledger, folder: Path, uri: str | None) -> None:
    """Write the report's files, bring MLflow up to date, and link the one to the other."""
    from orchestration.report.forms import write
    from orchestration.verdicts.distributions import with_distributions

    findings = with_distributions(findings, ledger)
    page = write(findings, folder)
    if links := _sync(findings, ledger, uri).links:
        page = write(findings, folder, links)
    say(f"report  {page}")


def told_of_versions(findings: Findings, before: tuple[str, ...]) -> Findings:
    """With a note of the tasks whose scores are of a version before the present one.

    No passport holds it: whoever verifies one may have yet another version.
    """
    return replace(findings, notes=(*findings.notes, scored_before(before))) if before else findings


def report_folder(options: Namespace, study: Study, ledger: Ledger) -> Path:
    """`--out`, else reports/<study> beside a local ledger or here."""
    if getattr(options, "out", None):
        return Path(options.out)
    return beside(ledger.url) / "reports" / study.name


def _sync(findings: Findings, ledger: Ledger, uri: str | None) -> SyncReport:
    """Mirror the findings in MLflow, and say what was done and how to look at it."""
    from orchestration.tracking.sync import default_uri, sync, ui_command

    uri = uri or default_uri(ledger.url)
    done = sync(findings, ledger, uri)
    say(done.line)
    say(f"look at it:  {ui_command(uri)}")
    return done
