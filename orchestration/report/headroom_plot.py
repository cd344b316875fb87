"""Plots which signals correlate with a frozen encoder's errors. Source: Hwang 2026, figure 2."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import TYPE_CHECKING

from evaluators.metrics.headroom import ALIGNED, LABEL, Headroom
from orchestration.report.drawing import COLOURS, FAINT, PAPER, canvas, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FOLLOWS, IS_LABEL = COLOURS["better"], COLOURS["worse"]


def signals(found: Sequence[Headroom]) -> Figure:
    """A panel per data set: for each signal its correlation with |cos - gold|, for each training target, with a
    hollow mark, its correlation with 1 - gold.

    Signals within the band correlate with nothing; at the dashed line a target is the label itself. The hollow
    marks are ours: the paper's bars show only the signals.
    """
    rows = [len(one.alignment) + len(one.target_is_label) for one in found]
    with styled():
        figure = canvas(6.2, 0.5 + sum(0.26 * count + 0.6 for count in rows))
        panels = figure.subplots(
            len(found), 1, squeeze=False, sharex=True, height_ratios=[count + 1 for count in rows]
        )[:, 0]
        for axes, one in zip(panels, found, strict=True):
            _panel(axes, one)
        panels[-1].set_xlabel("Pearson correlation   ● signal with |cos − gold|   ○ target with 1 − gold")
    return figure


def _panel(axes: Axes, one: Headroom) -> None:
    """A row for each correlation. An undefined one, of a constant, gets no mark."""
    marked = [(name, r, FOLLOWS, FOLLOWS) for name, r in one.alignment.items()]
    marked += [(name, r, IS_LABEL, PAPER) for name, r in one.target_is_label.items()]
    axes.axvspan(-ALIGNED, ALIGNED, color=FAINT, alpha=0.18, lw=0)
    axes.axvline(LABEL, color=IS_LABEL, lw=0.9, ls="--", zorder=0)
    for row, (_, r, colour, inside) in enumerate(marked):
        if isfinite(r):
            axes.plot([0, r], [row, row], color=colour, lw=1.4)
            axes.plot(r, row, "o", ms=6, color=colour, mfc=inside)
            axes.annotate(f"{r:+.2f}", (r, row), (6 if r >= 0 else -6, 0), textcoords="offset points", va="center",
                          ha="left" if r >= 0 else "right", fontsize=8)  # fmt: skip
    axes.set_yticks(range(len(marked)), [name for name, *_ in marked])
    axes.set_ylim(len(marked) - 0.5, -0.5)
    axes.set_xlim(-1.15, 1.15)
    axes.set_title(
        f"{one.task}   frozen Spearman {one.spearman:.3f}, |cos − gold| {one.err_mean:.2f} ± {one.err_std:.2f}"
    )
