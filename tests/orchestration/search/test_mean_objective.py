"""A search by the mean of several development figures: what it measures, what a trial is worth, what confirms it."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluators.metrics.scores import Score
from orchestration.ledger.ledger import Ledger
from orchestration.plan.plan import Facts, plan, planned_run
from orchestration.reading.read_study import read_study
from orchestration.search.trials import Trial, selections, with_score
from orchestration.study.errors import StudyError
from orchestration.verdicts.find import find
from tests.results import finish
from tests.searching import AUC, MRR, ROWS, STUDY, quality, worth

OBJECTIVE = f'{{metric: "mean({MRR}, {AUC})", mode: max}}'
FACTS = Facts(backbones={"tiny": "b"}, corpus="c", tasks=ROWS, precision="fp32")


def written(folder: Path, objective: str) -> Path:
    path = folder / "margins.yaml"
    path.write_text(STUDY.replace("{metric: dev/t2d/mrr, mode: max}", objective))
    return path


def test_a_point_is_worth_the_mean_of_its_figures(tmp_path: Path) -> None:
    study, ledger = read_study(written(tmp_path, OBJECTIVE)), Ledger(tmp_path / "ledger")
    (selection,) = selections(study, FACTS)
    assert selection.study.evaluate == ("dev/t2d", "dev/pair_auc")
    assert selection.objectives[0].confirmed == "mean(t2d/mrr, pair_auc)"
    assert study.figures["mean(t2d/mrr, pair_auc)"] == ("t2d/mrr", "pair_auc")
    run = planned_run(selection.study, FACTS, "B1", "tiny", 100)
    finish(ledger, run, worth(run))
    trial = with_score(Trial(number=0, point={}), selection, ledger.record(run))
    assert trial.scores[100] == (pytest.approx((quality(run) + run.settings["hn_margin"]) / 2),)


@pytest.mark.parametrize(
    ("objective", "told"),
    [
        ('{metric: "mean(dev/t2d, t2d)", mode: max}', "t2d"),
        ('{metric: "mean(dev/t2d, dev/d2t)", mode: max}', "d2t"),  # not measured on test data
        ('{metric: "mean(dev/t2d, dev/pair_auc)", mode: min}', "max: larger is better"),
        ('{metric: "each(dev/t2d, dev/pair_auc)", mode: max}', "one figure, or their mean"),
    ],
)
def test_an_objective_that_cannot_be_is_refused(tmp_path: Path, objective: str, told: str) -> None:
    with pytest.raises(StudyError) as caught:
        read_study(written(tmp_path, objective))
    assert told in str(caught.value)


def test_findings_hold_the_mean_on_test_data_alone(tmp_path: Path) -> None:
    """Runs of the study have no development figures, and `each(…)` is several claims, not a figure."""
    path = written(tmp_path, OBJECTIVE)
    each = "{claim: H2, treatment: B1, control: B0, metric: 'each(t2d, pair_auc)', at_least: 1, expect: better}"
    path.write_text(path.read_text().replace("search:\n", f"  - {each}\nsearch:\n", 1))
    study, ledger = read_study(path), Ledger(tmp_path / "ledger")
    runs = plan(study, FACTS).runs
    for number, run in enumerate(runs):
        finish(ledger, run, [Score(metric="t2d/mrr", value=0.1 * number), Score(metric="pair_auc", value=0.5)])
    found, mean = find(study, runs, ledger), "mean(t2d/mrr, pair_auc)"
    assert found.metrics[mean]
    assert not any(name.startswith("each(") or "dev/" in name for name in found.metrics)
    assert [row.metrics.keys() for row in found.runs] == [{"t2d/mrr", "pair_auc", mean}] * len(runs)
    assert [row.metrics[mean] for row in found.runs] == pytest.approx(
        [(0.1 * number + 0.5) / 2 for number in range(len(runs))]
    )
