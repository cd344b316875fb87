"""A recipe of sentence-transformers in a group of two workers of Ray Train, from its study to scores."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from orchestration.lanes.cluster import connected
from orchestration.lanes.launch import launch
from orchestration.ledger.ledger import Ledger
from orchestration.plan.plan import gather_facts, plan, prepare
from orchestration.reading.read_study import read_study
from orchestration.study.run import Job
from semray.testing import WORDS
from tests.tiny import tiny_backbone

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(600)]

STUDY = """\
question: Do they learn together?
family: sentence_transformers
backbones: [PLACE/tiny]
seeds: [4]
data:
  datasets: {pairs: {source: PLACE/pairs.tsv, columns: [one, other]}}
  path: PLACE
train: {max_steps: 4, per_device_train_batch_size: 2}
arms:
  gathered: {loss: {name: MultipleNegativesRankingLoss, gather_across_devices: true}}
evaluate: [sts/STS-B]
resources: {workers_per_run: 2, retries: 0, lanes: 1, checkpoint_every: 2}
"""


def test_two_workers_train_one_recipe(tmp_path: Path) -> None:
    tiny_backbone(tmp_path / "tiny")
    pairs = list(pairwise(WORDS))
    (tmp_path / "pairs.tsv").write_text("one\tother\n" + "".join(f"a {a} is\tthe {b}\n" for a, b in pairs))
    (tmp_path / "STSBenchmark").mkdir()
    lines = (f"main\tnews\t2012\t1\t{n % 6}\ta {a}\tthe {b}\n" for n, (a, b) in enumerate(pairs))
    (tmp_path / "STSBenchmark" / "sts-test.csv").write_text("".join(lines))
    (tmp_path / "mine.yaml").write_text(STUDY.replace("PLACE", str(tmp_path)))
    study = read_study(tmp_path / "mine.yaml")
    prepare(study)
    (run,) = plan(study, gather_facts(study)).runs
    assert run.world_size == 2
    ledger = Ledger(tmp_path / "ledger")
    with connected(2), ledger.drive("mine"):
        outcome = launch([Job(runs=(run,))], ledger=ledger, resources=study.resources, on_event=lambda event: None)
    assert outcome.finished == (run.id,), outcome.failed
    assert "sts/STS-B/spearman" in ledger.record(run).metrics
    assert max(ledger.curve(run)["step"].to_pylist()) == 4
