"""What may be refused of a family's encoders before a lane starts, in words that name arm, field and value."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from corpora.store.errors import CorpusError, kind_and_first_line
from evaluators.tasks import installed
from evaluators.tasks.task import Task, Tasks, evaluate, metric_names
from orchestration.study.names import listed
from trainers.engine.limits import micro_batch_refusal

if TYPE_CHECKING:
    from evaluators.metrics.scores import Score
    from orchestration.study.study import Study


@contextmanager
def of_arm(name: str) -> Iterator[None]:
    """Let what is refused within the block say of which arm it is."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"arms.{name}: {error}") from None


def check_trained(study: Study, check: Callable[[Any], object]) -> None:
    """Look at every arm that is trained; what is refused says of which it is."""
    for name, arm in study.arms.items():
        with of_arm(name):
            if arm.train:
                check(arm)


def check_packed(backbones: Sequence[Path]) -> None:
    """Every backbone can be one of a stack."""
    from trainers.encoders.packing import padded_kind
    from trainers.encoders.stack import refusal

    for folder in backbones:
        if (kind := padded_kind(folder)) is not None:
            raise ValueError(refusal(kind))


def check_micro_batch(study: Study) -> None:
    """Every arm that trains in parts can do so in the study's worlds."""
    resources = study.resources
    for name, arm in study.arms.items():
        said = micro_batch_refusal(
            getattr(arm, "micro_batch", None),
            workers=resources.workers_per_run,
            zero_stage=resources.deepspeed.zero_stage,
        )
        if said:
            raise ValueError(f"arms.{name}: {said}")


def micro_batch_slips(most_at_once: Callable[[Any], int]) -> Callable[[Study], list[str]]:
    """The slips of arms whose train.micro_batch holds all texts that pass the encoder at once without it.

    most_at_once: how many that are at most in a step of such an arm, over all workers.
    """

    def slips(study: Study) -> list[str]:
        workers = study.resources.workers_per_run
        told: dict[tuple[int, int], list[str]] = {}
        for name, arm in study.arms.items():
            asked = arm.micro_batch
            if arm.train and isinstance(asked, int) and asked * workers >= (most := most_at_once(arm)):
                told.setdefault((asked, most // workers), []).append(name)
        of_one = " of a worker" if workers > 1 else ""
        return [
            f"{listed(arms)}: micro_batch = {asked} divides no step: at most {most:,} texts{of_one} pass at once; "
            "yet such runs have other ids than without it"
            for (asked, most), arms in told.items()
        ]

    return slips


def check_depth(study: Study, backbones: Sequence[Path], deepest: Callable[[Any], int]) -> None:
    """Every backbone has the layers that an arm asks for. deepest: the last of them, counted from 1; 0: none."""
    from trainers.encoders.backbones import depth_of

    for name, arm in study.arms.items():
        for folder in backbones if deepest(arm) else ():
            if deepest(arm) > (depth := depth_of(folder)):
                asked = list(arm.layers) if isinstance(arm.layers, tuple) else arm.layers
                raise ValueError(
                    f"arms.{name}.layers = {asked}\n  accepted: up to {depth}, the layers of {folder.name}"
                )


def check_metrics(
    study: Study, tasks: Sequence[Task[Any, Any]], of_others: Sequence[Task[Any, Any]], sizes: Sequence[str]
) -> None:
    """Every task finds something to score, and every compared metric comes out. 0.2 s for the whole of WordNet.

    of_others: tasks that packages bring.
    """
    for task in tasks:
        if len(set(task.texts(task.benchmark.load()))) < 2:
            asked = ", ".join(f"{field} = {json.dumps(getattr(study.data, field))}" for field in sizes)
            raise ValueError(
                f"evaluate: {task.name}: the corpus holds no two texts for it\n"
                f"  accepted: tasks with texts of their own; `data:` says which: {asked}"
            )
    draws = np.random.default_rng(0)
    readers = {task.reads: partial(task.made_up, draws) for task in tasks}
    claimable = metric_names([*tasks, *of_others])
    scored_once = [scores for _, scores in evaluate(tasks, readers)] + [tried(task) for task in of_others]
    found = {score.metric for scores in scored_once for score in scores} & claimable.keys()
    for claim in study.parts:
        if lacking := [one for one in study.figures_of(claim.metric) if one in claimable.keys() - found]:
            raise ValueError(
                f"compare: {claim.claim}: {lacking[0]} has no figure in this corpus"
                f"\n  accepted: {', '.join(name for name in claimable if name in found) or 'none'}"
            )


def brought_tasks(data: Any) -> Tasks:
    """What installed packages bring to a study of encoders."""
    return installed.tasks(getattr(data, "path", None)).tasks


def tried(task: Task[Any, Any]) -> list[Score]:
    """The scores of a package's task on answers of no meaning. ValueError for whatever goes wrong in its code."""
    try:
        ((_, scores),) = evaluate([task], {task.reads: partial(task.made_up, np.random.default_rng(0))})
    except CorpusError:
        raise
    except Exception as error:
        raise ValueError(
            f"evaluate: {task.name}: cannot score answers that are made up ({kind_and_first_line(error)})\n"
            "  accepted: a task whose score takes them; Task.made_up makes others"
        ) from error
    return scores
