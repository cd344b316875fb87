"""A head that starts as in cluster.yaml answers who shows the token, and nobody else: a real one, on this machine."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
import yaml

from orchestration.lanes.cluster import private_token
from tests.waiting import free_port, until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]

ROOT = Path(__file__).resolve().parents[3]
RAY = [sys.executable, "-m", "ray.scripts.scripts"]
SIZES = ["--num-cpus=1", "--object-store-memory=80000000"]
ANOTHER = "0" * 64


@dataclass(frozen=True)
class Head:
    """A head that runs. environment: that of a process which has the token; gcs, client: ports for Ray's own words."""

    folder: Path
    environment: dict[str, str]
    token: str
    dashboard: int
    gcs: str
    client: str

    def ask(self, method: str, path: str, token: str | None, **body: str) -> tuple[int, str]:
        """Status and text of the dashboard's answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.dashboard, timeout=60)
        header = {"Authorization": f"Bearer {token}"} if token else {}
        connection.request(method, path, json.dumps(body) if body else None, header)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


def declared_start() -> tuple[dict[str, str], list[str]]:
    """Settings and options of the head's start in cluster.yaml, but for its port and the machines that it adds."""
    commands = yaml.safe_load((ROOT / "cluster.yaml").read_text())["head_start_ray_commands"]
    (words,) = [command.split() for command in commands if " ray start " in command]
    at = words.index("ray")
    options = [word for word in words[at + 1 :] if not re.match("--(port|autoscaling-config)=", word)]
    return dict(word.split("=", 1) for word in words[:at]), options


@pytest.fixture(scope="module")
def head() -> Iterator[Head]:
    """A head with a home and ports of its own; this process itself does not join it."""
    settings, options = declared_start()
    client = free_port()
    ports = [
        "--port=0",
        "--dashboard-port=0",
        "--dashboard-agent-listen-port=0",
        f"--ray-client-server-port={client}",
    ]
    with tempfile.TemporaryDirectory(prefix="ray-") as name, pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", name)  # a short one: Ray's sockets lie in it too
        token = private_token().read_text()
        kept = {key: value for key, value in os.environ.items() if not key.startswith("RAY_")}
        environment = {**kept, **settings, "RAY_TMPDIR": name, "RAY_USAGE_STATS_ENABLED": "0"}
        said = Path(name) / "said"
        with said.open("wb") as file:
            process = subprocess.Popen(
                [*RAY, *options, *ports, *SIZES, "--block"],
                env=environment,
                stdout=file,
                stderr=file,
                start_new_session=True,
            )
        try:
            dashboard, gcs = told(process, said, r"http://127\.0\.0\.1:(\d+)", r"--address='([^']+)'")
            yield Head(Path(name), environment, token, int(dashboard), gcs, f"127.0.0.1:{client}")
        finally:
            end(process)


def told(process: subprocess.Popen[bytes], said: Path, *patterns: str) -> list[str]:
    """What the head says of itself, once it has said it all."""
    until(lambda: process.poll() is not None or all(re.search(each, said.read_text()) for each in patterns), 60)
    assert process.poll() is None, said.read_text()
    return [match.group(1) for each in patterns if (match := re.search(each, said.read_text()))]


def end(process: subprocess.Popen[bytes]) -> None:
    """End the head and all that came of it, and nothing else: other Rays may run here."""
    family = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
    process.send_signal(signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=10)
    for one in family:
        with suppress(psutil.NoSuchProcess):
            one.kill()
    psutil.wait_procs(family, timeout=10)


@pytest.mark.parametrize(
    ("token", "status", "said"),
    [(None, 401, "Missing authentication token"), (ANOTHER, 403, "Invalid authentication token")],
    ids=["none", "a wrong one"],
)
def test_jobs_without_the_token_are_refused(head: Head, token: str | None, status: int, said: str) -> None:
    submitted = head.ask("POST", "/api/jobs/", token, entrypoint=f"touch {head.folder}/intruder")
    for answer in (submitted, head.ask("GET", "/api/jobs/", token), head.ask("GET", "/api/version", token)):
        assert answer == (status, f"{'Unauthorized' if status == 401 else 'Forbidden'}: {said}")


def test_a_job_with_the_token_runs(head: Head) -> None:
    status, _ = head.ask("POST", "/api/jobs/", head.token, entrypoint=f"touch {head.folder}/guest")
    assert status == 200
    until((head.folder / "guest").exists, 60)
    status, jobs = head.ask("GET", "/api/jobs/", head.token)
    assert [job["entrypoint"] for job in json.loads(jobs)] == [f"touch {head.folder}/guest"]
    assert not (head.folder / "intruder").exists()


def test_the_command_says_what_is_missing(head: Head) -> None:
    address = f"http://127.0.0.1:{head.dashboard}"
    refused = subprocess.run(
        [*RAY, "job", "submit", "--address", address, "--", "touch", str(head.folder / "intruder")],
        env={**head.environment, "RAY_AUTH_MODE": "disabled"},
        capture_output=True,
        text=True,
    )
    assert refused.returncode != 0
    assert "Missing authentication token" in refused.stderr
    assert not (head.folder / "intruder").exists()


@pytest.mark.parametrize("token", [None, ANOTHER], ids=["none", "a wrong one"])
def test_other_doors_refuse_too(head: Head, token: str | None) -> None:
    """The cluster's own port, by which nodes and drivers join, and that of remote clients."""
    import grpc

    doors = {
        head.gcs: "/ray.rpc.NodeInfoGcsService/GetAllNodeInfo",
        head.client: "/ray.rpc.RayletDriver/ClusterInfo",
    }
    shown = [("authorization", f"Bearer {token}")] if token else []
    for address, method in doors.items():
        with grpc.insecure_channel(address) as channel:
            ask = channel.unary_unary(method)
            with pytest.raises(grpc.RpcError, match=r"(?i)authentication token") as refused:
                ask(b"", metadata=shown, timeout=30, wait_for_ready=True)
            assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED
    with grpc.insecure_channel(head.gcs) as channel:
        nodes = channel.unary_unary(doors[head.gcs])
        assert nodes(b"", metadata=[("authorization", f"Bearer {head.token}")], timeout=30)


def test_the_dashboard_listens_on_loopback_alone(head: Head) -> None:
    heard = {
        connection.laddr.ip
        for process in psutil.Process(os.getpid()).children(recursive=True)
        for connection in process.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN and connection.laddr.port == head.dashboard
    }
    assert heard == {"127.0.0.1"}
