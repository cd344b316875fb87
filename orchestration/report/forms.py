"""The report of a study: on the terminal, as Markdown, LaTeX and JSON, and as a folder with one HTML page."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from orchestration.report.across import ACROSS_HEAD, Compared, across, summaries
from orchestration.report.bills import BILL_HEAD, bill_caption, bill_rows
from orchestration.report.layout import laid_out
from orchestration.report.markup import marked_down, tex
from orchestration.report.short import in_short
from orchestration.report.tables import (
    any_published,
    arm_cells,
    arm_rows,
    caption,
    claim_cells,
    claim_head,
    claim_rows,
    compared_metrics,
    unfinished,
)
from orchestration.study.errors import written_to
from orchestration.study.names import printable
from orchestration.study.writable import drafted

if TYPE_CHECKING:
    from orchestration.verdicts.findings import Findings

ARMS_CAPTION = "mean ± standard deviation over seeds (number of seeds)"


class ReportTable(NamedTuple):
    """A table of the report in any form. remarks: explanations of its marks; None: it can have no marks."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str
    remarks: Sequence[str] | None = None


def tables_of(findings: Findings, *, with_across: bool = True) -> Iterator[ReportTable]:
    """The tables of the report, without empty ones: claims, arms, all tasks together, costs of claims."""
    if findings.findings:
        yield ReportTable(claim_head([findings]), claim_cells(findings), caption(findings), _remarks(findings))
    head, *rows = arm_cells(findings)
    yield ReportTable(head, rows, ARMS_CAPTION)
    if with_across:
        together, note = across(findings)
        if together:
            yield ReportTable(ACROSS_HEAD, together, note)
    if bills := bill_rows(findings):
        yield ReportTable(BILL_HEAD, bills, bill_caption(bills))


def printed(findings: Findings, *, width: int | None = None, with_across: bool = False) -> str:
    """The output of `semray report`: the tables and a summary in one sentence."""
    parts = (table(findings, width=width, with_across=with_across), in_short(findings))
    return "\n\n".join(filter(None, parts))


def table(findings: Findings, *, width: int | None = None, with_across: bool = False) -> str:
    """The tables with their captions, unfinished runs and notes, as text.

    width: of the terminal, in cells; None for a file, where every row is one line. with_across: whether the table
    of all tasks together is included.
    """
    blocks = [
        [*laid_out(one.head, one.rows, width), one.note, *(one.remarks or ())]
        for one in tables_of(findings, with_across=with_across)
    ]
    blocks.append([*unfinished(findings), *(f"note     {note}" for note in findings.all_notes)])
    return "\n\n".join("\n".join(map(printable, block)) for block in blocks if block)


def side_by_side(several: Sequence[Findings], *, width: int | None = None) -> str:
    """The claims and the arms of several studies in two tables, each row with its study."""
    published = any_published(several)
    claims = [(findings.study, *row) for findings in several for row in claim_cells(findings, published)]
    captions = [f"{findings.study}: {caption(findings)}" for findings in several if findings.findings]
    remarks = [f"{findings.study}: {line}" for findings in several for line in _remarks(findings)]
    metrics = list(dict.fromkeys(metric for findings in several for metric in compared_metrics(findings)))
    arms = [(findings.study, *row) for findings in several for row in arm_rows(findings, metrics)]
    blocks = [
        [*laid_out(("study", *claim_head(several)), claims, width), *captions, *remarks] if claims else [],
        [*laid_out(("study", "arm", "backbone", *metrics), arms, width), ARMS_CAPTION],
        [f"{findings.study}: {line}" for findings in several for line in unfinished(findings)],
    ]
    return "\n\n".join("\n".join(map(printable, block)) for block in blocks if block)


def markdown(findings: Findings) -> str:
    """The report as Markdown."""
    study = f"Study {marked_down(findings.study)}, family {findings.family}."
    lines = [f"# {marked_down(findings.question)}", "", study, ""]
    for one in tables_of(findings):
        lines += [*_markdown_table(one.head, one.rows), "", f"{marked_down(one.note)}.", ""]
        if one.remarks is not None:
            lines += [*(f"- {marked_down(line)}" for line in one.remarks), ""]
    lines += [f"- {marked_down(line)}" for line in (*unfinished(findings), *findings.all_notes)]
    return "\n".join(lines).rstrip() + "\n"


