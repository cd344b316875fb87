"""The difficulty family: all arms and seeds of a job as one stack of adapters over cached embeddings."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corpora.difficulty.pairs import GRADED, STANDIN, PairData, load_task, measured_on, seen_by_judge, set_named
from evaluators.tasks import suite
from evaluators.tasks.pair_similarity import FIGURES, ISOLATING, PREDICTIONS, tasks
from evaluators.tasks.task import Task, Tasks, named
from orchestration.families.as_planned import check_backbone, check_corpus, check_tasks
from orchestration.families.contract import USUAL_IMPORTS, ArmSeen, Family, RowsOf
from orchestration.families.encoder_checks import check_trained
from orchestration.families.plain import PlainFamily
from orchestration.study.names import listed, names_accepted
from orchestration.study.run import WITHOUT_DEV, Job, Result, Run, RunsFailed, Scored, Trained, built
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
    """See `contract.Family`. What its runs train is no encoder: it corrects the cosines of a frozen one."""

    settings, data, space = Settings, PairData, SPACE
    stacked = needs_backbone = True
    dev_apart = True  # a search trains without the third of the training rows that it judges by
    streams = ("data", "init")
    imports = USUAL_IMPORTS

    def tasks(self, data: PairData) -> Tasks:
        """Its own, and of all others those that read the predictions of pairs."""
        table = suite.tasks(data.path, tasks(data))
        return {name: task for name, task in table.items() if task.reads == PREDICTIONS}

    def headroom(self, data: PairData, backbone: str) -> list[Headroom]:
        """Embeds and judges, both cached."""
        return [headroom_of(pair_set) for pair_set in prepared(data, backbone)[0]]

    def groups(self, data: PairData) -> dict[str, tuple[str, ...]]:
        """Every kind of task on all data sets of the study."""
        return {kind: tuple(f"{kind}/{pair_set}" for pair_set in data.tasks) for kind in FIGURES}

    def reads(self, settings: Settings) -> tuple[str, ...]:
        return (PREDICTIONS,)

    def defining(self, settings: Settings) -> dict[str, Any]:
        return defining(settings)

    def caveats(self, sides: Sequence[ArmSeen], data: PairData, figures: Sequence[str]) -> tuple[str, ...]:
        """A judge that saw the labels of a task defines a target there that no independent judge would."""
        judged = [side.name for side in sides if side.settings.needs_judge]
        seen, tasks_of = seen_by_judge(data), [figure.removeprefix("dev/").partition("/")[0] for figure in figures]
        return tuple(
            f"the judge of {' and '.join(judged)} learned from labels of {seen[task]}"
            + (f", which shares pairs with {task}" if seen[task] != task else "")
            for task in dict.fromkeys(tasks_of)
            if judged and task in seen
        )

    def learns(self, settings: Settings) -> bool:
        """Untrained arms too: how a sentence is encoded, and the judge, stand in the data block."""
        return True

    def fingerprint(self, data: PairData) -> str:
        from trainers.difficulty.fingerprint import fingerprint

        return fingerprint(data)

    def rows(self, data: PairData) -> list[RowsOf]:
        found = [load_task(name, data) for name in data.tasks]
        return [RowsOf(one.name, len(one.train), {f"of {measured_on(one)}": len(one.evaluation)}) for one in found]

    def former_fingerprint(self, data: PairData) -> str:
        from trainers.difficulty.fingerprint import former_fingerprint

        return former_fingerprint(data)

    def opened_by(self, folder: Path) -> str:
        """A pair arm is a scorer on each data set; the projection of a per-sentence one is no model of its own."""
        scorers = sorted(path.parent.name for path in folder.glob("*/scorer.json"))
        return SCORER.replace("SET", scorers[0]) if scorers else ""

    def check(self, study: Study) -> None:
        judged = [arm.form for arm in study.arms.values() if arm.needs_judge]
        if study.data.judge == "none" and judged:
            raise ValueError(f"data.judge = 'none', but {', '.join(judged)} need a judge's scores")
        check_figures(study)

    def slips(self, study: Study) -> tuple[str, ...]:
        """A judge of one's own of which no set is known that it learned from: no claim would be warned of."""
        judged, data = listed([name for name, arm in study.arms.items() if arm.needs_judge]), study.data
        if not judged or data.judge in ("none", STANDIN):
            return ()
        if not data.judge_saw:
            return (f"{judged}: data.judge_saw = [] leaves open whose labels {data.judge} learned from",)
        unknown = [written for written in data.judge_saw if set_named(written) is None]
        return tuple(
            f"{judged}: data.judge_saw: no claim is warned of {one!r}; known: {names_accepted(one, list(GRADED))}"
            for one in unknown
        )

    def prepare(self, study: Study, backbones: Sequence[Path]) -> None:
        for folder in backbones:
            check_sizes(study, folder)
        pair_sets = [load_task(name, study.data) for name in study.data.tasks]
        check_golds(study, pair_sets)
        check_scores(study.data, pair_sets)

    def execute(self, job: Job, world: World) -> Iterator[Result]:
        """Embed and judge once, train every run of the job that has no model together, yield each result.

        An error of scoring, unlike one of training, is that of all runs that come later.
        """
        from trainers.difficulty.fit import MemberDiverged, fit_portions

        started = time.perf_counter()
        first = job.runs[0]  # a job's runs share backbone, data and, but for what each has already, tasks
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
            report=lambda done, total: world.report(_progress(step=done, steps=total)),
        )
        broken: dict[str, Exception] = {}
        for result in results:
            run = of_request[result.settings, result.seed]
            if result.broken:
                broken[run.id] = MemberDiverged("; ".join(result.broken))
                continue
            yield from _results(run, result, job, data, pair_sets, judge, {"data": share, "train": result.seconds})
        if broken:
            raise RunsFailed(broken) if len(job.runs) > 1 else broken[first.id]


