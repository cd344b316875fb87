"""Verdicts from what the ledger holds, also where a run has less than a comparison asks for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluators.metrics.item_metrics import score_of_items
from evaluators.metrics.scores import Score
from orchestration.ledger.ledger import Ledger
from orchestration.plan.plan import Facts, plan
from orchestration.reading.read_study import read_study
from orchestration.study.errors import StudyError
from orchestration.study.run import Run
from orchestration.study.study import Study
from orchestration.verdicts.find import find
from tests.results import finish

STUDY = """\
question: Is hard better?
family: concept
backbones: [small]
seeds: 6
arms:
  B1: {hard_negatives: true}
  B0: {train: false}
evaluate: [t2d, d2t]
compare:
  - {claim: H1, treatment: B1, control: B0, metric: t2d/recall@10, expect: better}
  - {claim: H2, treatment: B1, control: B0, metric: d2t/recall@10, expect: better}
"""
ROWS = {"t2d": "r", "d2t": "r"}
FACTS = Facts(backbones={"small": "s" * 8}, corpus="c" * 8, tasks=ROWS, precision="fp32")


def test_a_run_without_the_compared_figure_costs_its_seed_not_the_report(tmp_path: Path) -> None:
    (tmp_path / "hard.yaml").write_text(STUDY)
    study = read_study(tmp_path / "hard.yaml")
    ledger, runs = Ledger(tmp_path / "ledger"), plan(study, FACTS).runs
    for run in runs:
        value = 0.5 if run.seed is None else 0.6 + 0.01 * run.seed
        scores = [Score(metric="t2d/recall@10", value=value)]
        if run.seed != 3:
            scores.append(Score(metric="d2t/recall@10", value=value))
        finish(ledger, run, scores)
    found = find(study, runs, ledger)
    first, second = (finding.verdict for finding in found.findings)
    assert (first.verdict, first.n_seeds, first.dropped, found.notes) == ("better", 6, (), ())
    assert (second.n_seeds, second.dropped) == (5, ((3, "treatment: its run yielded no such figure"),))


REMEDY = r"`semray set-aside {entry}`"
AS_WRITTEN = "It is as its run wrote it, and would be again: write every item in every run"
ODD = r"t2d/recall@10 of B1 on small, seed 3"


@pytest.mark.parametrize(
    ("given", "shift", "says", "remedy"),
    [
        ({}, 0.2, "t2d/recall@10 is 0.83", REMEDY),
        ({"item_ids": ["a", "b", "a"]}, 0.0, "t2d/recall@10 has the item 'a' twice", REMEDY),
        ({"item_ids": ["a", "b", "x"]}, 0.0, f"{ODD} lacks item c, which other runs have", AS_WRITTEN),
        ({"item_ids": ["a", "b"]}, 0.0, f"{ODD} lacks item c, which other runs have", AS_WRITTEN),
        ({"item_ids": list("abcxy")}, 0.0, f"{ODD} has item x and 1 more, which other runs lack", AS_WRITTEN),
        (
            {"group_ids": ["p", "p", "q"]},
            0.0,
            f"{ODD} has item b with group p and gold 0, which other runs have with group q and gold 0",
            AS_WRITTEN,
        ),
        (
            {"gold": [1.0, 0.0, 0.0]},
            0.0,
            f"{ODD} has item c with group q and gold 0, which other runs have with group q and gold 1",
            AS_WRITTEN,
        ),
    ],
)
def test_items_that_do_not_fit_are_told_by_file_and_remedy(
    given: dict[str, list[Any]], shift: float, says: str, remedy: str, tmp_path: Path
) -> None:
    """One run whose score its items do not make, and one that names its items otherwise than the rest. Were it done
    again, the first might come out right, the others would not. Another study, which calls the arms otherwise, ran
    all of them."""
    (tmp_path / "hard.yaml").write_text(STUDY.replace(", d2t]", "]").rpartition("  - {claim: H2")[0])
    study = read_study(tmp_path / "hard.yaml")
    ledger, runs = Ledger(tmp_path / "ledger"), plan(study, FACTS).runs
    odd = next(run for run in runs if run.seed == 3)
    usual = {"item_ids": ["a", "b", "c"], "group_ids": ["p", "q", "q"], "gold": [1.0, 0.0, 1.0]}
    for run in runs:
        named = {**usual, **(given if run is odd else {})}
        size = len(named["item_ids"])
        items = {name: [*values, *values][:size] for name, values in named.items()}
        values = np.linspace(0.4, 0.8, size) + (0.0 if run.seed is None else 0.01 * run.seed)
        off = shift if run is odd else 0.0
        score = Score(
            metric="t2d/recall@10", value=float(values.mean()) + off, aggregate="mean", values=values, **items
        )
        finish(ledger, replace(run, arm=f"its {run.arm}"), [score])
    with pytest.raises(StudyError) as told:
        find(study, runs, ledger)
    entry = odd.entry("t2d")
    assert re.fullmatch(
        rf"{ledger.url}/{entry}/scores\.parquet: {says}.*\n  accepted: .*{remedy.format(entry=entry)}.*",
        str(told.value),
    )
    assert (remedy is REMEDY) == ("set-aside" in str(told.value))
    ledger.set_aside(entry)
    assert find(study, runs, ledger).findings[0].verdict.n_seeds == 5


def test_a_run_without_a_correlation_is_not_blamed_for_the_items_of_another(tmp_path: Path) -> None:
    """Equal values correlate with nothing: that figure, nan, is what its items give."""
    (tmp_path / "hard.yaml").write_text(STUDY.replace(", d2t]", "]").rpartition("  - {claim: H2")[0])
    study = read_study(tmp_path / "hard.yaml")
    ledger, runs = Ledger(tmp_path / "ledger"), plan(study, FACTS).runs
    for number, run in enumerate(runs):
        names = list("abcx" if run.seed == 3 else "abcd")
        values = np.full(4, 0.5) if run.seed == 1 else np.random.default_rng(number).normal(size=4)
        finish(ledger, run, [score_of_items("t2d/recall@10", "spearman", names, names, values, np.arange(4))])
    with pytest.raises(StudyError, match=f"{ODD} lacks item d, which other runs have"):
        find(study, runs, ledger)
    ledger.set_aside(next(run.entry("t2d") for run in runs if run.seed == 3))
    verdict = find(study, runs, ledger).findings[0].verdict
    assert (verdict.n_seeds, [seed for seed, _ in verdict.dropped]) == (4, [1, 3])


@pytest.mark.parametrize("items", [["all"], ["a", "b", "c"]])
def test_items_of_one_group_count_as_none(items: list[str], tmp_path: Path) -> None:
    """They tell nothing of other items, so that the seeds alone speak; the claims beside them are judged as ever."""
    (tmp_path / "hard.yaml").write_text(STUDY)
    study = read_study(tmp_path / "hard.yaml")
    ledger, runs = Ledger(tmp_path / "ledger"), plan(study, FACTS).runs
    for run in runs:
        values = np.linspace(0.4, 0.8, len(items)) + (0.0 if run.seed is None else 0.1 + 0.01 * run.seed)
        one = {"value": float(values.mean()), "aggregate": "mean", "values": values, "item_ids": items}
        apart = Score(metric="d2t/recall@10", value=one["value"])
        finish(ledger, run, [Score(metric="t2d/recall@10", group_ids=["g"] * len(items), **one), apart])
    by_group, by_itself = (finding.verdict for finding in find(study, runs, ledger).findings)
    assert (by_group.verdict, by_group.scope) == ("better", "on this test set")
    assert (by_group.p, by_group.ci_low) == (by_itself.p, by_itself.ci_low)


def test_the_order_in_which_seeds_are_listed_changes_no_figure(tmp_path: Path) -> None:
    """Beyond 16 seeds sign vectors are drawn, one sign for each delta in turn."""
    seeds = [int(seed) for seed in np.random.default_rng(1).permutation(18)]
    found = []
    for name, listed in (("up", sorted(seeds)), ("mixed", seeds)):
        path = tmp_path / f"{name}.yaml"
        path.write_text(STUDY.replace("seeds: 6", f"seeds: {listed}").rpartition("  - {claim: H2")[0])
        study, ledger = read_study(path), Ledger(tmp_path / name)
        runs = plan(study, FACTS).runs
        for run in runs:
            gain = 0.0 if run.seed is None else float(np.random.default_rng(run.seed).normal(0.3, 1.0))
            finish(ledger, run, [Score(metric="t2d/recall@10", value=0.5 + gain)])
        found.append(find(study, runs, ledger).findings[0].verdict)
    assert found[0].test == "sign-flip (100,000 draws)"
    assert found[0] == found[1]


# Findings on two backbones, each with the values that are written down here


CLAIMS = """\
  - {claim: H1, treatment: B1, control: B0, metric: t2d/recall@10, expect: better}
  - {claim: H2, treatment: B0, control: B2, metric: t2d/recall@10, expect: worse}
