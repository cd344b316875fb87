"""A search as an Optuna study: for its dashboard, and for its plots."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.trial import FrozenTrial, TrialState, create_trial

if TYPE_CHECKING:
    from optuna.storages import BaseStorage

    from orchestration.search.trials import Searched, Trial
    from search_spaces.space import Dimension


def export(searched: Searched, path: Path) -> Path:
    """Write the search as an Optuna journal that `optuna-dashboard PATH` shows, replacing any file there."""
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    optuna_study(searched, JournalStorage(JournalFileBackend(str(path))))
    return path


def optuna_study(searched: Searched, storage: BaseStorage | None = None) -> optuna.Study:
    """The search as an Optuna study: each point that was run is a finished, pruned (stopped) or failed trial.

    A finished trial's value is its mean over seeds. The intermediate values are the means over the first 1, 2, ...
    seeds; the last one of a pruned trial includes the score at which its run was stopped.
    """
    selection = searched.selection
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(
        storage=storage,
        study_name=f"{selection.study.name} {selection.arm}",
        directions=["maximize" if sign > 0 else "minimize" for sign in selection.signs],
    )
    with _without_warnings():
        study.set_metric_names([objective.metric for objective in selection.objectives])
    distributions = {dimension.name: distribution(dimension) for dimension in selection.space}
    for trial in searched.trials:
        if trial.seeds:
            study.add_trial(_frozen(trial, distributions, len(selection.objectives)))
    return study


def distribution(dimension: Dimension) -> BaseDistribution:
    """A dimension in Optuna's terms."""
    if dimension.choices:
        return CategoricalDistribution(dimension.choices)
    assert dimension.low is not None
    assert dimension.high is not None
    if dimension.whole:
        return IntDistribution(int(dimension.low), int(dimension.high), dimension.log)
    return FloatDistribution(dimension.low, dimension.high, dimension.log)


def _frozen(trial: Trial, distributions: dict[str, BaseDistribution], objectives: int) -> FrozenTrial:
    means = [total / count for count, total in enumerate(accumulate(trial.values()), 1)]
    means += [trial.reached()] if trial.stopped else []
    state = TrialState.FAIL if trial.failed else TrialState.PRUNED if trial.stopped else TrialState.COMPLETE
    return create_trial(
        state=state,
        values=[trial.mean(index) for index in range(objectives)] if state == TrialState.COMPLETE else None,
        params=dict(trial.point),
        distributions={name: distributions[name] for name in trial.point},
        intermediate_values={} if objectives > 1 else dict(enumerate(means, 1)),
        user_attrs={"point": trial.number, "seeds": len(trial.scores), "failed": dict(trial.failed)},
    )


def plots(searched: Searched) -> dict[str, bytes]:
    """Plots of the settings' importance and of parallel coordinates: file name -> PNG; without those that fail."""
    import matplotlib as mpl

    mpl.use("Agg")
    from optuna.visualization import matplotlib as drawn

    study, found = optuna_study(searched), {}
    several = len(searched.selection.objectives) > 1
    target: dict[str, Any] = {
        "target": (lambda trial: trial.values[0]) if several else None,
        "target_name": searched.selection.objectives[0].metric,
    }
    with _without_warnings(), mpl.rc_context():  # Optuna changes the global style
        for name, draw in (
            ("importance.png", drawn.plot_param_importances),
            ("parallel_coordinates.png", drawn.plot_parallel_coordinate),
        ):
            try:
                found[name] = _png(draw(study, **target))
            except (ValueError, RuntimeError):  # fewer than two points, or all of one score
                continue
    return found


def _png(axes: Any) -> bytes:
    import matplotlib.pyplot as plt

    figure, out = axes.figure, io.BytesIO()
    figure.set_size_inches(11, 6)
    figure.savefig(out, format="png", dpi=110, bbox_inches="tight")
    plt.close(figure)
    return out.getvalue()


@contextmanager
def _without_warnings() -> Iterator[None]:
    """A context without Optuna's warnings that its plots and metric names are experimental."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
