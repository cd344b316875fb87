"""Draws the seeds of a comparison as SVG for the page: scores in both arms, joined, and the paired differences.

The SVG is written by hand: for a hundred comparisons matplotlib takes half a minute and six megabytes. The same
plot as a file is `plots.pairs`. Colours are the page's variables, so that they follow its light or dark scheme.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, NamedTuple

from orchestration.report.drawing import PANEL, short_name
from orchestration.report.tables import complete_pairs, known
from orchestration.study.names import printable

if TYPE_CHECKING:
    from orchestration.verdicts.findings import Finding

WIDTH, HEIGHT, TOP, BOTTOM = 317.0, 194.0, 22.0, 172.0  # points; panels lie between top and bottom
LEFT, RIGHT = (44.0, 174.0), (222.0, 304.0)  # from and to of each panel
NAME = 18.0  # points that the name of a tick takes
TICKS = 5  # about so many at most
STEPS = ((1, 0), (2, 0), (2.5, 1), (5, 0), (10, -1))  # (distance of ticks, decimals of their labels)
PLACES = 6  # most decimals of a tick; smaller values are written as 2e-08
FINEST = 1e-12  # relative distance below which values are drawn at one height
MARKS = {
    "better": "m-3 2.6h6l-3-5.2z",
    "worse": "m-3-2.6h6l-3 5.2z",
    "equivalent": "m-3.5 0l3.5-3.5l3.5 3.5l-3.5 3.5z",
    "not worse": "m-2.6-3v6l5.2-3z",
    "undecided": "m-3 0a3 3 0 1 0 6 0a3 3 0 1 0-6 0z",
}  # paths, relative to the point that they mark
TONES = {"better": "better", "worse": "worse", "equivalent": "equivalent", "not worse": "equivalent"}


class Scale(NamedTuple):
    """Maps values from low to high to heights in the picture."""

    low: float
    high: float

    def __call__(self, value: float) -> str:
        return f"{BOTTOM - (BOTTOM - TOP) * (value - self.low) / (self.high - self.low):.1f}"

    @staticmethod
    def around(values: Sequence[float]) -> Scale:
        """A scale around these values with a margin of a twentieth, also if they are equal or nearly so."""
        low, high = min(values), max(values)
        size = max(abs(low), abs(high))
        apart = high - low if high - low > FINEST * size else 0.0
        margin = 0.05 * apart or 0.05 * size or 0.05
        return Scale(low - margin, high + margin)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Round values within the scale, and their labels."""
        rough = (self.high - self.low) / TICKS
        exponent = math.floor(math.log10(rough))
        size, more = next(one for one in STEPS if one[0] * 10.0**exponent >= rough)
        step, places = size * 10.0**exponent, max(0, more - exponent)
        values = [number * step for number in range(math.ceil(self.low / step), math.floor(self.high / step) + 1)]
        if places <= PLACES:
            return [(value, f"{value:z.{places}f}") for value in values]
        digits = 1 + places + math.floor(math.log10(max(map(abs, values))))
        return [(value, f"{value:z.{digits}g}") for value in values]


def seeds_svg(finding: Finding) -> str:
    """An `<svg>` element whose points link to their runs; it shows what `plots.pairs` shows."""
    verdict = finding.verdict
    complete = complete_pairs(verdict)
    parts = [*_slopes(finding, complete), *_deltas(finding, complete)] if complete else []
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH:g}pt" height="{HEIGHT:g}pt" '
        f'viewBox="0 0 {WIDTH:g} {HEIGHT:g}" style="font:8px var(--sans);fill:var(--ink)">'
        f"{''.join(parts)}</svg>"
    )


def _slopes(finding: Finding, complete: Sequence[Mapping[str, float]]) -> Iterator[str]:
    """A line for each seed, solid if the treatment wins, else dashed."""
    verdict = finding.verdict
    scale = Scale.around([pair[arm] for pair in complete for arm in ("treatment", "control")])
    margin = (LEFT[1] - LEFT[0]) / 6
    left, right = LEFT[0] + margin, LEFT[1] - margin
    names = [(left, short_name(verdict.control)), (right, short_name(verdict.treatment))]
    yield from _frame(LEFT, scale, names, short_name(verdict.metric, PANEL))
    for wins in (True, False):
        chosen = [pair for pair in complete if (pair["delta"] > 0) == wins]
        word, dash = ("better", "") if wins else ("worse", ";stroke-dasharray:4 2")
        path = "".join(f"M{left:g} {scale(p['control'])}L{right:g} {scale(p['treatment'])}" for p in chosen)
        if chosen:
            yield f'<path d="{path}" style="stroke:var(--mark-{word});stroke-width:1.1;opacity:.8{dash}"/>'
            yield f'<g style="fill:var(--mark-{word})">'
            for pair in chosen:
                for x, arm, runs in (
                    (left, "control", finding.control_runs),
                    (right, "treatment", finding.treatment_runs),
                ):
                    yield _linked(f"M{x:g} {scale(pair[arm])}{MARKS[word]}", runs.get(int(pair["seed"]), ""))
            yield "</g>"


