"""A script of several workers: each is started as torchrun would start it, and one that fails ends the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestration.lanes.cluster import connected
from orchestration.lanes.launch import launch
from orchestration.ledger.ledger import Ledger
from orchestration.plan.plan import gather_facts, plan
from orchestration.reading.read_study import read_study
from orchestration.study.run import Job

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(600)]

SCRIPT = """
import json, os, sys, time
import torch, torch.distributed as dist
seed, out, how = sys.argv[1:]
dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
if how == "breaks" and rank == 1:
    sys.exit("the second worker breaks")
total = torch.tensor([float(rank + 1)])
dist.all_reduce(total)
print(f"step 1/1 loss {total.item()}")
if rank == 0:
    json.dump({"total": total.item(), "size": size, "seed": int(seed)}, open(out + "/scores.json", "w"))
if how == "breaks":
    time.sleep(600)
"""
STUDY = """
question: Do they work together?
family: command
seeds: [4]
data: {watch: [train.py], metrics: {total: higher, size: higher, seed: higher}}
train: {run: [python, train.py, "{seed}", "{out}", "{how}"]}
arms: {works: {how: works}, breaks: {how: breaks}}
evaluate: [scores]
resources: {workers_per_run: 2, retries: 0, lanes: 1}
"""


def test_workers_meet_and_fail_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "mine.yaml").write_text(STUDY)
    study = read_study("mine.yaml")
    works, breaks = plan(study, gather_facts(study)).runs
    assert (works.world_size, breaks.world_size) == (2, 2)
    ledger = Ledger(tmp_path / "ledger")
    with connected(2), ledger.drive("mine"):
        jobs = [Job(runs=(works,)), Job(runs=(breaks,))]
        outcome = launch(jobs, ledger=ledger, resources=study.resources, on_event=lambda event: None)
    figures = {name: metric.value for name, metric in ledger.record(works).metrics.items()}
    assert figures == {"scores/total": 3.0, "scores/size": 2.0, "scores/seed": 4.0}  # 1 + 2
    assert outcome.finished == (works.id,)
    assert "exit code 1" in Path(outcome.failed[breaks.id].log).read_text()
