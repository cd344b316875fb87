"""The difficulty family: all arms and seeds of a job as one stack of adapters over cached embeddings."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corpora.difficulty.pairs import GRADED, STANDIN, PairData, load_task, measured_on, seen_by_judge, set_named
from corpora.store.json_text import json_text
from corpora.store.places import named_path
from corpora.store.telling import Tell, unheard
from evaluators.tasks import suite
from evaluators.tasks.pair_similarity import FIGURES, ISOLATING, PREDICTIONS, tasks
from evaluators.tasks.task import Task, Tasks, named
from orchestration.families.as_planned import check_backbone, check_corpus, check_tasks
from orchestration.families.contract import USUAL_IMPORTS, ArmSeen, Family, RowsOf
from orchestration.families.encoder_checks import check_trained
from orchestration.families.plain import PlainFamily
from orchestration.study.names import listed, names_accepted
from orchestration.study.run import (
    DATA,
    TRAINING,
    WITHOUT_DEV,
    Job,
    Result,
    Run,
    RunsFailed,
    Scored,
    Trained,
    built,
)
from search_spaces.difficulty import SPACE
from trainers.difficulty.settings import ISOLATED_BY, Settings, defining

if TYPE_CHECKING:
    from corpora.difficulty.rows import PairTask
    from evaluators.metrics.headroom import Headroom
    from orchestration.study.study import Study
    from trainers.difficulty.data import TaskData
    from trainers.difficulty.fit import Request, StackResult
    from trainers.difficulty.judges import Judge
    from trainers.difficulty.stack import TrainedAdapter
    from trainers.engine.world import World

CORRELATED = ("spearman", "pearson", "isolated_gain")  # figures that have no value where gold is constant
SCORER = """\
from trainers.difficulty.pair_scorer import GatedPairScorer

