"""The part of a search that Ray Tune does: Optuna suggests points, a trial asks for its seeds one after another.

A trial computes nothing and holds no CPU: what it asks for is done in lanes, so that trials can never keep lanes
from starting. Nothing of Tune's or Optuna's own state is kept: a search that goes on suggests the points that the
ledger knows once more, their finished runs answer at once, and the sampler has its history back. Every suggestion
is drawn with a seed of its own, so that it depends on the history and on nothing else.
"""

from __future__ import annotations

import logging
import os
import tempfile
import threading
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import optuna
import ray
from optuna.samplers import BaseSampler, RandomSampler, TPESampler
from ray import tune
from ray.tune.progress_reporter import TrialProgressCallback
from ray.tune.schedulers import FIFOScheduler
from ray.tune.search.optuna import OptunaSearch
from ray.tune.stopper import Stopper

from orchestration.search.standings import Standings, objective_name
from search_spaces.space import Dimension, default_point, drawn, grid

if TYPE_CHECKING:
    from optuna import Study as OptunaStudy
    from optuna.trial import FrozenTrial

    from orchestration.search.trials import Selection
    from orchestration.study.blocks import Search

QUIET = {
    "RAY_AIR_NEW_OUTPUT": "0",  # its progress tables go to stdout, where results are
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    "TUNE_DISABLE_STRICT_METRIC_CHECKING": "1",  # a point whose first seed failed reports no score
    "TUNE_WARN_INSUFFICENT_RESOURCE_THRESHOLD_S": "-1",
}
SHARE = 0.001  # of the driver's node: what a trial, and the exchange, reserve there
STOP_SECONDS = 30.0  # for Tune to end its trials
TRIES = 3  # of a trial whose process dies: it only asks again


class Searching:
    """Tune at work in a thread of its own, beside the driver that serves the lanes."""

    def __init__(self, board: Standings, exchange: Any, *, at_a_time: int) -> None:
        self._board, self._exchange, self._at_a_time = board, exchange, at_a_time
        self._thread = threading.Thread(target=self._run, name="tune", daemon=True)
        self.error: Exception | None = None
        self._thread.start()

    def stop(self) -> None:
        """Suggest no more points, and wait for the end, but not for a trial that hangs."""
        self._board.over.set()
        self._thread.join(STOP_SECONDS)

    def _run(self) -> None:
        try:
            with tempfile.TemporaryDirectory(prefix="semray-tune-") as folder:
                tuner(self._board, self._exchange, folder, self._at_a_time).fit()
        except Exception as error:  # noqa: BLE001  the driver raises it again
            self.error = error
        finally:
            self._exchange.close.remote()


def driver_node() -> dict[str, float]:
    """A resource of the driver's own node. What asks for it does not go with any other node."""
    return {f"node:{ray.util.get_node_ip_address()}": SHARE}


def tuner(board: Standings, exchange: Any, folder: str, at_a_time: int) -> tune.Tuner:
    """Tune over the points of a search, the arm itself first."""
    os.environ.update(QUIET)
    logging.getLogger("ray.tune").setLevel(logging.ERROR)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    selection = board.selection
    first = tried_first(selection, board.points.suggested())
    here = {"CPU": 0, **driver_node()}
    trial = partial(ask_for_seeds, exchange=exchange, seeds=len(selection.seeds))
    return tune.Tuner(
        tune.with_resources(trial, tune.PlacementGroupFactory([here])),
        tune_config=tune.TuneConfig(
            search_alg=suggesting(selection, first, board.suggest),
            scheduler=Race(board),
            num_samples=len(first) if selection.search.sampler == "grid" else selection.trials,
            max_concurrent_trials=at_a_time,
            reuse_actors=True,
        ),
        run_config=tune.RunConfig(
            storage_path=folder,
            verbose=0,
            callbacks=[Silent()],
            stop=Asked(board.over),
            failure_config=tune.FailureConfig(max_failures=TRIES),
        ),
    )


def ask_for_seeds(config: dict[str, Any], *, exchange: Any, seeds: int) -> None:
    """A trial: one seed after the other, until the point has all, is stopped after a report, or failed at one."""
    for place in range(seeds):
        report = ray.get(exchange.ask.remote(config["number"], place))
        if report is None or objective_name(0) not in report:
            return
        tune.report(report)
        if report["given_up"]:
            return


