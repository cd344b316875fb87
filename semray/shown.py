"""Findings that print as `semray report` does, and show its page in a notebook."""

from __future__ import annotations

from dataclasses import dataclass, fields
from html import escape
from typing import TYPE_CHECKING

from orchestration.verdicts.findings import Findings

if TYPE_CHECKING:
    from orchestration.study.study import Study


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Shown(Findings):
    """Findings that show themselves as their report. asked_by: their study."""

    asked_by: Study

    def __repr__(self) -> str:
        from orchestration.report import forms

        return forms.printed(self)

    def _repr_html_(self) -> str:
        """The page in a frame, which keeps its styles and scripts out of the notebook."""
        from orchestration.report import plots
        from orchestration.report.html import html

        page = escape(html(self, plots.every(self)))
        return f'<iframe srcdoc="{page}" style="width: 100%; height: 40em; border: 0"></iframe>'


def shown(findings: Findings, study: Study) -> Shown:
    """The same findings, which show themselves as their report."""
    return Shown(**{one.name: getattr(findings, one.name) for one in fields(findings)}, asked_by=study)
