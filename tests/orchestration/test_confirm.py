"""The confirmation of a search: which study it is, and what it says of the search's own figures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from orchestration.confirm import confirmation, optimism
from orchestration.errors import StudyError
from orchestration.findings import Findings, RunRow
from orchestration.search import Searched, Trial
from orchestration.study import Study
from tests.searching import selection

TUNED = {"temperature": 0.03, "hn_margin": 0.3}


def a_search(folder: Path, *points: dict[str, float]) -> Searched:
    """Points that score 0.5, 0.6, ... at the first seed, and 0.1 more at each later one."""
    chosen = selection(folder)
    return Searched(
        selection=chosen,
        trials=tuple(
            Trial(
                number=number,
                point=point,
                scores={seed: (0.5 + 0.1 * (number + place),) for place, seed in enumerate(chosen.seeds)},
            )
            for number, point in enumerate(points)
        ),
    )


def study_of(folder: Path) -> Study:
    return Study.load(folder / "margins.yaml")


def test_the_best_point_stands_beside_the_arm_it_started_from(tmp_path: Path) -> None:
    found = a_search(tmp_path, {"temperature": 0.05, "hn_margin": 0.2}, TUNED)
    study = confirmation(study_of(tmp_path), [found])
    assert list(study.arms) == ["B0", "B1", "B1@1"]
    tuned, start = study.arms["B1@1"], study.arms["B1"]
    assert tuned == replace(start, **TUNED)
    said = [(c.claim, c.treatment, c.control, c.metric, c.expect) for c in study.compare]
    assert said == [
        ("search B1", "B1@1", "B1", "t2d/mrr", "better"),
        ("H1 tuned", "B1@1", "B0", "t2d/mrr", "better"),
    ]
    assert set(study.seeds.all).isdisjoint(found.selection.seeds)
    assert study.evaluate == ("t2d", "pair_auc")
    assert study.search is None
    assert study.name == "margins-confirmed"


def test_another_winner_makes_other_claims(tmp_path: Path) -> None:
    """What is declared of one point says nothing of the next: its claims come later, and count as exploratory."""
    start = {"temperature": 0.05, "hn_margin": 0.2}
    earlier, later = (
        a_search(tmp_path, start, TUNED),
        a_search(tmp_path, start, TUNED, {**TUNED, "hn_margin": 0.31}),
    )
    claims = [set(confirmation(study_of(tmp_path), [found]).compare) for found in (earlier, later)]
    assert claims[0].isdisjoint(claims[1])


def test_an_arm_that_is_its_own_best_leaves_nothing_to_confirm(tmp_path: Path) -> None:
    found = a_search(tmp_path, {"temperature": 0.05, "hn_margin": 0.2})
    with pytest.raises(StudyError, match="no point better than the arms it started from"):
        confirmation(study_of(tmp_path), [found])


def test_optimism_by_hand(tmp_path: Path) -> None:
    """Chosen at 0.7, 0.1 above the arm; confirmed at 0.45 and 0.43, 0.04 above: 0.06 of the gain was luck."""
    found = a_search(tmp_path, {"temperature": 0.05, "hn_margin": 0.2}, TUNED)
    values = {"B1": {0: 0.41, 1: 0.39, 2: 0.9}, "B1@1": {0: 0.45, 1: 0.43}}  # seed 2 of the tuned arm is lost
    rows = tuple(
        RunRow(id=f"{arm}{seed}", arm=arm, backbone="tiny", seed=seed, metrics={"t2d/mrr": value})
        for arm, by_seed in values.items()
        for seed, value in by_seed.items()
    )
    (told,) = optimism([found], findings(rows))
    assert (told.arm, told.point, told.selection_seeds, told.fresh_seeds) == ("B1", 1, 3, 2)
    assert (told.chosen, told.confirmed) == (pytest.approx(0.7), pytest.approx(0.44))
    assert (told.gain_chosen, told.gain_confirmed) == (pytest.approx(0.1), pytest.approx(0.04))
    assert "+0.0600 was luck" in told.line


def findings(rows: tuple[RunRow, ...]) -> Findings:
    fields = dict.fromkeys(("study", "question", "family", "revision", "declared", "created", "ledger"), "")
    return Findings(
        **fields,
        seeds=(0, 1, 2),
        metrics={"t2d/mrr": True},
        headlines=(),
        arms={},
        data={},
        corpus_fingerprint="",
        runs=rows,
        findings=(),
    )
