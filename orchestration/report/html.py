"""The report as one HTML file that needs no network and can be printed. Its template is report.html.j2.

The content security policy makes the browser fetch and send nothing, and run only report.js, which it knows by its
digest and which sorts and filters tables. So no name in a study can run code.
"""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache, partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

from orchestration.report.across import ACROSS_HEAD, across
from orchestration.report.bills import BILL_HEAD, bill_caption, bill_rows
from orchestration.report.drawing import named
from orchestration.report.glossary import GLOSSARY, Hover
from orchestration.report.tables import (
    MOST_PLACES,
    NONE,
    ClaimRow,
    agreement_words,
    anchor,
    answers,
    arm_cell,
    caption,
    claim_rows,
    compared_metrics,
    cost_rows,
    decimals,
    each_run,
    expected,
    figure,
    known,
    p_text,
)
from orchestration.study.names import printable
from orchestration.study.run import CANONICAL, is_encoder, of_seed

if TYPE_CHECKING:
    from jinja2 import Template

    from orchestration.report.drawing import Picture
    from orchestration.verdicts.findings import Finding, Findings, ItemDelta, TakenFor

GLYPHS = {
    "better": "▲",
    "worse": "▼",
    "equivalent": "◆",
    "not worse": "▶",
    "holds": "✓",
    "fails": "✗",
    "undecided": "○",
}
OVERVIEWS = ("forest", "curves", "distributions", "layers", "figures")  # plots of all runs or claims
ITEMS_SHOWN, TROUBLES_SHOWN = 10, 3
ITEM_LETTERS, TEXT_LETTERS = 90, 400  # the most of an item's text, with several in a line, and with one


class Trouble(NamedTuple):
    """Something that failed: what, a detail, and the id in the page of the place with more."""

    what: str
    detail: str
    place: str


def html(findings: Findings, pictures: Mapping[str, Picture], links: Mapping[str, str] | None = None) -> str:
    """The whole page. pictures: from `plots.every`. links: run id -> its page in MLflow, if known."""
    own = {"hover": Hover(), "named": partial(named, links=_places(findings))}
    return _template().render(**own, **_context(findings, pictures, links or {}))


