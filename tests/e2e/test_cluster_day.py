"""A day on a cluster of three hosts, by the commands of docs/cluster.md: from `ray up` to `ray down`."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from orchestration.ledger.ledger import Ledger
from orchestration.study.run import run_of
from tests.cluster_day import Laptop, laptop
from tests.hosts import SHARED, Host, hosts, missing
from tests.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(1200)]

SUBMIT = ["job", "submit", "--working-dir", "."]
RUN = ["--", "python", "-m", "orchestration", "run"]
DOCTOR = ["--", "python", "-m", "orchestration", "doctor", "--address", "auto"]
RUNS = 1 + 2 * 3  # B0 has no seeds
ENTRIES = RUNS + 1 + 1  # in MLflow: the comparison and the study too


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("day")


@pytest.fixture(scope="module")
def machines(folder: Path) -> Iterator[list[Host]]:
    if why := missing():
        pytest.skip(why)
    with hosts(3, folder) as machines:
        yield machines


@pytest.fixture(scope="module")
def here(folder: Path, machines: list[Host]) -> Laptop:
    """The laptop, once the cluster is up."""
    here = laptop(folder, machines)
    here.ray("up", "-y", "--no-config-cache", "cluster.yaml")
    return here


@pytest.fixture(scope="module")
def jobs(here: Laptop) -> Iterator[str]:
    """The address that takes jobs."""
    with here.forwarded(8265) as address:
        yield address


def raylets(machine: Host) -> list[str]:
    return [title for title in machine.processes().values() if "/raylet/raylet " in title]


def test_every_node_comes_up_with_the_token(here: Laptop, machines: list[Host]) -> None:
    until(lambda: all(raylets(machine) for machine in machines), 120, every=0.5)
    for machine in machines:
        assert (machine.home / ".ray/auth_token").stat().st_mode & 0o777 == 0o600
        assert "RAY_AUTH_MODE=token" in (machine.home / ".semray").read_text()


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ({"RAY_AUTH_MODE": "disabled"}, "Missing authentication token"),
        ({"RAY_AUTH_TOKEN": "0" * 48}, "Invalid authentication token"),
    ],
    ids=["none", "a wrong one"],
)
def test_a_job_without_the_token_is_refused(here: Laptop, jobs: str, setting: dict[str, str], said: str) -> None:
    refused = here.ray(*SUBMIT, "--address", jobs, "--", "touch", "/mnt/semray/intruder", check=False, **setting)
    assert refused.returncode != 0
    assert said in refused.stderr
    assert not (here.folder / "shared/intruder").exists()


def test_a_study_runs_on_all_hosts_to_its_verdict(here: Laptop, jobs: str, machines: list[Host]) -> None:
    at_work: set[str] = set()
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.5):
            at_work.update(m.name for m in machines if any("ray::Lane" in t for t in m.processes().values()))

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        job = here.ray(*SUBMIT, "--address", jobs, *RUN, "studies/day.yaml")
    finally:
        done.set()
        watching.join()
    assert "7/7 runs" in job.stdout
    assert "H1      B1 - B0" in job.stdout
    assert at_work == {machine.name for machine in machines}
    ledger = Ledger(here.folder / "shared/ledger")
    assert len(ledger.ids()) == RUNS
    assert ledger.failed() == {}


def test_two_workers_on_two_hosts_learn_what_two_on_one_learn(here: Laptop, jobs: str) -> None:
    """ZeRO 2 over gloo; every host has room for one worker. The host's name leads to loopback, as on Debian."""
    here.ray(*SUBMIT, "--address", jobs, *RUN, "studies/pair.yaml")
    alone = {"SEMRAY_CACHE": str(here.folder / "cache"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "orchestration", "run", "studies/pair-here.yaml", "--ledger", "here/ledger"]
    subprocess.run(command, cwd=here.project, env={**here.environment, **alone}, check=True, capture_output=True)
    one_host, two_hosts = Ledger(here.project / "here/ledger"), Ledger(here.folder / "shared/ledger")
    (run_id,) = one_host.ids()
    assert two_hosts.training(run_id).run.world_size == 2
    losses = [
        [row["value"] for row in ledger.curve_of(run_id).to_pylist() if row["name"] == "loss"]
        for ledger in (one_host, two_hosts)
    ]
    assert len(losses[0]) == 20
    assert losses[1] == pytest.approx(losses[0], rel=1e-6)


def test_two_nodes_do_almost_twice_the_runs_of_one(here: Laptop, jobs: str) -> None:
    job = here.ray(*SUBMIT, "--address", jobs, "--", "python", "scale_job.py", f"{SHARED}/scale")
    (line,) = [line for line in job.stdout.splitlines() if line.startswith("scale ")]
    found = json.loads(line.removeprefix("scale "))
    assert found["nodes"] == 2
    assert found["two"] >= 1.8 * found["one"]


def test_mlflow_shows_it(here: Laptop) -> None:
    from mlflow import MlflowClient

    with here.forwarded(5000) as address:
        client = MlflowClient(tracking_uri=address)
        (experiment,) = (e for e in client.search_experiments() if e.name == "day")
        assert len(client.search_runs([experiment.experiment_id])) == ENTRIES


def test_the_doctor_finds_nothing(here: Laptop, jobs: str) -> None:
    job = here.ray(*SUBMIT, "--address", jobs, *DOCTOR)
    assert "MISSING" not in job.stdout
    assert re.search("ok +shared storage +written on 3 nodes and read on 3", job.stdout)


def test_the_doctor_names_what_is_broken(here: Laptop, jobs: str, machines: list[Host]) -> None:
    """A node without the shared folder, another whose token others may read, and no MLflow."""
    head, one, other = machines
    one.run(f"umount {SHARED}")
    (other.home / ".ray/auth_token").chmod(0o644)
    head.run("kill $(pgrep -f 'mlflow server') && sleep 2")
    job = here.ray(*SUBMIT, "--address", jobs, *DOCTOR, check=False)
    named = dict(re.findall("^MISSING +(shared storage|token|MLflow|[^ ]+) +(.*)$", job.stdout, re.M))
    assert f"{one.name} does not see what" in named.pop("shared storage")
    assert f"{other.name}: " in named.pop("token")
    assert "127.0.0.1:5000" in named.pop("MLflow")
    assert named == {}
    one.run(f"mount --bind {here.folder}/shared {SHARED}")
    (other.home / ".ray/auth_token").chmod(0o600)
    here.ray("up", "-y", "--no-restart", "--no-config-cache", "cluster.yaml")


def test_a_finished_study_computes_nothing(here: Laptop, jobs: str) -> None:
    job = here.ray(*SUBMIT, "--address", jobs, *RUN, "studies/day.yaml")
    assert "done 7 " in job.stdout
    assert "done in" not in job.stdout


def figures(ledger: Path) -> dict[str, object]:
    held = Ledger(ledger)
    assert held.failed() == {}
    return {
        entry: (held.scores(entry).metrics, held.items(entry).to_pydict()) for entry in held.entries() - held.ids()
    }


def killed_while_running(
    here: Laptop, jobs: str, ledger: str, machine: Host, victim: str
) -> subprocess.CompletedProcess[str]:
    """The study's job in a new ledger, with a process of a machine killed when that machine is at a run."""
    words = [*SUBMIT, "--address", jobs, *RUN, "studies/day.yaml", "--ledger", f"{SHARED}/{ledger}"]
    with ThreadPoolExecutor() as pool:
        job = pool.submit(here.ray, *words, check=False)
        attempts = here.folder / "shared" / ledger / ".attempts"
        until(
            lambda: any(attempts.glob("*/*")) and "ray::Lane" in " ".join(machine.processes().values()),
            180,
            every=0.5,
        )
        for pid in [pid for pid, title in machine.processes().items() if victim in title]:
            os.kill(pid, signal.SIGKILL)
        return job.result()


def test_a_node_whose_raylet_is_killed(here: Laptop, jobs: str, machines: list[Host]) -> None:
    """Its lane is replaced, the study ends as if nothing had happened, and the autoscaler starts the node again."""
    job = killed_while_running(here, jobs, "ledger-node", machines[1], "/raylet/raylet ")
    assert job.returncode == 0
    assert figures(here.folder / "shared/ledger-node") == day(here)
    until(lambda: bool(raylets(machines[1])), 240, every=0.5)


def test_a_head_whose_gcs_is_killed(here: Laptop, jobs: str, machines: list[Host]) -> None:
    """The cluster is gone with it. After `ray up` the same job goes on from what the ledger holds."""
    killed_while_running(here, jobs, "ledger-head", machines[0], "/gcs/gcs_server ")
    here.ray("up", "-y", "--no-config-cache", "cluster.yaml")
    with here.forwarded(8265) as again:
        here.ray(*SUBMIT, "--address", again, *RUN, "studies/day.yaml", "--ledger", f"{SHARED}/ledger-head")
    assert figures(here.folder / "shared/ledger-head") == day(here)


def day(here: Laptop) -> dict[str, object]:
    """The figures of the study's first, undisturbed run."""
    pair = Ledger(here.project / "here/ledger").ids()
    all_of_it = figures(here.folder / "shared/ledger")
    return {entry: found for entry, found in all_of_it.items() if run_of(entry) not in pair}


def test_the_cluster_ends(here: Laptop, machines: list[Host]) -> None:
    """Of machines that are yours `ray down` ends the head's Ray; the others' end when they miss it for a minute."""
    here.ray("down", "-y", "cluster.yaml")
    assert raylets(machines[0]) == []
    until(lambda: not any(map(raylets, machines)), 150, every=0.5)