"""
SIDES = {"H1": ("B1", "B0"), "H2": ("B0", "B2")}
GAINS = {"small": [0.1, -0.05, 0.0], "large": [-0.05, 0.1, 0.0]}  # of the items a, b, c, where an arm is trained
HIGHER = {"B0": 0.0, "B1": 0.0, "B2": 0.01}
FAILED, MISSING = ("B1", "large", 2), ("B2", "large", 2)


def place_of(run: Run) -> tuple[str, str, int | None]:
    return run.arm, run.backbone, run.seed


def values_of(run: Run) -> np.ndarray:
    """Item c is the same in all runs. (3,)"""
    rise = HIGHER[run.arm] + 0.01 * (run.seed or 0)
    return 0.5 + rise * np.array([1, 1, 0]) + (0 if run.seed is None else np.array(GAINS[run.backbone]))


@pytest.fixture
def on_two(tmp_path: Path) -> tuple[Study, Sequence[Run], Ledger]:
    """Three arms on two backbones. On large the last seed of B1 failed, that of B2 never ran."""
    text = STUDY.replace("[small]", "[small, large]").replace("seeds: 6", "seeds: 3").replace(", d2t]", "]")
    text = text.replace("  B0:", "  B2: {steps: 7}\n  B0:").partition("  - {claim: H1")[0] + CLAIMS
    (tmp_path / "hard.yaml").write_text(text)
    study, ledger = read_study(tmp_path / "hard.yaml"), Ledger(tmp_path / "ledger")
    runs = plan(study, replace(FACTS, backbones={"small": "s" * 8, "large": "l" * 8})).runs
    for run in runs:
        if place_of(run) == FAILED:
            ledger.fail(run, 2, "loss is nan", "a log")
        elif place_of(run) != MISSING:
            values = values_of(run)
            named = {"item_ids": list("abc"), "group_ids": list("abc"), "values": values}
            score = Score(metric="t2d/recall@10", value=float(values.mean()), aggregate="mean", **named)
            training = {"seconds": {"data": 1.0, "train": 4.0}, "notes": {"cut": f"by {run.backbone}"}}
            finish(ledger, run, [score], **training)
    return study, runs, ledger


def test_each_run_is_told_as_it_ended(on_two: tuple[Study, Sequence[Run], Ledger]) -> None:
    _, runs, ledger = on_two
    found = find(*on_two)
    for row, run in zip(found.runs, runs, strict=True):
        place = place_of(run)
        assert (row.id, row.arm, row.backbone, row.seed) == (run.id, *place)
        if place == FAILED:
            assert (row.status, row.attempt, row.metrics) == ("failed", 2, {})
            assert re.fullmatch(rf"loss is nan \({ledger.url}/.*{run.id}\.log\)", row.problem)
        elif place == MISSING:
            assert (row.status, row.attempt, row.problem, row.metrics) == ("missing", 0, "", {})
        else:
            assert (row.status, row.entries) == ("finished", (run.id, run.entry("t2d")))
            assert (row.seconds, row.training) == (5.0, 4.0)
            assert row.metrics == {"t2d/recall@10": pytest.approx(values_of(run).mean())}
    assert found.notes == ("cut: by small", "cut: by large")
    assert {"python", "torch"} <= found.environment.keys()
    assert "libraries" not in found.environment


def test_each_claim_has_the_runs_and_items_of_its_own_arms_and_backbone(
    on_two: tuple[Study, Sequence[Run], Ledger],
) -> None:
    _, runs, _ = on_two
    found = find(*on_two).findings
    assert [(one.verdict.claim, one.verdict.backbone) for one in found] == [
        (claim, backbone) for claim in SIDES for backbone in GAINS
    ]
    run_at = {place_of(run): run for run in runs}
    for one in found:
        backbone, arms = one.verdict.backbone, SIDES[one.verdict.claim]
        seeds = [0, 1, 2] if backbone == "small" else [0, 1]
        sides = [[run_at[arm, backbone, None if arm == "B0" else seed] for seed in seeds] for arm in arms]
        assert one.places == tuple((arm, backbone) for arm in arms)
        for told, side in zip((one.treatment_runs, one.control_runs), sides, strict=True):
            assert [told[seed] for seed in seeds] == [run.id for run in side]
        assert one.scored == {
            arm: tuple(dict.fromkeys(run.entry("t2d") for run in side))
            for arm, side in zip(arms, sides, strict=True)
        }
        treatment, control = (np.mean([values_of(run) for run in side], axis=0) for side in sides)
        gains = treatment - control
        assert one.verdict.n_seeds == len(seeds)
        assert one.verdict.delta_mean == pytest.approx(gains.mean())
        assert {item.item_id: item.delta for item in one.items} == pytest.approx(
            dict(zip("abc", gains, strict=True))
        )
        told_counts = (one.items_better, one.items_worse, one.items_equal)
        assert told_counts == tuple(int((np.sign(gains) == sign).sum()) for sign in (1, -1, 0))


def test_a_claim_that_is_asked_for_comes_alone_with_its_runs(
    on_two: tuple[Study, Sequence[Run], Ledger],
) -> None:
    """Its verdict is the one that it has among all."""
    whole, alone = find(*on_two), find(*on_two, asked="H2")
    assert alone.findings == whole.findings[2:]
    assert [row.id for row in alone.runs] == [row.id for row in whole.runs if row.arm != "B1"]
    with pytest.raises(StudyError, match=r"hard\.yaml: no claim H3\n  accepted: H1, H2$"):
        find(*on_two, asked="H3")
