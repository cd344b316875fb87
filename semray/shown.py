"""Findings as a person sees them: printed as `semray report` prints, in a notebook as the page that it writes."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from orchestration.verdicts.findings import Findings


@dataclass(frozen=True, eq=False, repr=False)
class Shown(Findings):
    """Findings with a page of their own."""

    def __repr__(self) -> str:
        from orchestration.report import forms

        return forms.table(self)

    def _repr_html_(self) -> str:
        """The whole page in a frame: what it styles and runs stays inside."""
        from orchestration.report import plots
        from orchestration.report.html import html

        page = escape(html(self, plots.every(self)))
        return f'<iframe srcdoc="{page}" style="width: 100%; height: 40em; border: 0"></iframe>'


def shown(findings: Findings) -> Shown:
    """The same, with its page."""
    return Shown(**vars(findings))
