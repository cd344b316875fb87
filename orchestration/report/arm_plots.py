"""Plots of arms that a family asks for: a metric by layer, and one metric against another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from orchestration.families.contract import Against, ByLayer
from orchestration.families.registry import family
from orchestration.report.drawing import COLUMNS, LINES, PANEL, Picture, canvas, picture, short_name, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from orchestration.verdicts.findings import Findings, RunRow

MARKS = "o^sDvP*X<>"
Figures = Mapping[str, "list[tuple[RunRow, np.ndarray]]"]  # arm -> its runs, each with its M figures, (M,)
Looks = Mapping[str, tuple[str, str, str]]  # arm -> its colour, dash and mark, the same in every panel


def every(findings: Findings) -> Mapping[str, Picture]:
    """Name ("layers", "figures") -> plot, for plots that the family asks for and the runs have figures for."""
    wanted, looks = family(findings.family).arm_plots, _looks(list(findings.arms))
    panels = {
        "layers": [
            (f"{one.name}, {short_name(on, PANEL)}", partial(_by_layer, found, looks))
            for one in wanted
            if isinstance(one, ByLayer)
            for on, found in _of_backbones(findings, [one.metric(layer) for layer in range(_depth(findings, one))])
        ],
        "figures": [
            (short_name(on, PANEL), partial(_against, found, looks, (one.x, one.y)))
            for one in wanted
            if isinstance(one, Against)
            for on, found in _of_backbones(findings, [one.x, one.y])
        ],
    }
    return {name: picture(_figure(drawn), name) for name, drawn in panels.items() if drawn}


def _looks(arms: Sequence[str]) -> Looks:
    return {arm: (*LINES[number % len(LINES)], MARKS[number % len(MARKS)]) for number, arm in enumerate(arms)}


def _depth(findings: Findings, plot: ByLayer) -> int:
    """The number of layers, including embeddings, for which the runs have the metric."""
    layer = 0
    while any(plot.metric(layer) in row.metrics for row in findings.runs):
        layer += 1
    return layer


def _of_backbones(findings: Findings, metrics: Sequence[str]) -> list[tuple[str, Figures]]:
    """Backbone and its finished runs by arm, each with its values of these metrics, nan for missing ones.

    Runs with fewer than two values are left out, and so are arms and backbones without runs.
    """
    by_backbone: list[tuple[str, Figures]] = []
    for backbone in findings.backbones:
        by_arm = {}
        for arm in findings.arms:
            rows = findings.finished(arm, backbone)
            values = [(row, np.array([row.metrics.get(name, np.nan) for name in metrics])) for row in rows]
            values = [(row, each) for row, each in values if np.isfinite(each).sum() > 1]
            if values:
                by_arm[arm] = values
        if by_arm:
            by_backbone.append((backbone, by_arm))
    return by_backbone


def _figure(panels: Sequence[tuple[str, partial[None]]]) -> Figure:
    columns = min(COLUMNS, len(panels))
    lines = -(-len(panels) // columns)
    with styled():
        figure = canvas(0.6 + 2.7 * columns, 0.7 + 2.1 * lines)
        drawn = figure.subplots(lines, columns, squeeze=False)
        for axes, (title, draw) in zip(drawn.flat, panels, strict=False):
            draw(axes)
            axes.set_title(title)
        for axes in list(drawn.flat)[len(panels) :]:
            axes.set_visible(False)
        named = [zip(*axes.get_legend_handles_labels(), strict=True) for axes in drawn.flat]
        handles = {label: handle for pairs in named for handle, label in pairs}
        figure.legend(list(handles.values()), list(handles), loc="outside upper center", ncols=4, frameon=False)
    return figure


def _by_layer(found: Figures, looks: Looks, axes: Axes) -> None:
    """A line for each arm, the mean of its seeds, with a band of one standard deviation."""
    for arm, values in found.items():
        colour, dash, mark = looks[arm]
        each = np.stack([row for _, row in values])  # (seeds, layers)
        layers, means = np.arange(each.shape[1]), each.mean(0)
        if len(each) > 1:
            spread = each.std(0, ddof=1)
            axes.fill_between(layers, means - spread, means + spread, color=colour, alpha=0.2, lw=0)
        axes.plot(layers, means, color=colour, ls=dash, marker=mark, ms=3.5, lw=1.1, label=short_name(arm))
    axes.set_xlabel("layer, 0 the embeddings")


def _against(found: Figures, looks: Looks, names: tuple[str, str], axes: Axes) -> None:
    """A mark for each run, with a link to it."""
    for arm, values in found.items():
        colour, _, mark = looks[arm]
        for number, (row, (x, y)) in enumerate(values):
            label = short_name(arm) if number == 0 else "_"
            (drawn,) = axes.plot([x], [y], mark, ms=5, color=colour, alpha=0.75, label=label)
            drawn.set_url(f"#run-{row.id}")
    axes.set_xlabel(names[0])
    axes.set_ylabel(names[1])
    axes.margins(0.08)
