"""Searches on a real Ray: what is asked for, what is raced out, and that a search goes on as if never killed."""

from __future__ import annotations

import io
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import optuna
import psutil
import pytest

from evaluators.metrics.scores import Score
from orchestration.lanes.cluster import connected
from orchestration.lanes.events import Event, RunFinished, RunMoved
from orchestration.ledger.ledger import Ledger
from orchestration.plan.plan import Facts
from orchestration.reading.read_study import read_study
from orchestration.search.optuna_view import export, plots
from orchestration.search.shown import SearchWatch, as_json, mean_words, table
from orchestration.search.trials import Searched, Selection, Trial, best_of, front_of, selections
from orchestration.study.blocks import StopEarly
from orchestration.study.errors import StudyError
from orchestration.study.run import Job, Result
from tests import results as made_up
from tests import searching
from tests.results import results
from tests.searching import MRR, climbing, go, scored, selection
from trainers.engine.world import Progress, World

pytestmark = pytest.mark.timeout(240)
ROOT = Path(__file__).resolve().parents[3]
STACKED = """\
question: Which gamma?
family: difficulty
backbones: [tiny]
seeds: 4
data: {tasks: [stsb]}
arms:
  baseline: {form: baseline}
  lex: {form: pair_lex}
evaluate: [similarity]
search:
  space: difficulty
  arms: [lex]
  dimensions: {gamma: all}
  trials: 12
  startup: 4
  objective: {metric: dev/stsb/spearman, mode: max}
  seeds: [100, 101]
  race: 0
  at_once: 4
resources: {lanes: 1, retries: 0}
"""


@pytest.fixture(scope="module", autouse=True)
def ray_of_two() -> Iterator[None]:
    import ray

    with connected(2):
        ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
        ray.cloudpickle.register_pickle_by_value(searching)
        ray.cloudpickle.register_pickle_by_value(made_up)
        yield


def fragile(job: Job, world: World) -> Iterator[Result]:
    """Diverges beyond a margin of 0.3, at the second seed."""
    for run in job.runs:
        if run.settings["hn_margin"] > 0.3 and run.seed == 101:
            raise RuntimeError("loss is nan")
        yield from scored(Job(runs=(run,)), world)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Searched, list[tuple[Trial, str]], Ledger]:
    folder = tmp_path_factory.mktemp("search")
    ledger = Ledger(folder / "ledger")
    return *go(selection(folder), ledger), ledger


Done = tuple[Searched, list[tuple[Trial, str]], Ledger]


def test_a_search_finds_what_is_there_and_spends_seeds_where_they_matter(done: Done) -> None:
    found, told, ledger = done
    assert len(found.trials) == 12
    assert found.trials[0].point == {"temperature": 0.05, "hn_margin": 0.2}  # the arm's own settings
    assert found.best is not None
    assert len(found.best.scores) == 3
    assert found.best.mean() > found.trials[0].mean()
    stopped = [trial.number for trial, words in told if words]
    assert stopped
    assert all(len(found.trials[number].scores) < 3 for number in stopped)
    assert found.spent == sum(len(trial.scores) for trial in found.trials) == len(ledger.ids()) < 36


def test_no_run_of_a_search_keeps_its_model_or_looks_at_test_data(done: Done) -> None:
    found, _, ledger = done
    for run_id in ledger.ids():
        assert ledger.model_of(run_id) is None
        assert ledger.training(run_id).run.seed in found.selection.seeds
    scores = ledger.entries() - ledger.ids()
    assert {task for entry in scores for task in ledger.scores(entry).run.tasks} == {"dev/t2d"}


def test_a_longer_search_goes_on_from_the_shorter_one(done: Done, tmp_path: Path) -> None:
    """Nothing is done twice, and the sampler comes to the points it would have come to anyway."""
    found, _, _ = done
    ledger = Ledger(tmp_path / "ledger")
    go(selection(tmp_path, trials=7), ledger)
    before = ledger.ids()
    longer, _ = go(selection(tmp_path), ledger)
    assert longer.trials == found.trials
    assert {ledger.training(run_id).attempt for run_id in before} == {1}


