"""Findings as a person sees them: printed as `semray report` prints, in a notebook as the page that it writes."""

from __future__ import annotations

from dataclasses import dataclass, fields
from html import escape
from typing import TYPE_CHECKING

from orchestration.verdicts.findings import Findings

if TYPE_CHECKING:
    from orchestration.study.study import Study


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Shown(Findings):
    """Findings with a page of their own. asked_by: the study whose they are."""

    asked_by: Study

    def __repr__(self) -> str:
        from orchestration.report import forms

        return forms.printed(self)

    def _repr_html_(self) -> str:
        """The whole page in a frame: what it styles and runs stays inside."""
        from orchestration.report import plots
        from orchestration.report.html import html

        page = escape(html(self, plots.every(self)))
        return f'<iframe srcdoc="{page}" style="width: 100%; height: 40em; border: 0"></iframe>'


def shown(findings: Findings, study: Study) -> Shown:
    """The same, with its page."""
    return Shown(**{one.name: getattr(findings, one.name) for one in fields(findings)}, asked_by=study)
