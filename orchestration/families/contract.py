"""The interface of a model family, its settings, its encoder and its corpus to the rest of the system.

A family is a file in this package that defines `FAMILY`, and one line in `registry.FAMILIES`. Those that train an
encoder of texts are an `EncoderFamily` (encoders.py), those with a run body of their own begin as a `PlainFamily`
(plain.py); `semray.testing` holds the tests that every family passes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from corpora.store.telling import HowFar, Tell
    from evaluators.metrics.headroom import Headroom
    from evaluators.tasks.task import Readers, Tasks
    from orchestration.study.run import Job, Result, Run
    from orchestration.study.study import Study
    from search_spaces.space import Space
    from trainers.engine.world import Progress, World


# What nearly every run imports that trains or reads an encoder
USUAL_IMPORTS = ("torch", "transformers.modeling_utils", "trainers.engine.deep_speed", "trainers.engine.loop")


@dataclass(frozen=True, kw_only=True)
class ArmSeen:
    """An arm of a claim, for `Family.caveats`: name, settings, and the mean of each metric over finished runs."""

    name: str
    settings: Any
    means: Mapping[str, float]


@dataclass(frozen=True)
class RowsOf:
    """The use of a data set's rows: how many are for training; how many are held out, by purpose, or left out, by
    reason. Arms may draw from the training rows and need not use all."""

    name: str
    train: int
    held: Mapping[str, int] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)

    @property
    def words(self) -> str:
        """`mine: 2,117 train; held out 616 to measure on`; without what there is none of."""
        parts = [f"{self.name}: {self.train:,} train"]
        for kind, counts in (("held out", self.held), ("left out", self.left_out)):
            if found := ", ".join(f"{number:,} {why}" for why, number in counts.items() if number):
                parts.append(f"{kind} {found}")
        return "; ".join(parts)


@dataclass(frozen=True, kw_only=True)
class FirstStudy:
    """Example values for the fields of a study that have no default, for a person to adapt.

    data, train: these blocks as in a file. untrained: what an arm sets beside `train: false`. told: field of a
    block -> the comment written on it.
    """

    data: Mapping[str, Any] = field(default_factory=dict)
    train: Mapping[str, Any] = field(default_factory=dict)
    untrained: Mapping[str, Any] = field(default_factory=dict)
    told: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ByLayer:
    """A plot of a figure by layer, a line for each arm. pattern: the metrics' name with {} for the layer."""

    name: str
    pattern: str

    def metric(self, layer: int) -> str:
        return self.pattern.format(layer)


@dataclass(frozen=True)
class Against:
    """A plot of one metric against another, a mark for each run."""

    x: str
    y: str


ArmPlot = ByLayer | Against


class Settings(Protocol):
    """A frozen data class: the `train:` block merged with one arm. Its ValueErrors name the refused field."""

    @property
    def train(self) -> bool:
        """False for an arm without training, whose single run is paired with every seed."""
        ...


class Corpus(Protocol):
    """The data that an arm is trained on."""

    @property
    def fingerprint(self) -> str:
        """Equals the family's `fingerprint` of the data block that it was loaded for."""
        ...


class FamilyEncoder(Protocol):
    """The encoder of a run, trained or not.

    One that may read for long has a `tell`, a function of words: while it is scored, the run reports these.
    """

    @property
    def readers(self) -> Readers:
        """Kind of input ("texts", "occurrences", …) -> function from N inputs to (N, D) float32, no dropout."""
        ...

    @property
    def truncated(self) -> int:
        """How many texts were cut so far."""
        ...

    def save(self, path: Path) -> None:
        """Write a folder from which its family opens an encoder with the same figures; safetensors only."""
        ...


class Opener(Protocol):
    """The module that opens a family's encoders. Enough for a family that trains nothing."""

    def read(self, settings: Any, folder: Path, world: World) -> FamilyEncoder:
        """Open a backbone, or a model that an encoder of this family saved, without training."""
        ...


@runtime_checkable
class Trainer(Opener, Protocol):
    """The module that opens and trains a family's encoders."""

    def fit(
        self, settings: Any, backbone: Path, corpus: Any, seed: int, world: World
    ) -> tuple[FamilyEncoder, list[Progress]]:
        """Train an encoder from this backbone; return it with its curve, one Progress a step."""
        ...


