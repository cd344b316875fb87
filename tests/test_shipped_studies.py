"""The studies that are shipped: a claim's letter means one thing, and a file says what its seeds can show."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from orchestration.families.registry import family
from orchestration.plan.plan import Facts, plan
from orchestration.plan.reach import Reach, reachability
from orchestration.reading.read_study import read_study
from orchestration.study.study import Study

ROOT = Path(__file__).resolve().parents[1]
STUDIES = sorted((ROOT / "studies").glob("*.yaml"))
POWER = "# Power before any run, by `semray plan`: "


@cache
def study(path: Path) -> Study:
    return read_study(path)


def reach(of: Study) -> list[Reach]:
    """What plan says of the claims whose arms train, whatever the machine has at hand."""
    tasks = dict.fromkeys((*family(of.family).tasks(of.data), *of.evaluate), "r")
    facts = Facts(backbones=dict.fromkeys(of.backbones, "b"), corpus="c", tasks=tasks, precision="fp32")
    return [one for one in reachability(plan(of, facts)) if one.seeds]


def power_of(reaches: list[Reach]) -> str:
    """The line of a study: the least differences its claims can show with power .80, and what its margins take."""
    differences = [one.smallest_difference for one in reaches if one.smallest_difference is not None]
    effects = [one.smallest_effect for one in reaches if one.smallest_effect is not None]
    margins = [one.seeds_for_margin for one in reaches if one.seeds_for_margin is not None]
    seeds = f"{POWER}{reaches[0].seeds} seeds show differences of "
    if differences:
        line = seeds + span([f"{one:.4f}" for one in sorted(differences)])
    else:
        line = f"{seeds}{span([f'{one:.1f}' for one in sorted(effects)])} sd of a pair, not known yet"
    return line + (f"; margins take {span([str(one) for one in sorted(margins)])} seeds" if margins else "")


def span(values: list[str]) -> str:
    return values[0] if values[0] == values[-1] else f"{values[0]} to {values[-1]}"


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_a_study_says_what_plan_says_its_seeds_can_show(path: Path) -> None:
    reaches = reach(study(path))
    said = [line for line in path.read_text().splitlines() if line.startswith(POWER.rstrip())]
    assert said == ([power_of(reaches)] if reaches else [])


def test_a_letter_means_the_same_claim_in_every_study() -> None:
    """Which arms, and what is expected; figures may be of other data sets. C14 asks the same of two gates.

    DefSent's letters are of the best readout, another for each model, and the frozen family has none.
    """
    meant: dict[tuple[str, str], set[tuple[str, ...]]] = {}
    for path in STUDIES:
        for part in study(path).parts:
            if study(path).family not in ("defsent", "frozen") and not part.claim.startswith("C14"):
                place = study(path).family, part.claim
                meant.setdefault(place, set()).add((part.treatment, part.control, part.expect))
    assert {place: claims for place, claims in meant.items() if len(claims) > 1} == {}


@pytest.mark.parametrize(
    "name", ["backbones", "change", "differentiation", "similarity", "space", "strict", "unseen"]
)
def test_a_decision_of_cale_has_the_papers_threshold(name: str) -> None:
    """Section 5.1: "to maximize accuracy on the train and validation splits", of which train is nine tenths."""
    assert study(ROOT / "studies" / f"cale_{name}.yaml").data.threshold_pairs is None


BACKBONES = {
    "BERT-base": "bert-base-uncased",
    "BERT-large": "bert-large-uncased",
    "RoBERTa-base": "roberta-base",
    "RoBERTa-large": "roberta-large",
}
SCRIPTED = re.compile(r"\| (\w+) \| ((?:BERT|RoBERTa)-\w+) \|((?: [\de.-]+ \|){6}) (.*)\|")


def scripts_of_san() -> dict[tuple[str, str], dict[str, object]]:
    """The settings of the authors' scripts with negatives, by host and backbone, as docs/san.md has them."""
    names = ("epochs", "batch_size", "learning_rate", "tau2", "p1", "p2")
    found: dict[tuple[str, str], dict[str, object]] = {}
    for host, backbone, numbers, more in SCRIPTED.findall((ROOT / "docs" / "san.md").read_text()):
        given = zip(names, numbers.replace("|", " ").split(), strict=True)
        own = re.findall(r"(\w+): ([\d.e-]+)", more.split(";")[0])
        found[host.lower(), BACKBONES[backbone]] = {
            **{name: float(value) for name, value in (*given, *own)},
            "postprocess": "authors" if "post-processing" in more else "off",
        }
    return found


def test_the_arms_of_sans_tables_have_the_settings_of_its_scripts() -> None:
    """p1: that of the backbones is .1."""
    scripts, held = scripts_of_san(), set()
    for path in STUDIES:
        if path.stem.startswith(("san_table3", "san_transfer")):
            (backbone,) = study(path).backbones
            for arm in study(path).arms.values():
                if arm.san != "off":
                    wanted = scripts[arm.host, backbone]
                    has = {name: getattr(arm, name) for name in wanted} | {"p1": arm.p1 or 0.1}
                    assert has == wanted, (path.stem, arm.host)
                    held.add((arm.host, backbone))
    assert held == scripts.keys()
    assert len(held) == 14


@pytest.mark.parametrize("name", ["san_scaling", "san_tau_dropout", "san_table5", "san_search"])
def test_negatives_of_simcse_are_replaced_in_no_study_of_the_paper(name: str) -> None:
    """SAN, table 6, and its scripts."""
    arms = [arm for arm in study(ROOT / "studies" / f"{name}.yaml").arms.values() if arm.san != "off"]
    assert {arm.postprocess for arm in arms} == {"off"}