scores = GatedPairScorer.load("FOLDER/SET").score([("a vessel for hot drinks", "a cup of tea")])
"""


class DifficultyFamily(PlainFamily):
    """See `contract.Family`. Its runs train adapters that correct the cosines of a frozen encoder."""

    settings, data, space = Settings, PairData, SPACE
    stacked = needs_backbone = True
    dev_apart = True  # a search trains without the third of the training rows that it judges by
    streams = ("data", "init")
    imports = USUAL_IMPORTS

    def tasks(self, data: PairData) -> Tasks:
        """Its own tasks, and those of others that read predictions of pairs."""
        table = suite.tasks(data.path, tasks(data))
        return {name: task for name, task in table.items() if task.reads == PREDICTIONS}

    def headroom(self, data: PairData, backbone: str, tell: Tell) -> list[Headroom]:
        """The headroom of each data set; computes embeddings and judge's scores unless cached."""
        return [headroom_of(pair_set) for pair_set in prepared(data, backbone, tell=tell)[0]]

    def groups(self, data: PairData) -> dict[str, tuple[str, ...]]:
        """Every kind of task on all data sets of the study."""
        return {kind: tuple(f"{kind}/{pair_set}" for pair_set in data.tasks) for kind in FIGURES}

    def reads(self, settings: Settings) -> tuple[str, ...]:
        return (PREDICTIONS,)

    def defining(self, settings: Settings) -> dict[str, Any]:
        return defining(settings)

    def caveats(self, sides: Sequence[ArmSeen], data: PairData, figures: Sequence[str]) -> tuple[str, ...]:
        """Warn of a judge that learned from a task's labels, whose target there is not independent of them."""
        judged = [side.name for side in sides if side.settings.needs_judge]
        seen, tasks_of = seen_by_judge(data), [figure.removeprefix("dev/").partition("/")[0] for figure in figures]
        return tuple(
            f"the judge of {' and '.join(judged)} learned from labels of {seen[task]}"
            + (f", which shares pairs with {task}" if seen[task] != task else "")
            for task in dict.fromkeys(tasks_of)
            if judged and task in seen
        )

    def learns(self, settings: Settings) -> bool:
        """True for untrained arms too, as the data block names the encoding and the judge."""
        return True

    def fingerprint(self, data: PairData) -> str:
        from trainers.difficulty.fingerprint import fingerprint

        return fingerprint(data)

    def rows(self, data: PairData) -> list[RowsOf]:
        sets = [load_task(name, data) for name in data.tasks]
        return [
            RowsOf(each.name, len(each.train), {f"of {measured_on(each)}": len(each.evaluation)}) for each in sets
        ]

    def former_fingerprint(self, data: PairData) -> str:
        from trainers.difficulty.fingerprint import former_fingerprint

        return former_fingerprint(data)

    def opened_by(self, folder: Path) -> str:
        """Code for a pair arm's scorer on one data set; "" for a per-sentence arm, which saves no whole model."""
        scorers = sorted(path.parent.name for path in folder.glob("*/scorer.json"))
        return SCORER.replace("SET", scorers[0]) if scorers else ""

    def check(self, study: Study) -> None:
        judged = [arm.form for arm in study.arms.values() if arm.needs_judge]
        if study.data.judge == "none" and judged:
            raise ValueError(f"data.judge = 'none', but {', '.join(judged)} need a judge's scores")
        check_figures(study)

    def slips(self, study: Study) -> tuple[str, ...]:
        """Warn if data.judge_saw names no known sets that a user's judge learned from: no caveat would appear."""
        judged, data = listed([name for name, arm in study.arms.items() if arm.needs_judge]), study.data
        if not judged or data.judge in ("none", STANDIN):
            return ()
        if not data.judge_saw:
            return (f"{judged}: data.judge_saw = [] leaves open whose labels {data.judge} learned from",)
        unknown = [written for written in data.judge_saw if set_named(written) is None]
        return tuple(
            f"{judged}: data.judge_saw: no claim is warned of {own!r}; known: {names_accepted(own, list(GRADED))}"
            for own in unknown
        )

    def prepare(self, study: Study, backbones: Sequence[Path]) -> None:
        for folder in backbones:
            check_sizes(study, folder)
        pair_sets = [load_task(name, study.data) for name in study.data.tasks]
        check_golds(study, pair_sets)
        check_scores(study.data, pair_sets)

    def execute(self, job: Job, world: World) -> Iterator[Result]:
        """Embed and judge once, train all runs without a model together, yield each result.

        A training error fails one run; a scoring error fails all later runs of the job.
        """
        from trainers.difficulty.fit import MemberDiverged, fit_portions
        from trainers.engine.world import Progress

        started = time.perf_counter()
        first = job.runs[0]  # the runs of a job share backbone, data and tasks, except tasks already scored
        data, pair_sets, judge = _prepared_for(first, world)
        of_request = {(built(Settings, run.settings), run.seed): run for run in job.runs}
        wanted = {request: named(FAMILY.tasks(data), run.tasks) for request, run in of_request.items()}
        for request, run in of_request.items():
            check_tasks(run, wanted[request])
        kinds = {task.name.rpartition("/")[0] for asked in wanted.values() for task in asked}
        share = (time.perf_counter() - started) / len(job.runs)
        results = fit_portions(
            list(of_request),
            pair_sets,
            known={request: _adapters(request, run, job, pair_sets) for request, run in of_request.items()},
            evaluate=partial(_scores, wanted),
            retrieval="retrieval" in kinds,
            isolate=not kinds.isdisjoint(ISOLATING),
            threads=world.threads,
            device=world.device,
            report=lambda done, total: world.report(Progress(step=done, steps=total, loss=0.0)),
        )
        broken: dict[str, Exception] = {}
        for result in results:
            run = of_request[result.settings, result.seed]
            if result.broken:
                broken[run.id] = MemberDiverged("; ".join(result.broken))
                continue
            yield from _results(run, result, job, data, pair_sets, judge, {DATA: share, TRAINING: result.seconds})
        if broken:
            raise RunsFailed(broken) if len(job.runs) > 1 else broken[first.id]


