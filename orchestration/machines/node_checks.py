"""Checks of one machine that takes part in a study: the laptop itself, or a node of a cluster.

    for check in node_checks("ledger"):
        print(check.name, check.ok, check.found)

They are quick, as none imports torch. Each says what it found and how to mend it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from orchestration.study.writable import nearest_existing

GIB = 1024**3
ROOM_FOR_A_STUDY = 5 * GIB  # sixteen fine-tuned MiniLM of 90 MB, checkpoints and MLflow, with room to spare
ROOM_FOR_RAY = GIB  # its logs and spilled objects
MEMORY = 2 * GIB  # Ray itself, and one lane with torch and a small encoder
SHARED_MEMORY = GIB // 4  # above Ray's minimum; containers have 64 MiB by default
SHM = Path("/dev/shm")
SOCKET, SOCKET_BYTES = "ray/session_2026-01-01_00-00-00_000000_0000000/sockets/plasma_store", 107
LOOPBACK = ("127.", "::1", "::ffff:127.")


@dataclass(frozen=True, kw_only=True)
class Check:
    """The result of one check: its subject, whether it is fine, what was found, and how to mend it."""

    name: str
    ok: bool
    found: str
    mend: str = ""


def node_checks(ledger: str, *, in_cluster: bool = False, gpus: float = 0.0) -> list[Check]:
    """All checks, in the order in which a study would meet them. gpus: how many Ray counts on this machine."""
    return [
        wordnet(),
        encoder(),
        cards(gpus),
        store(ledger),
        cache(),
        scratch(),
        memory(),
        shared_memory(),
        token(in_cluster),
        doors(),
    ]


def wordnet() -> Check:
    from corpora.sources.wordnet_files import locate
    from corpora.store.errors import CorpusError

    try:
        return Check(name="WordNet 3.0", ok=True, found=str(locate().place))
    except CorpusError as error:
        return Check(name="WordNet 3.0", ok=False, found="not found", mend=str(error))


def encoder() -> Check:
    """Look for the encoder without a download, which would take too long. It is a fault only offline."""
    from huggingface_hub import constants

    from trainers.encoders.backbones import BackboneError, resolve_backbone

    name = "all-MiniLM-L6-v2"
    try:
        return Check(name=name, ok=True, found=str(resolve_backbone(name, fetch=False)))
    except BackboneError as error:
        if constants.HF_HUB_OFFLINE:
            return Check(name=name, ok=False, found="not found, and HF_HUB_OFFLINE is set", mend=str(error))
        return Check(name=name, ok=True, found="not here yet: the first run that needs it asks the hub")


def cards(expected: float) -> Check:
    """Check the driver's GPUs. A driver that does not answer was usually upgraded under a running kernel."""
    listed = listed_cards()
    if isinstance(listed, str):
        return Check(
            name="GPUs", ok=False, found=listed, mend="reboot, or install the driver of this kernel again"
        )
    if listed < expected:
        found = f"{listed}, and Ray believes in {expected:g}"
        return Check(name="GPUs", ok=False, found=found, mend="`ray up` again, or another --num-gpus")
    return Check(name="GPUs", ok=True, found=str(listed))


def listed_cards() -> int | str:
    """How many GPUs nvidia-smi lists, 0 if it is not installed; in words why, if it fails."""
    if shutil.which("nvidia-smi") is None:
        return 0
    try:
        done = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=15)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"nvidia-smi does not answer ({error})"
    if done.returncode:
        return f"nvidia-smi fails: {(done.stdout + done.stderr).strip().splitlines()[-1:]}"
    return sum(line.startswith("GPU ") for line in done.stdout.splitlines())


def store(ledger: str) -> Check:
    """Check that the ledger's folder has room and allows writes, links and renames."""
    if "://" in ledger:
        return _object_store(ledger)
    folder = nearest_existing(Path(ledger))
    mend = f"give --ledger a writable folder with {ROOM_FOR_A_STUDY / GIB:.0f} GiB"
    try:
        with tempfile.TemporaryDirectory(prefix=".semray-", dir=folder) as place:
            (Path(place) / "a").write_text("semray")
            os.link(f"{place}/a", f"{place}/b")
            os.rename(f"{place}/b", f"{place}/c")
    except OSError as error:
        return Check(name="ledger", ok=False, found=f"{ledger}: {error}", mend=mend)
    free = shutil.disk_usage(folder).free
    return Check(
        name="ledger", ok=free > ROOM_FOR_A_STUDY, found=f"{ledger}: {free / GIB:.0f} GiB free", mend=mend
    )


