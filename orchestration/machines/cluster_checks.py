"""Can every node of a cluster have a part in a study, and do they agree? Asked by a driver on one of them.

    for check in cluster_checks("auto", "/mnt/semray/ledger"):
        print(check.name, check.ok, check.found)

Every node is asked at once, and one that does not answer in time is named like any other fault.
"""

from __future__ import annotations

import platform
import time
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from corpora.store.errors import last_line
from orchestration.ledger.away import away, words_of
from orchestration.ledger.environment import LIBRARIES, environment
from orchestration.ledger.object_storage import MARKER
from orchestration.ledger.storage import open_storage
from orchestration.machines.doctor import tracking
from orchestration.machines.node_checks import Check, node_checks

SILENT_SECONDS = 20.0  # for a node to answer a question
SKEW_SECONDS = 5.0  # a twelfth of what a driver on another host may be silent before it counts as dead


@dataclass(frozen=True, kw_only=True)
class Node:
    """What a node answers. clock: its seconds since 1970. left: why it could not write into the ledger, or ""."""

    name: str
    checks: Sequence[Check]
    versions: Mapping[str, str]
    clock: float
    left: str


@dataclass(frozen=True, kw_only=True)
class Timed:
    """A node's answer, and between which moments, by the driver's clock, it was given."""

    node: Node
    began: float
    ended: float


def cluster_checks(address: str, ledger: str) -> list[Check]:
    """All checks of all nodes. Raises StudyError when no cluster answers at the address."""
    from orchestration.lanes.cluster import joined

    mark = f".doctor-{uuid.uuid4().hex}"
    with joined(address):
        began = time.time()
        answers, silent = _ask(_answer, ledger, mark)
        timed = [Timed(node=node, began=began, ended=ended) for node, ended in answers]
        nodes = [one.node for one in timed]
        readers, lost = _ask(_seen, ledger, mark)
        _clear(ledger, mark)
    return [
        all_answer(nodes, {**silent, **lost}),
        versions_agree(nodes),
        clocks_agree(timed),
        storage_is_shared(nodes, dict(seen for seen, _ in readers)),
        *together(nodes),
        tracking(ledger),
    ]


# On a node


def _answer(ledger: str, mark: str, name: str, gpus: float) -> Node:
    versions = {"python": platform.python_version(), **dict.fromkeys(LIBRARIES, "none")}
    return Node(
        name=name,
        checks=node_checks(ledger, in_cluster=True, gpus=gpus),
        versions=versions | environment()["libraries"],
        clock=time.time(),
        left=_leave(ledger, f"{mark}/{name}"),
    )


def _leave(ledger: str, mark: str) -> str:
    """Put something whole into the ledger, as a lane stages a result. Returns what went wrong."""
    storage = open_storage(ledger)
    try:
        with storage.writing(mark) as folder:
            (folder / MARKER).write_text("{}")
    except away() as error:
        return words_of(error)
    return ""


def _seen(ledger: str, mark: str, name: str, gpus: float) -> tuple[str, list[str]]:
    """The nodes whose marks this node reads, after its own name."""
    storage = open_storage(ledger)
    return name, [other for other in storage.children(mark) if storage.is_whole(f"{mark}/{other}")]


# On the driver


