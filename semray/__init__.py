"""semray from Python: load a study, run it, judge it, write its report.

    study = semray.load_study("studies/quickstart.yaml")
    findings = semray.run(study, "ledger")
    semray.report(findings, "ledger", "reports/quickstart")

And scores that were made elsewhere, as a data frame or a file: `semray.judge(frame, compare=[...])`.

`semray.extending` is what a package that brings families or tasks needs, and `semray.testing` the tests that its
families pass.
"""

from semray.studies import judge, load_study, report, run

__all__ = ["judge", "load_study", "report", "run"]
