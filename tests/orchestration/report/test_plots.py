"""Plots read off their axes: every mark, line and band stands where the figures of the findings have it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.lines import Line2D
from matplotlib.patches import StepPatch

from orchestration.ledger.ledger import Ledger
from orchestration.report import arm_plots, plots
from orchestration.report.drawing import COLOURS, MARKS, PAPER
from orchestration.report.seeds import BOTTOM, LEFT, RIGHT, TOP, seeds_svg
from orchestration.verdicts.findings import Distribution, Findings
from tests.finished_study import RECALL, SPREAD, STRESS, findings_of

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def findings(tmp_path_factory: pytest.TempPathFactory) -> Findings:
    return findings_of(Ledger(tmp_path_factory.mktemp("plots") / "ledger"))


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


def scale_of(svg: ElementTree.Element, ends: tuple[float, float]) -> Callable[[str], float]:
    """The value at a height of a panel of the page, by the outer labels of its axis."""
    labels = [
        (float(text.attrib["y"]) - 2.8, float(text.text or ""))
        for group in svg.iter(f"{SVG}g")
        for text in group.findall(f"{SVG}text")
        if group.get("text-anchor") == "end" and float(text.attrib["x"]) == ends[0] - 5
    ]
    (y0, low), *_, (y1, high) = labels
    return lambda y: low + (float(y) - y0) * (high - low) / (y1 - y0)


def test_seeds_of_the_page_stand_where_they_are(findings: Findings) -> None:
    """Read by the labels of their axes: scores, differences, the mean with its interval, the margin and zero."""
    finding = findings.findings[2]
    verdict, svg = finding.verdict, seeds_svg(finding)
    drawn, near = ElementTree.fromstring(svg), 0.0003  # a tenth of a point
    score, value = scale_of(drawn, LEFT), scale_of(drawn, RIGHT)
    slopes = [(score(y), score(z)) for y, z in re.findall(r"M[\d.]+ ([\d.]+)L[\d.]+ ([\d.]+)", svg)]
    pairs = sorted(verdict.per_seed, key=lambda pair: pair["delta"] <= 0)  # those that win are one path
    assert slopes == [pytest.approx((pair["control"], pair["treatment"]), abs=near) for pair in pairs]
    marks = [(float(x), value(y)) for x, y in re.findall(r'"M([\d.]+) ([\d.]+)m', svg)]
    *seeds, (middle, mean) = sorted(one for one in marks if one[0] >= RIGHT[0])
    assert [y for _, y in seeds] == pytest.approx([pair["delta"] for pair in verdict.per_seed], abs=near)
    assert seeds[-1][0] < middle < RIGHT[1]
    assert mean == pytest.approx(verdict.delta_mean, abs=near)
    for word, favours in (("better", True), ("worse", False)):
        *_, group = (g for g in drawn.iter(f"{SVG}g") if g.get("style") == f"fill:var(--mark-{word})")
        paths = [path.attrib["d"] for path in group.iter(f"{SVG}path")]
        assert paths
        assert all((value(re.split("[ m]", path)[1]) > 0) == favours for path in paths)
    zero, wide = 0.0, rf'"M{RIGHT[0]:g} ([\d.]+)H{RIGHT[1]:g}'
    for shape, ends in (
        (rf'"M{middle:g} ([\d.]+)V([\d.]+)"', [verdict.ci_low, verdict.ci_high]),
        (rf"{wide}V([\d.]+)H{RIGHT[0]:g}z", [-0.03, 0.03]),
        (rf'{wide}()"', [zero]),
    ):
        (found,) = re.findall(shape, svg)
        assert [value(y) for y in found if y] == pytest.approx(ends, abs=near)
    assert all(TOP <= float(y) <= BOTTOM for y in re.findall(r"M[\d.]+ ([\d.]+)[mVHL]", svg))


@pytest.mark.parametrize(("count", "named"), [(8, range(7)), (20, range(0, 16, 3))])
def test_at_most_eight_seeds_are_named_below_their_differences(
    findings: Findings, count: int, named: Sequence[int]
) -> None:
    """As far as there is room beside the name of the mean."""
    finding = findings.findings[0]
    seeds = tuple(
        {"seed": k, "treatment": 0.6 + k / 100, "control": 0.5, "delta": 0.1 + k / 100} for k in range(count)
    )
    svg = seeds_svg(replace(finding, verdict=replace(finding.verdict, per_seed=seeds)))
    *marks, middle = sorted({x for x in map(float, re.findall(r'"M([\d.]+) [\d.]+m-3 2', svg)) if x > RIGHT[0]})
    below = re.findall(rf'<text x="([\d.]+)" y="{BOTTOM + 12:g}">(\w+)<', svg)[2:]  # after the names of both arms
    assert below == [*((f"{marks[k]:g}", str(k)) for k in named), (f"{middle:g}", "mean")]


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
