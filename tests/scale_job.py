"""A job for a cluster whose nodes have one CPU each: runs per minute with one lane, and with two on two nodes.

A run takes a second wherever it is, so that what is measured is how lanes are fed and not whose core is free. Prints
the two rates, and on how many nodes the lanes of the second launch were.
"""

from __future__ import annotations

import json
import socket
import sys
import time
from collections.abc import Iterator

from orchestration.lanes.events import Event, LaneReady, RunFinished
from orchestration.lanes.launch import launch
from orchestration.ledger.ledger import Ledger
from orchestration.study.blocks import Resources
from orchestration.study.run import Job, Result, Run, Trained
from trainers.engine.world import World

RUNS = 24


def one_second(job: Job, world: World) -> Iterator[Result]:
    for run in job.runs:
        time.sleep(1.0)
        yield Trained(run=run, notes={"host": socket.gethostname()})


def rate(lanes: int, folder: str) -> tuple[float, int]:
    """Runs per minute from the moment when all lanes were ready, and the number of nodes that did them."""
    ready, finished = [], []

    def hear(event: Event) -> None:
        if isinstance(event, LaneReady):
            ready.append(time.monotonic())
        if isinstance(event, RunFinished) and len(ready) == lanes:
            finished.append(time.monotonic())

    ledger = Ledger(f"{folder}/{lanes}")
    jobs = [Job(runs=(_run(seed),)) for seed in range(RUNS)]
    with ledger.drive("scale"):
        resources = Resources(lanes=lanes)
        launch(jobs, ledger=ledger, resources=resources, on_event=hear, body=one_second, warm=())
    hosts = {ledger.training(run_id).notes["host"] for run_id in ledger.ids()}
    return 60 * (len(finished) - 1) / (finished[-1] - finished[0]), len(hosts)


def _run(seed: int) -> Run:
    return Run(
        family="concept",
        arm="A",
        backbone="none",
        seed=seed,
        settings={},
        data={},
        defining={},
        backbone_fingerprint="b",
        corpus_fingerprint="c",
    )


if __name__ == "__main__":
    (one, _), (two, nodes) = rate(1, sys.argv[1]), rate(2, sys.argv[1])
    print("scale", json.dumps({"one": one, "two": two, "nodes": nodes}))
