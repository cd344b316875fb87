"""Tasks of other packages, each of which has a function path -> tasks under the entry point `semray.tasks`.

A task's fingerprint includes the package's name and version, so that another version is scored anew.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import cache, partial
from importlib.metadata import EntryPoint, entry_points
from typing import Any, NamedTuple, TypeVar

from corpora.store.errors import CorpusError, kind_and_first_line
from corpora.store.packages import package_of
from evaluators.tasks.task import Benchmark, Task, Tasks

GROUP = "semray.tasks"
Read = TypeVar("Read")


class Brought(NamedTuple):
    """tasks: of all packages, by name. broken: each package whose tasks cannot be loaded, and why."""

    tasks: Tasks
    broken: tuple[str, ...]


def tasks(path: str | None, taken: Collection[str] = ()) -> Brought:
    """The tasks of installed packages. Raises CorpusError, naming the package, if two tasks have one name.

    path: the study's folder of benchmarks, which is searched first. taken: the names of semray's own tasks.
    """
    found: dict[str, Task[Any, Any]] = {}
    broken = []
    for point in _points():
        package = package_of(point)
        try:
            offered = _offered(point, package, path)
        except Exception as error:  # noqa: BLE001  a broken package must not stop other tasks
            broken.append(f"{package}, {point.value} ({kind_and_first_line(error)})")
            continue
        for name, task in offered.items():
            if why := _ambiguous(name, task, found, taken):
                raise CorpusError(
                    f"{package}: the task {name!r}: {why}\n  accepted: one name for one task, such as PACKAGE/TASK"
                )
            found[name] = task
    return Brought(found, tuple(broken))


def _ambiguous(name: str, task: Task[Any, Any], found: Tasks, taken: Collection[str]) -> str:
    """What is wrong with a task's name; "" if it is right and unique."""
    if name in taken:
        return "there is one of that name"
    if name in found:
        return "another package has a task of that name"
    return "" if name == task.name else f"it is called {task.name!r}"


def not_as_promised(task: Any) -> str:
    """What is wrong with what a package gives as a task; "" for a whole one."""
    if not isinstance(task, Task):
        return f"is a {type(task).__name__}, not a Task"
    if task.metrics and task.headline not in task.metrics:  # without metrics there is none to decide
        return f"has the headline {task.headline!r}, which is not in its metrics"
    return ""


@cache
def _points() -> tuple[EntryPoint, ...]:
    return tuple(sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value)))


def _offered(point: EntryPoint, package: str, path: str | None) -> Tasks:
    """The tasks of a package, with its version in their fingerprints. Tasks keep sharing a common benchmark."""
    table = dict(point.load()(path))
    shared: dict[int, Benchmark[Any]] = {}
    named = {}
    for name, task in table.items():
        if why := not_as_promised(task):
            raise TypeError(f"{name!r} {why}")
        own = task.benchmark
        named[name] = replace(task, benchmark=shared.setdefault(id(own), _of_package(package, own)))
    return named


def _of_package(package: str, own: Benchmark[Any]) -> Benchmark[Any]:
    return Benchmark(fingerprint=partial(_fingerprint, package, own), load=partial(_read, package, own.load))


def _fingerprint(package: str, benchmark: Benchmark[Any]) -> str:
    return f"{package} {_read(package, benchmark.fingerprint)}"


def _read(package: str, read: Callable[[], Read]) -> Read:
    """The result of a package's function. Raises CorpusError, naming the package, for any error in it."""
    try:
        return read()
    except CorpusError:
        raise
    except Exception as error:
        raise CorpusError(
            f"{package}: the rows of a task cannot be read ({kind_and_first_line(error)})"
            "\n  accepted: a package that is whole"
        ) from error
