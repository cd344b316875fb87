"""A comparison's seeds as SVG: what it shows can be read off its elements."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

from orchestration.ledger.ledger import Ledger
from orchestration.report.seeds import Scale, seeds_svg
from orchestration.study.names import cut, printable
from orchestration.verdicts.findings import Finding
from tests.finished_study import findings_of

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def finding(tmp_path_factory: pytest.TempPathFactory) -> Finding:
    return findings_of(Ledger(tmp_path_factory.mktemp("seeds") / "ledger")).findings[0]


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
    ticks = Scale.around([low, high]).ticks
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