FAMILY: Family = DifficultyFamily()


def check_figures(study: Study) -> None:
    """Every arm can have the figures that claims and search ask of it."""
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
    """The forms that have a figure, in words, where this one cannot have it; "" where it can."""
    kind = figure.rpartition("/")[2]
    if kind in FIGURES["isolation"] and form not in ISOLATED_BY:
        return f"{', '.join(ISOLATED_BY)}, which have a control that lacks the signal alone"
    if kind in FIGURES["retrieval"] and form == "judge_scorer":
        return "any other form: the judge would have to read every query with every candidate"
    return ""


def check_golds(study: Study, pair_sets: Sequence[PairTask]) -> None:
    """No claim is on what never has a value: a correlation with gold that is the same in every row."""
    claimed = {figure for part in study.parts for figure in study.figures_of(part.metric)}
    for one in pair_sets:
        asked = sorted(claimed & {f"{one.name}/{kind}" for kind in CORRELATED})
        if asked and len(golds := set(one.evaluation.gold.tolist())) == 1:
            raise ValueError(
                f"{asked[0]} is claimed, and all {len(one.evaluation)} evaluated rows have gold {golds.pop():g}:"
                f" {one.source}\n  accepted: rows of at least two; a larger eval_cap or cap_mode: hash has more"
            )


def check_scores(data: PairData, tasks: Sequence[PairTask]) -> None:
    """A file of scores has one for every pair."""
    from trainers.difficulty.judges import ScoresFile

    if data.scores_file is None:
        return
    judge = ScoresFile(Path(data.scores_file).expanduser(), data.judge_saw)
    for task in tasks:
        for part in (task.train, task.evaluation):
            judge.score(part.a, part.b)


def check_sizes(study: Study, folder: Path) -> None:
    """Every arm can be laid out on this backbone's vectors, where their length is known before they are made."""
    from trainers.difficulty.stack import layout_of
    from trainers.encoders.backbones import width_of
    from trainers.encoders.own_reading import own_readout

    try:
        own_readout(folder)  # of its modules none makes a vector of another length than a token's
    except ValueError:
        return
    if (width := width_of(folder)) is None:
        return
    check_trained(study, lambda arm: layout_of(arm, width))


