"""A worker group on two nodes that share no folder, with its ledger in an object store."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from orchestration.lanes.events import Outcome
from orchestration.ledger.ledger import Ledger
from tests.buckets import s3_bucket
from tests.orchestration.lanes import test_groups as groups

pytestmark = [pytest.mark.timeout(580), pytest.mark.long]


@pytest.fixture
def ledger_of_two_nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    """Each node keeps temporary files where the other does not look."""
    import ray
    from ray.cluster_utils import Cluster

    with s3_bucket() as bucket, tempfile.TemporaryDirectory(dir="/tmp") as short:  # for the paths of Ray's sockets
        monkeypatch.setenv("RAY_TMPDIR", short)
        cluster = Cluster()
        for number in (2, 3):  # an address 127.0.0.1 Ray takes for another
            (tmp_path / str(number)).mkdir()
            cluster.add_node(
                node_ip_address=f"127.0.0.{number}",
                num_cpus=1,
                object_store_memory=100 * 2**20,
                include_dashboard=False,
                env_vars={"TMPDIR": str(tmp_path / str(number))},
            )
        ray.init(address=cluster.address, _node_ip_address="127.0.0.2", log_to_driver=False)
        ray.cloudpickle.register_pickle_by_value(groups)
        ledger = Ledger(f"{bucket}/apart")
        with ledger.drive("study"):
            yield ledger
        ray.shutdown()
        cluster.shutdown()


def test_what_zero_leaves_on_two_nodes_is_gone_on_from(ledger_of_two_nodes: Ledger, tmp_path: Path) -> None:
    """Ctrl-C saves it: each node's part reaches the ledger, and from there both nodes."""
    ledger = ledger_of_two_nodes
    run = replace(groups.make_run(tmp_path / "meet", "disturbed"), zero_stage=1)
    interrupt = groups.at_step_6(lambda: os.kill(os.getpid(), signal.SIGINT))
    outcome, _ = groups.go(ledger, [run], groups.fitting, interrupt)
    assert outcome == Outcome(stopped=True)

    outcome, _ = groups.go(ledger, [run], groups.fitting)
    assert outcome.finished == (run.id,)
    for rank in (0, 1):
        assert groups.lines(tmp_path / f"meet/asked-disturbed-{rank}") == [*range(groups.STEPS)]
    assert len(groups.figures(ledger, run).losses) == groups.STEPS
