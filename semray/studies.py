"""What `semray run` and `semray report` do, as functions: both call the same code. The import loads no torch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orchestration.study.study import Study
    from orchestration.verdicts.findings import Findings


def load_study(path: str | Path) -> Study:
    """The study in a YAML file. StudyError lists every mistake: file, line, field, value, what is accepted."""
    from orchestration.reading.read_study import read_study

    return read_study(path)


def run(study: Study, ledger: str | Path = "ledger") -> Findings:
    """Train and score what the ledger lacks, tell progress on stderr, and judge; a second call computes nothing.

    Runs that failed or are left are in the findings too: `findings.with_status("failed")`. Raises StudyError for a
    request that cannot work.
    """
    from orchestration.commands.run_study import run_study
    from orchestration.ledger.ledger import Ledger

    findings, _ = run_study(study, Ledger(ledger))
    return findings


def judge(study: Study, ledger: str | Path = "ledger") -> Findings:
    """The verdicts by what the ledger holds now; nothing is trained."""
    from orchestration.ledger.ledger import Ledger
    from orchestration.plan.held import as_scored
    from orchestration.verdicts.find import find
    from orchestration.verdicts.growing import grown

    held = Ledger(ledger)
    asked, _ = as_scored(study, held)
    return find(study, grown(asked, held).runs, held)


def report(findings: Findings, ledger: str | Path, folder: str | Path) -> Path:
    """Write report.html, report.md, report.tex, report.json and the plots into a folder; returns the page."""
    from orchestration.ledger.ledger import Ledger
    from orchestration.report.forms import write
    from orchestration.verdicts.distributions import with_distributions

    return write(with_distributions(findings, Ledger(ledger)), Path(folder))