def names(nodes: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Ray's id of each node -> its name: the host's, with the id's beginning where others share that."""
    hosts = {node["NodeID"]: node["NodeManagerHostname"] for node in nodes}
    bearers = Counter(hosts.values())
    return {node: host if bearers[host] == 1 else f"{host}-{node[:8]}" for node, host in hosts.items()}


def _ask(question: Callable[..., Any], ledger: str, mark: str) -> tuple[list[tuple[Any, float]], dict[str, str]]:
    """Every node's answer and when it came, and why others gave none, by address."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy as On

    remote: Any = ray.remote
    asking, began = {}, time.time()
    alive = [node for node in ray.nodes() if node["Alive"]]
    called = names(alive)
    for node in alive:
        task = remote(num_cpus=0, max_retries=0)(question)
        gpus = node["Resources"].get("GPU", 0.0)
        there = task.options(scheduling_strategy=On(node["NodeID"], soft=False))
        asking[there.remote(ledger, mark, called[node["NodeID"]], gpus)] = node["NodeManagerAddress"]
    answers: list[tuple[Any, float]] = []
    silent: dict[str, str] = {}
    left = list(asking)
    while left:
        done, left = ray.wait(left, num_returns=1, timeout=max(0.0, began + SILENT_SECONDS - time.time()))
        if not done:
            silent |= {asking[task]: f"no answer in {SILENT_SECONDS:.0f} s" for task in left}
            break
        try:
            answers.append((ray.get(done[0]), time.time()))
        except ray.exceptions.RayError as error:
            silent[asking[done[0]]] = last_line(error)
    return answers, silent


def _clear(ledger: str, mark: str) -> None:
    """Take the marks away again; where that fails, the storage check says so."""
    try:
        open_storage(ledger).remove(mark)
    except away():
        return


def all_answer(nodes: Sequence[Node], silent: Mapping[str, str]) -> Check:
    if silent:
        found = "; ".join(f"{address}: {why}" for address, why in silent.items())
        mend = "`ray status`, and Ray's logs on that node; `ray up` starts its Ray again"
        return Check(name="nodes", ok=False, found=found, mend=mend)
    return Check(name="nodes", ok=True, found=f"{len(nodes)} answer")


def versions_agree(nodes: Sequence[Node]) -> Check:
    """One version of everything that can change a result, on all nodes."""
    names = dict.fromkeys(name for node in nodes for name in node.versions)
    differing = []
    for name in names:
        found = {node.name: node.versions.get(name, "none") for node in nodes}
        if len(set(found.values())) > 1:
            differing.append(f"{name}: " + ", ".join(f"{version} on {node}" for node, version in found.items()))
    if differing:
        mend = "`ray up` again: every node installs what constraints.txt pins"
        return Check(name="versions", ok=False, found="; ".join(differing), mend=mend)
    return Check(name="versions", ok=True, found=f"{len(names)} are equal on all nodes")


def clocks_agree(timed: Sequence[Timed]) -> Check:
    """Each node's clock against the driver's, give or take the time that the answer took."""
    off = {}
    for one in timed:
        ahead, behind = one.node.clock - one.ended, one.began - one.node.clock
        if max(ahead, behind) > SKEW_SECONDS:
            off[one.node.name] = f"{max(ahead, behind):.0f} s {'ahead' if ahead > behind else 'behind'}"
    if off:
        found = ", ".join(f"{name} is {how}" for name, how in off.items())
        return Check(name="clocks", ok=False, found=found, mend="chrony or another NTP service on every node")
    return Check(name="clocks", ok=True, found=f"within {SKEW_SECONDS:.0f} s of each other")


def storage_is_shared(nodes: Sequence[Node], seen: Mapping[str, Sequence[str]]) -> Check:
    """Has every node written into the ledger, and does every node read what each has written?"""
    wrong = [f"{node.name} cannot write: {node.left}" for node in nodes if node.left]
    written = {node.name for node in nodes if not node.left}
    for name, names in seen.items():
        if missing := sorted(written - set(names)):
            wrong.append(f"{name} does not see what {', '.join(missing)} wrote")
    if wrong:
        mend = "the same file system mounted at the same path on every node, or a ledger on s3://"
        return Check(name="shared storage", ok=False, found="; ".join(wrong), mend=mend)
    return Check(name="shared storage", ok=True, found=f"written on {len(written)} nodes and read on {len(seen)}")


def together(nodes: Sequence[Node]) -> list[Check]:
    """The nodes' own checks, one line for each kind: fine when it is fine everywhere, else which node has what."""
    kinds: dict[str, list[tuple[str, Check]]] = {}
    for node in nodes:
        for check in node.checks:
            kinds.setdefault(check.name, []).append((node.name, check))
    lines = []
    for name, given in kinds.items():
        bad = [(node, check) for node, check in given if not check.ok]
        found = "; ".join(f"{node}: {check.found}" for node, check in bad) or given[0][1].found
        lines.append(Check(name=name, ok=not bad, found=found, mend=bad[0][1].mend if bad else ""))
    return lines