FAMILY: Family = DifficultyFamily()


def check_figures(study: Study) -> None:
    """Raise ValueError for a figure in a claim or search that the form of an arm can never have."""
    asked = [
        (arm, figure) for part in study.parts for arm in part.arms for figure in study.figures_of(part.metric)
    ]
    if study.search is not None:
        sought = [figure for one in study.search.objectives for figure in study.figures_of(one.metric)]
        asked += [(arm, figure) for arm in study.search.arms for figure in sought]
    refused = [
        f"arms.{arm}.form = {form!r}, of which {figure} is asked, never has it\n  accepted: {accepted}"
        for arm, figure in dict.fromkeys(asked)
        if (accepted := instead_of(form := study.arms[arm].form, figure))
    ]
    if refused:
        raise ValueError("\n".join(refused))


def instead_of(form: str, figure: str) -> str:
    """If this form cannot have a figure, the forms that can, in words; otherwise ""."""
    kind = figure.rpartition("/")[2]
    if kind in FIGURES["isolation"] and form not in ISOLATED_BY:
        return f"{', '.join(ISOLATED_BY)}, which have a control that lacks the signal alone"
    if kind in FIGURES["retrieval"] and form == "judge_scorer":
        return "any other form: the judge would have to read every query with every candidate"
    return ""


def check_golds(study: Study, pair_sets: Sequence[PairTask]) -> None:
    """Raise ValueError for a claim on a correlation whose gold is the same in every row, and so undefined."""
    claimed = {figure for part in study.parts for figure in study.figures_of(part.metric)}
    for one in pair_sets:
        asked = sorted(claimed & {f"{one.name}/{kind}" for kind in CORRELATED})
        if asked and len(golds := set(one.evaluation.gold.tolist())) == 1:
            raise ValueError(
                f"{asked[0]} is claimed, and all {len(one.evaluation)} evaluated rows have gold {golds.pop():g}:"
                f" {one.source}\n  accepted: rows of at least two; a larger eval_cap or cap_mode: hash has more"
            )


def check_scores(data: PairData, tasks: Sequence[PairTask]) -> None:
    """Raise an error unless a file of judge's scores, if given, has a score for every pair."""
    from trainers.difficulty.judges import ScoresFile

    if data.scores_file is None:
        return
    judge = ScoresFile(named_path(data.scores_file), data.judge_saw)
    for task in tasks:
        for part in (task.train, task.evaluation):
            judge.score(part.a, part.b)


def check_sizes(study: Study, folder: Path) -> None:
    """Raise ValueError for an arm whose sizes do not fit the length of a backbone's vectors, if that is known."""
    from trainers.difficulty.stack import layout_of
    from trainers.encoders.backbones import width_of
    from trainers.encoders.own_reading import own_readout

    try:
        own_readout(folder)  # if this succeeds, vectors are as long as token states
    except ValueError:
        return
    if (width := width_of(folder)) is None:
        return
    check_trained(study, lambda arm: layout_of(arm, width))


@lru_cache(maxsize=8)  # every run of a job asks for the same data sets
def headroom_of(data: TaskData) -> Headroom:
    """The headroom of one task; with a judge, its doubt is one of the signals."""
    from evaluators.metrics.headroom import headroom

    doubts = data.evaluation.candidate_targets()
    return headroom(data.task, data.evaluation.anchor, doubts, data.train.candidate_targets())


def prepared(
    data: PairData,
    backbone: str,
    *,
    device: str = "cpu",
    tell: Tell = unheard,
) -> tuple[list[TaskData], Judge | None]:
    """Every data set of a study with embeddings and, if its data block names a judge, the judge's scores. Cached.

    tell: hears, in words, of each long step before it starts, and how far it is.
    """
    from trainers.difficulty import data as difficulty_data
    from trainers.difficulty.judges import judge_of
    from trainers.encoders.backbones import resolve_backbone
    from trainers.encoders.frozen_encoder import SentenceEncoder

    encoder = SentenceEncoder(
        resolve_backbone(backbone),
        data.prompt,
        data.max_length,
        device,
        keep_words=data.judge == STANDIN,
        tell=tell,
    )
    judge = judge_of(data, encoder=encoder, resolve=resolve_backbone)
    pair_sets = [difficulty_data.prepared(load_task(name, data), encoder, judge, tell) for name in data.tasks]
    return pair_sets, judge


