"""A run, the unit of training, evaluation, resumption and caching; and what it leaves behind.

A run leaves several entries in the ledger: one for its training, which the run's id names, and one for each task
it is scored on. So a task more costs an evaluation and no training, and two studies that share a recipe share its
model.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evaluators.metrics.scores import Score
    from trainers.engine.world import Precision, Progress, World

RUN_ID = re.compile(r"[0-9a-f]{16}")
SCHEMA = 2  # raised whenever the same settings would give another model
NO_BACKBONE = "none"  # in a study that starts from none: nothing of that name is looked for
CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)
TRAINING = "train"  # what families call the seconds between prepared data and the trained model
WITHOUT_DEV = "without dev rows"  # in `defining`: what a search judges by was left out of training


def run_of(entry: str) -> str:
    """The id of the run that an entry is of."""
    return entry.partition(".")[0]


def is_encoder(backbone: str) -> bool:
    """Whether a backbone's name stands for an encoder: a study may do without one."""
    return backbone not in ("", NO_BACKBONE)


def on(backbone: str) -> str:
    """The words by which a run or a claim names its backbone; none, where it has none."""
    return f" on {backbone}" if is_encoder(backbone) else ""


def of_seed(seed: int | None) -> str:
    """The words by which a run names its seed; none, where its arm is not trained."""
    return "" if seed is None else f", seed {seed}"


