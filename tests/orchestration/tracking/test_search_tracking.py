"""What MLflow shows of a search that went on: the newest best point, and it alone."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestration.ledger.ledger import Ledger
from orchestration.search.trials import Searched, Trial
from orchestration.tracking.searches import track
from tests.searching import AUC, MRR, selection


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


def test_a_point_that_failed_and_was_tried_again_is_told_as_it_is_now(tmp_path: Path) -> None:
    """MLflow keeps what is not written anew: the reason of before, and the spread of a best point of before."""
    from mlflow import MlflowClient

    chosen, ledger, uri = selection(tmp_path), Ledger(tmp_path / "ledger"), f"sqlite:///{tmp_path}/mlflow.db"
    objective, client = "dev/t2d/mrr", MlflowClient(tracking_uri=uri)

    def shown(*trials: Trial) -> tuple[Any, Any, Any]:
        """The search and its two points, once mirrored."""
        track([Searched(selection=chosen, trials=trials)], ledger, uri)
        (experiment,) = (one for one in client.search_experiments() if one.name == "margins")
        runs = client.search_runs([experiment.experiment_id])
        first, second, search = sorted(runs, key=lambda run: run.data.tags.get("point", "9"))
        return search, first, second

    arm = Trial(number=0, point={"hn_margin": 0.2}, scores={100: (0.5,)}, failed={101: "loss is nan"})
    point = Trial(number=1, point={"hn_margin": 0.3}, scores={100: (0.5,), 101: (0.7,), 102: (0.3,)})
    search, first, second = shown(arm, point)
    assert (first.info.status, first.data.tags["failed"]) == ("FAILED", "seed 101: loss is nan")
    figures = {"seeds": 1, "failed_seeds": 1, "stopped_seeds": 0, objective: 0.5, f"mean/{objective}": 0.5}
    assert figures.items() <= first.data.metrics.items()
    assert math.isnan(first.data.metrics["sd"])
    assert (second.info.status, second.data.tags["failed"], second.data.tags["best"]) == ("FINISHED", "", "true")
    assert second.data.params == {"hn_margin": "0.3"}
    assert second.data.tags["runs"].split() == [chosen.run(1, point.point, seed).id for seed in chosen.seeds]
    assert second.data.metrics["sd"] == pytest.approx(0.2)  # .5, .7 and .3
    means = client.get_metric_history(second.info.run_id, f"mean/{objective}")
    assert [(one.step, one.value) for one in means] == [(1, 0.5), (2, pytest.approx(0.6)), (3, pytest.approx(0.5))]
    told = {"points": 2, "runs_spent": 5, "best_point": 1, f"best/{objective}": 0.5, "best/sd": 0.2}
    assert {name: search.data.metrics[name] for name in told} == pytest.approx(told)
    space = {f"space/{dimension.name}": dimension.words for dimension in chosen.space}
    assert list(space) == ["space/temperature", "space/hn_margin"]
    told = {"arm": "B1", "backbone": "tiny", "seeds": "100 101 102", "objective": f"{objective} (max)", **space}
    assert told.items() <= search.data.params.items()
    files = Path(client.download_artifacts(search.info.run_id, ""))
    table = json.loads((files / "points.json").read_text())
    assert table["columns"] == ["point", objective, "sd", "seeds", "failed", "stopped", "temperature", "hn_margin"]
    assert table["data"] == [
        [1, pytest.approx(0.5), pytest.approx(0.2), 3, 0, 0, None, 0.3],
        [0, 0.5, None, 1, 1, 0, None, 0.2],
    ]

    again = replace(arm, scores=dict.fromkeys(chosen.seeds, (0.8,)), failed={})
    gone = replace(point, scores={100: (0.5,)}, stopped={101: (30, 0.1)})
    search, first, second = shown(again, gone)
    assert (first.info.status, first.data.tags["failed"], first.data.tags["best"]) == ("FINISHED", "", "true")
    assert (first.data.metrics["failed_seeds"], first.data.metrics["sd"]) == (0, 0)
    assert (second.data.tags["stopped"], second.data.tags["best"]) == ("seed 101: at step 30", "false")
    told = {"best_point": 0, f"best/{objective}": 0.8, "best/sd": 0}
    assert {name: search.data.metrics[name] for name in told} == pytest.approx(told)
    search, *_ = shown(replace(again, failed={102: "lost"}), gone)
    assert all(math.isnan(search.data.metrics[name]) for name in told)  # none is sound any more


def test_each_point_is_told_anew_whatever_became_of_it(tmp_path: Path) -> None:
    """One that was stopped, one that failed at length, one that lost and one that was only chosen; by two objectives."""
    from mlflow import MlflowClient

    chosen, other = selection(tmp_path), selection(tmp_path, metric=AUC)
    ledger, client = Ledger(tmp_path / "ledger"), MlflowClient(tracking_uri=f"sqlite:///{tmp_path}/mlflow.db")

    def shown(*trials: Trial) -> dict[str, Any]:
        """The runs by their point, that of the search under its name, those of the first objective."""
        found = [Searched(selection=one, trials=trials) for one in (chosen, other)]
        lines = track(found, ledger, client.tracking_uri)
        (look,) = (line for line in lines if line.startswith("look at it:"))
        assert look.endswith(f" --mlflow {client.tracking_uri}")
        (experiment,) = (one for one in client.search_experiments() if one.name == "margins")
        runs = client.search_runs([experiment.experiment_id])
        assert len(runs) == 2 * 4  # of each search itself and three points
        both = [run for run in runs if any(name.startswith(f"best/{MRR}") for name in run.data.metrics)]
        own = {chosen.run(one.number, one.point, seed).id for one in trials for seed in one.seeds}
        points = [run for run in runs if own & set(run.data.tags.get("runs", "").split())]
        return {run.data.tags.get("point", "search"): run for run in (*both, *points)}

    stopped = Trial(number=0, point={"hn_margin": 0.2}, scores={100: (0.5,)}, stopped={101: (30, 0.1)})
    failed = Trial(number=1, point={"hn_margin": 0.3}, scores={}, failed={100: "why " * 3000})
    lost = Trial(number=2, point={"hn_margin": 0.4}, scores={100: (0.4,)})
    idle = Trial(number=3, point={"hn_margin": 0.1}, scores={})
    runs = shown(stopped, failed, lost, idle)
    assert sorted(runs) == ["0", "1", "2", "search"]
    assert 4000 < len(runs["1"].data.tags["failed"]) <= 5000
    assert runs["search"].data.params["race"] == str(chosen.search.least_chance)
    for name, metric, step in (("search", "points", 4), ("0", "seeds", 1), ("1", "seeds", 0)):
        history = client.get_metric_history(runs[name].info.run_id, metric)
        assert [point.step for point in history] == [step]  # as many seeds as have been spent
    table = json.loads(Path(client.download_artifacts(runs["search"].info.run_id, "points.json")).read_text())
    told = {row[0]: row[1:6] for row in table["data"]}  # objective, sd, seeds, failed, stopped
    assert told[0] == [0.5, None, 1, 0, 1]
    assert told[1] == [None, None, 0, 1, 0]
    runs = shown(
        replace(stopped, stopped={101: (40, 0.1)}),
        replace(failed, failed={100: "why", 101: "lost"}),
        replace(lost, scores={100: (0.4,), 101: (0.3,)}),
        idle,
    )
    assert runs["0"].data.tags["stopped"] == "seed 101: at step 40"
    assert runs["1"].data.tags["failed"] == "seed 100: why; seed 101: lost"
    assert runs["2"].data.metrics["seeds"] == 2


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
