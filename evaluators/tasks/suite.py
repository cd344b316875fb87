"""All published tasks, for every encoder that reads their inputs: texts, or words in their sentences.

table = tasks("data")                 # every task by name; those of mteb are looked up when they are named
GROUPS["sts"]                         # the seven STS tasks that papers average; "senteval" likewise
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

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

    own: a family's tasks on its own corpus, which replace others of the same name. Raises CorpusError if an
    installed package has a task with one of these names.
    """
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
