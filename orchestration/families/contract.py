"""What the rest of the system may ask of a model family, of its settings, its encoder and its corpus.

A family is a file in this package that defines `FAMILY`, and one line in `registry.FAMILIES`. Those that train an
encoder of texts are an `EncoderFamily` (encoders.py), those with a run body of their own begin as a `PlainFamily`
(plain.py); `semray.testing` holds the tests that every family passes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from evaluators.metrics.headroom import Headroom
    from evaluators.tasks.task import Readers, Tasks
    from orchestration.study.run import Job, Result
    from orchestration.study.study import Study
    from search_spaces.space import Space
    from trainers.engine.world import Progress, World


# What nearly every run imports that trains or reads an encoder
USUAL_IMPORTS = ("torch", "transformers.modeling_utils", "trainers.engine.deep_speed", "trainers.engine.loop")


@dataclass(frozen=True, kw_only=True)
class ArmSeen:
    """An arm of a claim as its family sees it: what it is called, its settings, and the mean of each metric over
    its finished runs."""

    name: str
    settings: Any
    means: Mapping[str, float]


@dataclass(frozen=True)
class RowsOf:
    """What becomes of the rows of a data set: how many train; how many are held out, for what; left out, and why.

    Arms may draw from those that train, and need not come to all.
    """

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
    """An example of what a study of the family must say and no default can, for a person to put right.

    data, train: these blocks as a file has them. untrained: what an arm sets beside `train: false`. told: field of
    a block -> the comment on it.
    """

    data: Mapping[str, Any] = field(default_factory=dict)
    train: Mapping[str, Any] = field(default_factory=dict)
    untrained: Mapping[str, Any] = field(default_factory=dict)
    told: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ByLayer:
    """A plot of a figure by layer, a line for each arm. pattern: of its metrics, with {} for the layer."""

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
    """A frozen data class: the `train:` block and one arm, merged. ValueError names a field that is refused."""

    @property
    def train(self) -> bool:
        """False for an arm without training, whose one run stands beside every seed."""
        ...


class Corpus(Protocol):
    """What an arm is trained on."""

    @property
    def fingerprint(self) -> str:
        """As the family's `fingerprint` of the data block that it was loaded for."""
        ...


class FamilyEncoder(Protocol):
    """What a run trains, or only reads out."""

    @property
    def readers(self) -> Readers:
        """What it encodes, by kind ("texts", "occurrences", …): N of them -> (N, D) float32, without dropout."""
        ...

    @property
    def truncated(self) -> int:
        """How many texts had to be cut so far."""
        ...

    def save(self, path: Path) -> None:
        """Write a folder that its family reads again with the same figures; safetensors only."""
        ...


class Opener(Protocol):
    """The module that opens a family's encoders. All there is to one whose settings train nothing."""

    def read(self, settings: Any, folder: Path, world: World) -> FamilyEncoder:
        """Open a backbone, or a model that an encoder of this family saved, without training."""
        ...


@runtime_checkable
class Trainer(Opener, Protocol):
    """The module that makes a family's encoders."""

    def fit(
        self, settings: Any, backbone: Path, corpus: Any, seed: int, world: World
    ) -> tuple[FamilyEncoder, list[Progress]]:
        """Train an encoder from this backbone; its curve has one Progress a step."""
        ...


