"""The plots of a study: forest, seed by seed, learning curves. Each is a matplotlib Figure, saved as SVG or PNG.

Verdicts differ in colour (Okabe and Ito's palette, told apart with any kind of colour vision) and in the shape of
their mark. In the SVG every point links to its run, and the colours follow the page's light or dark scheme.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from itertools import cycle
from math import nan
from typing import TYPE_CHECKING, Any

import numpy as np

from orchestration.report.seeds import seeds_svg
from orchestration.report.tables import agreement, anchor, difference, known
from orchestration.study.names import cut, printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    from evaluators.significance.verdict import Verdict
    from orchestration.verdicts.findings import Distribution, Finding, Findings, RunRow

INK, FAINT, PAPER = "#1b1f24", "#8a9099", "#fdfdfc"  # replaced by the page's variables in the SVG
COLOURS = {
    "better": "#009e73",
    "worse": "#d55e00",
    "equivalent": "#0072b2",
    "not worse": "#0072b2",
    "undecided": "#6e7681",
}
MARKS = {"better": "^", "worse": "v", "equivalent": "D", "not worse": ">", "undecided": "o"}
MARK_VARIABLES = {COLOURS[word]: f"mark-{word}" for word in ("better", "worse", "equivalent", "undecided")}
# One part of a distribution each, told apart by dashes too: the first two solid, the others broken.
LINES = [(COLOURS["better"], "-"), (COLOURS["equivalent"], "-"), (COLOURS["worse"], "--"), (INK, ":")]
CURVES_SHOWN = 200  # runs whose curves are told apart; of more a page holds megabytes
ROW, PANEL = 34, 32  # characters that have room in front of a row, above a panel
STYLE: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "text.color": INK,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.labelsize": 8.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9.0,
    "axes.titlelocation": "left",
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": 8.0,
    "ytick.labelsize": 8.0,
    "figure.facecolor": PAPER,
    "axes.facecolor": "none",
    "svg.fonttype": "none",
    "text.parse_math": False,  # a name with two $ is no formula
}


@dataclass(frozen=True)
class Picture:
    """A plot, drawn for a page; as a file only where one is asked for, which takes as long again."""

    svg: str
    figure: Callable[[], Figure]

    @cached_property
    def png(self) -> bytes:
        return png(_laid_out(self.figure()))


@lru_cache(maxsize=2)  # drawn once for the report's files, its page and the tracking server
def every(findings: Findings) -> Mapping[str, Picture]:
    """Name -> plot, for every plot the study has: forest, seeds-<comparison>, curves, distributions."""
    drawn = {"forest": _picture(forest(findings), "forest")} if findings.findings else {}
    for finding in findings.findings:
        if finding.verdict.per_seed:
            name = f"seeds-{anchor(finding.verdict)}"
            drawn[name] = Picture(seeds_svg(finding), partial(pairs, finding))
    if findings.has_curves:
        drawn["curves"] = _picture(curves(findings), "curves")
    if findings.distributions:
        drawn["distributions"] = _picture(distributions(findings), "distributions")
    return drawn


def _picture(figure: Figure, name: str) -> Picture:
    figure = _laid_out(figure)
    return Picture(svg(figure, name), lambda: figure)


def _laid_out(figure: Figure) -> Figure:
    """With its layout found: once, not again for each form."""
    if figure.get_layout_engine() is not None:
        with styled():
            figure.draw_without_rendering()
        figure.set_layout_engine(None)
    return figure


def forest(findings: Findings) -> Figure:
    """Mean paired difference and 95 % interval of every comparison, a panel per metric, a tick per seed.

    A joint claim has no one difference; its parts have.
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
    axes.set_title(
        metric if group[0].larger_is_better else f"{metric} (smaller is better: sign turned)", weight="bold"
    )