@cache  # compiled, as that takes longer than a page
def _template() -> Template:
    from jinja2 import Environment, PackageLoader

    environment = Environment(
        loader=PackageLoader("orchestration.report", "."),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    script = files("orchestration.report").joinpath("report.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    environment.globals.update(script=script, script_digest=digest)
    environment.globals.update(glossary=GLOSSARY)
    environment.filters.update(p=p_text, known=known, figure=_figure, score=_score)
    return environment.get_template("report.html.j2")


def _shown(value: Any) -> Any:
    """A value for the template: plain text made printable, the page's own markup unchanged."""
    return printable(value) if type(value) is str else value


def _context(findings: Findings, pictures: Mapping[str, Picture], links: Mapping[str, str]) -> dict[str, Any]:
    drawn = {name: picture.svg for name, picture in pictures.items()}
    compared = compared_metrics(findings)
    rest = [metric for metric in findings.metrics if metric not in compared]
    widest, bills = _widest(findings), bill_rows(findings)
    counts: Counter[str] = Counter(finding.verdict.verdict for finding in findings.findings)
    return {
        "findings": findings,
        "links": links,
        "claims": [
            _claim(findings, finding, row, drawn, widest[finding.verdict.metric])
            for finding, row in zip(findings.findings, claim_rows(findings), strict=True)
        ],
        "counts": [(word, glyph, counts[word]) for word, glyph in GLYPHS.items() if counts[word]],
        **{name: drawn.get(name, "") for name in OVERVIEWS},
        "encoders": [name for name in findings.backbones if is_encoder(name)],
        "trouble": _trouble(findings),
        "compared": compared,
        "rest": rest,
        "across_head": ACROSS_HEAD,
        "bill_head": BILL_HEAD,
        "bills": bills,
        "bill_note": bill_caption(bills),
        "across": across(findings),
        "arm_tables": [_arm_table(findings, backbone) for backbone in findings.backbones],
        "costs": cost_rows(findings),
        "varied": _varied(findings.arms),
        "caption": caption(findings),
        "scopes": {finding.verdict.scope for finding in findings.findings if finding.verdict.scope},
        "status": {status: len(findings.with_status(status)) for status in ("finished", "failed", "missing")},
    }


def _places(findings: Findings) -> dict[str, str]:
    """The targets of links in plots: id in the page -> the name of its run or claim."""
    several = len(findings.backbones) > 1
    runs = {
        f"run-{row.id}": f"{row.arm}{f' on {row.backbone}' if several else ''}{of_seed(row.seed)}"
        for row in findings.runs
    }
    return runs | {anchor(one.verdict): f"{one.verdict.claim}, {one.verdict.metric}" for one in findings.findings}


def _arm_table(findings: Findings, backbone: str) -> dict[str, Any]:
    """Means by metric and arm on one backbone, and the runs behind them: {(metric, arm): {seed: run}}."""
    runs = {arm: [row for row in findings.of(arm, backbone) if not row.selection] for arm in findings.arms}
    arms = [arm for arm, rows in runs.items() if rows]
    metrics = list(findings.metrics)
    return {
        "backbone": backbone,
        "arms": arms,
        "untrained": {arm for arm in arms if all(row.seed is None for row in runs[arm])},
        "cells": {
            (metric, arm): arm_cell(findings.values(arm, backbone, metric).values())
            for metric in metrics
            for arm in arms
        },
        "seeds": list(dict.fromkeys(row.seed for arm in arms for row in runs[arm])),
        "runs": {
            (metric, arm): {row.seed: row for row in runs[arm] if metric in row.metrics}
            for metric in metrics
            for arm in arms
        },
    }


def _widest(findings: Findings) -> dict[str, float]:
    """Metric -> the farthest that the bars of its comparisons reach from zero, which is its scale."""
    found: dict[str, float] = {}
    for finding in findings.findings:
        verdict = finding.verdict
        ends = (verdict.delta_mean, verdict.ci_low, verdict.ci_high, verdict.margin)
        reach = max((abs(end) for end in ends if known(end)), default=0.0)
        found[verdict.metric] = max(found.get(verdict.metric, 0.0), reach)
    return found


def _bar(finding: Finding, widest: float) -> dict[str, float] | None:
    """Positions of interval and mean between -widest and widest, in per cent from the left; None if unknown."""
    verdict = finding.verdict
    low, mean, high = verdict.ci_low, verdict.delta_mean, verdict.ci_high
    if not (known(low) and known(mean) and known(high) and widest > 0):
        return None
    position = {name: 50 + 48 * value / widest for name, value in (("low", low), ("mean", mean), ("high", high))}
    return {"left": position["low"], "width": position["high"] - position["low"], "mean": position["mean"]}


def _claim(
    findings: Findings, finding: Finding, row: ClaimRow, drawn: Mapping[str, str], widest: float
) -> dict[str, Any]:
    verdict = finding.verdict
    wins = [item for item in finding.shown_moves.items if item.delta > 0][:ITEMS_SHOWN]
    losses = _losses(finding)[:ITEMS_SHOWN]
    return {
        "finding": finding,
        "verdict": verdict,
        "row": row,
        "anchor": anchor(verdict),
        "glyph": GLYPHS[row.kind],
        "tone": row.kind.replace(" ", "-"),
        "agree": agreement_words(finding),
        "places": decimals(verdict),
        "answers": answers(verdict),
        "each_run": each_run(verdict),
        "bar": _bar(finding, widest),
        "plot": drawn.get(f"seeds-{anchor(verdict)}", ""),
        "items": (("Largest wins", wins), ("Largest losses", losses)) if wins or losses else (),
        "moves": finding.shown_moves,
        "taken": {item: _taken(findings, finding, confused) for item, confused in finding.taken_for.items()},
        "texts": {
            name: _cut(text, TEXT_LETTERS) for name, text in findings.item_texts.get(verdict.metric, {}).items()
        },
    }


def _trouble(findings: Findings) -> list[Trouble]:
    """What failed, the most serious kind first, the worst few of each kind."""
    failed = [
        Trouble(f"{row.arm}{of_seed(row.seed)} failed", row.problem, f"run-{row.id}")
        for row in findings.with_status("failed")
    ]
    missing = findings.with_status("missing")
    absent = [Trouble(f"{len(missing)} of {len(findings.runs)} runs are not in the ledger", "", "runs")]
    unexpected = [
        Trouble(
            f"{finding.verdict.claim}: {expected(finding.verdict)}",
            f"found {finding.verdict.words.removeprefix('fails: ')}",
            anchor(finding.verdict),
        )
        for finding in findings.findings
        if finding.verdict.as_expected is not True
    ]
    lossy = sorted(
        (finding for finding in findings.findings if finding.shown_moves.worse),
        key=lambda finding: -finding.shown_moves.worse / finding.shown_moves.total,
    )
    lost = [
        Trouble(
            f"{finding.verdict.claim}: {finding.verdict.treatment} loses {finding.shown_moves.worse:,} of "
            f"{finding.shown_moves.total:,} {finding.shown_moves.counted}",
            f"most on {'; '.join(_item_words(findings, finding, item) for item in _losses(finding)[:3])}",
            f"items-{anchor(finding.verdict)}",
        )
        for finding in lossy
    ]
    return [
        *_first(failed, "runs", "failed runs"),
        *(absent if missing else []),
        *_first(unexpected, "seeds", "claims that did not turn out as expected"),
        *_first(lost, "items", "comparisons that lose items"),
    ]


def _item_words(findings: Findings, finding: Finding, item: ItemDelta) -> str:
    """An item in words: its text, else its name, and what the treatment confused it with, each cut."""
    texts = findings.item_texts.get(finding.verdict.metric, {})
    confusions = finding.taken_for.get(item.item_id, ())
    taken = [texts.get(one.other, one.other) for one in confusions if one.arm == finding.verdict.treatment]
    return ", taken for ".join(
        _cut(text, ITEM_LETTERS) for text in (texts.get(item.item_id, item.item_id), *taken)
    )


def _cut(text: str, letters: int) -> str:
    """The text, cut behind the last word that fits."""
    return text if len(text) <= letters else f"{text[:letters].rsplit(' ', 1)[0]} …"


def _taken(findings: Findings, finding: Finding, confusions: Sequence[TakenFor]) -> list[str]:
    """A line for each arm with what it confused an item with: `B0 took it for "a short poem" in 5 of 8 runs`."""
    texts = findings.item_texts.get(finding.verdict.metric, {})
    often = [f" in {one.times} of {one.runs} runs" if one.runs > 1 else "" for one in confusions]
    return [
        f"{one.arm} took it for “{_cut(texts.get(one.other, one.other), TEXT_LETTERS)}”{times}"
        for one, times in zip(confusions, often, strict=True)
    ]


def _first(troubles: list[Trouble], place: str, kind: str) -> list[Trouble]:
    """The first few troubles of a kind, and a last one with the number of others."""
    more = len(troubles) - TROUBLES_SHOWN
    return troubles[:TROUBLES_SHOWN] + ([Trouble(f"{more} more {kind}", "", place)] if more > 0 else [])


def _losses(finding: Finding) -> list[ItemDelta]:
    """The items on which the treatment lost, the largest loss first."""
    return sorted((item for item in finding.shown_moves.items if item.delta < 0), key=lambda item: item.delta)


def _varied(arms: Mapping[str, Mapping[str, Any]]) -> tuple[list[str], dict[str, Any]]:
    """The names of settings in which the arms differ, and the shared settings with their values."""
    names = list(dict.fromkeys(name for settings in arms.values() for name in settings))
    shared = {}
    for name in names:
        values = [settings.get(name) for settings in arms.values()]
        if len({*map(CANONICAL.encode, values)}) == 1:  # as in a run's id, where 1 is not true
            shared[name] = values[0]
    return [name for name in names if name not in shared], shared


def _figure(value: float | None, places: int, signed: bool = False) -> str:
    return figure(value, places, "+" if signed else "") if known(value) else NONE


def _score(value: float | None) -> str:
    """A score of a single run with four decimals, or more if those would show only zeros."""
    tiny = known(value) and 0 < abs(value) < 1e-4
    return _figure(value, MOST_PLACES if tiny else 4)