class Family(Protocol):
    """A training objective with its data, its tasks and the space in which its settings are searched.

    settings, data: frozen data classes; `train:` and an arm of a study merge into the first, `data:` is the
    second.
    stacked: all runs of a job train as one model.
    shape: a key of an arm's settings. Runs of equal shape can train as one stack of encoders
    (`trainers.encoders.stack`); ValueError for an arm whose runs cannot; None for a family without such runs.
    space: the settings that a search may move; empty where there is none.
    needs_backbone: whether a study must name one.
    dev_apart: tasks named dev/... are measured on a part of the training rows, which is then left out of training,
    so that only a search may name them.
    distributions: what the report plots of single items: quantity -> part -> the metric whose items it is.
    arm_plots: what it plots of whole runs, where they have the figures.
    streams: the random streams of its trainings that may have a seed of their own (`trainers.engine.streams`).
    imports: the modules that its runs need, imported once in every lane.
    headroom: data block, backbone's name -> what each data set leaves to gain, before any training; None for a
    family that cannot tell.
    spread: how far the headline of one recipe moves between seeds, as a standard deviation with its source, for
    studies without finished pairs; None where no public figure is known.
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
    def headroom(self) -> Callable[[Any, str], Sequence[Headroom]] | None: ...
    @property
    def spread(self) -> tuple[float, str] | None: ...

    def tasks(self, data: Any) -> Tasks:
        """All that `evaluate:` may name. Those on development data, which a search may choose by, begin with
        dev/."""
        ...

    def groups(self, data: Any) -> Mapping[str, tuple[str, ...]]:
        """Names that stand for several tasks in `evaluate:`."""
        ...

    def reads(self, settings: Any) -> tuple[str, ...]:
        """The kinds of text that an encoder of such an arm reads: it can be scored on the tasks of these alone."""
        ...

    def first_study(self, setting: str) -> FirstStudy:
        """What `semray init study` writes beside two arms that differ in this setting."""
        ...

    def defining(self, settings: Any) -> dict[str, Any]:
        """The settings that can change the model, as plain JSON types."""
        ...

    def in_bf16(self, settings: Any) -> Mapping[str, Any]:
        """What defines a model in bf16 besides `defining`: a name for each thing that bf16, unlike fp32, computes
        otherwise than an older semray did, so that such runs have other ids."""
        ...

    def caveats(self, sides: Sequence[ArmSeen], data: Any, figures: Sequence[str]) -> tuple[str, ...]:
        """Remarks beside the verdict of a claim on these figures, as runs and data give cause for them: such as
        that the arms in truth do not differ in what they are meant to differ in."""
        ...

    def learns(self, settings: Any) -> bool:
        """Whether the corpus has any part in the scores of such an arm."""
        ...

    def fingerprint(self, data: Any) -> str:
        """Names the rows that are trained on, cheaply. CorpusError or BackboneError where they are not at hand."""
        ...

    def rows(self, data: Any) -> Sequence[RowsOf] | None:
        """What becomes of the rows of each data set, for the plan; None until a run has built them."""
        ...

    def former_fingerprint(self, data: Any) -> str:
        """The one name of training and test rows in old ledgers; "" for a family of which they hold none."""
        ...

    def opened_by(self, folder: Path) -> str:
        """What opens a folder that one of its runs saved, as lines of Python with FOLDER in its place; "" for one
        that is of use to semray alone."""
        ...

    def check(self, study: Study) -> None:
        """ValueError for arms and data that do not go together, as far as that shows before data are opened."""
        ...

    def slips(self, study: Study) -> Sequence[str]:
        """Warnings for the plan: settings that are allowed and hardly meant, each with arms, field and value."""
        ...

    def prepare(self, study: Study, backbones: Sequence[Path]) -> None:
        """Build or open what every run needs. ValueError or CorpusError for what cannot work, before lanes
        start."""
        ...

    def execute(self, job: Job, world: World) -> Iterator[Result]:
        """Train and score the runs of a job, and give each result as soon as it is whole. A run whose model
        `job.models` holds is only scored. Where one of several runs fails the others go on; RunsFailed tells of it
        at the end."""
        ...


class OwnWork(Protocol):
    """Work in shards that a family's own command has begun."""

    @property
    def pending(self) -> Sequence[int]:
        """The shards to be written."""
        ...

    @property
    def written(self) -> str:
        """How many there are by now, in words."""
        ...

    def writer(self) -> Callable[[], Callable[[int], None]]:
        """Opens, in whatever process, what writes a shard by its number."""
        ...

    def outcome(self) -> tuple[Mapping[str, Any], str]:
        """What came of it, as plain JSON types and in words."""
        ...


class OwnCommand(Protocol):
    """A module with a command that one family has alone; no more than its flags may be costly to import."""

    SUMMARY: str

    def add_arguments(self, command: ArgumentParser) -> None: ...

    def work_of(self, options: Namespace) -> OwnWork:
        """Begin what the flags ask for. StudyError names the flag whose value is not accepted."""
        ...
