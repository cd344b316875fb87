"""A package that brings families or tasks, as if it were installed for the length of a test."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

import pytest

from evaluators.tasks import installed
from orchestration.families import registry

TASKS = """
import numpy as np
from semray.extending import Benchmark, Score, Task, score_of_items

ROWS = ("a cat", "a dog", "a bird")


def score(rows, encode):
    values = encode(list(rows))[:, 0].astype(float)
    return [score_of_items("odd/t/acc", "mean", list(rows), list(rows), values)]


def task(**changed):
    given = dict(
        name="odd/t",
        metrics={"odd/t/acc": True},
        headline="odd/t/acc",
        benchmark=Benchmark(fingerprint=lambda: repr(ROWS), load=lambda: ROWS),
        texts=list,
        score=score,
        source="made up",
    )
    return Task(**{**given, **changed})


def tasks(path):
    return {"odd/t": task()}
"""


def bring(monkeypatch: pytest.MonkeyPatch, site: Path, code: str, points: str) -> None:
    """Install version 0.1 of the package `odd`, which is one module. points: its entry points, as their file has
    them."""
    record = site / "odd-0.1.dist-info"
    record.mkdir(parents=True)
    (record / "METADATA").write_text("Metadata-Version: 2.1\nName: odd\nVersion: 0.1\n")
    (record / "entry_points.txt").write_text(points)
    (site / "odd.py").write_text(code)
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.delitem(sys.modules, "odd", raising=False)
    for module, cached in ((installed, "_points"), (registry, "_installed"), (registry, "_loaded")):
        monkeypatch.setattr(module, cached, inspect.unwrap(getattr(module, cached)))


def bring_tasks(monkeypatch: pytest.MonkeyPatch, site: Path, more: str) -> None:
    """The package with one task; more: code that follows it."""
    bring(monkeypatch, site, TASKS + more, "[semray.tasks]\nodd = odd:tasks\n")
