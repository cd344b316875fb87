"""What a ledger in an object store costs, in requests and in time, at 30 ms a request.

python benchmarks/object_store.py [--entries N ...] [--lanes N] [--runs N] [--seconds S] [--keep NAME]

The store lies in memory (`tests/counting_store.py`, whose counts a test holds against a server of S3) and takes
its time for each request. Beside the study's own runs it holds those of others, with 12 files of a model each.
Lanes are threads that stage made-up results after so many seconds (`tests/simulated_lanes.py`); the pool that
hands out, commits and forgets is the real one.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from tables import save

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from orchestration.commands.plan_words import words_of  # noqa: E402
from orchestration.lanes.leases import leased  # noqa: E402
from orchestration.lanes.pooled.commits import nothing_more  # noqa: E402
from orchestration.lanes.pooled.pool import Pool  # noqa: E402
from orchestration.ledger.ledger import Ledger  # noqa: E402
from orchestration.plan.held import planned  # noqa: E402
from orchestration.reading.read_study import read_study  # noqa: E402
from orchestration.study.run import Job, Run  # noqa: E402
from tests.corpora.conftest import SMALL_EXCEPTIONS, small_entries, write_wordnet  # noqa: E402
from tests.counting_store import CountingStore, counting_store, requests  # noqa: E402
from tests.finished_study import fill, make_results, make_run  # noqa: E402
from tests.simulated_lanes import SimulatedKind, without_ray  # noqa: E402
from tests.tiny import tiny_backbone  # noqa: E402

LATENCY = 0.03
STUDY = """\
question: What does a plan cost?
family: concept
backbones: [{folder}/tiny]
seeds: 33
data: {{wordnet: {folder}/wordnet, n_hh: 20, n_id: 20, n_dev: 10}}
arms:
  B0: {{train: false}}
  B1: {{hard_negatives: true}}
  B1-noHN: {{hard_negatives: false}}
  M1: {{readout: weighted}}
evaluate: [t2d, stress, geometry]
compare:
  - {{claim: H1, treatment: B1, control: B0, metric: t2d/recall@10, expect: better}}
