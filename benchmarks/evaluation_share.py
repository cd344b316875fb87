"""What share of a trained run's CPU time is evaluation, in one process: the smallest studies.

    python benchmarks/evaluation_share.py [--precision fp32] [--against CHECKOUT]

A run of a trained arm executes and is recorded as a lane does it, after one of two steps that pays for imports and
for reading the benchmarks. Then its encoder is scored again and again, as if nothing were known of it: evaluation
is the median. With another checkout, the code there and here run side by side; both must give the same figures and
items, to the last digit. Corpora are built for it, or copied from a cache where they are. --precision: instead of
the best of this processor; the result's name ends in it.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import importlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from tables import save

ROOT = Path(__file__).resolve().parents[1]
STUDIES = {"quickstart": "B1", "concept_small": "B1"}  # and an arm of each that is trained
SCORED = 3  # times
Spent = dict[str, float]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--against", type=Path, help="a checkout of the code before")
    options.add_argument("--corpora", type=Path, help="a cache that holds them")
    options.add_argument("--precision", choices=("fp32", "bf16"), help="of training and evaluation")
    options.add_argument(
        "--lane", metavar="STUDY", help="execute the runs of one study here, and print what they took"
    )
    asked = options.parse_args()
    if asked.lane:
        print(json.dumps(lane(asked.lane, asked.precision)))
        return
    codes = {"before": asked.against, "now": ROOT} if asked.against else {"now": ROOT}
    with tempfile.TemporaryDirectory() as folder:
        for name in codes if asked.corpora else ():
            shutil.copytree(asked.corpora, Path(folder) / name, ignore=shutil.ignore_patterns("vectors"))
        rows = [row for study in STUDIES for row in compared(study, codes, Path(folder), asked.precision)]
    save(
        "_".join(filter(None, ("evaluation_share", asked.precision))),
        "Evaluation's share of a trained run, CPU seconds",
        rows,
        [
            "train: from reading the corpus to the entry of the training on disk, with its model; one run",
            f"evaluate: the texts encoded and scored, the median of {SCORED}; encode: what of that an evaluation "
            "spares that finds its vectors",
            "record: the entries of the scores written and committed; one thread",
            "both codes gave the same scores and items, to the last digit"
            if asked.against
            else "no code beside it",
            f"load before the end {os.getloadavg()[0]:.1f}",
        ],
        packages=("torch", "transformers"),
    )


def compared(study: str, codes: dict[str, Path], folder: Path, precision: str | None) -> list[dict[str, Any]]:
    """A row for each code. AssertionError where they do not give the same scores."""
    with ThreadPoolExecutor() as pool:
        begun = {name: pool.submit(apart, study, place, folder / name, precision) for name, place in codes.items()}
        told = {name: lane.result() for name, lane in begun.items()}
    assert len({one["scores"] for one in told.values()}) == 1, "the codes give other scores"
    return [row(study, name, one["spent"]) for name, one in told.items()]


def apart(study: str, place: Path, cache: Path, precision: str | None) -> Any:
    """What a process of this code says of its runs."""
    environment = os.environ | {
        "PYTHONPATH": f"{place}{os.pathsep}{ROOT / 'benchmarks'}",
        "SEMRAY_CACHE": str(cache),
        "OMP_NUM_THREADS": "1",
        "DS_ACCELERATOR": "cpu",
    }
    command = [sys.executable, __file__, "--lane", study, *(["--precision", precision] if precision else [])]
    said = subprocess.run(command, cwd=place, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(said.stdout.splitlines()[-1])


def row(study: str, name: str, spent: Spent) -> dict[str, Any]:
    evaluation = spent["evaluate"] + spent["record"]
    return {
        "study": study,
        "code": name,
        **spent,
        "share of evaluation, %": 100 * evaluation / (spent["train"] + evaluation),
    }


def lane(study: str, precision: str | None) -> dict[str, Any]:
    """CPU seconds of the parts of a run, and a digest of its scores."""
    from orchestration.families.contract import USUAL_IMPORTS

    for module in USUAL_IMPORTS:
        importlib.import_module(module)
    gc.freeze()
    from orchestration.ledger.ledger import Ledger
    from orchestration.plan.plan import gather_facts, plan
    from orchestration.reading.read_study import read_study

    asked = read_study(ROOT / "studies" / f"{study}.yaml")
    run = next(run for run in plan(asked, gather_facts(asked)).runs if run.arm == STUDIES[study])
    run = replace(run, precision=precision or run.precision)
    with tempfile.TemporaryDirectory() as folder:
        short = replace(run, settings={**run.settings, "steps": 2, "warmup": 1})
        executed(short, Ledger(Path(folder) / "first"))
        ledger = Ledger(Path(folder) / "ledger")
        spent, digest = executed(run, ledger)
        scored(run, ledger.model(run))
        again = [scored(run, ledger.model(run)) for _ in range(SCORED)]
        known = [scored(run, ledger.model(run), known=True) for _ in range(SCORED)]
    whole, rest = statistics.median(again), statistics.median(known)
    return {"spent": {**spent, "evaluate": whole, "encode": whole - rest}, "scores": digest}


def executed(run: Any, ledger: Any) -> tuple[Spent, str]:
    """CPU seconds of training, evaluation and recording of one run, and a digest of its scores."""
    from orchestration.lanes.lane import execute
    from orchestration.study.run import Job, Trained
    from trainers.engine.world import World

    spent, digest = dict.fromkeys(("train", "evaluate", "encode", "record"), 0.0), hashlib.sha256()
    attempt, began = ledger.lease(run.id), time.process_time()
    forget_vectors()
    for result in execute(Job(runs=(run,)), World(precision=run.precision)):
        made = time.process_time()
        ledger.stage(result, attempt)
        assert ledger.commit(result.entry, attempt)
        ended = time.process_time()
        if isinstance(result, Trained):
            spent["train"] += ended - began
        else:
            spent["record"] += ended - made
            for score in result.scores:
                named = (score.metric, score.value, list(score.item_ids), list(score.group_ids))
                digest.update(repr(named).encode() + (b"" if score.values is None else score.values.tobytes()))
        began = time.process_time()
    return spent, digest.hexdigest()


def scored(run: Any, model: Any, *, known: bool = False) -> float:
    """CPU seconds that a trained run's evaluation takes. known: whether its vectors are kept from before."""
    from evaluators.tasks.task import named
    from orchestration.families.encoders import scored as score
    from orchestration.families.registry import family
    from orchestration.study.run import built
    from trainers.encoders.together import reading_together
    from trainers.engine.world import World

    of: Any = family(run.family)
    world = World(precision=run.precision)
    encoder = of.trainer().read(built(of.settings, run.settings), model, world)
    if not known:
        forget_vectors()
    began = time.process_time()
    with reading_together(encoder, world):
        list(score(run, named(of.tasks(built(of.data, run.data)), run.tasks), encoder))
    return time.process_time() - began


def forget_vectors() -> None:
    from corpora.store.cache import cache_folder

    shutil.rmtree(cache_folder() / "vectors", ignore_errors=True)


if __name__ == "__main__":
    main()
