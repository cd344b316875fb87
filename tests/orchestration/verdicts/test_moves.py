"""What a report tells of items: by concepts where items mislead, and beside what a passport compares."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from evaluators.metrics.item_metrics import placements, roc_auc
from evaluators.metrics.scores import Score
from evaluators.significance.paired_items import ItemScores
from orchestration.ledger.ledger import Ledger
from orchestration.plan.plan import Facts, plan
from orchestration.reading.read_study import read_study
from orchestration.report.forms import as_json
from orchestration.report.html import html
from orchestration.study.run import Run, Scored, Trained
from orchestration.tracking.entries import planned
from orchestration.verdicts.find import find
from orchestration.verdicts.moves import item_gains, moved_most, moves, placed_gains
from orchestration.verdicts.passport import plain, verify, write_passport
from orchestration.verdicts.why import chain
from tests.named_study import RECALL, STRESS, write_study
from tests.results import finish, put

LABELS = np.array([1.0, 1.0, 0.0, 0.0])
APART = np.array([0.9, 0.4, 0.5, 0.1])  # of 4 pairs one is the wrong way round: the second 1 under the first 0


def items_of(control: np.ndarray, treatment: np.ndarray, gold: np.ndarray, aggregate: str = "auc") -> ItemScores:
    """Two concepts, a and b, each with an item of either label; one seed."""
    return ItemScores(
        aggregate=aggregate,  # type: ignore[arg-type]
        treatment=treatment[None],
        control=control[None],
        gold=gold,
        item_ids=("a+", "b+", "a-", "b-"),
        group_ids=("a", "b", "a", "b"),
    )


def test_placements_by_hand() -> None:
    """0.9 is above both zeros, 0.4 above one; 0.5 is under one of the ones, 0.1 under both. A tie counts half."""
    assert placements(APART, LABELS).tolist() == [1.0, 0.5, 0.5, 1.0]
    assert placements(np.full(4, 0.3), LABELS).tolist() == [0.5] * 4
    assert placements(APART, LABELS)[:2].mean() == roc_auc(APART, LABELS) == 0.75


def test_a_shift_of_all_scores_moves_nothing() -> None:
    """An arm whose cosines are all smaller gains nothing by it, though every zero "moved towards its label"."""
    items = items_of(APART, APART - 0.3, LABELS)
    assert (item_gains(items, 1)[2:] > 0).all()
    told = moves(items, 1, "concepts")
    assert (told.better, told.worse, told.equal, told.total) == (0, 0, 2, 2)


def test_concepts_are_counted_not_their_items() -> None:
    """b's definition comes above a's negative: both items gain half of the other label, and so do both concepts."""
    items = items_of(APART, np.array([0.9, 0.6, 0.5, 0.1]), LABELS)
    assert placed_gains(items, 1).tolist() == [0.0, 0.5, 0.5, 0.0]
    told = moves(items, 1, "concepts")
    assert (told.counted, told.better, told.worse) == ("concepts", 2, 0)
    assert [(item.item_id, item.delta) for item in told.items[:2]] == [("b+", 0.5), ("a-", 0.5)]
    alone = moves(items, -1, "")
    assert (alone.counted, alone.worse, alone.equal) == ("items", 2, 2)


@pytest.mark.parametrize(
    ("aggregate", "gold", "control", "treatment", "gains"),
    [
        ("mean", None, [0.0, 1.0, 0.5, 0.5], [1.0, 1.0, 0.25, 0.5], [1.0, 0.0, -0.25, 0.0]),
        ("balanced_accuracy", [1.0, 1.0, 0.0, 0.0], [0.0, 1.0, 0.0, 1.0], [1.0, 0.0, 1.0, 0.0], [1.0, -1.0, -1.0, 1.0]),
        # ranks 3 2 1 0 are 3, 1, 1 and 3 from gold's, ranks 0 1 3 2 none, none, 1 and 1; of 4 items
        ("spearman", [0.1, 0.2, 0.3, 0.4], [9.0, 7.0, 5.0, 3.0], [1.0, 2.0, 8.0, 7.0], [0.75, 0.25, 0.0, 0.5]),
        # each 2 from the mean of 2; then 3, 1, 1 and 5 from the mean of 3
        ("sd", None, [0.0, 0.0, 4.0, 4.0], [0.0, 2.0, 2.0, 8.0], [1.0, -1.0, -1.0, 3.0]),
    ],
)  # fmt: skip
def test_gains_by_hand(
    aggregate: str, gold: list[float] | None, control: list[float], treatment: list[float], gains: list[float]
) -> None:
    items = items_of(np.array(control), np.array(treatment), np.array(gold or LABELS), aggregate)
    items = replace(items, gold=None) if gold is None else items
    assert item_gains(items, 1).tolist() == pytest.approx(gains)
    assert item_gains(items, -1).tolist() == pytest.approx([-gain for gain in gains])


@pytest.mark.parametrize(("size", "shown"), [(24, [*range(24)]), (30, [*range(12), *range(18, 30)])])
def test_twelve_of_either_end_are_shown(size: int, shown: list[int]) -> None:
    """Best first, whatever the order of the items."""
    order = np.random.default_rng(0).permutation(size)
    names = tuple(f"{place}" for place in order)  # by how much they gained
    control, treatment = np.full((2, size), 0.5), np.tile(0.5 + (size / 2 - order) / 100, (2, 1))
    items = ItemScores(
        aggregate="mean", treatment=treatment, control=control, gold=None, item_ids=names, group_ids=names
    )
    told = moved_most(items, item_gains(items, 1))
    assert [int(item.item_id) for item in told] == shown
    assert [item.treatment - 0.5 for item in told] == pytest.approx([item.delta for item in told])
    assert [item.delta for item in told] == pytest.approx([(size / 2 - place) / 100 for place in shown])


def test_what_is_counted_one_by_one() -> None:
    items = items_of(APART, APART[::-1].copy(), np.arange(4.0), "spearman")
    for alone in (moves(items, 1, ""), moves(replace(items, aggregate="mean", gold=None), 1, "concepts")):
        assert (alone.counted, alone.total) == ("items", 4)
    told = moves(items, 1, "pairs of words")
    assert (told.counted, told.total) == ("pairs of words", 2)


@pytest.mark.parametrize("size", [2.0**-40, 1.0, 2.0**40])
def test_what_rounding_moved_has_not_moved(size: float) -> None:
    """.1 + .2 + .3 is not .3 + .2 + .1 in floats: seeds that bring the same scores in another order."""
    seeds = size * np.repeat([[0.1], [0.2], [0.3]], 4, axis=1)
    items = replace(items_of(APART, APART, LABELS, "mean"), control=seeds, treatment=seeds[::-1].copy(), gold=None)
    assert item_gains(items, 1).all()
    told = moves(items, 1, "")
    assert (told.better, told.worse, told.equal) == (0, 0, 4)
    assert {item.delta for item in told.items} == {0.0}
    gained = seeds[::-1] + size * np.array([1e-6, 0, 0, -1e-6])
    told = moves(replace(items, treatment=gained), 1, "")
    assert (told.better, told.worse, told.equal) == (1, 1, 2)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_study(
        tmp_path_factory.mktemp("moves") / "hard.yaml", "Hard?", ["B1", "B2", "B0"], ["H1", "H2", "H3"]
    )


def test_a_report_counts_concepts_and_a_passport_stays_as_it_is(place: Path) -> None:
    study, ledger = read_study(place), Ledger(place.parent / "ledger")
    asked = plan(study, Facts(backbones={"tiny": "s" * 64}, corpus="c" * 64, tasks=dict.fromkeys(study.evaluate, "7" * 16), precision="fp32"))  # fmt: skip
    for run in asked.runs:
        put(ledger, run, _results(run))
    findings = find(study, asked.runs, ledger)
    second = next(one for one in findings.findings if one.verdict.metric == STRESS)
    assert (second.items_worse, second.shown_moves.total, second.shown_moves.counted) == (12, 12, "concepts")
    assert second.shown_moves.worse < 12
    told = next(one for one in as_json(findings) if one["metric"] == STRESS)
    assert (told["items_counted"], told["items_worse"]) == ("concepts", second.shown_moves.worse)
    assert f"{second.shown_moves.worse} worse" in chain(findings)
    assert "of 12 concepts" in html(findings, {})
    entry = next(
        one for one in planned(findings, ledger) if one.kind == "comparison" and "/B1-B2/" in one.key
    ).build()
    assert entry.tags["metric"] == STRESS
    _, rows = entry.tables["items.json"]
    assert [row[-1] for row in rows] == [item["delta"] for item in told["items"]]
    assert "moves" not in plain(findings)["findings"][0]
    path = place.with_name("hard.passport")
    write_passport(path, asked, ledger, findings)
    assert verify(path).differences == ()


def test_a_report_tells_nothing_of_rounding_and_passports_count_as_before(tmp_path: Path) -> None:
    """B1 and B2 have the same scores at other seeds: by their signs alone all twelve items moved."""
    path = write_study(tmp_path / "same.yaml", "Same?", ["B1", "B2", "B0"], ["H1", "H2", "H3"])
    path.write_text(path.read_text().replace("seeds: 2", "seeds: 3"))
    study, ledger = read_study(path), Ledger(tmp_path / "ledger")
    tasks = dict.fromkeys(study.evaluate, "7" * 16)
    asked = plan(study, Facts(backbones={"tiny": "s" * 64}, corpus="c" * 64, tasks=tasks, precision="fp32"))
    for run in asked.runs:
        values = [0.1, 0.2, 0.3][:: -1 if run.arm == "B2" else 1]
        names, scores = [f"item {number}" for number in range(12)], np.full(12, values[run.seed or 0])
        recall = Score(metric=RECALL, value=float(scores.mean()), aggregate="mean", item_ids=names, values=scores)
        finish(ledger, run, [recall, Score(metric=STRESS, value=0.5)])
    findings = find(study, asked.runs, ledger)
    last = findings.findings[-1]
    assert (last.shown_moves.better, last.shown_moves.worse, last.shown_moves.equal) == (0, 0, 12)
    assert as_json(findings)[-1]["items_equal"] == 12
    assert last.items_better + last.items_worse == 12
    passport = tmp_path / "same.passport"
    write_passport(passport, asked, ledger, findings)
    assert verify(passport).differences == ()


def _results(run: Run) -> list[Trained | Scored]:
    """Of 12 concepts: B1's cosines are all smaller by 0.1, and two of its definitions fall below negatives."""
    rng = np.random.default_rng(5)
    right, wrong = np.linspace(0.5, 0.9, 12), np.linspace(0.0, 0.4, 12)
    if run.settings["hard_negatives"]:
        right, wrong = right - 0.1, wrong - 0.1
        right[:2] -= 0.3
    values = np.concatenate([right, wrong]) + rng.normal(0, 1e-3, 24) * (run.seed or 0)
    names = [f"wordnet:word{number:02d}.n.01" for number in range(12)]
    gold = np.repeat([1.0, 0.0], 12)
    stress = Score(
        metric=STRESS,
        value=roc_auc(values, gold),
        aggregate="auc",
        item_ids=[f"{name}{sign}" for sign in "+-" for name in names],
        group_ids=names * 2,
        values=values,
        gold=gold,
    )
    return [
        Trained(run=run),
        Scored(run=run, task="t2d", scores=[Score(metric=RECALL, value=0.5)]),
        Scored(run=run, task="stress", scores=[stress]),
    ]
