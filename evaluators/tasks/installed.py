"""Tasks that other packages bring: each names, under the entry point `semray.tasks`, a function path -> tasks.

Name and version of the package are part of a task's fingerprint: scores of another version are other scores.
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
    """tasks: those of every package, by name. broken: each package whose tasks are not to be had, and why."""

    tasks: Tasks
    broken: tuple[str, ...]


def tasks(path: str | None, taken: Collection[str] = ()) -> Brought:
    """What the installed packages bring. CorpusError, naming the package, for a task whose name is another's.

    path: the folder in which a study has benchmarks looked for first. taken: the names of semray's own tasks.
    """
    found: dict[str, Task[Any, Any]] = {}
    broken = []
    for point in _points():
        package = package_of(point)
        try:
            offered = _offered(point, package, path)
        except Exception as error:  # noqa: BLE001  whatever it is, other tasks can do without these
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
    """What is wrong with a task's name; "" for one that it has alone."""
    if name in taken:
        return "there is one of that name"
    if name in found:
        return "another package has a task of that name"
    return "" if name == task.name else f"it is called {task.name!r}"


@cache
def _points() -> tuple[EntryPoint, ...]:
    return tuple(sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value)))


def _offered(point: EntryPoint, package: str, path: str | None) -> Tasks:
    """The tasks of a package, whose rows are those of its version. Tasks that share a benchmark share it still."""
    table = dict(point.load()(path))
    shared: dict[int, Benchmark[Any]] = {}
    named = {}
    for name, task in table.items():
        if not isinstance(task, Task):
            raise TypeError(f"{name!r} is a {type(task).__name__}, not a Task")
        own = task.benchmark
        named[name] = replace(task, benchmark=shared.setdefault(id(own), _of_package(package, own)))
    return named


def _of_package(package: str, own: Benchmark[Any]) -> Benchmark[Any]:
    return Benchmark(fingerprint=partial(_fingerprint, package, own), load=partial(_read, package, own.load))


def _fingerprint(package: str, benchmark: Benchmark[Any]) -> str:
    return f"{package} {_read(package, benchmark.fingerprint)}"


def _read(package: str, read: Callable[[], Read]) -> Read:
    """What a package reads. CorpusError, naming it, for whatever goes wrong there."""
    try:
        return read()
    except CorpusError:
        raise
    except Exception as error:
        raise CorpusError(
            f"{package}: the rows of a task cannot be read ({kind_and_first_line(error)})"
            "\n  accepted: a package that is whole"
        ) from error
