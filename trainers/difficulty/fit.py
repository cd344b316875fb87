"""Trains and evaluates all arms and seeds of a difficulty study together, as stacks of small adapters.

A member's results are the same to the last bit, whatever else is in its stack (float32, one thread).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from typing import Any, TypeVar

import numpy as np
import torch

from corpora.difficulty.rows import PairTask
from trainers.difficulty.data import TaskData
from trainers.difficulty.predict import (
    Predictions,
    baseline,
    candidate_anchor,
    judge_scorer,
    mean_gate,
    pair_predictions,
    sentence_predictions,
)
from trainers.difficulty.settings import PAIR_FORMS, Settings, isolating
from trainers.difficulty.stack import Model, TrainedAdapter, layout_of, models_per_stack, stack_key, train
from trainers.engine.world import Progress
from trainers.errors import TrainerError

Request = tuple[Settings, int | None]
Evaluate = Callable[[Request, PairTask, Predictions, Predictions | None], Sequence[Any]]
Known = Mapping[Request, Mapping[str, TrainedAdapter]]  # by data set
PORTION = 8  # models: about one stack of pair arms
Item = TypeVar("Item")
Made = TypeVar("Made")


class MemberDiverged(TrainerError):
    """The loss of one member of a stack was not finite; the message names step and terms. Others are usable."""


@dataclass(frozen=True, eq=False)
class StackResult:
    """The result of one arm and seed over all tasks.

    scores: what `evaluate` returned, task after task; none of a task whose model is broken. trained: task ->
    adapter; {} for an arm without training. broken: messages about losses that were not finite, its own or those
    of its isolating control; [] for a usable result. together: how many usable results were trained at once, with
    this one. seconds: its equal share of their time.
    """

    settings: Settings
    seed: int | None
    scores: list[Any]
    trained: dict[str, TrainedAdapter]
    broken: list[str]
    together: int = 1
    seconds: float = 0.0

    def curve(self) -> list[Progress]:
        """Weighted loss terms by step, all tasks side by side as `{task}/{term}`; loss is the mean over tasks."""
        found: list[Progress] = []
        for points in zip(*(one.curve for one in self.trained.values()), strict=True):
            terms = {
                f"{task}/{name}": value
                for task, (_, of_task) in zip(self.trained, points, strict=True)
                for name, value in of_task.items()
            }
            done = points[0][0] + 1
            loss = sum(terms.values()) / len(points)
            rate = self.settings.learning_rate
            found.append(
                Progress(step=done, steps=self.settings.steps, loss=loss, terms=terms, learning_rate=rate)
            )
        return found


def fit_stack(
    requests: Sequence[Request],
    tasks: Sequence[TaskData],
    *,
    evaluate: Evaluate,
    retrieval: bool = True,
    isolate: bool = False,
    known: Known | None = None,
    threads: int = 1,
    device: str = "cpu",
    report: Callable[[int, int], None] = lambda done, total: None,
) -> list[StackResult]:
    """Train and evaluate every requested arm and seed on every task; one result per request, in order.

    evaluate(request, task, predictions, control) returns a member's scores on one task. known: adapters of
    requests that were trained before, which are only evaluated. isolate: also train the control of each treated
    arm and pass its predictions to `evaluate`; otherwise, and for arms without a control, that argument is None.
    retrieval: predictions can rank candidates. threads: stacks trained in parallel, each on one thread.
    report(done, total): called with optimiser steps, counted per model. A result depends neither on the other
    requests nor on threads, so what a killed group lacks can be requested alone.
    Raises ValueError for settings impossible with these embeddings, and CorpusError for a missing judge.
    """
    began = time.perf_counter()
    for data in tasks:
        for settings, _ in requests:
            _require_possible(settings, data)
    known = {request: adapters for request, adapters in (known or {}).items() if adapters}
    members = _members(requests, isolate, known)
    progress = _Progress(sum(settings.steps for settings, _ in members) * len(tasks), report)
    results = [StackResult(settings, seed, [], {}, []) for settings, seed in requests]
    with _on_one_thread():
        for data in tasks:
            before = {request: adapters[data.task.name] for request, adapters in known.items()}
            found = train_all(
                members, data, known=before, threads=threads, device=device, advance=progress.advance
            )
            anchor = candidate_anchor(data) if retrieval else None
            predict = partial(_predictions, data, found, anchor, device)
            score = partial(_evaluated, data.task, predict, found, evaluate, isolate)
            # A large gamma leaves more candidates to score: those first, or one thread idles at the end.
            slow_first = sorted(requests, key=lambda request: -request[0].gamma)
            outcomes = dict(zip(slow_first, _side_by_side(score, slow_first, threads), strict=True))
            for result in results:
                scores, broken = outcomes[result.settings, result.seed]
                result.scores.extend(scores)
                result.broken.extend(broken)
                if (result.settings, result.seed) in found:
                    result.trained[data.task.name] = found[result.settings, result.seed]
    usable = max(1, sum(not each.broken and (each.settings, each.seed) not in known for each in results))
    share = (time.perf_counter() - began) / usable
    return [replace(result, together=usable, seconds=share) for result in results]


def fit_portions(
    requests: Sequence[Request],
    tasks: Sequence[TaskData],
    *,
    isolate: bool = False,
    known: Known | None = None,
    threads: int = 1,
    report: Callable[[int, int], None] = lambda done, total: None,
    **options: Any,
) -> Iterator[StackResult]:
    """`fit_stack`, same arguments and results, a few seeds at a time, so that a kill loses one portion only.

    Portions are as large as `threads` full stacks, so that they cost no speed. In each, newly trained results come
    first, so that a meter does not bill their training to models trained earlier.
    """
    parts, known = _portions(requests, threads), known or {}
    steps = [len(tasks) * sum(s.steps for s, _ in _members(part, isolate, known)) for part in parts]
    for part, before in zip(parts, accumulate(steps, initial=0), strict=False):
        report_part = partial(lambda before, done, _: report(before + done, sum(steps)), before)
        found = fit_stack(
            part, tasks, isolate=isolate, known=known, threads=threads, report=report_part, **options
        )
        yield from sorted(found, key=lambda result: bool(known.get((result.settings, result.seed))))


def _portions(requests: Sequence[Request], threads: int) -> list[Sequence[Request]]:
    """Consecutive requests, cut where the seed changes and every thread has a stack's worth of models."""
    parts: list[list[Request]] = [[]]
    for request in requests:
        trained = [settings for settings, _ in parts[-1] if settings.train]
        if len(trained) >= threads * PORTION and request[1] != parts[-1][-1][1]:
            parts.append([])
        parts[-1].append(request)
    return list(parts)


