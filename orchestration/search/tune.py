"""Ray Tune's part of a search: Optuna suggests points, a trial asks for its seeds one after another.

A trial computes nothing and reserves no CPU: lanes execute its runs, so trials never keep lanes from starting. No
state of Tune or Optuna is kept. A search that goes on suggests the points in the ledger again; their finished runs
answer at once, which gives the sampler its history back. Each suggestion is drawn with a seed of its trial, so it
depends on the history alone.
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

from orchestration.search.asking import ask_for_seeds, objective_name
from search_spaces.space import Dimension, default_point, drawn, grid

if TYPE_CHECKING:
    from optuna import Study as OptunaStudy
    from optuna.trial import FrozenTrial

    from orchestration.search.standings import Standings
    from orchestration.search.trials import Selection
    from orchestration.study.blocks import Search

QUIET = {
    "RAY_AIR_NEW_OUTPUT": "0",  # Tune's progress tables go to stdout, as do our results
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    "TUNE_DISABLE_STRICT_METRIC_CHECKING": "1",  # a point whose first seed failed reports no score
    "TUNE_WARN_INSUFFICENT_RESOURCE_THRESHOLD_S": "-1",
}
SHARE = 0.001  # of the driver's node; reserved by each trial and by the exchange
STOP_SECONDS = 30.0  # Tune has so long to end its trials
TRIES = 3  # restarts of a trial whose process dies; it only asks again


class Searching:
    """Runs Tune in a thread, beside the driver that serves the lanes."""

    def __init__(self, board: Standings, exchange: Any, *, at_a_time: int) -> None:
        self._board, self._exchange, self._at_a_time = board, exchange, at_a_time
        self._thread = threading.Thread(target=self._run, name="tune", daemon=True)
        self.error: Exception | None = None
        self._thread.start()

    def stop(self) -> None:
        """Suggest no more points, and wait for Tune to end, at most STOP_SECONDS."""
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
    """A resource that only the driver's node has, so that an actor with it dies with no other node."""
    return {f"node:{ray.util.get_node_ip_address()}": SHARE}


def tuner(board: Standings, exchange: Any, folder: str, at_a_time: int) -> tune.Tuner:
    """A Tuner over the points of a search, the arm itself first."""
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
            stop=StopWhenSet(board.over),
            failure_config=tune.FailureConfig(max_failures=TRIES),
        ),
    )


def tried_first(selection: Selection, known: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Points that are tried before the sampler's: those in the ledger, the arm itself, a whole grid if asked."""
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
    """Optuna behind Tune's interface. suggest(number, point) is called for each point."""

    def define(trial: Any) -> dict[str, Any]:
        suggest(trial.number, drawn(selection.space, selection.settings, partial(value_of, trial)))
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


def value_of(trial: Any, dimension: Dimension) -> Any:
    """The value of one dimension that an Optuna trial suggests."""
    if dimension.choices:
        return trial.suggest_categorical(dimension.name, dimension.choices)
    ask = trial.suggest_int if dimension.whole else trial.suggest_float
    return ask(dimension.name, dimension.low, dimension.high, log=dimension.log)


class Stateless:
    """Pickles without its state. Tune pickles its parts to resume from them; our searches resume from the ledger.

    The state may have locks and connections, which pickle refuses.
    """

    def __getstate__(self) -> dict[str, Any]:
        return {}


class StatelessOptuna(Stateless, OptunaSearch):
    """Tune's OptunaSearch, without any saved state."""

    def save(self, checkpoint_path: str) -> None:
        """Save nothing."""


class Reseeded(BaseSampler):
    """A sampler that is created anew for each trial, with a seed from that trial's number.

    So its draws depend on the finished trials and the number alone. Points that a resumed search suggests again,
    without drawing them, change no later draw.
    """

    def __init__(self, search: Search) -> None:
        self._search = search
        self._sampler: BaseSampler = RandomSampler()

    def before_trial(self, study: OptunaStudy, trial: FrozenTrial) -> None:
        seed = (self._search.sampler_seed * 1_000_003 + trial.number) % 2**32
        if self._search.sampler == "random":
            self._sampler = RandomSampler(seed=seed)
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            self._sampler = TPESampler(
                seed=seed, n_startup_trials=self._search.startup, multivariate=True, group=True, constant_liar=True
            )

    def infer_relative_search_space(self, study: OptunaStudy, trial: FrozenTrial) -> dict[str, Any]:
        return self._sampler.infer_relative_search_space(study, trial)

    def sample_relative(self, study: OptunaStudy, trial: FrozenTrial, search_space: Any) -> dict[str, Any]:
        return self._sampler.sample_relative(study, trial, search_space)

    def sample_independent(self, study: OptunaStudy, trial: FrozenTrial, name: str, distribution: Any) -> Any:
        return self._sampler.sample_independent(study, trial, name, distribution)


class Silent(TrialProgressCallback):
    """Replaces the callback that Tune adds, which prints some trials on stdout at any verbosity."""

    def log_result(self, trial: Any, result: dict[str, Any], error: bool = False) -> None:
        """Print nothing."""

    def on_trial_complete(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        """Print nothing."""


class Race(Stateless, FIFOScheduler):
    """Stops a point whose next seed is not worth its run, as the standings decide."""

    def __init__(self, board: Standings) -> None:
        super().__init__()
        self._board = board

    def on_trial_result(self, tune_controller: Any, trial: Any, result: dict[str, Any]) -> str:
        return self.CONTINUE if self._board.goes_on(trial.config["number"]) else self.STOP


class StopWhenSet(Stateless, Stopper):
    """Ends a search once the event is set."""

    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        return False

    def stop_all(self) -> bool:
        return self._stop.is_set()
