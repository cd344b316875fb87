"""A comparison's seeds as SVG: what it shows can be read off its elements."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

from orchestration.report.seeds import BOTTOM, LEFT, RIGHT, TOP, Scale, seeds_svg
from orchestration.study.names import cut, printable
from orchestration.verdicts.findings import Finding, Findings

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def finding(findings: Findings) -> Finding:
    return findings.findings[0]


def test_every_seed_leads_to_its_runs(finding: Finding) -> None:
    """Each run of an arm is linked from its point; that of the treatment from its difference too."""
    drawn = ElementTree.fromstring(seeds_svg(finding))
    links = sorted(link.attrib["href"] for link in drawn.iter(f"{SVG}a"))
    seeds = [int(pair["seed"]) for pair in finding.verdict.per_seed]
    treated, others = ([runs[seed] for seed in seeds] for runs in (finding.treatment_runs, finding.control_runs))
    assert links == sorted(f"#run-{run}" for run in (*treated, *treated, *others))


def test_higher_scores_stand_higher(finding: Finding) -> None:
    """The slope of every seed goes from its control's height to its treatment's, upwards where it wins."""
    slopes = re.findall(r"M[\d.]+ ([\d.]+)L[\d.]+ ([\d.]+)", seeds_svg(finding))
    ends = [(float(control), float(treatment)) for control, treatment in slopes]
    assert len(ends) == len(finding.verdict.per_seed)
    assert all(treatment < control for control, treatment in ends)  # heights count downwards, and B1 gains


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


@pytest.mark.parametrize(("claim", "hollow"), [("H1", False), ("H3b", False), ("H2", True), ("X1", True)])
def test_marks_tell_wins_from_losses_and_what_is_established(findings: Findings, claim: str, hollow: bool) -> None:
    """Losses are dashed; the mean of a claim that is undecided or exploratory is hollow."""
    finding = next(one for one in findings.findings if one.verdict.claim == claim)
    svg = seeds_svg(finding)
    deltas = [pair["delta"] for pair in finding.verdict.per_seed]
    for word, dashed, count in (
        ("better", False, sum(d > 0 for d in deltas)),
        ("worse", True, sum(d < 0 for d in deltas)),
    ):
        slopes = [
            path
            for path in re.findall(r'<path d="[^"]*L[^"]*" style="[^"]*"/>', svg)
            if f"stroke:var(--mark-{word})" in path
        ]
        assert len(slopes) == bool(count)
        assert all(("stroke-dasharray" in path) == dashed and path.count("M") == count for path in slopes)
    (fill,) = re.findall(r'style="stroke:var\(--mark-[a-z]+\);fill:(var\(--[a-z-]+\))"', svg)
    assert (fill == "var(--paper)") == hollow


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


@pytest.mark.parametrize(
    "name", ["<b>&\"'x", "$\\alpha$", "a\u202eb", "a very long name of some arm", "漢字", "]]>"]
)
def test_any_name_is_text(finding: Finding, name: str) -> None:
    told = replace(finding, verdict=replace(finding.verdict, treatment=name, metric=name))
    said = [text.text for text in ElementTree.fromstring(seeds_svg(told)).iter(f"{SVG}text")]
    assert {cut(printable(name), 18), printable(name)} <= set(said)


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (0.0, 1.0),
        (-3e-7, 2e-7),
        (0.49, 0.71),
        (-120.0, 4500.0),
        (1e-21, 1.5e-21),
        (-2e-300, 7e-300),
        (1e-8, 1.6e-8),
        (0.001, 0.001000001),
        (-1e300, 1e300),
    ],
)
def test_ticks_are_few_round_and_within(low: float, high: float) -> None:
    scale = Scale.around([low, high])
    margin = (BOTTOM - TOP) / 22  # a twentieth of what lies between them, at both ends
    assert [float(scale(end)) for end in (low, high)] == pytest.approx([BOTTOM - margin, TOP + margin], abs=0.051)
    ticks = scale.ticks
    assert 2 <= len(ticks) <= 7
    values = [value for value, _ in ticks]
    assert values == sorted(values)
    assert [float(text) for _, text in ticks] == pytest.approx(values, rel=1e-9, abs=1e-12)


def test_equal_scores_have_a_place(finding: Finding) -> None:
    flat = [{**pair, "treatment": 0.5, "control": 0.5, "delta": 0.0} for pair in finding.verdict.per_seed]
    told = replace(
        finding,
        verdict=replace(finding.verdict, per_seed=tuple(flat), delta_mean=0.0, ci_low=None, ci_high=None),
    )
    assert "nan" not in seeds_svg(told)


def test_scores_of_any_size_have_ticks_that_can_be_told_apart() -> None:
    """Down to the least that a float holds; what differs by rounding alone stands at one height."""
    for power in range(-323, 300):
        low, high = 10.0**power, 1.7 * 10.0**power
        written = [text for _, text in Scale.around([low, high]).ticks]
        assert len(written) == len(set(written)) >= 2
        assert max(map(len, written)) <= max(9, power + 2)
    beside = Scale.around([0.001, np.nextafter(0.001, 1)])
    assert beside(0.001) == beside(float(np.nextafter(0.001, 1)))
    assert len({float(text) for _, text in beside.ticks}) == len(beside.ticks) >= 2


def test_tiny_scores_are_drawn(finding: Finding) -> None:
    tiny = [
        {**pair, **{arm: pair[arm] * 1e-21 for arm in ("treatment", "control", "delta")}}
        for pair in finding.verdict.per_seed
    ]
    told = replace(
        finding,
        verdict=replace(finding.verdict, per_seed=tuple(tiny), delta_mean=1e-22, ci_low=None, ci_high=None),
    )
    assert "e-22" in seeds_svg(told)
