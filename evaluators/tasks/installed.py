"""Tasks that other packages bring: each names, under the entry point `semray.tasks`, a function path -> tasks.

Name and version of the package are part of a task's fingerprint: scores of another version are other scores.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from corpora.store.errors import CorpusError
from corpora.store.packages import package_of
from evaluators.tasks.task import Benchmark, Task, Tasks

GROUP = "semray.tasks"


def tasks(path: str | None) -> Tasks:
    """Every task of every installed package, by name. CorpusError, naming the package, for one that is of no use.

    path: the folder in which a study has benchmarks looked for first.
    """
    found: dict[str, Task[Any, Any]] = {}
    for point in _points():
        package = package_of(point)
        for name, task in _offered(point, package)(path).items():
            if name in found or name != task.name:
                why = "another package has a task of that name" if name in found else f"it is called {task.name!r}"
                raise CorpusError(f"{package}: the task {name!r}: {why}\n  accepted: one name for one task")
            found[name] = task
    return found


@cache
def _points() -> tuple[EntryPoint, ...]:
    return tuple(sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value)))


def _offered(point: EntryPoint, package: str) -> Callable[[str | None], Tasks]:
    try:
        table = point.load()
    except Exception as error:
        raise CorpusError(
            f"{package}: its tasks {point.value} cannot be imported ({type(error).__name__}: {error})"
            "\n  accepted: a package that is whole, or none: pip uninstall it"
        ) from error
    return partial(_named_by, package, table)


def _named_by(package: str, table: Callable[[str | None], Tasks], path: str | None) -> Tasks:
    """The tasks of a package, whose rows are those of its version. Tasks that share a benchmark share it still."""
    shared: dict[int, Benchmark[Any]] = {}
    named = {}
    for name, task in table(path).items():
        own = task.benchmark
        kept = shared.setdefault(
            id(own), Benchmark(fingerprint=partial(_fingerprint, package, own), load=own.load)
        )
        named[name] = replace(task, benchmark=kept)
    return named


def _fingerprint(package: str, benchmark: Benchmark[Any]) -> str:
    return f"{package} {benchmark.fingerprint()}"