def _deltas(finding: Finding, complete: Sequence[Mapping[str, float]]) -> Iterator[str]:
    """The differences in the order of their seeds, and behind them their mean with its 95 % interval."""
    verdict = finding.verdict
    results = [verdict.ci_low, verdict.ci_high, verdict.delta_mean]
    margin = [] if verdict.margin is None else [-verdict.margin, verdict.margin]
    scale = Scale.around([*(pair["delta"] for pair in complete), *filter(known, results), *margin, 0.0])
    middle, room = len(complete) + 0.6, len(complete) + 2.0

    def across(rank: float) -> float:
        return round(RIGHT[0] + (RIGHT[1] - RIGHT[0]) * (rank + 0.7) / room, 1)

    spacing = max(1, (len(complete) + 7) // 8)
    names = [
        (across(rank), "run" if verdict.seedless else f"{int(complete[rank]['seed'])}")
        for rank in range(0, len(complete), spacing)
        if across(middle) - across(rank) >= NAME
    ]
    title = "difference" if verdict.seedless else "difference by seed"
    yield from _frame(RIGHT, scale, [*names, (across(middle), "mean")], title)
    across_all = f"M{RIGHT[0]:g} {{}}H{RIGHT[1]:g}"
    if margin:
        band = across_all.format(scale(margin[0])) + f"V{scale(margin[1])}H{RIGHT[0]:g}z"
        yield f'<path d="{band}" style="fill:var(--faint);opacity:.18"/>'
    yield f'<path d="{across_all.format(scale(0.0))}" style="stroke:var(--faint);stroke-width:.9"/>'
    for wins, word in ((True, "better"), (False, "worse")):
        yield f'<g style="fill:var(--mark-{word})">'
        for rank, pair in enumerate(complete):
            if (pair["delta"] > 0) == wins:
                run = finding.treatment_runs.get(int(pair["seed"]), "")
                yield _linked(f"M{across(rank):g} {scale(pair['delta'])}{MARKS[word]}", run)
        yield "</g>"
    tone = f"var(--mark-{TONES.get(verdict.verdict, 'undecided')})"
    if known(verdict.ci_low) and known(verdict.ci_high):
        interval = f"M{across(middle):g} {scale(verdict.ci_low)}V{scale(verdict.ci_high)}"
        yield f'<path d="{interval}" style="stroke:{tone};stroke-width:2"/>'
    if known(verdict.delta_mean):
        hollow = verdict.verdict == "undecided" or verdict.exploratory
        place = f"M{across(middle):g} {scale(verdict.delta_mean)}{MARKS[verdict.verdict]}"
        yield f'<path d="{place}" style="stroke:{tone};fill:{"var(--paper)" if hollow else tone}"/>'


def _frame(
    ends: tuple[float, float], scale: Scale, names: Sequence[tuple[float, str]], title: str
) -> Iterator[str]:
    """Axes with ticks, labels below, and a title."""
    left, right = ends
    ticks = [(scale(value), text) for value, text in scale.ticks]
    axes = [f"M{left:g} {TOP:g}V{BOTTOM:g}H{right:g}"]
    axes += [f"M{left - 3:g} {y}h3" for y, _ in ticks] + [f"M{x:g} {BOTTOM:g}v3" for x, _ in names]
    yield f'<path d="{"".join(axes)}" style="fill:none;stroke:var(--faint);stroke-width:.8"/>'
    yield f'<text x="{left:g}" y="14" style="font-size:9px">{escape(printable(title))}</text>'
    yield '<g text-anchor="end">'
    yield from (f'<text x="{left - 5:g}" y="{float(y) + 2.8:.1f}">{text}</text>' for y, text in ticks)
    yield '</g><g text-anchor="middle">'
    yield from (f'<text x="{x:g}" y="{BOTTOM + 12:g}">{escape(name)}</text>' for x, name in names)
    yield "</g>"


def _linked(path: str, run: str) -> str:
    """A mark that links to its run's row; a gain has two runs and no link."""
    mark = f'<path d="{path}"/>'
    return f'<a href="#run-{escape(run)}">{mark}</a>' if run and " - " not in run else mark
