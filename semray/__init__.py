"""semray from Python: load a study, run it, judge it, write its report.

    study = semray.load_study("mine.yaml")          # or its name, as on the command line
    findings = semray.run(study)                    # trains and scores what the ledger lacks
    print(findings)                                 # what `semray report` prints; in a notebook, the page
    semray.report(findings, "reports/mine")         # report.html and its other forms

    for one in findings.findings:                   # a verdict for each claim
        print(one.verdict.claim, one.verdict.verdict, one.verdict.delta_mean, one.verdict.ci_low)

`semray.judge(frame, compare=[...])` judges scores from elsewhere, in a data frame or a file. A request that cannot
work raises `semray.StudyError`, whose message says where the mistake is and what would be accepted.

`semray.extending` has what a package needs to add families or tasks, and `semray.testing` the tests that its
families must pass.
"""

from orchestration.study.errors import StudyError
from orchestration.verdicts.findings import Findings
from semray.studies import judge, load_study, report, run

__all__ = ["Findings", "StudyError", "judge", "load_study", "report", "run"]
