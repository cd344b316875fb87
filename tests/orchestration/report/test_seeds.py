"""A comparison's seeds as SVG: what it shows can be read off its elements."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree

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


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-3e-7, 2e-7), (0.49, 0.71), (-120.0, 4500.0)])
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
