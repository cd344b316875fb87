"""The version of the rule: the same scores are judged alike, to nine digits, for as long as `RULE` stands.

A change that is meant raises RULE and writes the outcomes anew:
    PYTHONPATH=. python tests/evaluators/significance/test_rule.py
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from evaluators.metrics.item_metrics import aggregate
from evaluators.significance.claims import Claim, Joint
from evaluators.significance.comparisons import PairedSeeds
from evaluators.significance.judge import judge
from evaluators.significance.paired_items import ItemScores
from evaluators.significance.sequential import Sequential
from evaluators.significance.verdict import RULE

LATE = [
    1.0,
    1.5,
    0.7,
    1.2,
    0.9,
    1.3,
    -2.5,
    -3.0,
    -2.0,
    -3.5,
    -2.5,
    -1.0,
    0.5,
    -1.5,
]  # shown, and the mean left since
OUTCOMES = Path(__file__).with_name("rule.json")


def outcomes() -> list[dict[str, Any]]:
    """One verdict of every path: seeds alone, items in closed form and resampled, growing seeds, futility, a matched
    control, a claim that was added, equal deltas, contradictory and tied ones, parts shown alone and not together,
    items of one text."""
    rng = np.random.default_rng(2)
    gold = rng.normal(size=40)
    arms = [gold + noise * rng.normal(size=(4, 40)) for noise in (0.8, 1.2)]
    few = _seeds([0.8, 1.1, 0.6], control=[0.1, 0.3, 0.2])
    weak = _seeds([0.3, 0.9, 0.5, 1.2])
    family = [
        (_claim("H1", "better"), few),
        (_claim("H2", "better", margin=0.2), _seeds(rng.normal(0.1, 0.2, 8))),
        (_claim("H3", "equivalent", margin=0.1), _items("mean", *[(arm > 0) == (gold > 0) for arm in arms])),
        (_claim("H4", "better", family="ranks"), _items("spearman", *arms, gold)),
        (_claim("H5", "not_worse", margin=0.3, family="ranks"), _items("auc", *arms, (gold > 0).astype(float))),
        (_claim("H6", "better", margin=2.0, matched_control="C", signal="the signal"), _matched(few)),
        (_claim("H7", "worse"), replace(_seeds(rng.normal(size=12)), exploratory=True)),
    ]
    verdicts = [
        *judge(family),
        *judge([(_claim("G", "better"), _seeds(rng.normal(1, 1, 9)))], sequential=Sequential()),
        *judge([(_claim("F", "better", min_effect=0.5), _seeds(rng.normal(0, 1, 9)))], sequential=Sequential()),
        *judge([(_claim("X", "better", margin=2.0), replace(few, exploratory=True))]),
        *judge([(_claim("E", "better"), _seeds([0.5] * 6))], sequential=Sequential()),
        *judge(
            [(_claim("D", "better"), _seeds([1.0, 1.01, 0.99] * 3 + [-1.0, -1.01] * 5))], sequential=Sequential()
        ),
        *judge([(_claim("L", "better"), _seeds(LATE))], sequential=Sequential(n_max=14)),
        *judge([(_claim("O", "better"), _seeds([1e-4, 2e-4, 1e-4], control=[1e9, 1e9 + 1, 1e9 + 2]))]),
        *judge(
            [(_claim("T", "better"), _seeds([0.01, 0.01, -0.01, 0.02, 0.01], control=[0.8, 0.74, 0.6, 0.71, 0.3]))]
        ),
        *judge(
            [(Joint(claim="J", all=(_claim("J1", "better"), _claim("J2", "better")), at_least=1), [weak, weak])]
        ),
        *judge([(_claim("B", "better"), _on_texts(*arms, gold))]),
    ]
    return [_rounded(verdict.to_dict()) for verdict in verdicts]


def _claim(name: str, expect: str, **more: Any) -> Claim:
    return Claim(claim=name, treatment="A", control="B", metric=f"score of {name}", expect=expect, **more)  # type: ignore[arg-type]


def _seeds(deltas: Any, control: Any = None) -> PairedSeeds:
    control = np.sin(np.arange(len(deltas))) if control is None else np.array(control)
    return PairedSeeds(seeds=tuple(range(len(deltas))), treatment=tuple(control + deltas), control=tuple(control))


def _matched(pairs: PairedSeeds) -> PairedSeeds:
    return PairedSeeds(
        seeds=pairs.seeds, treatment=pairs.treatment, control=pairs.control, matched_control=(0.5, 0.6, 0.4)
    )


def _items(kind: Any, treatment: np.ndarray, control: np.ndarray, gold: np.ndarray | None = None) -> PairedSeeds:
    ids = tuple(map(str, range(treatment.shape[1])))
    rows = [arm.astype(float) for arm in (treatment, control)]
    items = ItemScores(aggregate=kind, treatment=rows[0], control=rows[1], gold=gold, item_ids=ids, group_ids=ids)
    scores = [tuple(aggregate(kind, row, gold) for row in arm) for arm in rows]
    return PairedSeeds(seeds=tuple(range(len(rows[0]))), treatment=scores[0], control=scores[1], items=items)


def _on_texts(treatment: np.ndarray, control: np.ndarray, gold: np.ndarray) -> PairedSeeds:
    """A figure by class, whose first half of items is of one text of both classes."""
    pairs = _items("auc", treatment, control, (gold > 0).astype(float))
    assert isinstance(pairs.items, ItemScores)
    text, others = ("text",) * 20, pairs.items.item_ids[20:]
    return replace(pairs, items=replace(pairs.items, group_ids=text + others))


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_rounded(one) for one in value]
    return float(f"{value:.9g}") if isinstance(value, float) else value


def test_the_rule_is_the_version_it_says():
    kept = json.loads(OUTCOMES.read_text())
    found = outcomes()
    for was, now in zip(kept["outcomes"], found, strict=True):
        changed = [name for name in now if was.get(name) != now[name]]
        assert not changed, f"{now['claim']}: {changed}: the same scores are judged otherwise: raise RULE"
    assert kept["rule"] == RULE


if __name__ == "__main__":
    OUTCOMES.write_text(json.dumps({"rule": RULE, "outcomes": outcomes()}, indent=1, ensure_ascii=False) + "\n")