def _row_name(finding: Finding, several: bool) -> str:
    """What a row compares; the backbone on a second line, and the claim on one of its own where all is long."""
    verdict = finding.verdict
    arms = f"{_short(verdict.treatment)} − {_short(verdict.control)}"
    name = f"{_short(verdict.claim)}:" + ("  " if len(verdict.claim + arms) <= ROW else "\n") + arms
    return f"{name}\n{_short(verdict.backbone, ROW)}" if several and verdict.backbone else name


def _forest_row(axes: Axes, row: int, finding: Finding) -> None:
    verdict, colour = finding.verdict, COLOURS[finding.verdict.verdict]
    _margin(axes.fill_betweenx, [row - 0.3, row + 0.3], verdict.margin)
    deltas = [pair["delta"] for pair in verdict.per_seed if known(pair["delta"])]
    ticks = [[delta, delta, nan] for delta in deltas], [[row + 0.16, row + 0.3, nan]] * len(deltas)
    axes.plot(*map(np.ravel, ticks), color=colour, lw=1.1, alpha=0.75)  # one line with gaps: one path on the page
    if known(verdict.ci_low) and known(verdict.ci_high):
        axes.plot([verdict.ci_low, verdict.ci_high], [row, row], color=colour, lw=2, solid_capstyle="butt")
    if known(verdict.delta_mean):
        _mark(axes, verdict.delta_mean, row, verdict).set_url(f"#{anchor(verdict)}")
    told = "one run each" if verdict.seedless else f"{agreement(verdict)} seeds"
    axes.annotate(
        f"{difference(verdict)}\n{verdict.verdict}, {told}",
        (1.02, row),
        xycoords=("axes fraction", "data"),
        va="center",
        fontsize=8,
        linespacing=1.35,
    )


def _mark(axes: Axes, x: float, y: float, verdict: Verdict) -> Line2D:
    """The verdict's own mark; hollow while nothing is decided, or when the claim came after the results."""
    colour = COLOURS[verdict.verdict]
    hollow = verdict.verdict == "undecided" or verdict.exploratory
    return axes.plot(x, y, MARKS[verdict.verdict], ms=7, color=colour, mfc=PAPER if hollow else colour)[0]


def _margin(fill: Callable[..., object], across: Sequence[float], margin: float | None) -> None:
    """The band of differences too small to matter, where one was declared."""
    if margin is not None:
        fill(across, -margin, margin, color=FAINT, alpha=0.18, lw=0)


def pairs(finding: Finding) -> Figure:
    """Every seed under both arms, joined, beside the paired differences with their mean and 95 % interval."""
    verdict = finding.verdict
    complete = [pair for pair in verdict.per_seed if known(pair["treatment"]) and known(pair["control"])]
    complete = complete[:1] if verdict.seedless else complete
    with styled():
        figure = canvas(4.4, 2.7)
        left, right = figure.subplots(1, 2, width_ratios=[1.5, 1])
        for pair in complete:
            _slope(left, finding, pair)
        left.set_xlim(-0.25, 1.25)
        left.set_xticks([0, 1], [_short(verdict.control), _short(verdict.treatment)])
        left.set_title(verdict.metric)
        _deltas(right, finding, complete)
    return figure


def _slope(axes: Axes, finding: Finding, pair: Mapping[str, float]) -> None:
    """One seed: solid where the treatment wins, dashed where it does not."""
    wins = pair["delta"] > 0
    colour = COLOURS["better"] if wins else COLOURS["worse"]
    axes.plot(
        [0, 1], [pair["control"], pair["treatment"]], color=colour, lw=1.1, ls="-" if wins else "--", alpha=0.8
    )
    seed = int(pair["seed"])
    for x, value, runs in (
        (0, pair["control"], finding.control_runs),
        (1, pair["treatment"], finding.treatment_runs),
    ):
        (point,) = axes.plot(x, value, MARKS["better" if wins else "worse"], ms=5.5, color=colour)
        if seed in runs and " - " not in runs[seed]:  # a gain is of two runs
            point.set_url(f"#run-{runs[seed]}")


