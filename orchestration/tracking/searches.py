"""Writes a search to MLflow, with a parent run and a child for every point, and its files beside the reports."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING

from orchestration.ledger.beside import reports
from orchestration.ledger.place import at
from orchestration.search import shown
from orchestration.search.optuna_view import export, plots
from orchestration.study.names import slug, typed
from orchestration.tracking.entries import Entry, Planned, digest_of, metric_name
from orchestration.tracking.reaching import at_mlflow, default_uri
from orchestration.tracking.sync import Tree, mirror
from orchestration.tracking.write import TAG_LETTERS

if TYPE_CHECKING:
    from orchestration.ledger.ledger import Ledger
    from orchestration.search.trials import Searched, Trial

LAYOUT = 2  # as that of entries, for those of searches alone


def track(found: Sequence[Searched], ledger: Ledger, uri: str | None) -> list[str]:
    """Write journals and plots, and mirror the searches in MLflow; returns lines for the terminal."""
    asked, uri, lines = at_mlflow(uri), uri or default_uri(ledger.url), []
    for searched in found:
        selection = searched.selection
        folder = reports(ledger.url, selection.study.name) / f"search-{slug(selection.arm)}"
        journal = export(searched, folder / "optuna.log")
        for name, content in plots(searched).items():
            (folder / name).write_bytes(content)
        lines += [f"plots   {folder}", f"dashboard  optuna-dashboard {journal}"]
        lines.append(mirror(_tree(searched), uri).line)
    studies = dict.fromkeys(one.selection.study.path for one in found)
    return [*lines, *(f"look at it:  {typed('ui', path, *at(ledger.url), *asked)}" for path in studies)]


def _tree(searched: Searched) -> Tree:
    selection = searched.selection
    return Tree(
        experiment=selection.study.name,
        note=selection.study.question,
        parent=lambda links: _search(searched),
        children=lambda: [_trial(searched, trial) for trial in searched.trials if trial.seeds],
    )


def _search(searched: Searched) -> Planned:
    selection = searched.selection
    return Planned(
        key=f"search/{slug(selection.arm)}/{selection.id}",
        kind="search",
        digest=digest_of(LAYOUT, shown.as_json(searched)),
        build=partial(_search_entry, searched),
    )


def _search_entry(searched: Searched) -> Entry:
    selection, best = searched.selection, searched.best
    search = selection.search
    params = {
        "arm": selection.arm,
        "backbone": selection.backbone,
        "sampler": search.sampler,
        "sampler_seed": search.sampler_seed,
        "seeds": " ".join(map(str, selection.seeds)),
        "objective": ", ".join(f"{o.metric} ({o.mode})" for o in selection.objectives),
        "race": search.least_chance,
        **{f"space/{dimension.name}": dimension.words for dimension in selection.space},
    }
    latest = {
        "points": float(len(searched.trials)),
        "runs_spent": float(searched.spent),
        "best_point": math.nan if best is None else float(best.number),
    }
    names = [dimension.name for dimension in selection.space]
    head = ("point", *(o.metric for o in selection.objectives), "sd", "seeds", "failed", "stopped", *names)
    rows = [
        (
            trial.number,
            *(trial.mean(index) if trial.scores else None for index in range(len(selection.objectives))),
            trial.sd() if len(trial.scores) > 1 else None,
            len(trial.scores),
            len(trial.failed),
            len(trial.stopped),
            *(trial.point.get(name) for name in names),
        )
        for trial in shown.ranked(searched)
    ]
    return Entry(
        name=f"search {selection.arm}",
        tags={"study": selection.study.name, "family": selection.study.family, "arm": selection.arm},
        params={name: str(value) for name, value in params.items()},
        latest=latest | _means(searched, best, "best/"),
        latest_step=searched.spent,
        files={**plots(searched), "search.json": json.dumps(shown.as_json(searched), indent=1).encode()},
        tables={"points.json": (head, rows)},
    )


def _trial(searched: Searched, trial: Trial) -> Planned:
    selection = searched.selection
    scores = {str(seed): values for seed, values in trial.scores.items()}
    return Planned(
        key=f"trial/{slug(selection.arm)}/{selection.id}/{trial.number}",
        kind="trial",
        digest=digest_of(
            LAYOUT,
            trial.number,
            dict(trial.point),
            scores,
            sorted(trial.failed),
            *sorted(trial.stopped.items()),
            _is_best(searched, trial),
        ),
        build=partial(_trial_entry, searched, trial),
    )


def _trial_entry(searched: Searched, trial: Trial) -> Entry:
    """An entry with the point's settings as parameters and its running mean over seeds as a curve."""
    selection = searched.selection
    runs = [selection.run(trial.number, trial.point, seed).id for seed in trial.seeds]
    points = [
        (f"mean/{metric_name(objective.metric)}", total / count, count)
        for index, objective in enumerate(selection.objectives)
        for count, total in enumerate(accumulate(trial.values(index)), 1)
    ]
    tags = {
        "study": selection.study.name,
        "family": selection.study.family,
        "arm": selection.arm,
        "point": str(trial.number),
        "runs": " ".join(runs),
        "best": str(_is_best(searched, trial)).lower(),
        "failed": "; ".join(f"seed {seed}: {why}" for seed, why in trial.failed.items())[:TAG_LETTERS],
        "stopped": "; ".join(f"seed {seed}: at step {at}" for seed, (at, _) in trial.stopped.items()),
    }
    return Entry(
        name=f"{selection.arm}@{trial.number}",
        status="FAILED" if trial.failed else "FINISHED",
        tags=tags,
        params={name: str(value) for name, value in trial.point.items()},
        points=points,
        latest={
            "seeds": float(len(trial.scores)),
            "failed_seeds": float(len(trial.failed)),
            "stopped_seeds": float(len(trial.stopped)),
        }
        | _means(searched, trial, ""),
        latest_step=len(trial.scores),
    )


def _is_best(searched: Searched, trial: Trial) -> bool:
    best = searched.best
    return best is not None and best.number == trial.number


def _means(searched: Searched, trial: Trial | None, prefix: str) -> dict[str, float]:
    """The mean of every objective and the sd of the first; NaN if unknown."""
    names = [f"{prefix}{metric_name(objective.metric)}" for objective in searched.selection.objectives]
    if trial is None:
        return dict.fromkeys((*names, f"{prefix}sd"), math.nan)
    return {name: trial.mean(index) for index, name in enumerate(names)} | {f"{prefix}sd": trial.sd()}