def tried_first(selection: Selection, known: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """What is tried before the sampler is asked: what was tried already, the arm itself, a whole grid."""
    start = default_point(selection.space, selection.settings)
    assert start is not None, "checked with the study"
    wanted = [start]
    if selection.search.sampler == "grid":
        wanted += [point for point in grid(selection.space, selection.settings) if point != start]
        wanted = wanted[: selection.trials]
    return [*known, *wanted[len(known) :]][: selection.trials]


def suggesting(
    selection: Selection, first: Sequence[dict[str, Any]], suggest: Callable[[int, dict[str, Any]], None]
) -> OptunaSearch:
    """Optuna behind Tune's interface. suggest(number, point) is told of every point."""

    def define(trial: Any) -> dict[str, Any]:
        suggest(trial.number, drawn(selection.space, selection.settings, partial(asked_of, trial)))
        return {"number": trial.number}

    names = [objective_name(index) for index in range(len(selection.objectives))]
    modes: list[str] = [objective.mode for objective in selection.objectives]
    several = len(names) > 1
    return StatelessOptuna(
        define,
        metric=names if several else names[0],
        mode=modes if several else modes[0],
        sampler=Reseeded(selection.search),
        points_to_evaluate=list(first),
    )


def asked_of(trial: Any, dimension: Dimension) -> Any:
    """A value of one dimension, asked of an Optuna trial."""
    if dimension.choices:
        return trial.suggest_categorical(dimension.name, dimension.choices)
    ask = trial.suggest_int if dimension.whole else trial.suggest_float
    return ask(dimension.name, dimension.low, dimension.high, log=dimension.log)


class Unkept:
    """Tune pickles what it is given, to go on from there. Here a search goes on from the ledger.

    What holds a lock or a connection could not be pickled.
    """

    def __getstate__(self) -> dict[str, Any]:
        return {}


class StatelessOptuna(Unkept, OptunaSearch):
    """Tune's Optuna, of whose state nothing is kept."""

    def save(self, checkpoint_path: str) -> None:
        """Nothing."""


class Reseeded(BaseSampler):
    """A sampler that is made anew for every trial, with a seed of that trial's own.

    What it draws depends on the finished trials and the trial's number, not on what was drawn before it: points
    that are suggested a second time, without being drawn, leave no trace.
    """

    def __init__(self, search: Search) -> None:
        self._search = search
        self._now: BaseSampler = RandomSampler()

    def before_trial(self, study: OptunaStudy, trial: FrozenTrial) -> None:
        seed = (self._search.sampler_seed * 1_000_003 + trial.number) % 2**32
        if self._search.sampler == "random":
            self._now = RandomSampler(seed=seed)
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            self._now = TPESampler(
                seed=seed, n_startup_trials=self._search.startup, multivariate=True, group=True, constant_liar=True
            )

    def infer_relative_search_space(self, study: OptunaStudy, trial: FrozenTrial) -> dict[str, Any]:
        return self._now.infer_relative_search_space(study, trial)

    def sample_relative(self, study: OptunaStudy, trial: FrozenTrial, search_space: Any) -> dict[str, Any]:
        return self._now.sample_relative(study, trial, search_space)

    def sample_independent(self, study: OptunaStudy, trial: FrozenTrial, name: str, distribution: Any) -> Any:
        return self._now.sample_independent(study, trial, name, distribution)


class Silent(TrialProgressCallback):
    """In place of the callback that Tune adds, which prints some trials on stdout whatever the verbosity."""

    def log_result(self, trial: Any, result: dict[str, Any], error: bool = False) -> None:
        """Nothing."""

    def on_trial_complete(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        """Nothing."""


class Race(Unkept, FIFOScheduler):
    """Stops a point whose next seed is not worth its run."""

    def __init__(self, board: Standings) -> None:
        super().__init__()
        self._board = board

    def on_trial_result(self, tune_controller: Any, trial: Any, result: dict[str, Any]) -> str:
        return self.CONTINUE if self._board.goes_on(trial.config["number"]) else self.STOP


class Asked(Unkept, Stopper):
    """Ends a search from outside."""

    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        return False

    def stop_all(self) -> bool:
        return self._stop.is_set()
