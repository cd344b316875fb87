"""The stress figures on four concepts whose cosines are chosen by hand."""

import numpy as np
import pytest

from corpora.concept.records import KINDS, RULES, EvalSplit, StressRow
from evaluators.metrics.item_metrics import aggregate
from evaluators.metrics.stress import KINDS_OF, metric_names, pair_auc, stress_scores


def row(concept, rule, kind):
    definition = "shared wording" if concept in "cd" else f"definition of {concept}"
    return StressRow(concept, f"term {concept}", definition, rule, kind, f"{rule} of {concept}")


ROWS = (
    row("a", "negate", "prefix"),
    row("a", "antonym", "direct"),
    row("b", "negate", "aux"),
    row("c", "negate", "prefix"),
    row("d", "negate", "prefix"),
)
SPLIT = EvalSplit(
    name="id",
    terms=("term a", "term b", "term c", "term d"),
    definitions=("definition of a", "definition of b", "shared wording"),
    gold=((0,), (1,), (2,), (2,)),
    concept_of_definition=(("a",), ("b",), ("c", "d")),
    stress=ROWS,
)
RIGHT = np.array([0.9, 0.9, 0.5, 0.3, 0.7])
WRONG = np.array([0.8, 0.2, 0.4, 0.3, 0.6])


@pytest.fixture(scope="module")
def figures():
    return {score.metric: score for score in stress_scores(SPLIT, RIGHT, WRONG)}


def test_pooled_and_pairwise_by_hand(figures):
    """Negate: right .9 .5 .3 .7 against wrong .8 .4 .3 .6 wins 4 + 2 + ½ + 3 of 16; c ties with itself."""
    assert figures["stress/negate/auc"].value == pytest.approx(9.5 / 16)
    assert figures["stress/negate/acc"].value == pytest.approx(3 / 4)
    assert figures["stress/antonym/auc"].value == 1


def test_kinds_are_scored_apart(figures):
    """Prefix rows are a, c and d: .9 .3 .7 against .8 .3 .6 wins 3 + ½ + 2 of 9."""
    assert figures["stress/negate/prefix/auc"].value == pytest.approx(5.5 / 9)
    assert figures["stress/negate/aux/acc"].value == 1


def test_rules_and_kinds_without_rows_yield_nothing(figures):
    assert set(figures) < set(metric_names())
    assert not any("type_swap" in metric or "toggle" in metric for metric in figures)


def test_pair_auc_counts_each_definition_once():
    """.9 .5 .3 .7 against .8 .2 .4 .3 .6: 5 + 3 + 1½ + 4 of 20."""
    score = pair_auc("pair_auc", SPLIT, RIGHT, WRONG)
    assert score.value == pytest.approx(13.5 / 20)
    assert score.gold.sum() == 4


def test_items_are_unique_and_shared_wording_is_one_group(figures):
    for score in [*figures.values(), pair_auc("pair_auc", SPLIT, RIGHT, WRONG)]:
        assert len(set(score.item_ids)) == len(score.item_ids) == len(score.group_ids) == len(score.values)
        assert score.value == aggregate(score.aggregate, score.values, score.gold)
    assert figures["stress/negate/acc"].group_ids == ["a", "b", "c", "c"]


def test_the_kinds_are_those_of_the_corpus():
    assert set(KINDS_OF) <= set(RULES)
    assert {kind for kinds in KINDS_OF.values() for kind in kinds} <= set(KINDS)