def test_a_search_that_is_killed_ends_with_the_same_table(done: Done, tmp_path: Path) -> None:
    """kill -9 of the driver in the middle; the same command again makes the same suggestions, and no run twice."""
    command = [sys.executable, "-m", "tests.searching", str(tmp_path)]
    process = subprocess.Popen(command, cwd=ROOT)
    ledger, deadline = Ledger(tmp_path / "ledger"), time.monotonic() + 180
    while len(ledger.ids()) < 9:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    left = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    process.wait()
    for one in left:  # its Ray would find out in a minute that it is gone
        with suppress(psutil.NoSuchProcess):
            one.kill()
    before = ledger.ids()
    assert len(before) < done[0].spent
    again, _ = go(selection(tmp_path), ledger)
    assert again.trials == done[0].trials
    assert ledger.ids() >= before
    assert all(ledger.training(run_id).attempt == 1 for run_id in before)


def test_a_failed_seed_ends_its_point_and_is_shown(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger")
    found, _ = go(selection(tmp_path, race=0.0, sampler="random", trials=8), ledger, fragile)
    broken = [trial for trial in found.trials if trial.failed]
    assert broken
    for trial in broken:
        assert trial.point["hn_margin"] > 0.3
        assert (list(trial.scores), list(trial.failed)) == ([100], [101])
    assert found.best is not None
    assert found.best.point["hn_margin"] <= 0.3
    assert all(len(trial.scores) == 3 for trial in found.trials if not trial.failed)
    assert "loss is nan" in str(as_json(found)["points"][broken[0].number])


def impatient(chosen: Selection, *, retries: int) -> Selection:
    """The same search, whose runs may stand still for three seconds."""
    resources = replace(chosen.study.resources, stall_minutes=3 / 60, retries=retries)
    return replace(chosen, study=replace(chosen.study, resources=resources))


def test_a_run_of_a_search_that_stands_still_is_ended_and_said(tmp_path: Path) -> None:
    """It is warned of, ended and tried again. Where it stands still again, its point failed; the search goes on."""

    def still(job: Job, world: World) -> Iterator[Result]:
        (run,) = job.runs
        once = tmp_path / f"{run.id} stood still"
        if run.seed == 101 and (run.settings["hn_margin"] > 0.3 or not once.exists()):
            once.touch()
            time.sleep(3600)
        yield from scored(job, world)

    said = io.StringIO()
    wanted = {"hn_margin": [0.2, 0.4]}
    chosen = selection(tmp_path, sampler="grid", dimensions=wanted, race=0.0, seeds=(100, 101))
    ledger = Ledger(tmp_path / "ledger")
    found, _ = go(impatient(chosen, retries=1), ledger, still, SearchWatch(said).event)
    message = "its lane stood still for 3 s (`resources.stall_minutes`: 0.05); last heard: before its first word"
    fine, broken = found.trials
    assert (list(fine.scores), fine.failed) == ([100, 101], {})
    assert (list(broken.scores), broken.failed) == ([100], {101: message})
    assert found.best is fine
    lines = said.getvalue().splitlines()
    assert sum(line.endswith(f"seed 101: {message}; trying again") for line in lines) == 2
    assert sum(line.endswith(f"seed 101: {message}") for line in lines) == 1
    assert sum("nothing new for " in line for line in lines) == 3
    assert f"{message}" in str(as_json(found))
    assert {ledger.training(run_id).run.seed: ledger.training(run_id).attempt for run_id in ledger.ids()} == {
        100: 1,
        101: 2,
    }


@pytest.mark.parametrize(
    ("deed", "patience", "words"),
    [
        (psutil.Process.suspend, 8.0, "the search asked for no run for 8 s, with none under way"),
        (psutil.Process.kill, 120.0, "the process between the search's points and its lanes died"),
    ],
)
def test_a_search_that_asks_for_nothing_more_is_ended(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    deed: Callable[[psutil.Process], None],
    patience: float,
    words: str,
) -> None:
    """Who hands over what points ask for hangs for good or dies: nothing is under way, and nothing will be."""
    monkeypatch.setattr("orchestration.lanes.pooled.pool.ASKING_SECONDS", patience)
    monkeypatch.setattr("orchestration.search.tune.STOP_SECONDS", 1.0)
    done: list[psutil.Process] = []

    def hear(event: Event) -> None:
        if isinstance(event, RunFinished):
            of_ray = psutil.Process().children(recursive=True)
            done.extend(process for process in of_ray if "Exchange" in " ".join(process.cmdline()))
            for process in done:
                deed(process)

    try:
        with pytest.raises(StudyError, match=f"{words}.*\n  accepted: the same command once more"):
            go(impatient(selection(tmp_path, race=0.0), retries=0), Ledger(tmp_path / "ledger"), on_event=hear)
    finally:
        for process in done:
            with suppress(psutil.NoSuchProcess):
                process.kill()
    assert done


def test_a_budget_ends_a_search(tmp_path: Path) -> None:
    found, _ = go(selection(tmp_path, budget=7, race=0.0), Ledger(tmp_path / "ledger"))
    assert found.spent == 7
    assert [len(trial.scores) for trial in found.trials] == [3, 3, 1]
    assert "3 points, 7 of 7 runs" in table(found)


def test_a_point_that_the_budget_left_without_a_run_is_no_point(tmp_path: Path) -> None:
    """It is written down before it asks for its first seed, and waits there for a larger budget."""
    chosen, ledger = selection(tmp_path, budget=6, race=0.0), Ledger(tmp_path / "ledger")
    found, _ = go(chosen, ledger)
    assert [len(trial.scores) for trial in found.trials] == [3, 3]
    assert len(ledger.points(chosen.study.name, chosen.id).suggested()) == 3
    assert [point["number"] for point in as_json(found)["points"]] == [0, 1]


def test_two_trials_at_a_time_share_two_cores(tmp_path: Path) -> None:
    """Trials reserve no core, so both lanes start though both cores are theirs alone."""
    found, _ = go(selection(tmp_path, lanes=2, trials=6, race=0.0), Ledger(tmp_path / "ledger"))
    assert [len(trial.scores) for trial in found.trials] == [3] * 6


def test_a_grid_is_tried_whole_and_each_point_once(tmp_path: Path) -> None:
    wanted = {"temperature": [0.03, 0.05], "hn_margin": [0.2, 0.3]}
    chosen = selection(tmp_path, sampler="grid", dimensions=wanted, race=0.0, trials=99)
    found, _ = go(chosen, Ledger(tmp_path / "ledger"))
    points = [tuple(trial.point.values()) for trial in found.trials]
    assert points[0] == (0.05, 0.2)
    assert sorted(points) == [(0.03, 0.2), (0.03, 0.3), (0.05, 0.2), (0.05, 0.3)]
    assert found.best is not None
    assert found.best.point == {"temperature": 0.03, "hn_margin": 0.3}


EARLY = StopEarly(rule="median", at=(2, 4, 6), least=2)


@pytest.fixture(scope="module")
def early(tmp_path_factory: pytest.TempPathFactory) -> Done:
    """A search whose runs are all over before anybody looks at how they went."""
    folder = tmp_path_factory.mktemp("early")
    ledger = Ledger(folder / "ledger")
    return *go(selection(folder, stop_early=EARLY, race=0.0), ledger, climbing), ledger


def test_points_that_lag_behind_are_stopped_early(early: Done) -> None:
    found, told, _ = early
    stopped = [trial for trial in found.trials if trial.stopped]
    assert 2 <= len(stopped) < 12
    assert all(len(trial.seeds) == 3 for trial in found.trials if not trial.stopped)
    for trial in stopped:
        ((seed, (step, score)),) = trial.stopped.items()
        assert trial.seeds[-1] == seed  # no seed after it
        assert step in EARLY.at
        assert f"seed {seed} stopped at step {step}: {score:.4f}" in mean_words(trial)
    assert found.best is not None
    assert not found.best.stopped
    assert found.best.mean() > found.trials[0].mean()
    assert found.spent == sum(len(trial.seeds) for trial in found.trials)
    assert any("stopped at step" in mean_words(trial) for trial, _ in told)
    assert set(as_json(found)["points"][stopped[0].number]["stopped"]) == {str(s) for s in stopped[0].stopped}


def test_a_run_that_is_stopped_in_its_middle_is_not_finished(early: Done, tmp_path: Path) -> None:
    """Where the driver, who asks once a second, is in time, the lane drops the run. The table is the same."""
    found, _, _ = early
    doomed = {(t.number, seed): step for t in found.trials for seed, (step, _) in t.stopped.items()}
    chosen = selection(tmp_path, stop_early=EARLY, race=0.0)
    steps = {chosen.run(n, found.trials[n].point, seed).id: step for (n, seed), step in doomed.items()}

    def halting(job: Job, world: World) -> Iterator[Result]:
        # longer and longer, for a driver on a full machine
        yield from climbing(job, world, lambda run, step: 0.7 * max(0, step + 1 - steps.get(run.id, 99)))

    ledger = Ledger(tmp_path / "ledger")
    again, _ = go(chosen, ledger, halting)
    assert again.trials == found.trials
    assert not ledger.ids() & set(steps)
    assert not ledger.failed()


@pytest.mark.long
def test_a_search_that_stops_early_goes_on_as_it_was(early: Done, tmp_path: Path) -> None:
    found, _, _ = early
    ledger = Ledger(tmp_path / "ledger")
    go(selection(tmp_path, stop_early=EARLY, race=0.0, trials=7), ledger, climbing)
    before = ledger.ids()
    again, _ = go(selection(tmp_path, stop_early=EARLY, race=0.0), ledger, climbing)
    assert again.trials == found.trials
    assert {ledger.training(run_id).attempt for run_id in before} == {1}


@pytest.mark.long
def test_early_stopping_composes_with_racing(tmp_path: Path) -> None:
    found, told = go(selection(tmp_path, stop_early=EARLY), Ledger(tmp_path / "ledger"), climbing)
    assert any(trial.stopped for trial in found.trials)
    assert any(words for _, words in told)
    assert found.best is not None
    assert len(found.best.scores) == 3


def test_stopped_points_are_pruned_trials_and_are_told_in_mlflow(early: Done, tmp_path: Path) -> None:
    from mlflow import MlflowClient

    from orchestration.search.optuna_view import optuna_study
    from orchestration.tracking.searches import track

    found, _, ledger = early
    pruned = [trial for trial in optuna_study(found).trials if trial.state == optuna.trial.TrialState.PRUNED]
    assert [trial.user_attrs["point"] for trial in pruned] == [t.number for t in found.trials if t.stopped]
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    track([found], ledger, uri)
    client = MlflowClient(tracking_uri=uri)
    (experiment,) = (one for one in client.search_experiments() if one.name == "margins")
    shown = client.search_runs([experiment.experiment_id], "metrics.stopped_seeds = 1")
    assert {int(run.data.tags["point"]) for run in shown} == {t.number for t in found.trials if t.stopped}
    assert all("at step" in run.data.tags["stopped"] for run in shown)


def test_points_of_a_stacked_family_train_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four points at once in one lane: as a rule four runs a job, and every point gets all its seeds."""
    monkeypatch.setattr("orchestration.search.drive.PATIENCE_SECONDS", 60.0)  # however full the machine is
    sizes = tmp_path / "sizes"

    def counted(job: Job, world: World) -> Iterator[Result]:
        with sizes.open("a") as file:
            file.write(f"{len(job.runs)}\n")
        for run in job.runs:
            worth = 1 - (run.settings["gamma"] - 0.5) ** 2 + (run.seed or 0) / 1000
            yield from results(run, [Score(metric="dev/stsb/spearman", value=worth)])

    (tmp_path / "stacked.yaml").write_text(STACKED)
    study = read_study(tmp_path / "stacked.yaml")
    (chosen,) = selections(
        study, Facts(backbones={"tiny": "b"}, corpus="c", tasks={"dev/similarity/stsb": "rows"}, precision="fp32")
    )
    found, _ = go(chosen, Ledger(tmp_path / "ledger"), counted)
    assert [len(trial.scores) for trial in found.trials] == [2] * 12
    jobs = [int(line) for line in sizes.read_text().split()]
    assert sum(jobs) == found.spent == 24
    assert max(jobs) == 4
    assert len(jobs) <= 18  # 6 to 12 as a rule; on a busy machine points ask one after another


def test_several_objectives_leave_a_front(tmp_path: Path) -> None:
    from orchestration.study.blocks import Objective

    objectives = (Objective(metric=MRR, mode="max"), Objective(metric="dev/pair_auc", mode="max"))
    chosen = selection(tmp_path, objective=objectives, trials=8, seeds=(100,))
    found, _ = go(chosen, Ledger(tmp_path / "ledger"))
    front = found.front
    assert found.best in front
    best_auc = max(found.trials, key=lambda trial: trial.mean(1))
    assert best_auc in front
    assert "* no other point is better in every objective" in table(found)
    assert plots(found).keys() == {"importance.png", "parallel_coordinates.png"}


def test_what_a_run_does_not_yield_is_told(tmp_path: Path) -> None:
    from orchestration.study.blocks import Objective

    chosen = selection(tmp_path, objective=Objective(metric="dev/t2d/recall@1", mode="max"))
    with pytest.raises(StudyError, match=r"dev/t2d/recall@1.*\n.*dev/t2d/mrr"):
        go(chosen, Ledger(tmp_path / "ledger"))


def test_optuna_reads_the_journal(done: Done, tmp_path: Path) -> None:
    """What the dashboard opens: all points, with their settings and the mean over their seeds."""
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    found, _, _ = done
    for _ in range(2):  # written again, it is not written twice
        journal = export(found, tmp_path / "optuna.log")
    study = optuna.load_study(study_name=None, storage=JournalStorage(JournalFileBackend(str(journal))))
    assert [trial.params for trial in study.trials] == [trial.point for trial in found.trials]
    assert [trial.value for trial in study.trials] == [trial.mean() for trial in found.trials]
    assert found.best is not None
    assert study.metric_names == [MRR]


def test_the_table_shows_the_best_and_the_arm_itself(done: Done) -> None:
    found, _, _ = done
    shown = table(found)
    assert found.best is not None
    (best,) = (line for line in shown.splitlines() if line.endswith("best"))
    assert best.split()[0] == str(found.best.number)
    assert "the arm itself" in shown
    assert f"12 points, {found.spent} of 36 runs" in shown


def trial(number: int, *scores: tuple[float, ...], failed: bool = False) -> Trial:
    why = {9: "lost"} if failed else {}
    return Trial(number=number, point={}, scores=dict(enumerate(scores)), failed=why)


def test_the_best_has_all_seeds_and_none_failed() -> None:
    few, whole, lost = trial(0, (9.0,)), trial(1, (1.0,), (2.0,)), trial(2, (8.0,), (8.0,), failed=True)
    assert best_of([few, whole, lost], [1]) is whole
    assert best_of([lost], [1]) is None
    assert best_of([trial(3, (1.0,)), trial(4, (2.0,)), trial(5, (2.0,))], [1]).number == 4  # type: ignore[union-attr]
    assert best_of([trial(3, (1.0,)), trial(4, (2.0,))], [-1]).number == 3  # type: ignore[union-attr]


def test_the_front_by_hand() -> None:
    points = [trial(0, (1.0, 5.0)), trial(1, (2.0, 4.0)), trial(2, (1.5, 3.0)), trial(3, (3.0, 1.0))]
    assert [t.number for t in front_of(points, [1, 1])] == [0, 1, 3]
    assert [t.number for t in front_of(points, [1, -1])] == [3]


def test_mlflow_shows_the_search_and_every_point(done: Done, tmp_path: Path) -> None:
    """A parent with plots and table, a child a point with its settings and the running mean; twice is once."""
    from mlflow import MlflowClient

    from orchestration.tracking.searches import track

    found, _, ledger = done
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    assert any("13 new" in line for line in track([found], ledger, uri))
    assert any("up to date" in line for line in track([found], ledger, uri))
    client = MlflowClient(tracking_uri=uri)
    (experiment,) = (one for one in client.search_experiments() if one.name == "margins")
    runs = client.search_runs([experiment.experiment_id])
    (parent,) = (run for run in runs if run.data.tags["semray.kind"] == "search")
    best = found.best
    assert best is not None
    assert parent.data.metrics["best_point"] == best.number
    assert parent.data.metrics["runs_spent"] == found.spent
    files = {file.path for file in client.list_artifacts(parent.info.run_id)}
    assert files >= {"importance.png", "parallel_coordinates.png", "points.json", "search.json"}
    children = client.search_runs([experiment.experiment_id], f"tags.mlflow.parentRunId = '{parent.info.run_id}'")
    assert len(children) == 12
    (child,) = (run for run in children if run.data.tags.get("best") == "true")
    assert {name: float(value) for name, value in child.data.params.items()} == best.point
    curve = client.get_metric_history(child.info.run_id, f"mean/{MRR}")
    assert [point.step for point in curve] == [1, 2, 3]
    assert curve[-1].value == child.data.metrics[MRR] == pytest.approx(best.mean())
    assert child.data.metrics["seeds"] == 3


def test_looks_behind_the_last_step_of_a_run_are_told_once(tmp_path: Path) -> None:
    """A run that trains by epochs has as many steps as its rows give; the first that moves shows how many."""
    run = replace(selection(tmp_path).run(0, {}, 100), look_at=(2, 8, 40))
    stream = io.StringIO()
    watch = SearchWatch(stream)
    for progress in (
        Progress(step=0, steps=0, loss=0.0, doing="reading the corpus"),
        Progress(step=1, steps=8, loss=0.5),
        Progress(step=2, steps=8, loss=0.5),
    ):
        watch.event(RunMoved(run=run, progress=progress))
    (told,) = (line for line in stream.getvalue().splitlines() if "stop_early" in line)
    assert told == f"{run.label} has 8 steps: search.stop_early.at = 8, 40 stops no such run"
    stream = io.StringIO()
    SearchWatch(stream).event(RunMoved(run=run, progress=Progress(step=1, steps=41, loss=0.5)))
    assert "stop_early" not in stream.getvalue()


def test_a_line_on_a_long_run_says_its_step_or_what_it_does_before_the_first(tmp_path: Path) -> None:
    run = selection(tmp_path).run(0, {}, 100)
    for progress, said in (
        (Progress(step=0, steps=0, loss=0.0, doing="reading the corpus"), "reading the corpus"),
        (Progress(step=3, steps=8, loss=0.5), "step 3 of 8"),
    ):
        stream = io.StringIO()
        SearchWatch(stream).event(RunMoved(run=run, progress=progress))
        assert stream.getvalue() == f"{run.label}: {said}\n"