@lru_cache(maxsize=8)  # the data sets of a job, of which every run asks
def headroom_of(data: TaskData) -> Headroom:
    """The headroom of one task, with the judge's doubt among the signals where there is a judge."""
    from evaluators.metrics.headroom import headroom

    doubts = data.evaluation.candidate_targets()
    return headroom(data.task, data.evaluation.anchor, doubts, data.train.candidate_targets())


def prepared(
    data: PairData,
    backbone: str,
    *,
    device: str = "cpu",
    tell: Callable[[str], None] = lambda words: None,
) -> tuple[list[TaskData], Judge | None]:
    """Every data set of a study embedded and, where its data block names a judge, judged. Cached.

    tell: hears, in words, of whatever takes its time, before it starts.
    """
    from trainers.difficulty import data as difficulty_data
    from trainers.difficulty.judges import judge_of
    from trainers.encoders.backbones import resolve_backbone
    from trainers.encoders.frozen_encoder import SentenceEncoder

    encoder = SentenceEncoder(
        resolve_backbone(backbone), data.prompt, data.max_length, device, keep_words=data.judge == STANDIN
    )
    judge = judge_of(data, encoder=encoder, resolve=resolve_backbone)
    pair_sets = [difficulty_data.prepared(load_task(name, data), encoder, judge, tell) for name in data.tasks]
    return pair_sets, judge


def _prepared_for(run: Run, world: World) -> tuple[PairData, list[TaskData], Judge | None]:
    """What a job needs, after a look that it is what was planned; for a search, on its part of the rows."""
    from trainers.difficulty.data import for_selection
    from trainers.encoders.backbones import resolve_backbone

    check_backbone(run, resolve_backbone(run.backbone))
    data = built(PairData, run.data)
    check_corpus(run, FAMILY.fingerprint(data))
    pair_sets, judge = prepared(
        data, run.backbone, device=world.device, tell=lambda words: world.report(_progress(doing=words))
    )
    if run.defining.get(WITHOUT_DEV):
        pair_sets = [for_selection(pair_set) for pair_set in pair_sets]
    return data, pair_sets, judge


def _scores(
    wanted: Mapping[Request, Sequence[Task[Any, Any]]], request: Request, pair_set: Any, *said: Any
) -> list[tuple[str, Any]]:
    """What a model's predictions on one data set score on its tasks, each with the name of its task."""
    plain = pair_set.name.removeprefix("dev/")
    return [
        (task.name, score)
        for task in wanted[request]
        if task.name.rpartition("/")[2] == plain
        for score in task.score(pair_set, lambda names: [said])
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
    """The adapters of a run that was trained before, by data set; empty for one that is to be trained."""
    from trainers.difficulty.pair_scorer import load_adapter

    folder, (settings, seed) = job.models.get(run.id), request
    if folder is None or seed is None:
        return {}
    return {
        one.task.name: load_adapter(folder / one.task.name, settings, seed, one.x.shape[1]) for one in pair_sets
    }


def _save(backbone: str, data: PairData, pair_sets: Sequence[TaskData], result: StackResult, folder: Path) -> None:
    """One adapter per data set: a scorer's folder for a pair arm, the bare parameters for a per-sentence one.

    Beside it, as headroom.json, what the frozen cosine left to gain there.
    """
    from trainers.difficulty.pair_scorer import WEIGHTS, export_scorer, save_adapter
    from trainers.difficulty.settings import PAIR_FORMS

    for one in pair_sets:
        trained, place = result.trained[one.task.name], folder / one.task.name
        if result.settings.form in PAIR_FORMS:
            export_scorer(place, trained, one, backbone=backbone, prompt=data.prompt, max_length=data.max_length)
        else:
            place.mkdir(parents=True)
            save_adapter(place / WEIGHTS, trained, one.x.shape[1])
        (place / "headroom.json").write_text(json.dumps(asdict(headroom_of(one)), indent=1))


def _progress(step: int = 0, steps: int = 0, doing: str = "") -> Any:
    from trainers.engine.world import Progress

    return Progress(step=step, steps=steps, loss=0.0, doing=doing)
