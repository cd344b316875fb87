"""Items of the runs of a claim: named alike in all of them, and as few as the rarer class has."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evaluators.metrics.item_metrics import score_of_items
from evaluators.metrics.scores import Aggregate
from evaluators.significance.claims import Claim
from evaluators.significance.paired_items import ItemsError
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
    assert (sample.groups, sample.rarest) == (6, 3)
    (tmp_path / "single").mkdir()
    single = records(tmp_path / "single", ("none", 0), [], [1.0] + [0.0] * 39, runs=1)
    assert seen(single)(claim).sample is None  # one item of a class tells nothing of others
