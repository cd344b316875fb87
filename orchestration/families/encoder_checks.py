"""Checks of a study of encoders before a lane starts; their ValueErrors name arm, field and value."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
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


LENGTHS = ("max_length", "read_length", "max_seq_length")  # settings of how many tokens of a text are read


@contextmanager
def of_arm(name: str) -> Iterator[None]:
    """Add the arm's name to ValueErrors within the block."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"arms.{name}: {error}") from None


def check_trained(study: Study, check: Callable[[Any], object]) -> None:
    """Check every trained arm; ValueErrors get the arm's name."""
    for name, arm in study.arms.items():
        with of_arm(name):
            if arm.train:
                check(arm)


def check_packed(backbones: Sequence[Path]) -> None:
    """Raise ValueError for a backbone that cannot be stacked."""
    from trainers.encoders.packing import padded_kind
    from trainers.encoders.stack import refusal

    for folder in backbones:
        if (kind := padded_kind(folder)) is not None:
            raise ValueError(refusal(kind))


def check_micro_batch(study: Study) -> None:
    """Raise ValueError for an arm whose micro_batch is impossible with the study's workers and ZeRO stage."""
    resources = study.resources
    for name, arm in study.arms.items():
        refusal = micro_batch_refusal(
            getattr(arm, "micro_batch", None),
            workers=resources.workers_per_run,
            zero_stage=resources.deepspeed.zero_stage,
        )
        if refusal:
            raise ValueError(f"arms.{name}: {refusal}")


def micro_batch_slips(most_at_once: Callable[[Any], int]) -> Callable[[Study], list[str]]:
    """A family's `slips` for arms whose train.micro_batch is so large that it divides no step.

    most_at_once: the most texts that pass the encoder together in a step of an arm, over all workers.
    """

    def slips(study: Study) -> list[str]:
        workers = study.resources.workers_per_run
        undivided: dict[tuple[int, int], list[str]] = {}
        for name, arm in study.arms.items():
            size = arm.micro_batch
            if arm.train and isinstance(size, int) and size * workers >= (most := most_at_once(arm)):
                undivided.setdefault((size, most // workers), []).append(name)
        of_one = " of a worker" if workers > 1 else ""
        return [
            f"{listed(arms)}: micro_batch = {size} divides no step: at most {most:,} texts{of_one} pass at once; "
            "yet such runs have other ids than without it"
            for (size, most), arms in undivided.items()
        ]

    return slips


def length_slips(
    defining: Callable[[Any], Mapping[str, Any]], *, by_library: bool = False
) -> Callable[[Study], list[str]]:
    """A family's `slips` for arms that ask for more tokens of a text than a backbone takes.

    defining: the settings that define an arm, in which lengths have the names LENGTHS. by_library:
    sentence-transformers reads the texts, which obeys an arm beyond a tokenizer's own limit.
    """

    def slips(study: Study) -> list[str]:
        beyond: dict[tuple[str, int, str, int], list[str]] = {}
        for name, most in _taken(study.backbones, by_library=by_library).items():
            for arm, settings in study.arms.items():
                for field, asked in _lengths(defining(settings), type(settings)()).items():
                    if asked > most:
                        beyond.setdefault((field, asked, name, most), []).append(arm)
        return [
            f"{listed(arms)}: {field} = {asked:,} reads {most:,} tokens of a text, all that {name} takes; yet "
            f"such runs have other ids than with {most:,}"
            for (field, asked, name, most), arms in beyond.items()
        ]

    return slips


def _taken(backbones: Sequence[str], *, by_library: bool) -> dict[str, int]:
    """The most tokens of a text that each backbone takes, of those that are here and say so."""
    from trainers.encoders.backbones import BackboneError, resolve_backbone
    from trainers.encoders.tokens import longest_in, positions_in

    limit = positions_in if by_library else longest_in
    found: dict[str, int] = {}
    for name in backbones:
        with suppress(BackboneError):
            if (most := limit(resolve_backbone(name, fetch=False))) is not None:
                found[name] = most
    return found


def _lengths(defining: Mapping[str, Any], usual: Any) -> dict[str, int]:
    """How many tokens of a text an arm asks for, by field. usual: the default settings, which ask for nothing."""
    asked = {name: defining.get(name) for name in LENGTHS}
    return {name: value for name, value in asked.items() if value and value != getattr(usual, name)}


def check_depth(study: Study, backbones: Sequence[Path], deepest: Callable[[Any], int]) -> None:
    """Raise ValueError for an arm with more layers than a backbone. deepest: its last layer from 1; 0 for none."""
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
    """Raise ValueError for a task without texts in this corpus, or a compared metric without a figure.

    Scores made-up answers. of_others: tasks of installed packages.
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
    """The tasks that installed packages bring to a study of encoders."""
    return installed.tasks(getattr(data, "path", None)).tasks


def tried(task: Task[Any, Any]) -> list[Score]:
    """The scores of a package's task on made-up answers. Raises ValueError for any error in the package's code."""
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
