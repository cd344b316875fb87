"""Verdicts from what the ledger holds, also where a run has less than a comparison asks for."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from evaluators.metrics.scores import Score
from orchestration.ledger.ledger import Ledger
from orchestration.plan.plan import Facts, plan
from orchestration.reading.read_study import read_study
from orchestration.study.errors import StudyError
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
    first, second = (finding.verdict for finding in find(study, runs, ledger).findings)
    assert (first.verdict, first.n_seeds, first.dropped) == ("better", 6, ())
    assert (second.n_seeds, second.dropped) == (5, ((3, "treatment: its run yielded no such figure"),))


@pytest.mark.parametrize(
    ("ids", "shift", "says"),
    [
        (["a", "b", "c"], 0.2, "t2d/recall@10 is 0.83"),
        (["a", "b", "x"], 0.0, "its items of t2d/recall@10 are not those that other runs have"),
    ],
)
def test_items_that_do_not_fit_are_told_by_file_and_remedy(
    ids: list[str], shift: float, says: str, tmp_path: Path
) -> None:
    """One run whose score its items do not make, and one that was scored on other items than the rest."""
    (tmp_path / "hard.yaml").write_text(STUDY.replace(", d2t]", "]").rpartition("  - {claim: H2")[0])
    study = read_study(tmp_path / "hard.yaml")
    ledger, runs = Ledger(tmp_path / "ledger"), plan(study, FACTS).runs
    odd = next(run for run in runs if run.seed == 3)
    for run in runs:
        values = np.array([0.4, 0.6, 0.8]) + (0.0 if run.seed is None else 0.01 * run.seed)
        finish(
            ledger,
            run,
            [
                Score(
                    metric="t2d/recall@10",
                    value=float(values.mean()) + (shift if run is odd else 0.0),
                    aggregate="mean",
                    item_ids=ids if run is odd else ["a", "b", "c"],
                    values=values,
                )
            ],
        )
    with pytest.raises(StudyError) as told:
        find(study, runs, ledger)
    entry = odd.entry("t2d")
    assert re.fullmatch(
        rf"{ledger.url}/{entry}/scores\.parquet: {says}.*\n  accepted: .*`semray set-aside {entry}`.*",
        str(told.value),
    )
    ledger.set_aside(entry)
    assert find(study, runs, ledger).findings[0].verdict.n_seeds == 5


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