class Family(Protocol):
    """A training objective with its data, its tasks and the space in which its settings are searched.

    settings, data: frozen data classes, of `train:` merged with an arm, and of `data:`.
    stacked: all runs of a job train as one model.
    shape: maps an arm's settings to a key. Runs of equal keys can train as one stack of encoders
    (`trainers.encoders.stack`); raises ValueError for an arm whose runs cannot; None for a family without such
    runs.
    space: the settings that a search may vary; empty if it cannot be searched.
    needs_backbone: whether a study must name one.
    dev_apart: tasks named dev/... are measured on a part of the training rows, which is then left out of training,
    so that only a search may name them.
    distributions: distributions of items that the report plots: quantity -> part -> the metric of the items.
    arm_plots: plots of whole runs, drawn if runs have the figures.
    streams: the random streams of its trainings that may have a seed of their own (`trainers.engine.streams`).
    imports: modules that its runs need, imported once in every lane.
    headroom: maps data block and backbone's name to the possible gain on each data set, before any training; the
    third argument hears how far it is. None for a family that cannot compute it.
    spread: standard deviation of the headline of one recipe between seeds, and its source, for plans without
    finished pairs; None if no public figure is known.
    """

    @property
    def settings(self) -> type[Settings]: ...
    @property
    def data(self) -> type[Any]: ...
    @property
    def stacked(self) -> bool: ...
    @property
    def shape(self) -> Callable[[Any], Hashable] | None: ...
    @property
    def space(self) -> Space: ...
    @property
    def needs_backbone(self) -> bool: ...
    @property
    def dev_apart(self) -> bool: ...
    @property
    def streams(self) -> tuple[str, ...]: ...
    @property
    def imports(self) -> tuple[str, ...]: ...
    @property
    def distributions(self) -> Mapping[str, Mapping[str, str]]: ...
    @property
    def arm_plots(self) -> Sequence[ArmPlot]: ...
    @property
    def headroom(self) -> Callable[[Any, str, Tell], Sequence[Headroom]] | None: ...
    @property
    def spread(self) -> tuple[float, str] | None: ...

    def tasks(self, data: Any) -> Tasks:
        """All tasks that `evaluate:` may name. Those on development data, for searches, begin with dev/."""
        ...

    def groups(self, data: Any) -> Mapping[str, tuple[str, ...]]:
        """Names that stand for several tasks in `evaluate:`."""
        ...

    def reads(self, settings: Any) -> tuple[str, ...]:
        """The kinds of input that an encoder of such an arm reads; only tasks of these kinds can score it."""
        ...

    def first_study(self, setting: str) -> FirstStudy:
        """Example values for `semray init study`, whose two arms differ in this setting."""
        ...

    def defining(self, settings: Any) -> dict[str, Any]:
        """The settings that can change the model, as plain JSON types."""
        ...

    def in_bf16(self, settings: Any) -> Mapping[str, Any]:
        """What defines a model in bf16 besides `defining`: a name for each computation that changed since an older
        semray in bf16 but not in fp32, so that such runs have other ids."""
        ...

    def caveats(self, sides: Sequence[ArmSeen], data: Any, figures: Sequence[str]) -> tuple[str, ...]:
        """Remarks beside the verdict of a claim on these figures, such as that the arms do not really differ in
        what they are meant to differ in."""
        ...

    def learns(self, settings: Any) -> bool:
        """True if the scores of such an arm depend on the corpus."""
        ...

    def fingerprint(self, data: Any) -> str:
        """A cheap fingerprint of the training rows. CorpusError or BackboneError if data are missing."""
        ...

    def rows(self, data: Any) -> Sequence[RowsOf] | None:
        """The use of each data set's rows, for the plan; None until a run has built them."""
        ...

    def former_fingerprint(self, data: Any) -> str:
        """The fingerprint of training and test rows in old ledgers; "" for a family that those do not hold."""
        ...

    def opened_by(self, folder: Path) -> str:
        """Lines of Python that open a folder saved by one of its runs, with FOLDER for its path; "" for a folder
        that only semray can use."""
        ...

    def check(self, study: Study) -> None:
        """Raise ValueError for arms and data that do not go together, as far as seen without opening data."""
        ...

    def slips(self, study: Study) -> Sequence[str]:
        """Warnings for the plan on settings that are allowed but hardly meant, with arms, field and value."""
        ...

    def check_backbones(self, study: Study, backbones: Sequence[Path]) -> None:
        """Raise ValueError or BackboneError for a backbone that its configuration shows to be none for an arm.

        The study's `resources.precision` is that of its runs, never `auto`.
        Plans ask too: nothing is built, and no library that trains is loaded.
        """
        ...

    def check_kept(self, study: Study, kept: Callable[[], Sequence[tuple[Run, Collection[str]]]]) -> None:
        """Raise ValueError for a task that reads what the finished runs of an arm did not leave.

        kept: asks the ledger for the trained runs of arms without a run that is scored on all tasks; each with the
        tasks that it lacks, and the names of the files of its model. Plans ask too.
        """
        ...

    def prepare(self, study: Study, backbones: Sequence[Path]) -> None:
        """Build or open what every run needs, before lanes start. ValueError or CorpusError if it cannot."""
        ...

    def execute(self, job: Job, world: World) -> Iterator[Result]:
        """Train and score the runs of a job; yield each result as soon as it is complete. Runs whose model is in
        `job.models` are only scored. If one of several runs fails, the others go on, and RunsFailed is raised at
        the end."""
        ...


Write = Callable[[int, "HowFar"], None]  # writes a shard by its number, and says how many of its units are done


class OwnWork(Protocol):
    """Work of a family's own command, divided into shards."""

    unit: str  # what is counted, such as "sentences"

    @property
    def pending(self) -> Mapping[int, int]:
        """The shards that are still to be written, by number, and how many units each has."""
        ...

    @property
    def written(self) -> str:
        """How many shards are written by now, in words."""
        ...

    def writer(self) -> Callable[[], Write]:
        """A factory, callable in any process, of the function that writes a shard."""
        ...

    def outcome(self) -> tuple[Mapping[str, Any], str]:
        """The outcome, as plain JSON types and in words."""
        ...


class OwnCommand(Protocol):
    """A module with a command of one family; it must import cheaply, apart from `work_of`."""

    SUMMARY: str

    def add_arguments(self, command: ArgumentParser) -> None: ...

    def work_of(self, options: Namespace) -> OwnWork:
        """Begin what the flags ask for. StudyError names the flag whose value is not accepted."""
        ...
