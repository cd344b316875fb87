"""The plots of a study: forest, seeds, learning curves, distributions. Each is a matplotlib Figure.

In the SVG every point links to its run, and the colours follow the page's light or dark scheme (drawing.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from itertools import cycle
from math import nan
from typing import TYPE_CHECKING

import numpy as np

from orchestration.report import arm_plots
from orchestration.report.drawing import (
    COLOURS,
    FAINT,
    INK,
    LINES,
    MARKS,
    PANEL,
    PAPER,
    ROW,
    Picture,
    canvas,
    grid,
    panel_name,
    picture,
    short_name,
    styled,
)
from orchestration.report.seeds import seeds_svg
from orchestration.report.tables import agreement, anchor, complete_pairs, difference, known

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    from evaluators.significance.verdict import Verdict
    from orchestration.verdicts.findings import Distribution, Finding, Findings, RunRow

CURVES_SHOWN = 200  # runs that get a curve each; more would add megabytes to the page
TITLE = 60  # characters of a metric that fit above the forest
DRAWN = 1e100  # the largest loss that is drawn, in size: of a run that diverged, whose squares are no number


@lru_cache(maxsize=2)  # one drawing for files, page and tracking server
def every(findings: Findings) -> Mapping[str, Picture]:
    """Name -> plot: forest, seeds-<comparison>, curves, distributions, layers, figures; those with data."""
    drawn = {"forest": picture(forest(findings), "forest")} if findings.findings else {}
    for finding in findings.findings:
        if finding.verdict.per_seed:
            name = f"seeds-{anchor(finding.verdict)}"
            drawn[name] = Picture(seeds_svg(finding), partial(pairs, finding))
    if findings.has_curves:
        drawn["curves"] = picture(curves(findings), "curves")
    if findings.distributions:
        drawn["distributions"] = picture(distributions(findings), "distributions")
    return {**drawn, **arm_plots.every(findings)}


def forest(findings: Findings) -> Figure:
    """Mean paired difference and 95 % interval of every comparison, a panel per metric, a tick per seed.

    Joint claims are left out, as only their parts have a difference.
    """
    by_metric: dict[str, list[Finding]] = {}
    for finding in (one for one in findings.findings if one.verdict.parts is None):
        by_metric.setdefault(finding.verdict.metric, []).append(finding)
    rows = [len(group) for group in by_metric.values()]
    several = len(findings.backbones) > 1
    with styled():
        figure = canvas(6.2, 0.3 + sum(0.4 * count + 0.5 for count in rows))
        panels = figure.subplots(len(rows), 1, squeeze=False, height_ratios=[count + 0.6 for count in rows])[:, 0]
        for axes, (metric, group) in zip(panels, by_metric.items(), strict=True):
            _forest_panel(axes, metric, group, several)
        panels[-1].set_xlabel("← favours the control  ·  difference  ·  favours the treatment →")
    return figure


def _forest_panel(axes: Axes, metric: str, group: Sequence[Finding], several: bool) -> None:
    for row, finding in enumerate(group):
        _forest_row(axes, row, finding)
    axes.axvline(0, color=FAINT, linewidth=0.9, zorder=0)
    axes.set_ylim(len(group) - 0.45, -0.5)
    axes.set_yticks(range(len(group)), [_row_name(finding, several) for finding in group])
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.margins(x=0.06)
    axes.locator_params(axis="x", nbins=4)  # long names leave a narrow panel
    title = short_name(metric, TITLE)
    axes.set_title(
        title if group[0].larger_is_better else f"{title} (smaller is better: sign turned)", weight="bold"
    )


def _row_name(finding: Finding, several: bool) -> str:
    """The label of a row: claim and arms, on two lines if long, and the backbone on another."""
    verdict = finding.verdict
    arms = f"{short_name(verdict.treatment)} − {short_name(verdict.control)}"
    name = f"{short_name(verdict.claim)}:" + ("  " if len(verdict.claim + arms) <= ROW else "\n") + arms
    return f"{name}\n{short_name(verdict.backbone, ROW)}" if several and verdict.backbone else name


def _forest_row(axes: Axes, row: int, finding: Finding) -> None:
    verdict, colour = finding.verdict, COLOURS[finding.verdict.verdict]
    _margin(axes.fill_betweenx, [row - 0.3, row + 0.3], verdict.margin)
    deltas = [pair["delta"] for pair in verdict.per_seed if known(pair["delta"])]
    ticks = [[delta, delta, nan] for delta in deltas], [[row + 0.16, row + 0.3, nan]] * len(deltas)
    axes.plot(*map(np.ravel, ticks), color=colour, lw=1.1, alpha=0.75)  # one line with gaps is one path in the SVG
    if known(verdict.ci_low) and known(verdict.ci_high):
        axes.plot([verdict.ci_low, verdict.ci_high], [row, row], color=colour, lw=2, solid_capstyle="butt")
    if known(verdict.delta_mean):
        _mark(axes, verdict.delta_mean, row, verdict).set_url(f"#{anchor(verdict)}")
    alike = "one run each" if finding.one_run else "alike at every seed"
    seeds = alike if verdict.seedless else f"{agreement(verdict)} seeds"
    words = verdict.verdict if verdict.parts else f"{verdict.verdict}, {seeds}"
    axes.annotate(
        f"{difference(verdict)}\n{words}",
        (1.02, row),
        xycoords=("axes fraction", "data"),
        va="center",
        fontsize=8,
        linespacing=1.35,
    )


def _mark(axes: Axes, x: float, y: float, verdict: Verdict) -> Line2D:
    """The mark of the verdict, hollow if it is undecided or exploratory."""
    colour = COLOURS[verdict.verdict]
    hollow = verdict.verdict == "undecided" or verdict.exploratory
    return axes.plot(x, y, MARKS[verdict.verdict], ms=7, color=colour, mfc=PAPER if hollow else colour)[0]


def _margin(fill: Callable[..., object], across: Sequence[float], margin: float | None) -> None:
    """The band of differences within the declared margin, if there is one."""
    if margin is not None:
        fill(across, -margin, margin, color=FAINT, alpha=0.18, lw=0)


def pairs(finding: Finding) -> Figure:
    """Every seed's score in both arms, joined by a line; beside it the differences with mean and 95 % interval.

    Only for files: on the page `seeds_svg` shows the same.
    """
    verdict = finding.verdict
    complete = complete_pairs(verdict)
    with styled():
        figure = canvas(4.4, 2.7)
        left, right = figure.subplots(1, 2, width_ratios=[1.5, 1])
        for pair in complete:
            _slope(left, pair)
        left.set_xlim(-0.25, 1.25)
        left.set_xticks([0, 1], [short_name(verdict.control), short_name(verdict.treatment)])
        left.set_title(short_name(verdict.metric, PANEL))
        _deltas(right, verdict, complete)
    return figure


def _slope(axes: Axes, pair: Mapping[str, float]) -> None:
    """One seed: solid where the treatment wins, dashed where it does not."""
    word, dash = ("better", "-") if pair["delta"] > 0 else ("worse", "--")
    axes.plot([0, 1], [pair["control"], pair["treatment"]], color=COLOURS[word], lw=1.1, ls=dash, alpha=0.8)
    axes.plot([0, 1], [pair["control"], pair["treatment"]], MARKS[word], ms=5.5, color=COLOURS[word])


def _deltas(axes: Axes, verdict: Verdict, complete: Sequence[Mapping[str, float]]) -> None:
    colour = COLOURS[verdict.verdict]
    _margin(axes.fill_between, [-0.7, len(complete) + 1.3], verdict.margin)
    axes.axhline(0, color=FAINT, linewidth=0.9, zorder=0)
    for rank, pair in enumerate(complete):
        word = "better" if pair["delta"] > 0 else "worse"
        axes.plot(rank, pair["delta"], MARKS[word], ms=5, color=COLOURS[word])
    middle = len(complete) + 0.6
    if known(verdict.ci_low) and known(verdict.ci_high):
        axes.plot([middle, middle], [verdict.ci_low, verdict.ci_high], color=colour, lw=2, solid_capstyle="butt")
    if known(verdict.delta_mean):
        _mark(axes, middle, verdict.delta_mean, verdict)
    spacing = max(1, (len(complete) + 7) // 8)
    ticks = list(range(0, len(complete), spacing))
    names = ["run"] if verdict.seedless else [f"{int(complete[rank]['seed'])}" for rank in ticks]
    axes.set_xticks([*ticks, middle], [*names, "mean"])
    axes.set_xlim(-0.7, middle + 0.7)
    axes.set_title("difference" if verdict.seedless else "difference by seed")


def curves(findings: Findings) -> Figure:
    """Training loss of every run by step, one panel per arm and backbone with curves. There must be a curve.

    Panels have their own scale, as losses of different recipes are not comparable. With more than CURVES_SHOWN
    runs, those that share their steps are shown only by their mean and its band.
    """
    groups = {
        (arm, backbone): [row for row in findings.of(arm, backbone) if row.curve]
        for backbone in findings.backbones
        for arm in findings.arms
    }
    groups = {key: rows for key, rows in groups.items() if rows}
    with styled():
        figure, panels = grid(len(groups), 1.8)
        for axes, ((arm, backbone), rows) in zip(panels.flat, groups.items(), strict=False):
            _curve_panel(axes, rows, each=sum(map(len, groups.values())) <= CURVES_SHOWN)
            axes.set_title(panel_name(findings, arm, backbone))
        panels[-1, 0].set_xlabel("step")
        panels[0, 0].set_ylabel("training loss")
    return figure


def _curve_panel(axes: Axes, rows: Sequence[RunRow], *, each: bool) -> None:
    """A faint line per seed, linked to its run; their mean and a band of one sd if they share their steps.

    each: whether single runs are drawn beside their mean.
    """
    shared = {tuple(step for step, _ in row.curve) for row in rows}
    with_mean = len(rows) > 1 and len(shared) == 1
    for row in rows if each or not with_mean else ():
        steps, losses = _line(row)
        width, alpha = (0.6, 0.25) if with_mean else (0.9, 0.8)
        (line,) = axes.plot(steps, losses, color=COLOURS["equivalent"], lw=width, alpha=alpha)
        line.set_url(f"#run-{row.id}")
    if with_mean:
        losses_of = np.stack([_line(row)[1] for row in rows])  # (seeds, steps)
        means, spread = losses_of.mean(0), losses_of.std(0, ddof=1)
        (steps,) = shared
        axes.fill_between(steps, means - spread, means + spread, color=COLOURS["equivalent"], alpha=0.2, lw=0)
        axes.plot(steps, means, color=INK, lw=1.2)
    axes.margins(x=0.02)


def _line(row: RunRow) -> tuple[Sequence[int], np.ndarray]:
    """The steps of a run and its losses, (steps,); nan, where a line breaks off, for those that are too large."""
    steps, losses = zip(*row.curve, strict=True)
    return steps, np.where(np.abs(losses) <= DRAWN, losses, np.nan)


def distributions(findings: Findings) -> Figure:
    """Share of the items by value, a line per part and a tick at its mean, one panel per arm and backbone."""
    with styled():
        figure, panels = grid(len(findings.distributions), 1.6, 0.6, sharex=True)
        for axes, distribution in zip(panels.flat, findings.distributions, strict=False):
            _distribution_panel(axes, distribution)
            axes.set_title(panel_name(findings, distribution.arm, distribution.backbone))
        panels[-1, 0].set_xlabel(findings.distributions[0].quantity)
        panels[0, 0].set_ylabel("share of items")
        figure.legend(
            *panels[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=4, frameon=False
        )
    return figure


def _distribution_panel(axes: Axes, distribution: Distribution) -> None:
    for (part, counts), (colour, dash) in zip(distribution.counts.items(), cycle(LINES)):
        width = (distribution.high - distribution.low) / len(counts)
        edges = [distribution.low + width * edge for edge in range(len(counts) + 1)]
        shares = [count / sum(counts) for count in counts]
        axes.stairs(shares, edges, color=colour, ls=dash, lw=1.1, label=part)
        axes.plot([distribution.means[part]], [0], marker=3, ms=6, color=colour, clip_on=False)
    axes.margins(x=0.02)
