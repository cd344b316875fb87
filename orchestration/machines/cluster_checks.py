"""Checks whether every node of a cluster can take part in a study, and whether the nodes agree.

    for check in cluster_checks("auto", "/mnt/semray/ledger"):
        print(check.name, check.ok, check.found)

The driver asks all nodes at once. A node that does not answer in time is a fault like any other.
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

SILENT_SECONDS = 20.0  # a node has so long to answer
SKEW_SECONDS = 5.0  # a driver on another host counts as dead after 12 times as long


@dataclass(frozen=True, kw_only=True)
class Node:
    """The answer of a node. clock: its Unix time. write_error: why it could not write into the ledger, or ""."""

    name: str
    checks: Sequence[Check]
    versions: Mapping[str, str]
    clock: float
    write_error: str


@dataclass(frozen=True, kw_only=True)
class Timed:
    """A node's answer, with the driver's clock before the question and after the answer."""

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
        readers, lost = _ask(_marks_read, ledger, mark)
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
        write_error=_write_mark(ledger, f"{mark}/{name}"),
    )


def _write_mark(ledger: str, mark: str) -> str:
    """Write a small entry into the ledger, as a lane stages a result. Returns the error in words, or ""."""
    storage = open_storage(ledger)
    try:
        with storage.writing(mark) as folder:
            (folder / MARKER).write_text("{}")
    except away() as error:
        return words_of(error)
    return ""


def _marks_read(ledger: str, mark: str, name: str, gpus: float) -> tuple[str, list[str]]:
    """This node's name, and the names of the nodes whose marks it can read."""
    storage = open_storage(ledger)
    return name, [other for other in storage.children(mark) if storage.is_whole(f"{mark}/{other}")]


# On the driver


def names(nodes: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Ray's id of each node -> its host name, with the first 8 digits of the id if several nodes share it."""
    hosts = {node["NodeID"]: node["NodeManagerHostname"] for node in nodes}
    counts = Counter(hosts.values())
    return {node: host if counts[host] == 1 else f"{host}-{node[:8]}" for node, host in hosts.items()}


def _ask(question: Callable[..., Any], ledger: str, mark: str) -> tuple[list[tuple[Any, float]], dict[str, str]]:
    """The answers of the nodes with the time of each, and by address why the others gave none."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy as On

    remote: Any = ray.remote
    asking, began = {}, time.time()
    alive = [node for node in ray.nodes() if node["Alive"]]
    name_of = names(alive)
    for node in alive:
        task = remote(num_cpus=0, max_retries=0)(question)
        gpus = node["Resources"].get("GPU", 0.0)
        on_node = task.options(scheduling_strategy=On(node["NodeID"], soft=False))
        asking[on_node.remote(ledger, mark, name_of[node["NodeID"]], gpus)] = node["NodeManagerAddress"]
    answers: list[tuple[Any, float]] = []
    silent: dict[str, str] = {}
    pending = list(asking)
    while pending:
        done, pending = ray.wait(pending, num_returns=1, timeout=max(0.0, began + SILENT_SECONDS - time.time()))
        if not done:
            silent |= {asking[task]: f"no answer in {SILENT_SECONDS:.0f} s" for task in pending}
            break
        try:
            answers.append((ray.get(done[0]), time.time()))
        except ray.exceptions.RayError as error:
            silent[asking[done[0]]] = last_line(error)
    return answers, silent


def _clear(ledger: str, mark: str) -> None:
    """Remove the marks. The storage check reports a ledger where this fails."""
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
    """Check that all nodes have the same version of everything that can change a result."""
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
    """Compare each node's clock with the driver's, within the time that the answer took."""
    off = {}
    for answer in timed:
        ahead, behind = answer.node.clock - answer.ended, answer.began - answer.node.clock
        if max(ahead, behind) > SKEW_SECONDS:
            off[answer.node.name] = f"{max(ahead, behind):.0f} s {'ahead' if ahead > behind else 'behind'}"
    if off:
        found = ", ".join(f"{name} is {how}" for name, how in off.items())
        return Check(name="clocks", ok=False, found=found, mend="chrony or another NTP service on every node")
    return Check(name="clocks", ok=True, found=f"within {SKEW_SECONDS:.0f} s of each other")


def storage_is_shared(nodes: Sequence[Node], seen: Mapping[str, Sequence[str]]) -> Check:
    """Check that every node has written into the ledger, and that every node reads all of that."""
    wrong = [f"{node.name} cannot write: {node.write_error}" for node in nodes if node.write_error]
    written = {node.name for node in nodes if not node.write_error}
    for name, names in seen.items():
        if missing := sorted(written - set(names)):
            wrong.append(f"{name} does not see what {', '.join(missing)} wrote")
    if wrong:
        mend = "the same file system mounted at the same path on every node, or a ledger on s3://"
        return Check(name="shared storage", ok=False, found="; ".join(wrong), mend=mend)
    return Check(name="shared storage", ok=True, found=f"written on {len(written)} nodes and read on {len(seen)}")


def together(nodes: Sequence[Node]) -> list[Check]:
    """The nodes' own checks, one for each kind: fine if it is fine on all nodes, else it names the others."""
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
