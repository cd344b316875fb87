"""The common part of families that train an encoder: the run body, and the checks before a lane starts."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corpora.store.cache import without_building
from corpora.store.errors import CorpusError
from corpora.store.telling import heard_by
from evaluators.tasks import suite
from evaluators.tasks.task import Task, Tasks, evaluate, is_dev, named
from orchestration.families.as_planned import check_backbone, check_corpus, check_tasks
from orchestration.families.contract import (
    USUAL_IMPORTS,
    ArmPlot,
    ArmSeen,
    Corpus,
    FamilyEncoder,
    FirstStudy,
    Opener,
    RowsOf,
    Settings,
    Trainer,
)
from orchestration.families.encoder_checks import (
    brought_tasks,
    check_metrics,
    check_micro_batch,
    check_packed,
    of_arm,
)
from orchestration.families.opening import opened_by
from orchestration.study.errors import StudyError
from orchestration.study.run import (
    DATA,
    NO_BACKBONE,
    TRAINING,
    Job,
    Result,
    Run,
    RunsFailed,
    Scored,
    Trained,
    built,
)
from trainers.encoders.backbones import check_kind, check_precision

if TYPE_CHECKING:
    from orchestration.study.study import Study
    from search_spaces.space import Space
    from trainers.engine.world import Progress, Seat, World

Check = Callable[["Study", Sequence[Path], Any], None]  # study, folders of its backbones, corpus
FirstCheck = Callable[["Study"], None]
BackboneCheck = Callable[["Study", Sequence[Path]], None]  # study, folders of its backbones


@dataclass(frozen=True, kw_only=True)
class EncoderFamily:
    """A family of encoders; see `contract.Family` for its methods.

    A new family must give the first six fields, and usually own_tasks; the others are optional. examples/family is
    an example to start from, which `semray init family` writes.

    trainer: imports and returns the module that opens and fits its encoders, and with it torch; only runs call it.
    fits: whether an arm is made by `fit`; an untrained arm may be, if it takes a part from the corpus.
    keeps: whether the ledger keeps the model that `fit` made, so that further tasks need no new training.
    told, told_of_corpus: notes for the report on an encoder, such as on a stand-in for a real part; and on the
    rows that an arm was made from.
    rows_of: the use of a corpus's rows, for plans.
    shape: for arms whose encoders train through `engine.loop`; `shape_by` makes one.
    own_tasks: the tasks on the family's own corpus, beside the public benchmarks.
    sizes: the fields of `data:` that decide how much there is to measure on, for messages.
    first_checks, backbone_checks, checks: checks of a study before data are opened, by the configurations of its
    backbones, and with its corpus loaded; their ValueErrors name field, value and what is accepted.
    slips: warnings for the plan.
    by_library: sentence-transformers loads the backbones, and supports more kinds than `Encoder`.
    """

    settings: type[Settings]
    data: type[Any]
    defining: Callable[[Any], dict[str, Any]]
    fingerprint: Callable[[Any], str]
    load: Callable[[Any], Corpus]
    trainer: Callable[[], Opener]
    own_tasks: Callable[[Any], Tasks] = lambda data: {}
    reads: Callable[[Any], tuple[str, ...]] = lambda settings: ("texts",)
    in_bf16: Callable[[Any], Mapping[str, Any]] = lambda settings: {}
    fits: Callable[[Any], bool] = lambda settings: settings.train
    keeps: Callable[[Any], bool] = lambda settings: settings.train
    shape: Callable[[Any], Hashable] | None = None
    told: Callable[[Any], Mapping[str, Any]] = lambda encoder: {}
    told_of_corpus: Callable[[Any, Any], Mapping[str, Any]] = lambda settings, corpus: {}
    rows_of: Callable[[Any], Sequence[RowsOf]] | None = None
    caveats: Callable[[Sequence[ArmSeen], Any, Sequence[str]], tuple[str, ...]] = lambda sides, data, figures: ()
    former_fingerprint: Callable[[Any], str] = lambda data: ""
    opened_by: Callable[[Path], str] = opened_by
    sizes: tuple[str, ...] = ()
    checks: tuple[Check, ...] = ()
    first_checks: tuple[FirstCheck, ...] = ()
    backbone_checks: tuple[BackboneCheck, ...] = ()
    slips: Callable[[Study], Sequence[str]] = lambda study: ()
    first_study: Callable[[str], FirstStudy] = lambda setting: FirstStudy()
    needs_backbone: bool = True
    space: Space = ()
    distributions: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    by_library: bool = False
    arm_plots: Sequence[ArmPlot] = ()
    spread: tuple[float, str] | None = None
    stacked: bool = False
    dev_apart: bool = False
    streams: tuple[str, ...] = ("data", "init", "dropout", "negatives")
    imports: tuple[str, ...] = USUAL_IMPORTS
    headroom: None = None

    def tasks(self, data: Any) -> Tasks:
        try:
            return suite.tasks(getattr(data, "path", None), self.own_tasks(data))
        except CorpusError as error:  # raised by an installed package that brings tasks
            raise StudyError(str(error)) from None

    def groups(self, data: Any) -> Mapping[str, tuple[str, ...]]:
        return suite.GROUPS

    def learns(self, settings: Any) -> bool:
        return self.fits(settings)

    def rows(self, data: Any) -> Sequence[RowsOf] | None:
        if self.rows_of is None:
            return ()
        try:
            with without_building():
                return self.rows_of(self.load(data))
        except CorpusError:
            return None

    def check(self, study: Study) -> None:
        for check in self.first_checks:
            check(study)
        check_micro_batch(study)
        if self.shape is not None and study.resources.runs_per_stack > 1:
            for name, arm in study.arms.items():
                with of_arm(name):
                    self.shape(arm)

    def check_backbones(self, study: Study, backbones: Sequence[Path]) -> None:
        for folder in backbones:
            if not self.by_library:
                check_kind(folder)
            check_precision(folder, study.resources.precision)
        for check in self.backbone_checks:
            check(study, backbones)

    def check_kept(self, study: Study, kept: Callable[[], Sequence[tuple[Run, Collection[str]]]]) -> None:
        """Refuse none: what is kept of a run is its encoder."""

    def prepare(self, study: Study, backbones: Sequence[Path]) -> None:
        if study.resources.runs_per_stack > 1:
            check_packed(backbones)
        corpus = self.load(study.data)
        for check in self.checks:
            check(study, backbones, corpus)
        own, brought = self.own_tasks(study.data), brought_tasks(study.data)
        asked, of_others = ([table[name] for name in study.evaluate if name in table] for table in (own, brought))
        check_metrics(study, asked, of_others, self.sizes)
        table = self.tasks(study.data)
        for name in study.evaluate:
            if name not in own and name not in brought:  # `check_metrics` has loaded those
                table[name].benchmark.load()

    def execute(self, job: Job, world: World) -> Iterator[Result]:
        failed: dict[str, Exception] = {}
        fitted: Mapping[str, _Fitted | Exception] = {}
        with_model = [run for run in job.runs if run.id in job.models]
        others = [run for run in job.runs if run.id not in job.models]
        for run in (*with_model, *others):  # so that scoring the first is not billed to the others
            if run.stacked and run.id not in job.models and not fitted:
                fitted = self._stacked(others, world)
            try:
                yield from self._execute(run, job.models.get(run.id), fitted.get(run.id), world)
            except Exception as error:  # whatever happened to this run, the others go on
                if len(job.runs) == 1:
                    raise
                failed[run.id] = error
        if failed:
            raise RunsFailed(failed)

    def _execute(
        self, run: Run, model: Path | None, fitted: _Fitted | Exception | None, world: World
    ) -> Iterator[Result]:
        """model: the folder of a run that was trained before. fitted: the outcome of one trained in a stack."""
        from trainers.encoders.together import reading_together

        if isinstance(fitted, Exception):
            raise fitted
        settings = built(self.settings, run.settings)
        if model is not None:
            encoder = self.trainer().read(settings, model, world)
        elif not self.fits(settings):
            encoder = self.trainer().read(settings, _backbone_of(run), world)
            yield Trained(run=run, notes=self.told(encoder))
        else:
            fitted = fitted or self._fit(run, world)
            encoder = fitted.encoder
            yield Trained(
                run=run,
                curve=fitted.curve,
                seconds=fitted.seconds,
                notes=fitted.notes,
                share=fitted.share,
                save_model=encoder.save if self.keeps(settings) else None,
            )
        with reading_together(encoder, world), heard_by(world.tell):
            if world.rank == 0:
                yield from scored(run, named(self.tasks(built(self.data, run.data)), run.tasks), encoder)

    def _fit(self, run: Run, world: World) -> _Fitted:
        trainer = self.trainer()
        assert isinstance(trainer, Trainer), "a family that trains has a `fit`"
        settings, data = built(self.settings, run.settings), built(self.data, run.data)
        began = time.perf_counter()
        with heard_by(world.tell):
            corpus = self.load(data)
        backbone = _backbone_of(run)
        check_corpus(run, corpus.fingerprint)
        prepared = time.perf_counter()
        dev = [task for name, task in self.tasks(data).items() if name in run.tasks and is_dev(name)]
        clock = _Clock(world.seat)
        watched = replace(clock.beside(world), look_at=run.look_at, look=partial(_look, dev))
        encoder, curve = trainer.fit(settings, backbone, corpus, run.seed or 0, watched)
        seconds = {DATA: prepared - began, TRAINING: clock.seconds()}
        notes = {**self.told(encoder), **self.told_of_corpus(settings, corpus)}
        return _Fitted(encoder, curve, seconds, notes, world.seat)

    def _stacked(self, runs: Sequence[Run], world: World) -> Mapping[str, _Fitted | Exception]:
        """Train runs as one stack of encoders; return the outcome of each by id."""
        from trainers.encoders.stack import fit_together

        fits = [partial(self._fit, run) for run in runs]
        outcomes = fit_together(fits, [world.for_run(run.id) for run in runs])
        return dict(zip((run.id for run in runs), outcomes, strict=True))


@dataclass(frozen=True, eq=False)
class _Fitted:
    """The outcome of a run's training. seconds: of loading its data and of training. seat: its place in a stack;
    None for a run trained alone."""

    encoder: FamilyEncoder
    curve: Sequence[Progress]
    seconds: Mapping[str, float]
    notes: Mapping[str, Any]
    seat: Seat | None

    @property
    def share(self) -> float:
        """The run's fraction of the cost of its stack."""
        return 1.0 if self.seat is None else self.seat.share


