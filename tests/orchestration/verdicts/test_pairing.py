"""Items of the runs of a claim: named alike in all of them, and as few as the rarer class has."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evaluators.metrics.item_metrics import score_of_items
from evaluators.metrics.scores import Aggregate
from evaluators.significance.claims import Claim
from evaluators.significance.paired_items import ItemScores, ItemsError
from orchestration.ledger.ledger import Ledger
from orchestration.plan.plan import Facts, plan
from orchestration.reading.read_study import read_study
from orchestration.study.errors import StudyError
from orchestration.verdicts.pairing import paired, seen
from orchestration.verdicts.records import StudyRecords
from tests.results import finish

STUDY = """\
question: Is hard better?
family: concept
backbones: [small]
seeds: 4
arms:
  B1: {hard_negatives: true}
  B2: {hard_negatives: false}
evaluate: [stress]
compare:
  - {claim: H1, treatment: B1, control: B2, metric: stress/negate/auc, expect: better}
"""
FACTS = Facts(backbones={"small": "s" * 8}, corpus="c" * 8, tasks={"stress": "r"}, precision="fp32")
NAMES = ["a", "b", "c", "d"]
GOLD = [1.0, 0.0, 1.0, 0.0]


def records(
    folder: Path,
    odd: tuple[str, int],
    groups: list[str],
    gold: list[float],
    runs: int = 8,
    aggregate: Aggregate = "auc",
) -> StudyRecords:
    """The first so many runs, of which one, (arm, seed), has groups and gold of its own."""
    (folder / "hard.yaml").write_text(STUDY)
    study = read_study(folder / "hard.yaml")
    ledger, asked = Ledger(folder / "ledger"), plan(study, FACTS).runs
    for run in asked[:runs]:
        own, ids = (run.arm, run.seed) == odd, NAMES if len(gold) == 4 else list(map(str, range(len(gold))))
        values = np.random.default_rng(run.seed).normal(size=len(gold))
        named = (groups, gold) if own else (ids, GOLD if len(gold) == 4 else gold)
        score = score_of_items("stress/negate/auc", aggregate, ids, named[0], values, np.array(named[1]))
        finish(ledger, run, [score])
    return StudyRecords(study, asked, ledger)


@pytest.mark.parametrize("odd", [("B1", 0), ("B1", 2), ("B2", 0), ("B2", 3)])
@pytest.mark.parametrize(
    ("groups", "gold"),
    [
        (["one", "one", "two", "two"], GOLD),
        (NAMES, [1.0, 0.0, 0.0, 1.0]),
    ],
)
def test_runs_that_group_or_label_an_item_otherwise_are_not_compared(
    odd: tuple[str, int], groups: list[str], gold: list[float], tmp_path: Path
) -> None:
    """Whose groups a verdict followed would hang on which run comes first."""
    known = records(tmp_path, odd, groups, gold)
    (claim,) = known.study.claims
    assert isinstance(claim, Claim)
    with pytest.raises(ItemsError, match="one group and one gold in all runs") as told:
        paired(known, claim)
    arm, seed = odd
    assert f"{arm} on small at seed {seed}" in str(told.value)
    assert str(told.value).count(" at seed ") == 2
    with pytest.raises(StudyError):
        seen(known)(claim)


@pytest.mark.parametrize("odd", [("B1", 0), ("B2", 3)])
def test_a_run_with_all_items_in_one_group_does_not_leave_the_seeds_to_speak_alone(
    odd: tuple[str, int], tmp_path: Path
) -> None:
    known = records(tmp_path, odd, ["one"] * 4, GOLD)
    (claim,) = known.study.claims
    assert isinstance(claim, Claim)
    with pytest.raises(ItemsError, match="group"):
        paired(known, claim)


@pytest.mark.parametrize("odd", [("B1", 0), ("B2", 3)])
@pytest.mark.parametrize("kind", ["auc", "spearman", "mean"])
def test_the_order_in_which_a_run_lists_its_items_changes_no_figure(
    odd: tuple[str, int], kind: Aggregate, tmp_path: Path
) -> None:
    """Each value stays with its item's group and gold, also where the order of one run is its own."""
    ids, groups = [f"item {k}" for k in range(12)], [f"group {k // 3}" for k in range(12)]
    gold = np.arange(12.0) if kind == "spearman" else np.arange(12) % 2.0
    found = []
    for name, own in (("alike", np.arange(12)), ("mixed", np.random.default_rng(1).permutation(12))):
        (tmp_path / name).mkdir()
        (tmp_path / name / "hard.yaml").write_text(STUDY)
        study, ledger = read_study(tmp_path / name / "hard.yaml"), Ledger(tmp_path / name / "ledger")
        asked = plan(study, FACTS).runs
        for number, run in enumerate(asked):
            order = own if (run.arm, run.seed) == odd else np.arange(12)
            values = (np.random.default_rng(number).normal(size=12) + 0.1 * gold)[order]
            named = ([ids[k] for k in order], [groups[k] for k in order])
            labels = None if kind == "mean" else gold[order]
            finish(ledger, run, [score_of_items("stress/negate/auc", kind, *named, values, labels)])
        known = StudyRecords(study, asked, ledger)
        (claim,) = known.study.claims
        assert isinstance(claim, Claim)
        items = paired(known, claim).items
        assert isinstance(items, ItemScores)
        place = [items.item_ids.index(one) for one in ids]
        assert [items.group_ids[k] for k in place] == groups
        assert kind == "mean" or (items.gold is not None and (items.gold[place] == gold).all())
        found.append((items.treatment[:, place], items.control[:, place]))
    np.testing.assert_array_equal(found[0], found[1])


