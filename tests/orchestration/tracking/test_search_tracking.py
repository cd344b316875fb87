"""What MLflow shows of a search that went on: the newest best point, and it alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from orchestration.ledger.ledger import Ledger
from orchestration.search.trials import Searched, Trial
from orchestration.tracking.searches import track
from tests.searching import selection


def test_a_new_best_point_takes_the_mark_from_the_old_one(tmp_path: Path) -> None:
    from mlflow import MlflowClient

    chosen, ledger, uri = selection(tmp_path), Ledger(tmp_path / "ledger"), f"sqlite:///{tmp_path}/mlflow.db"
    trials = tuple(
        Trial(
            number=number,
            point={"temperature": 0.05, "hn_margin": margin},
            scores={seed: (margin + seed / 1000,) for seed in chosen.seeds},
        )
        for number, margin in enumerate((0.2, 0.3, 0.4))
    )
    for known in (trials[:2], trials):
        track([Searched(selection=chosen, trials=known)], ledger, uri)
        client = MlflowClient(tracking_uri=uri)
        (experiment,) = (one for one in client.search_experiments() if one.name == "margins")
        best = client.search_runs([experiment.experiment_id], "tags.best = 'true'")
        assert [run.data.tags["point"] for run in best] == [str(len(known) - 1)]


def test_an_arm_that_looks_like_a_path_stays_in_the_reports(tmp_path: Path) -> None:
    (tmp_path / "place").mkdir()
    chosen, odd = selection(tmp_path / "place"), "/../../../it's"
    study = replace(chosen.study, arms={**chosen.study.arms, odd: chosen.study.arms["B1"]})
    chosen = replace(chosen, arm=odd, study=study)
    trial = Trial(number=0, point={"temperature": 0.05, "hn_margin": 0.2}, scores={100: (0.5,)})
    lines = track(
        [Searched(selection=chosen, trials=(trial,))],
        Ledger(tmp_path / "place" / "ledger"),
        f"sqlite:///{tmp_path}/place/mlflow.db",
    )
    assert not any("'s'" in line or "error" in line.lower() for line in lines)
    assert [path.name for path in tmp_path.iterdir()] == ["place"]
    (folder,) = (tmp_path / "place" / "reports" / "margins").iterdir()
    assert folder.name.startswith("search-it-s-")