class _Clock:
    """Counts the seconds of a training, or its share of a stack's seconds, earlier attempts included.

    Checkpoints store the seconds up to them as part of the run's cost.
    """

    def __init__(self, seat: Seat | None) -> None:
        self._began, self._seat, self._earlier = time.perf_counter(), seat, 0.0

    def seconds(self) -> float:
        share = 1.0 if self._seat is None else self._seat.share
        return self._earlier + share * (time.perf_counter() - self._began)

    def beside(self, world: World) -> World:
        """The world, with this clock's seconds stored in checkpoints and restored from them."""

        def go_on(cost: Mapping[str, float]) -> None:
            self._earlier = cost.get(TRAINING, 0.0)
            world.go_on(cost)

        return replace(world, so_far=lambda: {**world.so_far(), TRAINING: self.seconds()}, go_on=go_on)


def shape_by(*fields: str) -> Callable[[Any], Hashable]:
    """A family's `shape`: the values of these settings, which decide the length of training and the batches.

    It raises ValueError for an arm with train.micro_batch.
    """

    def shape(settings: Any) -> Hashable:
        if settings.train and getattr(settings, "micro_batch", None) is not None:
            asked = f"train.micro_batch = {settings.micro_batch!r}"
            raise ValueError(f"{asked}\n  accepted: null with resources.runs_per_stack above 1")
        return tuple(getattr(settings, field) for field in fields)

    return shape


