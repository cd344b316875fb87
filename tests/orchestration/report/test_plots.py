"""Plots read off their axes: every mark, line and band stands where the figures of the findings have it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.lines import Line2D
from matplotlib.patches import StepPatch

from orchestration.report import arm_plots, plots
from orchestration.report.drawing import COLOURS, MARKS, PAPER, laid_out, svg, svg_file
from orchestration.verdicts.findings import Distribution, Findings
from tests.finished_study import RECALL, SPREAD, STRESS


def panels(figure: Any) -> dict[str, Axes]:
    """The visible axes by their titles."""
    return {axes.get_title("left"): axes for axes in figure.axes if axes.get_visible()}


def places(line: Line2D) -> tuple[list[float], list[float]]:
    return [*map(float, line.get_xdata())], [*map(float, line.get_ydata())]


def band(axes: Axes) -> dict[float, tuple[float, float]]:
    """The lower and upper edge of the one band, by where they stand."""
    (filled,) = (one for one in axes.collections if isinstance(one, PolyCollection))
    edges: dict[float, list[float]] = {}
    for x, y in filled.get_paths()[0].vertices:
        edges.setdefault(float(x), []).append(float(y))
    return {x: (min(ys), max(ys)) for x, ys in edges.items()}


def box(axes: Axes) -> list[float]:
    """The ends of the one rectangle that is filled: from and to across, then up."""
    (filled,) = (one for one in axes.collections if isinstance(one, PolyCollection))
    return [*filled.get_datalim(axes.transData).intervalx, *filled.get_datalim(axes.transData).intervaly]


def test_a_forest_stands_where_the_verdicts_are(findings: Findings) -> None:
    """In each row the seeds, the interval, and the mean with the mark of its verdict, hollow if it is no finding."""
    joint = replace(findings.findings[0], verdict=replace(findings.findings[0].verdict, parts=2))
    drawn = panels(plots.forest(replace(findings, findings=(joint, *findings.findings))))
    assert [*drawn] == [RECALL, STRESS, f"{SPREAD} (smaller is better: sign turned)"]
    for axes, metric in zip(drawn.values(), (RECALL, STRESS, SPREAD), strict=True):
        group = [one.verdict for one in findings.findings if one.verdict.metric == metric]
        assert [label.get_text().split(":")[0] for label in axes.get_yticklabels()] == [v.claim for v in group]
        assert axes.yaxis_inverted()  # the first stands highest
        assert all(verdict.verdict in text.get_text() for verdict, text in zip(group, axes.texts, strict=True))
        marks = [line for line in axes.lines if line.get_marker() != "None"]
        spans = {y[0]: x for x, y in map(places, axes.lines) if len(x) == 2 and y[0] == y[1]}
        seeds = [x[::3] for x, _ in map(places, axes.lines) if len(x) > 2]
        assert seeds == [[one["delta"] for one in v.per_seed if not math.isnan(one["delta"])] for v in group]
        assert [places(mark) for mark in marks] == [([v.delta_mean], [row]) for row, v in enumerate(group)]
        for row, (mark, verdict) in enumerate(zip(marks, group, strict=True)):
            assert spans.get(row, [None, None]) == [verdict.ci_low, verdict.ci_high]
            word, hollow = verdict.verdict, verdict.verdict == "undecided" or verdict.exploratory
            assert (mark.get_marker(), mark.get_color()) == (MARKS[word], COLOURS[word])
            assert (mark.get_markerfacecolor() == PAPER) == hollow
    assert box(drawn[RECALL]) == pytest.approx([-0.03, 0.03, 0.7, 1.3])  # of H3b, in the second row


def test_seeds_stand_where_their_scores_are(findings: Findings) -> None:
    """As a file: a slope for each seed from the control's score to the treatment's, and beside it its difference."""
    finding = findings.findings[2]
    verdict = finding.verdict
    left, right = plots.pairs(finding).axes
    slopes = [places(line) for line in left.lines if line.get_marker() == "None"]
    assert slopes == [([0, 1], [pair["control"], pair["treatment"]]) for pair in verdict.per_seed]
    assert [label.get_text() for label in left.get_xticklabels()] == [verdict.control, verdict.treatment]
    marks = [places(line) for line in right.lines if line.get_marker() != "None"]
    *seeds, (middle, mean) = marks
    assert seeds == [([rank], [pair["delta"]]) for rank, pair in enumerate(verdict.per_seed)]
    assert mean == [verdict.delta_mean]
    assert middle[0] > len(seeds) - 1
    (interval,) = (line for line in right.lines if places(line)[0] == [*middle, *middle])
    assert places(interval)[1] == [verdict.ci_low, verdict.ci_high]
    assert box(right)[2:] == [-0.03, 0.03]
    assert [label.get_text() for label in right.get_xticklabels()] == [*map(str, range(8)), "mean"]
    for axes, key in ((left, "treatment"), (right, "delta")):
        colours = {places(line)[1][-1]: line.get_color() for line in axes.lines}
        for pair in verdict.per_seed:
            assert colours[pair[key]] == COLOURS["better" if pair["delta"] > 0 else "worse"]


def test_curves_are_the_mean_of_the_seeds_with_their_spread(findings: Findings) -> None:
    (axes, *_) = (axes for name, axes in panels(plots.curves(findings)).items() if name == "B1")
    rows = findings.of("B1", findings.backbones[0])
    losses = np.array([[loss for _, loss in row.curve] for row in rows])  # (seeds, steps)
    *singles, mean = [places(line) for line in axes.lines]
    assert singles == [([*map(float, range(60))], list(each)) for each in losses]
    assert mean[1] == pytest.approx([sum(step) / 8 for step in losses.T])
    sd = [math.sqrt(sum((one - sum(step) / 8) ** 2 for one in step) / 7) for step in losses.T]
    edges = band(axes)
    assert [low for low, _ in edges.values()] == pytest.approx([m - s for m, s in zip(mean[1], sd, strict=True)])
    assert [high for _, high in edges.values()] == pytest.approx([m + s for m, s in zip(mean[1], sd, strict=True)])


def test_the_line_of_a_run_that_diverged_breaks_off(findings: Findings) -> None:
    """A script may print any loss. Squares of the largest are no number, and matplotlib has no ticks for them."""
    runs = [row for row in findings.runs if row.arm == "B1"]
    steep = [(0, 1.0), (1, 1e308), (2, -1e308), (3, 1e30), (4, 2.0)]
    drawn = plots.curves(replace(findings, runs=tuple(replace(row, curve=tuple(steep)) for row in runs)))
    laid_out(drawn)
    (axes,) = panels(drawn).values()
    *_, mean = map(places, axes.lines)
    assert mean[0] == [0, 1, 2, 3, 4]
    assert mean[1] == pytest.approx([1.0, math.nan, math.nan, 1e30, 2.0], nan_ok=True)


def test_of_many_runs_only_means_are_drawn(findings: Findings, monkeypatch: pytest.MonkeyPatch) -> None:
    """But of runs that stopped at steps of their own, which have no mean, every one."""
    count = sum(bool(row.curve) for row in findings.runs)
    for most, each in ((count, True), (count - 1, False)):
        monkeypatch.setattr(plots, "CURVES_SHOWN", most)
        assert [len(axes.lines) for axes in panels(plots.curves(findings)).values()] == (
            [8 + 1, 8 + 1, 6 + 1] if each else [1, 1, 1]
        )
    first = next(row for row in findings.runs if row.arm == "B1")
    short = tuple(replace(row, curve=row.curve[:30]) if row is first else row for row in findings.runs)
    drawn = panels(plots.curves(replace(findings, runs=short)))
    assert [len(axes.lines) for axes in drawn.values()] == [8, 1, 1]
    assert not drawn["B1"].collections


def test_a_distribution_is_of_shares(findings: Findings) -> None:
    """Of 4 items one lies below .5; of 10 of the other part all lie above."""
    counts, means = {"same": (1, 3), "other": (0, 10)}, {"same": 0.8, "other": 0.9}
    one = Distribution(
        quantity="cosine distance", arm="B1", backbone="tiny", low=0.0, high=1.0, counts=counts, means=means
    )
    (axes,) = plots.distributions(replace(findings, distributions=(one,))).axes
    stairs = [patch.get_data() for patch in axes.patches if isinstance(patch, StepPatch)]
    assert [list(data.values) for data in stairs] == [[0.25, 0.75], [0.0, 1.0]]
    assert [list(data.edges) for data in stairs] == [[0.0, 0.5, 1.0]] * 2
    assert [places(line) for line in axes.lines] == [([0.8], [0]), ([0.9], [0])]
    assert axes.get_xlabel() == "cosine distance"


def with_layers(findings: Findings) -> Findings:
    """Of 3 layers, worth more with each, and by seed."""

    def figures(seed: int | None, arm: str) -> Mapping[str, float]:
        shift = (seed or 0) / 100 + sorted(findings.arms).index(arm) / 10
        return {f"layers/{layer}/mrr": 0.1 * layer + shift * shift for layer in range(3)}

    return replace(
        findings,
        runs=tuple(
            replace(row, metrics={**row.metrics, **figures(row.seed, row.arm)}) if row.metrics else row
            for row in findings.runs
        ),
    )


def panels_of(findings: Findings, name: str) -> Sequence[Axes]:
    return [axes for axes in arm_plots.every(findings)[name].figure().axes if axes.get_visible()]


def test_layers_are_the_mean_of_the_seeds_with_their_spread(findings: Findings) -> None:
    told = with_layers(findings)
    (axes,) = panels_of(told, "layers")
    assert [line.get_label() for line in axes.lines] == [*findings.arms]
    bands = iter(axes.collections)
    for arm, line in zip(findings.arms, axes.lines, strict=True):
        rows = told.finished(arm, findings.backbones[0])
        for layer, (x, mean) in enumerate(zip(*places(line), strict=True)):
            values = [row.metrics[f"layers/{layer}/mrr"] for row in rows]
            assert (x, mean) == (layer, pytest.approx(sum(values) / len(values)))
        if len(rows) > 1:
            edges = sorted({float(y) for x, y in next(bands).get_paths()[0].vertices if x == 2.0})  # type: ignore[attr-defined]
            sd = np.std(values, ddof=1)
            assert (edges[0], edges[-1]) == pytest.approx((mean - sd, mean + sd))
    assert next(bands, None) is None  # B0 has one run


def test_each_run_stands_at_its_two_figures(findings: Findings) -> None:
    """Runs without one of them are left out; each arm is named once."""
    place = findings.runs[3].id
    runs = tuple(
        replace(row, metrics={RECALL: row.metrics[RECALL]}) if row.id == place else row for row in findings.runs
    )
    (axes,) = panels_of(replace(findings, runs=runs), "figures")
    assert (axes.get_xlabel(), axes.get_ylabel()) == (SPREAD, RECALL)
    drawn = {line.get_url(): places(line) for line in axes.lines}
    assert drawn == {
        f"#run-{row.id}": ([row.metrics[SPREAD]], [row.metrics[RECALL]])
        for row in runs
        if row.metrics and row.id != place
    }
    assert axes.get_legend_handles_labels()[1] == [*findings.arms]


def test_a_page_has_the_texts_where_the_file_has_them_in_less_room(findings: Findings) -> None:
    """Beside indentation, ids and digits it leaves out rotations by nothing alone."""
    figure = plots.curves(findings)
    file, page = svg_file(figure, "file"), svg(figure, "file")

    def texts(drawn: str) -> list[tuple[str | None, list[float], str]]:
        found = (one for one in ElementTree.fromstring(drawn).iter() if one.tag.endswith("text"))
        return [
            (one.text, [float(one.get(name, "nan")) for name in "xy"], (one.get("transform") or "")[:10])
            for one in found
        ]

    for (words, place, turned), (shown, at, turn) in zip(texts(file), texts(page), strict=True):
        assert shown == words
        assert at == pytest.approx(place, abs=0.01, nan_ok=True)
        assert turn == ("" if turned.startswith("rotate(-0") else turned)
    assert any(turn for *_, turn in texts(page))  # the name of an axis stands upright
    assert len(page) < 0.7 * len(file)
