"""Verdicts from what the ledger holds, also where a run has less than a comparison asks for."""

from __future__ import annotations

from pathlib import Path

from evaluators.metrics.scores import Score
from orchestration.ledger.ledger import Ledger
from orchestration.plan.plan import Facts, plan
from orchestration.reading.read_study import read_study
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