def _backbone_of(run: Run) -> Any:
    """The folder of a run's backbone, checked to be the planned one; None for a run without a backbone."""
    from trainers.encoders.backbones import resolve_backbone

    if run.backbone == NO_BACKBONE:
        return None
    folder = resolve_backbone(run.backbone)
    check_backbone(run, folder)
    return folder


def scored(run: Run, tasks: Sequence[Task[Any, Any]], encoder: FamilyEncoder) -> Iterator[Scored]:
    """Yield the run's scores task by task. The time of encoding all texts counts for the first task."""
    check_tasks(run, tasks)
    began, before, read = time.perf_counter(), encoder.truncated, Counter[str]()
    length = _length_of(run.settings)
    readers = {kind: partial(_counted, read, encode) for kind, encode in encoder.readers.items()}
    for task, scores in evaluate(tasks, readers):
        seconds = {"evaluate": time.perf_counter() - began}
        cut = encoder.truncated - before  # only evaluated texts, so that the number is the same for every seed
        yield Scored(
            run=run,
            task=task.name,
            scores=scores,
            seconds=seconds,
            notes={f"texts cut at {length}": f"{cut:,} of {read.total():,} evaluated"} if cut else {},
        )
        began = time.perf_counter()


def _length_of(settings: Mapping[str, Any]) -> str:
    """The setting at which texts are cut, by its name in the run's family."""
    if settings.get("read_length") is not None:
        return "read_length"
    return "max_seq_length" if "max_seq_length" in settings else "max_length"


def _counted(read: Counter[str], encode: Any, texts: Sequence[Any]) -> Any:
    """Encode texts, and count them."""
    read["texts"] += len(texts)
    return encode(texts)


def _look(dev: Sequence[Task[Any, Any]], encoder: FamilyEncoder) -> dict[str, float]:
    """The figures of an encoder during training, on development tasks only."""
    return {score.metric: score.value for _, scores in evaluate(dev, encoder.readers) for score in scores}