@dataclass(frozen=True, kw_only=True)
class Run:
    """family × arm × backbone × seed, fully resolved.

    `defining` holds every setting that can change the model and nothing else, so that arms with other names, or
    the same frozen baseline in five studies, share one id. `settings` and `data` are what the family receives.
    seed is None for an arm without training: its one result is paired with every seed. tasks: what the run is
    scored on, by name, with the fingerprint of each. corpus_fingerprint names what is trained on. former: the id
    that the run has in old ledgers, where its training and scores are one entry. look_at: steps after which
    development data are scored; like tasks and former, that changes no model and is no part of the id. streams:
    the seeds of named streams that are not the run's own seed; `trainers.engine.streams`. stacked: its layers run
    as one batch with those of other runs; which runs these are moves last digits alone, and is no part of the id.
    """

    family: str
    arm: str
    backbone: str
    seed: int | None
    settings: Mapping[str, Any]
    data: Mapping[str, Any]
    defining: Mapping[str, Any]
    backbone_fingerprint: str
    corpus_fingerprint: str
    tasks: Mapping[str, str] = field(default_factory=dict)
    former: str = ""
    world_size: int = 1
    precision: Precision = "fp32"
    zero_stage: int = 0
    look_at: tuple[int, ...] = ()
    streams: Mapping[str, int] = field(default_factory=dict)
    stacked: bool = False

    @cached_property
    def id(self) -> str:
        """16 hex digits: the hash of everything that can change the model."""
        identity = {
            "schema": SCHEMA,
            "family": self.family,
            "defining": dict(self.defining),
            "seed": self.seed,
            "backbone": self.backbone_fingerprint,
            "corpus": self.corpus_fingerprint or None,  # an arm that reads no rows is planned without
            "world": self._world,
        }
        if self.streams:
            identity["streams"] = dict(self.streams)
        if self.stacked:
            identity["stacked"] = True
        return _digest(identity)

    @property
    def _world(self) -> list[Any]:
        """What counts of the machine. An untrained run only encodes, alone; bf16 rounds that too.

        MiniLM over the quickstart's 3,337 texts, one thread of an AVX512-bf16 core: 9.1 s in fp32, 3.1 s in bf16.
        """
        return [self.precision] if self.seed is None else [self.world_size, self.precision, self.zero_stage]

    def entry(self, task: str) -> str:
        """The name of the entry with the scores of a task: the run's id, and the id of these scores."""
        return self._entry_of[task]

    @cached_property
    def _entry_of(self) -> Mapping[str, str]:
        scores = {"training": self.id, "precision": self.precision}
        asked = {task: {**scores, "task": task, "rows": rows} for task, rows in self.tasks.items()}
        return {task: f"{self.id}.{_digest(of_task)}" for task, of_task in asked.items()}

    @cached_property
    def entries(self) -> tuple[str, ...]:
        """The names of everything the run leaves: its training first, then its scores in the order of its
        tasks."""
        return (self.id, *self._entry_of.values())

    def lacking(self, held: Collection[str]) -> tuple[str, ...]:
        """Which of its entries are not among these; none where they hold its old entry, `former`."""
        return () if self.former in held else tuple(entry for entry in self.entries if entry not in held)

    def among(self, held: Collection[str]) -> tuple[str, ...]:
        """Where a finished run lies: its own entries, or its old one where some of those are not held."""
        own = self.former not in held or all(entry in held for entry in self.entries)
        return self.entries if own else (self.former,)

    def remaining(self, held: Collection[str]) -> Run:
        """The run with those tasks alone whose scores are not among these entries."""
        lacking = self.lacking(held)
        return replace(
            self, tasks={name: rows for name, rows in self.tasks.items() if self.entry(name) in lacking}
        )

    @property
    def label(self) -> str:
        """How the run is called on a terminal."""
        apart = "".join(f", {stream} {seed}" for stream, seed in self.streams.items())
        return f"{self.arm}{on(self.backbone)}{of_seed(self.seed)}{apart}"

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types; `Run.from_dict` reads it back."""
        return json.loads(canonical(asdict(self)))

    @staticmethod
    def from_dict(fields: Mapping[str, Any]) -> Run:
        """A run from what `to_dict` gave, also in old ledgers, where it named tasks without their rows."""
        known = {name: value for name, value in fields.items() if name != "evaluate"}
        return Run(**{**known, "look_at": tuple(fields.get("look_at", ()))})


def former_id(fields: Mapping[str, Any]) -> str:
    """The id of a run in old ledgers, where its tasks and all rows are part of it.

    fields: of a run as written there, with the tasks as `evaluate` and one fingerprint of all rows.
    """
    world = [fields["world_size"], fields["precision"], fields["zero_stage"]]
    identity = {
        "schema": 1,
        "family": fields["family"],
        "defining": fields["defining"],
        "evaluate": sorted(fields["evaluate"]),
        "seed": fields["seed"],
        "backbone": fields["backbone_fingerprint"],
        "corpus": fields["corpus_fingerprint"],
        "world": [fields["precision"]] if fields["seed"] is None else world,
    }
    return _digest(identity)


def canonical(value: Any) -> bytes:
    """The one JSON text of a value: keys sorted, no blanks, no NaN."""
    return CANONICAL.encode(value).encode()


def _digest(identity: Mapping[str, Any]) -> str:
    return hashlib.sha256(canonical(identity)).hexdigest()[:16]


def built(kind: type[Any], fields: Mapping[str, Any]) -> Any:
    """A settings or data object from plain JSON types, in which its tuples are lists."""
    return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()})


@dataclass(frozen=True, kw_only=True)
class Job:
    """Runs that execute together. One run as a rule; several where the study stacks them, or where a family
    trains all it is given as one model.

    Each run names the tasks it is still to be scored on. models: id -> folder of the model of a run that was
    trained before and is only scored; a lane fills it in.
    """

    runs: tuple[Run, ...]
    models: Mapping[str, Path] = field(default_factory=dict)


class RunsFailed(Exception):
    """Raised at the end of a job of which some runs failed: the error of each, by the run's id."""

    def __init__(self, errors: Mapping[str, Exception]) -> None:
        super().__init__(errors)
        self.errors = dict(errors)

    def __str__(self) -> str:
        return "\n".join(f"{run_id}: {error}" for run_id, error in self.errors.items())


@dataclass(frozen=True, kw_only=True)
class Trained:
    """What a run's training leaves. `save_model` writes the model into an empty folder; None: there is none.

    cost: as `trainers.engine.meter` counts it; whoever executes the run fills it in. share: this run's part of
    what its training cost together with the runs that were trained at once with it.
    """

    run: Run
    curve: Sequence[Progress] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
    notes: Mapping[str, Any] = field(default_factory=dict)
    cost: Mapping[str, float] = field(default_factory=dict)
    save_model: Callable[[Path], None] | None = None
    share: float = 1.0

    @property
    def entry(self) -> str:
        return self.run.id


@dataclass(frozen=True, kw_only=True)
class Scored:
    """What scoring a run on one task leaves."""

    run: Run
    task: str
    scores: Sequence[Score]
    seconds: Mapping[str, float] = field(default_factory=dict)
    notes: Mapping[str, Any] = field(default_factory=dict)
    cost: Mapping[str, float] = field(default_factory=dict)

    @property
    def entry(self) -> str:
        return self.run.entry(self.task)


Result = Trained | Scored
Body = Callable[[Job, "World"], Iterator[Result]]  # what executes a job
