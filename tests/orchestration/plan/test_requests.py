"""What `semray plan` asks of a ledger in an object store: about the study's own runs, and little else."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestration.commands.plan_words import words_of
from orchestration.ledger.ledger import Ledger
from orchestration.plan.held import planned
from orchestration.reading.read_study import read_study
from tests.corpora.conftest import write_small_wordnet
from tests.counting_store import CountingStore, counting_store, requests
from tests.finished_study import fill
from tests.tiny import tiny_backbone

STUDY = """\
question: What is asked?
family: concept
backbones: [{folder}/tiny]
seeds: 33
data: {{wordnet: {folder}/wordnet, n_hh: 20, n_id: 20, n_dev: 10}}
arms:
  B0: {{train: false}}
  B1: {{hard_negatives: true}}
  B1-noHN: {{hard_negatives: false}}
  M1: {{readout: weighted}}
evaluate: [t2d]
compare:
  - {{claim: H1, treatment: B1, control: B0, metric: t2d/recall@10, expect: better}}
"""


def test_a_plan_asks_about_its_own_runs(tmp_path: Path) -> None:
    """100 runs, 5 of them done, beside 50,000 of others in two entries each: 60 requests about those at most."""
    write_small_wordnet(tmp_path / "wordnet")
    tiny_backbone(tmp_path / "tiny")
    (tmp_path / "asks.yaml").write_text(STUDY.format(folder=tmp_path))
    with counting_store() as url:
        CountingStore.of_others(url, 50_000)
        ledger, study = Ledger(url), read_study(tmp_path / "asks.yaml")
        runs = planned(study, ledger).runs
        assert len(runs) == 100
        fill(ledger, runs[:5])
        with requests() as asked:
            words = words_of(planned(study, ledger), ledger)
    assert "done 5   left 95" in words
    own = {run.id for run in runs}
    assert sum(not any(run_id in key for run_id in own) for _, key, _ in asked) <= 60


@pytest.mark.parametrize(("free", "told"), [(64, "on 2 lanes"), (24, "on 1 lane "), (8, "on 1 lane ")])
def test_time_is_foretold_on_as_many_lanes_as_the_memory_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, told: str
) -> None:
    monkeypatch.setattr("orchestration.lanes.cluster.cores", lambda: 2)
    monkeypatch.setattr("orchestration.lanes.cluster.free_memory", lambda: free * 2**30)
    write_small_wordnet(tmp_path / "wordnet")
    tiny_backbone(tmp_path / "tiny")
    text = STUDY.format(folder=tmp_path) + "resources: {memory_gib_per_run: 14}\n"
    (tmp_path / "asks.yaml").write_text(text)
    ledger, study = Ledger(tmp_path / "ledger"), read_study(tmp_path / "asks.yaml")
    fill(ledger, planned(study, ledger).runs[:5])
    words = words_of(planned(study, ledger), ledger)
    assert told in words
    assert ("memory_gib_per_run = 14: more than is free here now" in words) == (free == 8)