"""
AFTERWARDS: dict[str, Callable[[Ledger], Callable[[Run], Any]]] = {  # what a command asks of each finished run
    "": lambda ledger: nothing_more,
    ", `models: none`": lambda ledger: ledger.drop_model,
    ", read by a search": lambda ledger: ledger.record,
}
OWN = 50  # of the study's 100 runs those that are done


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--entries", type=int, nargs="*", default=[10_000, 100_000], help="of other studies")
    options.add_argument("--lanes", type=int, default=64)
    options.add_argument("--runs", type=int, default=192)
    options.add_argument("--seconds", type=float, default=10.0, help="of each run")
    options.add_argument("--keep", default="object_store", help="name of the results")
    given = options.parse_args()
    rows = [
        {"what": "commit of one entry", **one_commit()[0]},
        {"what": "a run, told to forgotten", **one_commit()[1]},
    ]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "wordnet").mkdir()
        write_wordnet(Path(folder) / "wordnet", small_entries(), SMALL_EXCEPTIONS)
        tiny_backbone(Path(folder) / "tiny")
        study = Path(folder) / "costs.yaml"
        study.write_text(STUDY.format(folder=folder))
        rows += [
            {"what": f"plan of 100 runs, {many:,} entries of others", **plan_cost(study, many)}
            for many in given.entries
        ]
    of_lanes = []
    for what, afterwards in AFTERWARDS.items() if given.runs else ():
        of_pool, note = pool_cost(given.lanes, given.runs, given.seconds, afterwards)
        rows.append({"what": f"{given.runs} runs of {given.seconds:g} s in {given.lanes} lanes{what}", **of_pool})
        of_lanes.append(f"{given.lanes} lanes{what}: {note}")
    if given.runs:
        of_two, note = shared_cost(given.lanes // 2, given.runs, given.seconds)
        rows.append({"what": f"the same runs in two studies of {given.lanes // 2} lanes each", **of_two})
        of_lanes.append(note)
    notes = [
        f"Requests at {1000 * LATENCY:.0f} ms each, of a store in memory. Of others: all but those that name one "
        f"of the study's own runs. A run is trained and scored on 3 tasks; its model is of 12 files. Of the "
        f"planned runs {OWN} are done. A beat of the driver, one every 5 s, may be among them.",
        *of_lanes,
        f"Load average of the machine {os.getloadavg()[0]:.1f}.",
    ]
    save(given.keep, "A ledger in an object store", rows, notes, packages=("pyarrow", "fsspec", "s3fs"))


def save_model(folder: Path) -> None:
    for number in range(12):
        (folder / f"part-{number}").write_bytes(b"0")


def cost(act: Callable[[], Any], own: Sequence[str] = ()) -> dict[str, Any]:
    """Requests and seconds of one thing; own: the ids of runs whose records it may read."""
    CountingStore.latency, began = LATENCY, time.perf_counter()
    try:
        with requests() as asked:
            act()
    finally:
        took, CountingStore.latency = time.perf_counter() - began, 0.0
    others = sum(not any(run_id in key for run_id in own) for _, key, _ in asked)
    return {"requests": len(asked), "of others": others if own else "", "seconds": round(took, 2)}


def one_commit() -> tuple[dict[str, Any], dict[str, Any]]:
    """Of the training with its model; of all that the driver asks for a run, its four commits among it."""
    with counting_store() as url:
        ledger, run, costs = Ledger(url), make_run("B1", 0), []
        with ledger.drive("study"):
            begun = len(CountingStore.asked)
            attempt, of_lane = leased([run], ledger).attempts[run.id], 0
            for result in make_results(run, save_model):
                with requests() as asked:
                    ledger.stage(result, attempt)
                of_lane += len(asked)
                costs.append(cost(lambda entry=result.entry: ledger.commit(entry, attempt)))
            ledger.forget(run.id)
            whole = len(CountingStore.asked) - begun - of_lane
    return costs[0], {"requests": whole, "of others": "", "seconds": round(whole * LATENCY, 2)}


def plan_cost(study_file: Path, others: int) -> dict[str, Any]:
    """The words of `semray plan`: what is done, how long the rest takes, what the seeds can show."""
    with counting_store() as url:
        of_others(url, others)
        ledger, study = Ledger(url), read_study(study_file)
        runs = planned(study, ledger).runs
        assert len(runs) == 100
        fill(ledger, runs[:OWN], save_model)
        return cost(lambda: words_of(planned(study, ledger), ledger), [run.id for run in runs])


def of_others(url: str, entries: int) -> None:
    """Runs as the ledger lays one out, under other ids."""
    bucket = url.removeprefix("counting://").partition("/")[0]
    keys, one = CountingStore.buckets.setdefault(bucket, {}), make_run("B1", 0)
    fill(Ledger(url), [one], save_model)
    left = {key: content for key, content in keys.items() if one.id in key}
    for number in range(1, entries // len(one.entries)):
        run_id = f"{number * 0x9E3779B97F4A7C15 % 2**64:016x}"
        for key, content in left.items():
            keys[key.replace(one.id, run_id)] = content
    CountingStore.forget_order()


def jobs_of(runs: int) -> list[Job]:
    def run_of(seed: int) -> Run:
        return replace(make_run("B1", seed), tasks={"t2d": "r1", "stress": "r2", "geometry": "r3"})

    return [Job(runs=(run_of(seed),)) for seed in range(runs)]


def worked(kind: SimulatedKind, ledger: Ledger, lanes: int, runs: int, afterwards: Callable[[Run], None]) -> None:
    """Execute so many runs in a pool of these lanes."""
    pool = Pool(
        kind.start,
        ledger,
        lambda _: None,
        threading.Event(),
        lease_seconds=600,
        stall_seconds=6000,
        afterwards=afterwards,
    )
    assert len(pool.run(jobs_of(runs), lanes=lanes, tries=1).finished) == runs


def shared_cost(lanes: int, runs: int, seconds: float) -> tuple[dict[str, Any], str]:
    """How often runs are executed that two studies need, which two drivers begin one after the other."""
    with counting_store() as url:
        kinds = SimulatedKind(seconds), SimulatedKind(seconds)

        def drive(number: int) -> None:
            ledger = Ledger(url)
            with ledger.drive(f"study-{number}"):
                time.sleep(number / 2)
                worked(kinds[number], ledger, lanes, runs, nothing_more)

        def go() -> None:
            with without_ray(), ThreadPoolExecutor(2) as drivers:
                list(drivers.map(drive, range(2)))

        found = cost(go)
    executed = sum(len(of_lane) for kind in kinds for of_lane in kind.spans)
    return found, f"Of {runs} runs that two studies need {executed - runs} were executed twice."


def pool_cost(
    lanes: int, runs: int, seconds: float, afterwards: Callable[[Ledger], Callable[[Run], Any]]
) -> tuple[dict[str, Any], str]:
    """How much of their time lanes are at work, between the first run that began and the last one that ended."""
    with counting_store() as url:
        ledger, kind = Ledger(url), SimulatedKind(seconds)
        with ledger.drive("study"), without_ray():
            found = cost(lambda: worked(kind, ledger, lanes, runs, afterwards(ledger)))
    spans = [span for of_lane in kind.spans for span in of_lane]
    gaps = sorted(after[0] - before[1] for of_lane in kind.spans for before, after in pairwise(of_lane))
    whole = max(end for _, end in spans) - min(begin for begin, _ in spans)
    at_work = sum(end - begin for begin, end in spans)
    median = gaps[len(gaps) // 2] if gaps else 0.0
    note = (
        f"between two runs a lane waited {median:.2f} s (median; the longest {max(gaps, default=0.0):.2f} s) to "
        f"be told of the next. {runs / whole:.1f} runs a second; {at_work / lanes / whole:.0%} of the lanes' time "
        f"was work, staging included. The lanes' own requests are counted here too."
    )
    return found, note


if __name__ == "__main__":
    main()
