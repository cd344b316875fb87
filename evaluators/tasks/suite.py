"""All published tasks, for every encoder that reads their inputs: texts, or words in their sentences.

table = tasks("data")                 # every task by name; those of mteb are looked up when they are named
GROUPS["sts"]                         # the seven STS tasks that papers average; "senteval" likewise
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from corpora.store.errors import CorpusError
from evaluators.tasks import (
    human_phrases,
    installed,
    mteb,
    noun_phrases,
    reranking,
    robustness,
    senteval,
    sts,
    sts_averages,
    words_in_context,
)
from evaluators.tasks.task import Find, Table, Tasks

# Names that stand for several tasks in `evaluate:` and in a mean over tasks.
GROUPS: Mapping[str, tuple[str, ...]] = {
    "sts": sts.SEVEN,
    "sts-dedup": sts.SEVEN_DEDUP,
    "senteval": senteval.SEVEN,
    "senteval-sklearn": senteval.SEVEN_SKLEARN,
}


def tasks(path: str | None, own: Tasks | None = None) -> Table:
    """Every task by name; path: a folder to look in first. Benchmarks are read lazily.

    own: a family's tasks on its own corpus, which replace others of the same name. Raises CorpusError if they are
    no such tasks, or if an installed package has a task with one of their names.
    """
    _check_own(own)
    listed: Tasks = {
        **sts.tasks(path),
        **sts_averages.averages(path),
        **senteval.tasks(path),
        **robustness.tasks(path),
        **reranking.tasks(path),
        **words_in_context.tasks(path),
        **noun_phrases.tasks(None),
        **human_phrases.tasks(path),
    }
    brought = installed.tasks(path, {*listed, *(own or {})})
    finds: dict[str, Find] = {
        mteb.PREFIX: partial(mteb.task, path=path),
        **(own.finds if isinstance(own, Table) else {}),
    }
    return Table({**listed, **brought.tasks, **(own or {})}, finds, brought.broken)


def _check_own(own: Any) -> None:
    """Raise CorpusError for tasks of a family that are none, or that go by another name or headline."""
    if not isinstance(own, Mapping | None):
        raise CorpusError(f"own_tasks gives a {type(own).__name__}\n  accepted: {{name: Task}}, as a mapping")
    for name, task in (own or {}).items():
        why = installed.not_as_promised(task) or (f"is called {task.name!r}" if task.name != name else "")
        if why:
            raise CorpusError(
                f"own_tasks: {name!r} {why}\n  accepted: a Task under its own name, with a headline of its metrics"
            )