def test_the_matched_control_brings_its_own_items(tmp_path: Path) -> None:
    """Whether a gain is due to its signal hangs on them, as the gain on those of the control."""
    matched = STUDY.replace("expect: better", "expect: better, matched_control: C, signal: the labels")
    (tmp_path / "hard.yaml").write_text(matched.replace("evaluate:", "  C: {learning_rate: 1.0e-4}\nevaluate:"))
    study, ledger = read_study(tmp_path / "hard.yaml"), Ledger(tmp_path / "ledger")
    asked, values = plan(study, FACTS).runs, {}
    for number, run in enumerate(asked):
        values[run.arm, run.seed] = own = np.random.default_rng(number).normal(size=4)
        finish(ledger, run, [score_of_items("stress/negate/auc", "auc", NAMES, NAMES, own, np.array(GOLD))])
    (claim,) = study.claims
    assert isinstance(claim, Claim)
    pairs = paired(StudyRecords(study, asked, ledger), claim)
    for found, control in ((pairs.items, "B2"), (pairs.matched_items, "C")):
        assert isinstance(found, ItemScores)
        for arm, rows in (("B1", found.treatment), (control, found.control)):
            np.testing.assert_array_equal(rows, [values[arm, seed] for seed in pairs.seeds])


def test_gold_that_differs_in_a_late_digit_is_other_gold(tmp_path: Path) -> None:
    said = []
    for number in (1_000_001.0, 1_000_002.0):
        (tmp_path / str(number)).mkdir()
        known = records(tmp_path / str(number), ("B1", 0), NAMES, [number, 0.0, 1.0, 2.0], 1, "spearman")
        run = next(iter(known.entries))
        said.append(known.items(run, "stress/negate/auc").names.descriptions)
    assert said[0]["a"].endswith("gold 1000001")
    assert said[0]["a"] != said[1]["a"]
    assert said[0]["b"] == said[1]["b"]


def test_the_guess_of_a_plan_knows_a_rare_class(tmp_path: Path) -> None:
    """Three of 40 items are labelled 1: their figure is as well known as one of six items, not of forty."""
    gold = [1.0] * 3 + [0.0] * 37
    known = records(tmp_path, ("none", 0), [], gold, runs=1)
    (claim,) = known.study.claims
    assert isinstance(claim, Claim)
    sample = seen(known)(claim).sample
    assert sample is not None
    assert (sample.groups, sample.effective) == (6, 3)
    (tmp_path / "pair").mkdir()
    pair = seen(records(tmp_path / "pair", ("none", 0), [], [1.0] * 2 + [0.0] * 38, runs=1))(claim).sample
    assert pair is not None
    assert (pair.groups, pair.effective) == (4, 2)
    (tmp_path / "single").mkdir()
    single = records(tmp_path / "single", ("none", 0), [], [1.0] + [0.0] * 39, runs=1)
    assert seen(single)(claim).sample is None  # one item of a class tells nothing of others
