"""A search as data: what makes it another search, and what its table takes from the ledger."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

from evaluators.metrics.scores import Score
from orchestration.ledger.ledger import Ledger
from orchestration.plan.plan import planned_run
from orchestration.reading.read_study import read_study
from orchestration.search.shown import ranked
from orchestration.search.trials import Selection, Trial, searched
from orchestration.study.blocks import Objective, StopEarly
from tests.results import finish
from tests.searching import AUC, MRR, selection

START = {"temperature": 0.05, "hn_margin": 0.2}
WHOLE = {"hn_margin": {"low": 0.1, "high": 0.4}, "temperature": {"low": 0.01, "high": 0.2}}


def of_settings(chosen: Selection, **settings: Any) -> Selection:
    """The same search around other settings of the arm."""
    return replace(chosen, study=replace(chosen.study, arms={"B1": replace(chosen.settings, **settings)}))


def test_a_search_goes_on_where_only_its_length_or_its_wording_changed(tmp_path: Path) -> None:
    first = selection(tmp_path)
    same: list[dict[str, Any]] = [
        {"trials": 3},
        {"budget": 5},
        {"at_once": 2},
        {"match_control": True},
        {"dimensions": WHOLE},
    ]
    assert {selection(tmp_path, **changes).id for changes in same} == {first.id}
    assert of_settings(first, hn_margin=0.2).id == first.id


def test_whatever_moves_a_point_or_its_score_makes_another_search(tmp_path: Path) -> None:
    first = selection(tmp_path)
    others: list[dict[str, Any]] = [
        {"seeds": (100, 101)},
        {"sampler": "random"},
        {"sampler_seed": 1},
        {"startup": 5},
        {"race": 0.2},
        {"stop_early": StopEarly(rule="median", at=(2,))},
        {"stop_early": StopEarly(rule="median", at=(2, 4))},
        {"stop_early": StopEarly(rule="asha", at=(2,))},
        {"objective": Objective(metric=AUC, mode="max")},
        {"objective": (Objective(metric=MRR, mode="max"), Objective(metric=AUC, mode="max"))},
        {"dimensions": {**WHOLE, "temperature": {"low": 0.02}}},
        {"dimensions": {"temperature": "all"}},
    ]
    found = [first, *(selection(tmp_path, **changes) for changes in others)]
    found.append(of_settings(first, hn_margin=0.3))
    found += [replace(first, facts=replace(first.facts, **{name: "other"})) for name in ("corpus", "precision")]
    assert len({one.id for one in found}) == len(found)


def test_a_run_of_a_search_is_the_studys_own_where_its_training_is_the_same(tmp_path: Path) -> None:
    """Development rows are never trained on in this family: so a seed that both have trains once."""
    chosen = selection(tmp_path)
    own = planned_run(read_study(tmp_path / "margins.yaml"), chosen.facts, "B1", "tiny", 100)
    assert chosen.run(0, {}, 100).id == chosen.run(0, START, 100).id == own.id


def test_a_table_holds_what_the_ledger_holds_of_each_point_and_seed(tmp_path: Path) -> None:
    """Point 0 has no run and is there all the same; point 5 is point 1 again; nobody ran point 3. Those given up come last."""
    chosen, ledger = selection(tmp_path), Ledger(tmp_path / "ledger")
    points = [{**START, "hn_margin": margin} for margin in (0.2, 0.3, 0.25, 0.35, 0.4, 0.3)]
    kept = chosen.points(ledger)
    for number, point in enumerate(points):
        kept.suggest(number, point)
    for seed, value in ((100, 0.5), (101, math.nan)):
        finish(ledger, chosen.run(1, points[1], seed), [Score(metric=MRR, value=value)])
    ledger.fail(chosen.run(2, points[2], 101), 1, "loss is nan", "the traceback")
    kept.stop(4, 102, {2: 0.4, 4: 0.3})
    lost = {"failed": {101: "dev/t2d/mrr = nan"}, "scores": {100: (0.5,)}}
    found = searched(chosen, ledger)
    assert found.trials == (
        Trial(number=0, point=points[0]),
        Trial(number=1, point=points[1], **lost),
        Trial(number=2, point=points[2], failed={101: "loss is nan"}),
        Trial(number=4, point=points[4], stopped={102: (4, 0.3)}),
        Trial(number=5, point=points[5], **lost),
    )
    assert [trial.number for trial in ranked(found)] == [0, 1, 5, 4, 2]
    assert found.spent == 4
    assert found.best is None
    assert found.at_best == chosen.settings


def test_a_run_without_one_of_its_objectives_has_failed(tmp_path: Path) -> None:
    two = tuple(Objective(metric=name, mode="max") for name in (MRR, AUC))
    chosen, ledger = selection(tmp_path, objective=two), Ledger(tmp_path / "ledger")
    chosen.points(ledger).suggest(0, START)
    scores = [Score(metric=MRR, value=0.5), Score(metric=AUC, value=math.nan)]
    finish(ledger, chosen.run(0, START, 100), scores)
    (trial,) = searched(chosen, ledger).trials
    assert (trial.scores, trial.failed) == ({}, {100: f"{MRR} = 0.5, {AUC} = nan"})