def _members(requests: Sequence[Request], isolate: bool, known: Known) -> list[Request]:
    """All distinct members to train: the requests, the arms that they are matched to, and their controls."""
    wanted = [request for request in requests if request[0].train and not known.get(request)]
    wanted += [treated_by(settings, seed) for settings, seed in wanted if settings.matched_to]
    if isolate:
        trained = [request for request in dict.fromkeys([*requests, *wanted]) if request[0].train]
        wanted += [(control, seed) for settings, seed in trained if (control := isolating(settings)) is not None]
    return [request for request in dict.fromkeys(wanted) if not known.get(request)]


def treated_by(settings: Settings, seed: int | None) -> Request:
    """The request whose mean gate a `pair_ungated_matched` arm is matched to: otherwise the same, same seed."""
    assert settings.matched_to is not None
    return replace(settings, form=settings.matched_to, matched_to=None), seed


def _require_possible(settings: Settings, data: TaskData) -> None:
    if settings.train:
        layout_of(settings, data.x.shape[1])
    if settings.needs_judge:
        data.train.judgement()


class _Progress:
    """Counts the models' steps over all threads."""

    def __init__(self, total: int, report: Callable[[int, int], None]) -> None:
        self._done, self._total, self._report, self._lock = 0, total, report, threading.Lock()

    def advance(self, steps: int) -> None:
        with self._lock:
            self._done += steps
            self._report(self._done, self._total)


