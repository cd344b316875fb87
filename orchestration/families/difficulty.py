"""The run body of the difficulty family: all arms and seeds of a job as one stack over cached embeddings."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestration.study.run import Result, Run, built

if TYPE_CHECKING:
    from corpora.difficulty.pairs import PairData
    from trainers.difficulty.data import TaskData
    from trainers.difficulty.fit import StackResult
    from trainers.difficulty.judges import Judge
    from trainers.engine.world import World


def train_stack(runs: Sequence[Run], world: World) -> Iterator[tuple[Run, Result]]:
    """Embed and judge once, train every run of the job together, yield each result."""
    from corpora.difficulty.pairs import PairData
    from evaluators.tasks.pair_similarity import ISOLATING, pair_metrics
    from orchestration.families.headroom import look
    from orchestration.families.sources import check_sources
    from trainers.difficulty.data import for_selection
    from trainers.difficulty.fit import StackDiverged, fit_portions
    from trainers.difficulty.judges import fingerprint
    from trainers.difficulty.settings import Settings
    from trainers.encoders.backbones import resolve_backbone
    from trainers.engine.world import Progress

    started = time.perf_counter()
    first = runs[0]  # a job's runs share backbone and data
    check_sources(first, resolve_backbone(first.backbone), fingerprint(built(PairData, first.data)))
    data, tasks, judge = prepared(
        first.data,
        first.backbone,
        device=world.device,
        tell=lambda words: world.report(Progress(step=0, steps=0, loss=0.0, doing=words)),
    )
    if all(task.startswith("dev/") for task in first.evaluate):  # a run that serves a search
        tasks = [for_selection(task) for task in tasks]
    share = (time.perf_counter() - started) / len(runs)
    results = fit_portions(
        [(built(Settings, run.settings), run.seed) for run in runs],
        tasks,
        evaluate=pair_metrics,
        retrieval="retrieval" in first.evaluate,
        isolate=any(task in ISOLATING for task in first.evaluate),
        threads=world.threads,
        device=world.device,
        report=lambda done, total: world.report(Progress(step=done, steps=total, loss=0.0)),
    )
    before, broken = time.perf_counter(), []
    for run, result in zip(runs, results, strict=True):
        if result.broken:
            broken.append(f"{run.label}: {'; '.join(result.broken)}")
            continue
        notes = {"judge": judge.name, "judge_saw": ", ".join(judge.saw) or "unknown"} if judge else {}
        if result.settings.form == "baseline":
            notes |= {f"headroom on {task.task.name}": look(task).advice for task in tasks}
        save = partial(_save, run.backbone, data, tasks, result) if result.trained else None
        seconds = {"data": share, "train": time.perf_counter() - before}  # of a portion: with its first run
        curve = result.curve()
        yield run, Result(scores=result.scores, curve=curve, seconds=seconds, notes=notes, save_model=save)
        before = time.perf_counter()
    if broken:
        raise StackDiverged("\n".join(broken))


def prepared(
    fields: Mapping[str, Any],
    backbone: str,
    *,
    device: str = "cpu",
    tell: Callable[[str], None] = lambda words: None,
) -> tuple[PairData, list[TaskData], Judge | None]:
    """The data block of a study with every task embedded and, where it names a judge, judged. Cached.

    tell: hears, in words, of whatever takes its time, before it starts.
    """
    from corpora.difficulty.pairs import STANDIN, PairData, load_task
    from trainers.difficulty import data as difficulty_data
    from trainers.difficulty.judges import judge_of
    from trainers.encoders.backbones import resolve_backbone
    from trainers.encoders.frozen import SentenceEncoder

    data = built(PairData, fields)
    encoder = SentenceEncoder(
        resolve_backbone(backbone), data.prompt, data.max_length, device, keep_words=data.judge == STANDIN
    )
    judge = judge_of(data, encoder=encoder, resolve=resolve_backbone)
    tasks = [difficulty_data.prepared(load_task(name, data), encoder, judge, tell) for name in data.tasks]
    return data, tasks, judge


def _save(backbone: str, data: PairData, tasks: Sequence[TaskData], result: StackResult, folder: Path) -> None:
    """One adapter per task: a scorer's folder for a pair arm, the bare parameters for a per-sentence one."""
    from trainers.difficulty.pair_scorer import export_scorer, save_adapter
    from trainers.difficulty.settings import PAIR_FORMS

    for task in tasks:
        trained, place = result.trained[task.task.name], folder / task.task.name
        if result.settings.form in PAIR_FORMS:
            export_scorer(place, trained, task, backbone=backbone, prompt=data.prompt, max_length=data.max_length)
        else:
            place.mkdir()
            save_adapter(place / "adapter.safetensors", trained, task.x.shape[1])
