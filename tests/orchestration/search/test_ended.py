"""A search that has nothing left to run is answered from the ledger; one that has, is not taken for ended."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from evaluators.metrics.scores import Score
from orchestration.lanes.cluster import connected
from orchestration.ledger.ledger import Ledger
from orchestration.plan.plan import gather_facts
from orchestration.reading.read_study import read_study
from orchestration.search.outcome import has_ended
from orchestration.search.shown import as_json
from orchestration.search.trials import Searched, searched, selections
from orchestration.study.run import Job, Result
from tests import results as made_up
from tests import searching
from tests.results import results
from tests.searching import MRR, RATES, go, scored, selection, slowly
from trainers.engine.world import World

pytestmark = pytest.mark.timeout(240)
ROOT = Path(__file__).resolve().parents[3]
STUDY = RATES + "resources: {lanes: 1, retries: 0}\n"
WITHOUT_RAY = (
    "import sys; sys.modules['ray'] = None; from orchestration.commands.cli import main; sys.exit(main())"
)


@pytest.fixture(scope="module", autouse=True)
def ray_of_two() -> Iterator[None]:
    import ray

    with connected(2):
        for module in (sys.modules[__name__], searching, made_up):
            ray.cloudpickle.register_pickle_by_value(module)
        yield


def by_rate(job: Job, world: World) -> Iterator[Result]:
    for run in job.runs:
        worth = 1 - abs(run.settings["values"]["lr"] - 0.3) + (run.seed or 0) / 1e5
        yield from results(run, [Score(metric="dev/scores/accuracy", value=worth)])


def test_a_search_that_has_ended_starts_no_ray(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor could it: what it prints, and its exit code, are those of the search and of its replay."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SEMRAY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    (tmp_path / "train.py").write_text("")
    (tmp_path / "rates.yaml").write_text(STUDY)
    study, ledger = read_study(tmp_path / "rates.yaml"), Ledger(tmp_path / "ledger")
    (asked,) = selections(study, gather_facts(study))
    found, _ = go(asked, ledger, by_rate)
    assert go(asked, ledger, by_rate)[0] == found
    command = [sys.executable, "-c", WITHOUT_RAY, "search", "rates.yaml", "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [as_json(found)]
    assert "search of slow: nothing is left to run" in done.stderr
    assert "next    semray confirm rates.yaml" in done.stderr


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> tuple[Searched, Ledger]:
    """Two lanes and a budget, which the points that are under way share out by who is faster."""
    folder = tmp_path_factory.mktemp("ended")
    ledger = Ledger(folder / "ledger")
    return go(selection(folder, lanes=2, trials=5, budget=8), ledger, slowly)[0], ledger


def test_a_search_whose_budget_is_spent_has_ended_whatever_its_lanes(ended: tuple[Searched, Ledger]) -> None:
    found, ledger = ended
    assert found.spent == 8
    assert has_ended(found, ledger)


@pytest.mark.parametrize("more", [{"trials": 6}, {"budget": 9}, {"budget": None}])
def test_a_longer_search_has_not_ended(ended: tuple[Searched, Ledger], more: dict[str, int | None]) -> None:
    found, ledger = ended
    longer = replace(found.selection, search=replace(found.selection.search, **more))  # type: ignore[arg-type]
    assert longer.id == found.selection.id
    assert not has_ended(searched(longer, ledger), ledger)


def test_a_search_that_lacks_a_run_it_had_has_not_ended(ended: tuple[Searched, Ledger], tmp_path: Path) -> None:
    found, ledger = ended
    ledger = Ledger(shutil.copytree(ledger.url, tmp_path / "ledger"))
    assert has_ended(searched(found.selection, ledger), ledger)
    ledger.set_aside(found.selection.run(0, found.trials[0].point, 100).id)
    assert not has_ended(searched(found.selection, ledger), ledger)


def failing(job: Job, world: World) -> Iterator[Result]:
    for run in job.runs:
        if run.settings["hn_margin"] > 0.3:
            raise RuntimeError("loss is nan")
        yield from scored(Job(runs=(run,)), world)


def without_a_figure(job: Job, world: World) -> Iterator[Result]:
    for run in job.runs:
        yield from results(
            run, [Score(metric=MRR, value=float("nan" if run.settings["hn_margin"] > 0.3 else 0.5))]
        )


def test_what_failed_is_tried_again_and_what_has_no_figure_is_not(tmp_path: Path) -> None:
    """A failed run may come off when the search is called again; a finished one stays as it is."""
    chosen = selection(tmp_path, sampler="grid", dimensions={"hn_margin": [0.2, 0.4]}, race=0.0, seeds=(100,))
    for body, is_over in ((failing, False), (without_a_figure, True)):
        ledger = Ledger(tmp_path / body.__name__)
        found, _ = go(chosen, ledger, body)
        assert [len(trial.failed) for trial in found.trials] == [0, 1]
        assert has_ended(found, ledger) is is_over
    ledger = Ledger(tmp_path / failing.__name__)
    mended, _ = go(chosen, ledger, scored)
    assert [len(trial.scores) for trial in mended.trials] == [1, 1]
    assert has_ended(mended, ledger)