def latex(findings: Findings) -> str:
    """The report as booktabs tables and a list, ready for \\input."""
    parts = [
        _latex_table(one.head, one.rows, " ".join(f"{line}." for line in (one.note, *(one.remarks or ()))))
        for one in tables_of(findings)
    ]
    if left := [*unfinished(findings), *findings.all_notes]:
        items = (rf"\item {_after_command(tex(line))}" for line in left)
        parts.append("\n".join([r"\begin{itemize}", *items, r"\end{itemize}"]))
    return "\n\n".join(parts) + "\n"


def as_json(findings: Findings) -> list[dict[str, Any]]:
    """One object per comparison: every field of its verdict, the runs behind it and the items that moved most.

    across_tasks: the summary of its two arms over all tasks; null with fewer than two tasks. confirmed: of the
    study's searches, the same in every object.
    """
    confirmed = [asdict(one) for one in findings.confirmed]
    together = {compared: asdict(one) for compared, one in summaries(findings).items()}
    return [
        {
            **finding.verdict.to_dict(),
            "caveats": list(finding.caveats),
            "published": finding.published,
            "confirmed": confirmed,
            "treatment_runs": {str(seed): run for seed, run in finding.treatment_runs.items()},
            "control_runs": {str(seed): run for seed, run in finding.control_runs.items()},
            "across_tasks": together.get(
                Compared(finding.verdict.treatment, finding.verdict.control, finding.verdict.backbone)
            ),
            "items_counted": finding.shown_moves.counted,
            "items_better": finding.shown_moves.better,
            "items_worse": finding.shown_moves.worse,
            "items_equal": finding.shown_moves.equal,
            "items": [
                {name: getattr(item, name) for name in ("item_id", "treatment", "control", "delta")}
                for item in finding.shown_moves.items
            ],
        }
        for finding in findings.findings
    ]


def report_json(findings: Findings) -> str:
    """`as_json` as the text of a file."""
    return json.dumps(as_json(findings), indent=1, ensure_ascii=False) + "\n"


def write(
    findings: Findings, folder: Path, links: Mapping[str, str] | None = None, *, each_png: bool = False
) -> Path:
    """Write report.html, report.md, report.tex, report.json and PNGs of the overviews; returns the HTML file.

    links: run id -> its page in MLflow. each_png: also write a PNG of each comparison's seeds. Files of an earlier
    report are replaced atomically, one by one. An overview too tall for a PNG is only in the page.
    """
    from orchestration.report import plots
    from orchestration.report.drawing import is_drawn_by_us
    from orchestration.report.html import OVERVIEWS, html

    with written_to(folder):
        folder.mkdir(parents=True, exist_ok=True)
    drawn = plots.every(findings)
    texts = {
        "report.md": markdown(findings),
        "report.tex": latex(findings),
        "report.json": report_json(findings),
        "report.html": html(findings, drawn, links),
    }
    chosen = (name for name in drawn if (each_png if name.startswith("seeds-") else not drawn[name].tall))
    pictures = {f"{name}.png": drawn[name].png for name in chosen}
    with written_to(folder):
        for left in (*folder.glob("seeds-claim-*.png"), *(folder / f"{name}.png" for name in OVERVIEWS)):
            if left.name not in pictures and is_drawn_by_us(left):  # of an earlier report with other plots
                left.unlink()
        for name, content in {**pictures, **{name: text.encode() for name, text in texts.items()}}.items():
            with drafted(folder / name) as draft:
                draft.write_bytes(content)
    return folder / "report.html"


def _remarks(findings: Findings) -> list[str]:
    """One line for every claim with a mark in the table."""
    return [f"* {row.claim}: {'; '.join(row.remarks)}" for row in claim_rows(findings) if row.remarks]


def _markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    def line(cells: Iterable[str]) -> str:
        return "| " + " | ".join(map(marked_down, cells)) + " |"

    return [line(head), "|" + " --- |" * len(head), *map(line, rows)]


def _latex_table(head: Sequence[str], rows: Iterable[Sequence[str]], note: str) -> str:
    def line(cells: Sequence[str]) -> str:
        return _after_command(" & ".join(map(tex, cells)) + r" \\")

    lines = [
        r"\begin{table}",
        rf"\caption{{{tex(note)}}}",
        rf"\begin{{tabular}}{{{'l' * len(head)}}}",
        r"\toprule",
        line(head),
        r"\midrule",
        *map(line, rows),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines)


def _after_command(text: str) -> str:
    """LaTeX text, protected from being read as an option of the command before it."""
    return f"{{}}{text}" if text.startswith(("[", "*")) else text