def _object_store(url: str) -> Check:
    from orchestration.ledger.ledger import Ledger
    from orchestration.study.errors import StudyError

    try:
        held = len(Ledger(url).ids())
    except StudyError as error:
        return Check(name="ledger", ok=False, found=f"{url} cannot be read", mend=str(error))
    return Check(name="ledger", ok=True, found=f"{url} (an object store), {held} runs")


def cache() -> Check:
    from corpora.store.cache import cache_folder

    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        return Check(name="corpus cache", ok=False, found=str(error), mend="set SEMRAY_CACHE to a writable folder")
    return Check(name="corpus cache", ok=True, found=str(folder))


def scratch() -> Check:
    """Check the folder of Ray's sessions and spilled objects: the length of its name, and its room."""
    from orchestration.lanes.cluster import temporary_folder

    folder = temporary_folder()
    if len(os.fsencode(folder / SOCKET)) > SOCKET_BYTES:
        found = f"{folder}: too long a name for Ray's sockets, which take {SOCKET_BYTES} bytes with all they add"
        return Check(name="temporary files", ok=False, found=found, mend="set RAY_TMPDIR to a shorter one")
    free = shutil.disk_usage(nearest_existing(folder)).free
    return _room(
        "temporary files", str(folder), free, ROOM_FOR_RAY, "free some, or set RAY_TMPDIR to a larger disk"
    )


def memory() -> Check:
    free = psutil.virtual_memory().available
    return _room("memory", "RAM", free, MEMORY, "end what uses it, or give the study fewer `lanes`")


def shared_memory() -> Check:
    if not SHM.is_dir():
        return Check(name="shared memory", ok=True, found="not on this system")
    free = shutil.disk_usage(SHM).free
    return _room("shared memory", str(SHM), free, SHARED_MEMORY, "in a container: --shm-size=1g")


def _room(name: str, place: str, free: int, least: int, mend: str) -> Check:
    return Check(name=name, ok=free > least, found=f"{place}: {free / GIB:.1f} GiB free", mend=mend)


def token(in_cluster: bool) -> Check:
    """Check Ray's token: a cluster must ask for it, and no other user may read it."""
    asked = os.environ.get("RAY_AUTH_MODE", "").lower() == "token"
    if in_cluster and not asked:
        found = "RAY_AUTH_MODE is not token: whoever reaches Ray's ports may run code here"
        return Check(
            name="token", ok=False, found=found, mend="RAY_AUTH_MODE=token in cluster.yaml; `ray up` again"
        )
    if os.environ.get("RAY_AUTH_TOKEN"):
        return Check(name="token", ok=True, found="in RAY_AUTH_TOKEN")
    place = Path(os.environ.get("RAY_AUTH_TOKEN_PATH") or Path.home() / ".ray" / "auth_token")
    if not place.is_file() or not place.stat().st_size:
        found = f"{place}: " + ("empty" if place.is_file() else "there is none")
        mend = "(umask 077; ray get-auth-token --generate), on the machine that calls `ray up`"
        return Check(name="token", ok=not asked and not place.is_file(), found=found, mend=mend)
    if place.stat().st_mode & 0o077:
        found = f"{place}: others on this machine may read it"
        return Check(name="token", ok=False, found=found, mend=f"chmod 600 {place}")
    return Check(name="token", ok=True, found=str(place))


def doors() -> Check:
    """Check for ports of Ray and MLflow that other machines can reach without a token or password."""
    open_ones = sorted(_open_doors())
    if open_ones:
        mend = "start it on 127.0.0.1, Ray with RAY_AUTH_MODE=token, MLflow with --app-name basic-auth"
        return Check(name="open doors", ok=False, found=", ".join(open_ones), mend=mend)
    return Check(name="open doors", ok=True, found="none of Ray or MLflow")


def _open_doors() -> Iterator[str]:
    for listener in psutil.net_connections("tcp"):
        if listener.status != psutil.CONN_LISTEN or listener.laddr.ip.startswith(LOOPBACK) or not listener.pid:
            continue
        with suppress(psutil.Error):  # the process may have ended, or be another user's
            process = psutil.Process(listener.pid)
            words = " ".join(process.cmdline())
            where = f"port {listener.laddr.port} of process {listener.pid}"
            if "mlflow" in words and "basic-auth" not in words:
                yield f"MLflow without a password on {where}"
            elif _is_ray(words) and not any(map(_asks_for_token, [process, *process.parents()])):
                yield f"Ray without a token on {where}"


def _asks_for_token(process: psutil.Process) -> bool:
    """Whether its environment asks for a token. Processes that rename themselves lose it; their parents do not."""
    try:
        return process.environ().get("RAY_AUTH_MODE", "").lower() == "token"
    except psutil.Error:
        return False


def _is_ray(words: str) -> bool:
    return words.startswith("ray::") or "/ray/dashboard/" in words or "/ray/core/src/ray/" in words
