"""A search by the mean of several development figures: what it measures, what a trial is worth, what confirms it."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestration.ledger.ledger import Ledger
from orchestration.plan.plan import Facts, planned_run
from orchestration.reading.read_study import read_study
from orchestration.search.trials import Trial, selections, with_score
from orchestration.study.errors import StudyError
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
    trial = with_score(Trial(number=0, point={}), selection, ledger, run)
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