def _prepared_for(run: Run, world: World) -> tuple[PairData, list[TaskData], Judge | None]:
    """A job's data block, data sets (in a search, its part of the rows) and judge, checked against the plan."""
    from trainers.difficulty.data import for_selection
    from trainers.encoders.backbones import resolve_backbone

    check_backbone(run, resolve_backbone(run.backbone))
    data = built(PairData, run.data)
    check_corpus(run, FAMILY.fingerprint(data))
    pair_sets, judge = prepared(data, run.backbone, device=world.device, tell=world.tell)
    if run.defining.get(WITHOUT_DEV):
        pair_sets = [for_selection(pair_set) for pair_set in pair_sets]
    return data, pair_sets, judge


def _scores(
    wanted: Mapping[Request, Sequence[Task[Any, Any]]], request: Request, pair_set: Any, *predictions: Any
) -> list[tuple[str, Any]]:
    """(task name, score) for each score of a model's predictions on one data set."""
    plain = pair_set.name.removeprefix("dev/")
    return [
        (task.name, score)
        for task in wanted[request]
        if task.name.rpartition("/")[2] == plain
        for score in task.score(pair_set, lambda names: [predictions])
    ]


def _results(
    run: Run,
    result: StackResult,
    job: Job,
    data: PairData,
    pair_sets: Sequence[TaskData],
    judge: Judge | None,
    seconds: Mapping[str, float],
) -> Iterator[Result]:
    if run.id not in job.models:
        notes = {"judge": judge.name, "judge_saw": ", ".join(judge.saw) or "unknown"} if judge else {}
        if result.settings.form == "baseline":
            notes |= {f"headroom on {one.task.name}": headroom_of(one).advice for one in pair_sets}
        save = partial(_save, run.backbone, data, pair_sets, result) if result.trained else None
        yield Trained(
            run=run,
            curve=result.curve(),
            seconds=seconds,
            notes=notes,
            share=1 / result.together,
            save_model=save,
        )
    for name in run.tasks:
        yield Scored(run=run, task=name, scores=[score for task, score in result.scores if task == name])


def _adapters(request: Request, run: Run, job: Job, pair_sets: Sequence[TaskData]) -> dict[str, TrainedAdapter]:
    """The adapters of a run that was trained before, by data set; {} for a run to be trained."""
    from trainers.difficulty.pair_scorer import load_adapter

    folder, (settings, seed) = job.models.get(run.id), request
    if folder is None or seed is None:
        return {}
    return {
        one.task.name: load_adapter(folder / one.task.name, settings, seed, one.x.shape[1]) for one in pair_sets
    }


def _save(backbone: str, data: PairData, pair_sets: Sequence[TaskData], result: StackResult, folder: Path) -> None:
    """Write one adapter per data set: a scorer's folder for a pair arm, only parameters for a per-sentence arm.

    Each also gets headroom.json, the headroom of the frozen cosine.
    """
    from trainers.difficulty.pair_scorer import WEIGHTS, export_scorer, save_adapter
    from trainers.difficulty.settings import PAIR_FORMS

    for pair_set in pair_sets:
        trained, place = result.trained[pair_set.task.name], folder / pair_set.task.name
        if result.settings.form in PAIR_FORMS:
            export_scorer(
                place, trained, pair_set, backbone=backbone, prompt=data.prompt, max_length=data.max_length
            )
        else:
            place.mkdir(parents=True)
            save_adapter(place / WEIGHTS, trained, pair_set.x.shape[1])
        (place / "headroom.json").write_text(json_text(asdict(headroom_of(pair_set))))
