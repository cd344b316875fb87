"""The user's day on a cluster of this machine's own hosts: cluster.yaml with another provider, and Ray's commands.

with hosts(3, folder) as machines, Laptop(folder, machines) as laptop:
    laptop.ray("up", "-y", "--no-config-cache", "cluster.yaml")
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.corpora.conftest import write_small_wordnet
from tests.hosts import ROOT, SHARED, Host
from tests.tiny import tiny_backbone
from tests.waiting import free_port

CODE = ("corpora", "evaluators", "orchestration", "search_spaces", "trainers")
FILES = ("pyproject.toml", "constraints.txt", "Makefile", "README.md", "LICENSE")
SIZES = " --num-cpus=1 --object-store-memory=100000000"
STUDY = """\
question: Does a day on the cluster end with a verdict?
family: concept
backbones: [{shared}/tiny]
seeds: 3
data: {{wordnet: {shared}/wordnet, n_hh: 20, n_id: 20, n_dev: 10}}
train: {{steps: {steps}, batch_size: 8, learning_rate: 1.0e-3, warmup: 2, max_length: 32}}
arms:
  B0: {{train: false}}
  B1: {{hard_negatives: true}}
  B1-noHN: {{}}
evaluate: [t2d]
compare:
  - {{claim: H1, treatment: B1, control: B0, metric: t2d/mrr, expect: better}}
resources: {{lanes: 3, checkpoint_every: 10}}
"""
PAIR = """\
question: Do two workers on two hosts learn what two on one learn?
family: concept
backbones: [{shared}/tiny]
seeds: 1
data: {{wordnet: {shared}/wordnet, n_hh: 20, n_id: 20, n_dev: 10}}
train: {{steps: 20, batch_size: 8, learning_rate: 1.0e-3, warmup: 2, max_length: 32}}
arms:
  B1: {{hard_negatives: true}}
evaluate: [t2d]
resources: {{workers_per_run: 2, precision: fp32, deepspeed: {{zero_stage: 2}}}}
"""


@dataclass(frozen=True)
class Laptop:
    """Where a person sits: a copy of the project, a home with the token, and a way to the hosts by SSH."""

    folder: Path

    @property
    def project(self) -> Path:
        return self.folder / "project"

    @property
    def environment(self) -> dict[str, str]:
        ours = {name: value for name, value in os.environ.items() if not name.startswith(("RAY_", "SEMRAY_"))}
        path = f"{Path(sys.executable).parent}:{ours['PATH']}"
        places = {"HOME": str(self.folder / "home"), "RAY_TMPDIR": str(self.folder), "PATH": path}
        return {**ours, **places, "RAY_AUTH_MODE": "token", "RAY_USAGE_STATS_ENABLED": "0"}

    def ray(self, *words: str, check: bool = True, **environment: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "ray.scripts.scripts", *words],
            cwd=self.project,
            env={**self.environment, **environment},
            capture_output=True,
            text=True,
        )
        assert not check or done.returncode == 0, f"ray {' '.join(words)}\n{done.stdout}\n{done.stderr}"
        return done

    @contextmanager
    def forwarded(self, port: int) -> Iterator[str]:
        """A port of the head's loopback at an address here, as `ray dashboard` gives it."""
        here = free_port()
        words = ["dashboard", "--no-config-cache", "--port", str(here), "--remote-port", str(port), "cluster.yaml"]
        with (self.folder / f"forward-{port}").open("wb") as said:
            tunnel = subprocess.Popen(
                [sys.executable, "-m", "ray.scripts.scripts", *words],
                cwd=self.project,
                env=self.environment,
                stdout=said,
                stderr=said,
                start_new_session=True,
            )
        try:
            _until_open(here)
            yield f"http://127.0.0.1:{here}"
        finally:
            os.killpg(tunnel.pid, 15)
            tunnel.wait()


def laptop(folder: Path, machines: Sequence[Host], *, steps: int = 40) -> Laptop:
    """A laptop with a token and with a cluster.yaml in which only provider, login and sizes are others."""
    place = Laptop(folder)
    for name in CODE:
        shutil.copytree(ROOT / name, place.project / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in FILES:
        shutil.copy2(ROOT / name, place.project / name)
    shutil.copy2(ROOT / "tests/scale_job.py", place.project)
    (place.project / "studies").mkdir()
    (place.project / "studies/day.yaml").write_text(STUDY.format(shared=SHARED, steps=steps))
    (place.project / "studies/pair.yaml").write_text(PAIR.format(shared=SHARED))
    (place.project / "studies/pair-here.yaml").write_text(PAIR.format(shared=folder / "shared"))
    config = yaml.safe_load((ROOT / "cluster.yaml").read_text())
    (place.project / "cluster.yaml").write_text(yaml.safe_dump(on_hosts(config, folder, machines), width=1000))
    token = folder / "home/.ray/auth_token"
    token.parent.mkdir(parents=True)
    token.write_text(os.urandom(24).hex())
    token.chmod(0o600)
    write_small_wordnet(folder / "shared/wordnet")
    tiny_backbone(folder / "shared/tiny", layers=2)
    return place


def on_hosts(config: dict, folder: Path, machines: Sequence[Host]) -> dict:
    """The declared cluster on these machines: another provider, login and sizes; all commands as they stand."""
    head, *workers = (machine.address for machine in machines)
    kept = {key: value for key, value in config.items() if key not in ("available_node_types", "head_node_type")}
    sized = {
        key: [command + SIZES if "ray start" in command else command for command in config[key]]
        for key in ("head_start_ray_commands", "worker_start_ray_commands")
    }
    return {
        **kept,
        **sized,
        "cluster_name": f"semray{os.getpid()}",
        "provider": {"type": "local", "head_ip": head, "worker_ips": workers},
        "auth": {"ssh_user": "root", "ssh_private_key": str(folder / "id")},
        "max_workers": len(workers),
    }


def _until_open(port: int, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        threading.Event().wait(0.2)
    raise AssertionError(f"nothing listens on port {port}")