def _deltas(axes: Axes, finding: Finding, complete: Sequence[Mapping[str, float]]) -> None:
    verdict, colour = finding.verdict, COLOURS[finding.verdict.verdict]
    _margin(axes.fill_between, [-0.7, len(complete) + 1.3], verdict.margin)
    axes.axhline(0, color=FAINT, linewidth=0.9, zorder=0)
    for rank, pair in enumerate(complete):
        wins = pair["delta"] > 0
        (point,) = axes.plot(
            rank,
            pair["delta"],
            MARKS["better" if wins else "worse"],
            ms=5,
            color=COLOURS["better" if wins else "worse"],
        )
        if int(pair["seed"]) in finding.treatment_runs:
            point.set_url(f"#run-{finding.treatment_runs[int(pair['seed'])]}")
    middle = len(complete) + 0.6
    if known(verdict.ci_low) and known(verdict.ci_high):
        axes.plot([middle, middle], [verdict.ci_low, verdict.ci_high], color=colour, lw=2, solid_capstyle="butt")
    if known(verdict.delta_mean):
        _mark(axes, middle, verdict.delta_mean, verdict)
    every = max(1, (len(complete) + 7) // 8)
    ticks = list(range(0, len(complete), every))
    names = ["run"] if verdict.seedless else [f"{int(complete[rank]['seed'])}" for rank in ticks]
    axes.set_xticks([*ticks, middle], [*names, "mean"])
    axes.set_xlim(-0.7, middle + 0.7)
    axes.set_title("difference" if verdict.seedless else "difference by seed")


def curves(findings: Findings) -> Figure:
    """Training loss of every run by step, one panel per arm and backbone with a curve; there must be one.

    Panels have their own scale: losses of different recipes are not comparable. Of more than CURVES_SHOWN runs,
    those that share their steps are shown by their mean and its band alone.
    """
    groups = {
        (arm, backbone): [row for row in findings.of(arm, backbone) if row.curve]
        for backbone in findings.backbones
        for arm in findings.arms
    }
    groups = {key: rows for key, rows in groups.items() if rows}
    columns = min(3, len(groups))
    lines = -(-len(groups) // columns)
    with styled():
        figure = canvas(0.6 + 2.5 * columns, 0.3 + 1.8 * lines)
        panels = figure.subplots(lines, columns, squeeze=False)
        for axes, ((arm, backbone), rows) in zip(panels.flat, groups.items(), strict=False):
            _curve_panel(axes, rows, each=sum(map(len, groups.values())) <= CURVES_SHOWN)
            axes.set_title(_panel_name(findings, arm, backbone))
        for axes in list(panels.flat)[len(groups) :]:
            axes.set_visible(False)
        panels[-1, 0].set_xlabel("step")
        panels[0, 0].set_ylabel("training loss")
    return figure


def _curve_panel(axes: Axes, rows: Sequence[RunRow], *, each: bool) -> None:
    """A faint line per seed, linked to its run; at shared steps their mean and a band of one sd.

    each: lines of single runs beside their mean too.
    """
    shared = {tuple(step for step, _ in row.curve) for row in rows}
    together = len(rows) > 1 and len(shared) == 1
    for row in rows if each or not together else ():
        steps, losses = zip(*row.curve, strict=True)
        width, alpha = (0.6, 0.25) if together else (0.9, 0.8)
        (line,) = axes.plot(steps, losses, color=COLOURS["equivalent"], lw=width, alpha=alpha)
        line.set_url(f"#run-{row.id}")
    if together:
        losses_of = np.array([[loss for _, loss in row.curve] for row in rows])  # (seeds, steps)
        means, spread = losses_of.mean(0), losses_of.std(0, ddof=1)
        (steps,) = shared
        axes.fill_between(steps, means - spread, means + spread, color=COLOURS["equivalent"], alpha=0.2, lw=0)
        axes.plot(steps, means, color=INK, lw=1.2)
    axes.margins(x=0.02)


def distributions(findings: Findings) -> Figure:
    """Share of the items by value, a line per part and a tick at its mean, one panel per arm and backbone."""
    columns = min(3, len(findings.distributions))
    lines = -(-len(findings.distributions) // columns)
    with styled():
        figure = canvas(0.6 + 2.5 * columns, 0.6 + 1.6 * lines)
        panels = figure.subplots(lines, columns, squeeze=False, sharex=True)
        for axes, found in zip(panels.flat, findings.distributions, strict=False):
            _distribution_panel(axes, found)
            axes.set_title(_panel_name(findings, found.arm, found.backbone))
        for axes in list(panels.flat)[len(findings.distributions) :]:
            axes.set_visible(False)
        panels[-1, 0].set_xlabel(findings.distributions[0].quantity)
        panels[0, 0].set_ylabel("share of items")
        figure.legend(
            *panels[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=4, frameon=False
        )
    return figure


def _distribution_panel(axes: Axes, found: Distribution) -> None:
    for (part, counts), (colour, dash) in zip(found.counts.items(), cycle(LINES)):
        width = (found.high - found.low) / len(counts)
        edges = [found.low + width * place for place in range(len(counts) + 1)]
        shares = [count / sum(counts) for count in counts]
        axes.stairs(shares, edges, color=colour, ls=dash, lw=1.1, label=part)
        axes.plot([found.means[part]], [0], marker=3, ms=6, color=colour, clip_on=False)
    axes.margins(x=0.02)


def _panel_name(findings: Findings, arm: str, backbone: str) -> str:
    return _short(arm, PANEL) if len(findings.backbones) == 1 else f"{_short(arm)} on {_short(backbone)}"


def _short(name: str, width: int = 18) -> str:
    """A name as a plot has room for it; the page's tables have it in full."""
    return cut(printable(name), width)


def svg(figure: Figure, name: str) -> str:
    """The figure as an `<svg>` element to stand in a page; `name` keeps its ids apart from its neighbours'."""
    buffer = io.StringIO()
    with styled({"svg.hashsalt": name}):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    meant = set(re.findall(r'(?:url\(#|xlink:href="#)([^")]*)', text))
    # what stands between the tags is text, names among it, and stays as it is
    return re.sub(r"<[^>]*>", lambda tag: _for_the_page(tag[0], name, meant), text)


def _for_the_page(tag: str, name: str, meant: Collection[str]) -> str:
    """A tag with ids of its own where something points to them, and the page's letters and colours.

    Places are rounded to a hundredth of a point.
    """
    tag = re.sub(r' id="([^"]*)"', lambda found: found[0] if found[1] in meant else "", tag)
    tag = re.sub(r' (?:d|x|y|transform)="[^"]*"', lambda found: re.sub(r"(\.\d\d)\d+", r"\1", found[0]), tag)
    tag = re.sub(r'(\bid="|url\(#|xlink:href="#)(?!run-|claim-)', rf"\g<1>{name}-", tag)
    tag = re.sub(r"'DejaVu Sans'[^;\"]*", "var(--sans)", tag)
    for colour, variable in {INK: "ink", FAINT: "faint", PAPER: "paper", **MARK_VARIABLES}.items():
        tag = tag.replace(colour, f"var(--{variable})")
    return tag


def svg_file(figure: Figure) -> str:
    """The figure as an SVG that stands alone, with the colours of paper."""
    buffer = io.StringIO()
    with styled({"svg.hashsalt": "file"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()


def png(figure: Figure) -> bytes:
    """The figure as a PNG of 160 dots per inch."""
    buffer = io.BytesIO()
    with styled():
        figure.savefig(buffer, format="png", dpi=160, metadata={"Software": None})
    return buffer.getvalue()


def canvas(width: float, height: float) -> Figure:
    """A Figure outside pyplot: nothing global holds it, so nothing must close it. Inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


@contextmanager
def styled(more: dict[str, Any] | None = None) -> Iterator[None]:
    import matplotlib

    settings: Any = STYLE | (more or {})
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        # a letter that the font lacks is a box in the PNG; in the page the browser has it
        warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)
        yield
