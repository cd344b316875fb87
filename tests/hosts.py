"""Hosts that are real enough for `ray up`: network, process and mount namespaces of this machine, each with its sshd.

    with hosts(3, tmp_path) as (head, *workers):
        head.run("hostname")

Every host has an address, a name, a home, a /mnt/semray that all share, Ray's own folder under /tmp, and processes
of its own: `ray stop` on one ends nothing anywhere else. Needs root, iproute2, openssh-server and rsync.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

SHARED = Path("/mnt/semray")
TOOLS = ("ip", "unshare", "nsenter", "mount", "mountpoint", "sshd", "ssh", "ssh-keygen", "rsync", "make", "curl")
HOME = "/mnt/home"  # of root, on every host
ROOT = Path(__file__).resolve().parents[1]
SSHD = """\
ListenAddress {address}
HostKey {key}
AuthorizedKeysFile {authorized}
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
MaxStartups 50
"""
START = """\
set -e
hostname {name}
mount -t tmpfs none /mnt
mkdir -p {shared} {home} /tmp/ray /run/sshd
mount --bind {folder}/shared {shared}
mount --bind {folder}/{name}/ray /tmp/ray
mount --bind {folder}/{name}/hosts /etc/hosts
mount --bind {folder}/passwd /etc/passwd
mount --bind {folder}/{name}/home {home}
exec {sshd} -D -f {folder}/{name}/sshd
"""


@dataclass(frozen=True)
class Host:
    """One of the machines. pid: its first process, as seen from outside."""

    name: str
    address: str
    home: Path
    pid: int

    def run(self, command: str, *, check: bool = True) -> str:
        """What a login shell there prints."""
        inside = ["nsenter", "-t", str(self.pid), "-a", "bash", "--login", "-ic", command]
        environment = {"HOME": HOME, "PATH": os.environ["PATH"], "USER": "root"}
        done = subprocess.run(inside, check=check, capture_output=True, text=True, cwd="/", env=environment)
        return done.stdout

    def processes(self) -> dict[int, str]:
        """Title by process id, as seen from outside, of all that runs there."""
        titles = {}
        for pid in map(int, _ran("ip", "netns", "pids", self.name).split()):
            with suppress(OSError):
                titles[pid] = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
        return titles


def missing() -> str:
    """Why there can be no such hosts on this machine; empty when there can."""
    if sys.platform != "linux" or os.getuid() != 0:
        return "hosts of their own need root on Linux"
    absent = [tool for tool in TOOLS if not shutil.which(tool, path=_path())]
    if absent:
        return f"not installed: {', '.join(absent)} (iproute2, openssh-server, rsync)"
    if any(Path(place).is_relative_to("/mnt") for place in (ROOT, sys.prefix, sys.base_prefix)):
        return "hosts hide /mnt, where the code or its Python lies"
    probe = f"semray{os.getpid()}"
    refused = subprocess.run(["ip", "netns", "add", probe], capture_output=True, text=True)
    if refused.returncode:
        return f"no network namespaces here: {refused.stderr.strip()}"
    _ran("ip", "netns", "del", probe)
    return ""


@contextmanager
def hosts(count: int, folder: Path) -> Iterator[list[Host]]:
    """So many hosts on a network of their own, and `folder/id` to log in with. All is gone after the block."""
    number = os.getpid()
    net, bridge = f"10.{200 + number % 50}.{number // 50 % 250}", f"sr{number}"
    names = [f"sr{number}h{index}" for index in range(count)]
    addresses = [f"{net}.{10 + index}" for index in range(count)]
    (folder / "shared").mkdir()
    (folder / "passwd").write_text(
        re.sub("(?m)^(root:.*:).*(:.*)$", rf"\g<1>{HOME}\2", Path("/etc/passwd").read_text())
    )
    _ran("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / "id"))
    with ExitStack() as stack:
        _ran("ip", "link", "add", bridge, "type", "bridge")
        stack.callback(_ran, "ip", "link", "del", bridge)
        _ran("ip", "addr", "add", f"{net}.1/24", "dev", bridge)
        _ran("ip", "link", "set", bridge, "up")
        yield [
            stack.enter_context(_host(name, address, bridge, f"{net}.1", folder))
            for name, address in zip(names, addresses, strict=True)
        ]


@contextmanager
def _host(name: str, address: str, bridge: str, gateway: str, folder: Path) -> Iterator[Host]:
    place = folder / name
    for part in ("home/.ssh", "home/semray/.venv", "ray"):
        (place / part).mkdir(parents=True)
    (place / "home/.bashrc").touch()
    for part in Path(
        sys.prefix
    ).iterdir():  # the environment is there already: what is made of it is pinned anyway
        if not part.name.startswith("."):
            (place / "home/semray/.venv" / part.name).symlink_to(part)
    (place / "home/semray/.venv/.ready").touch()
    _ran("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(place / "key"))
    (place / "hosts").write_text(f"127.0.0.1 localhost\n127.0.1.1 {name}\n")  # as Debian writes it
    (place / "sshd").write_text(SSHD.format(address=address, key=place / "key", authorized=folder / "id.pub"))
    with ExitStack() as stack:
        _ran("ip", "netns", "add", name)
        stack.callback(_ran, "ip", "netns", "del", name)
        _ran("ip", "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name)
        _ran("ip", "link", "set", name, "master", bridge, "up")
        for command in (
            ["link", "set", "lo", "up"],
            ["link", "set", "eth0", "up"],
            ["addr", "add", f"{address}/24", "dev", "eth0"],
            ["route", "add", "default", "via", gateway],  # Ray learns its address from the way out
        ):
            _ran("ip", "-n", name, *command)
        script = START.format(
            name=name, folder=folder, shared=SHARED, home=HOME, sshd=shutil.which("sshd", path=_path())
        )
        spaces = ["unshare", "--pid", "--fork", "--mount", "--mount-proc", "--uts", "--kill-child"]
        with (place / "said").open("wb") as said:
            first = subprocess.Popen(
                ["ip", "netns", "exec", name, *spaces, "bash", "-c", script], stdout=said, stderr=said
            )
        stack.callback(_end, first)
        _until_it_answers(address, place / "said")
        inside = Path(f"/proc/{first.pid}/task/{first.pid}/children").read_text().split()[0]
        yield Host(name=name, address=address, home=place / "home", pid=int(inside))


def _end(first: subprocess.Popen[bytes]) -> None:
    first.kill()  # --kill-child: the first process inside goes with it, and all others with that
    first.wait()
    time.sleep(0.2)


def _until_it_answers(address: str, said: Path) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            probe.settimeout(1)
            if probe.connect_ex((address, 22)) == 0:
                return
        time.sleep(0.1)
    raise AssertionError(f"{address} does not answer: {said.read_text()}")


def _ran(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _path() -> str:
    return f"{os.environ['PATH']}:/usr/sbin:/sbin"