def train_all(
    members: Sequence[Request],
    data: TaskData,
    *,
    known: Mapping[Request, TrainedAdapter] | None = None,
    threads: int,
    device: str,
    advance: Callable[[int], None],
) -> dict[Request, TrainedAdapter]:
    """Train all members; return their adapters together with the `known` ones.

    There are two rounds: first arms with their own gamma, then arms whose gamma is the mean gate of one of those.
    """
    found = dict(known or {})
    for matched in (False, True):
        stacks: dict[tuple[object, ...], list[tuple[Request, Model]]] = {}
        for request in members:
            settings, seed = request
            if (settings.matched_to is not None) != matched:
                continue
            assert seed is not None
            gamma = settings.gamma
            if matched:
                gamma *= mean_gate(found[treated_by(settings, seed)], data, device=device)
            key = stack_key(settings, data.x.shape[1])
            stacks.setdefault(key, []).append((request, Model(settings, seed, gamma)))
        chunks = [chunk for stack in stacks.values() for chunk in _chunks(stack, data, threads)]
        fit = partial(train, data=data, device=device, advance=advance)
        models = [[model for _, model in chunk] for chunk in chunks]
        for chunk, trained in zip(chunks, _side_by_side(fit, models, threads), strict=True):
            found.update({request: adapter for (request, _), adapter in zip(chunk, trained, strict=True)})
    return found


def _chunks(stack: list[tuple[Request, Model]], data: TaskData, threads: int) -> list[list[tuple[Request, Model]]]:
    """Cut a stack into parts that fit the cache, at least one for each thread if it is long enough.

    Arms of one seed stay together if they fit, since they share their batches.
    """
    most = min(models_per_stack(layout_of(stack[0][1].settings, data.x.shape[1])), -(-len(stack) // threads))
    of_seed: dict[int, list[tuple[Request, Model]]] = {}
    for member in stack:
        of_seed.setdefault(member[1].seed, []).append(member)
    chunks: list[list[tuple[Request, Model]]] = []
    for members in of_seed.values():
        parts = -(-len(members) // most)
        for i in range(parts):
            part = members[len(members) * i // parts : len(members) * (i + 1) // parts]
            if chunks and len(chunks[-1]) + len(part) <= most:
                chunks[-1] += part
            else:
                chunks.append(part)
    return chunks


def _evaluated(
    task: PairTask,
    predict: Callable[[Request], Predictions],
    found: Mapping[Request, TrainedAdapter],
    evaluate: Evaluate,
    isolate: bool,
    request: Request,
) -> tuple[Sequence[Any], list[str]]:
    """The scores of a request, and []; if its model or its control is broken, no scores and the messages."""
    control = isolating(request[0]) if isolate else None
    needed = [request, *([] if control is None else [(control, request[1])])]
    wrong = [(model, found[model].broken) for model in needed if model in found and found[model].broken]
    if wrong:
        return [], [f"{task.name}, {settings.form}: {words}" for (settings, _), words in wrong]
    predictions = [predict(model) for model in needed]
    return evaluate(request, task, predictions[0], predictions[1] if control else None), []


def _predictions(
    data: TaskData,
    found: Mapping[Request, TrainedAdapter],
    anchor: np.ndarray | None,
    device: str,
    request: Request,
) -> Predictions:
    settings = request[0]
    if settings.form == "baseline":
        return baseline(data, retrieval=anchor is not None)
    if settings.form == "judge_scorer":
        return judge_scorer(data)
    if settings.form in PAIR_FORMS:
        return pair_predictions(found[request], data, anchor, device=device)
    return sentence_predictions(found[request], data, retrieval=anchor is not None, device=device)


@contextmanager
def _on_one_thread() -> Iterator[None]:
    """Limit torch to one thread within the block, since the order of sums depends on the number of threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _side_by_side(act: Callable[[Item], Made], items: Sequence[Item], threads: int) -> list[Made]:
    """act(item) for every item, in order, on so many threads; torch uses one thread within each."""
    with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        return list(pool.map(act, items))
