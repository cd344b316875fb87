"""A run, the unit of training, evaluation, resumption and caching; and its results.

A run has several entries in the ledger: one for its training, named by the run's id, and one for each task it is
scored on. So another task costs an evaluation and no training, and two studies that share a recipe share its
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
NO_BACKBONE = "none"  # the backbone of a study that starts from none; no such model is looked for
CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)
# keys of the seconds of a training: of preparing its data, and from there to the trained model
DATA, TRAINING = "data", "train"
WITHOUT_DEV = "without dev rows"  # key in `defining`: the rows that a search judges by were left out of training


def run_of(entry: str) -> str:
    """The id of the run that an entry belongs to."""
    return entry.partition(".")[0]


def is_encoder(backbone: str) -> bool:
    """Whether a backbone's name is that of an encoder; a study may have none."""
    return backbone not in ("", NO_BACKBONE)


def on(backbone: str) -> str:
    """` on NAME`, as labels of runs and claims name their backbone; "" if there is no encoder."""
    return f" on {backbone}" if is_encoder(backbone) else ""


def of_seed(seed: int | None) -> str:
    """`, seed N`, as labels of runs name their seed; "" for an untrained arm."""
    return "" if seed is None else f", seed {seed}"


@dataclass(frozen=True, kw_only=True)
class Run:
    """family × arm × backbone × seed, fully resolved.

    `defining` holds every setting that can change the model and nothing else. So equal recipes under other names,
    or the same frozen baseline in five studies, share one id. `settings` and `data` are what the family receives.
    seed is None for an arm without training: its one result is paired with every seed. tasks: task name ->
    fingerprint of what the run is scored on. corpus_fingerprint: of the training data. former: the run's id in old
    ledgers, where training and scores are one entry. look_at: steps after which development data are scored.
    tasks, former and look_at change no model and are no part of the id. streams: the seeds of named random streams
    that differ from the run's seed; `trainers.engine.streams`. stacked: the run's layers are computed in one batch
    with those of other runs; which runs these are changes last digits only, and is no part of the id.
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
            "corpus": self.corpus_fingerprint or None,  # None for an arm that reads no rows
            "world": self._world,
        }
        if self.streams:
            identity["streams"] = dict(self.streams)
        if self.stacked:
            identity["stacked"] = True
        return _digest(identity)

    @property
    def _world(self) -> list[Any]:
        """The part of the machine that changes results. Untrained runs only encode, but bf16 rounds that too."""
        return [self.precision] if self.seed is None else [self.world_size, self.precision, self.zero_stage]

    def entry(self, task: str) -> str:
        """The name of the entry with the scores of a task: the run's id and the id of these scores."""
        return self._entry_of[task]

    @cached_property
    def _entry_of(self) -> Mapping[str, str]:
        scores = {"training": self.id, "precision": self.precision}
        identities = {task: {**scores, "task": task, "rows": rows} for task, rows in self.tasks.items()}
        return {task: f"{self.id}.{_digest(identity)}" for task, identity in identities.items()}

    @cached_property
    def entries(self) -> tuple[str, ...]:
        """The names of all entries of the run: its training, then its scores in the order of its tasks."""
        return (self.id, *self._entry_of.values())

    def lacking(self, held: Collection[str]) -> tuple[str, ...]:
        """The run's entries that are missing from `held`; none if `held` has its old entry, `former`."""
        return () if self.former in held else tuple(entry for entry in self.entries if entry not in held)

    def entries_in(self, held: Collection[str]) -> tuple[str, ...]:
        """The entries of a finished run: its own, or the old one if `held` has that and lacks some of its own."""
        use_own = self.former not in held or all(entry in held for entry in self.entries)
        return self.entries if use_own else (self.former,)

    def remaining(self, held: Collection[str]) -> Run:
        """The run with only those tasks whose scores are missing from `held`."""
        lacking = self.lacking(held)
        return replace(
            self, tasks={name: rows for name, rows in self.tasks.items() if self.entry(name) in lacking}
        )

    @property
    def label(self) -> str:
        """The name of the run on a terminal."""
        streams = "".join(f", {stream} {seed}" for stream, seed in self.streams.items())
        return f"{self.arm}{on(self.backbone)}{of_seed(self.seed)}{streams}"

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types; `Run.from_dict` reads it back."""
        return json.loads(canonical(asdict(self)))

    @staticmethod
    def from_dict(fields: Mapping[str, Any]) -> Run:
        """The run that `to_dict` wrote, also in old ledgers, which list `evaluate` instead of tasks."""
        known = {name: value for name, value in fields.items() if name != "evaluate"}
        return Run(**{**known, "look_at": tuple(fields.get("look_at", ()))})


def former_id(fields: Mapping[str, Any]) -> str:
    """The id of a run in old ledgers, which also hashes its tasks and all rows.

    fields: those of a run there, with its tasks as `evaluate` and one fingerprint of all rows.
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
    """A settings or data object from plain JSON types, which have lists for tuples."""
    return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()})


@dataclass(frozen=True, kw_only=True)
class Job:
    """Runs that execute together: usually one; several if the study stacks them or the family trains all as one.

    Each run has only the tasks that it still lacks scores for. models: run id -> folder of the model, for runs
    that were trained before; a lane fills it in.
    """

    runs: tuple[Run, ...]
    models: Mapping[str, Path] = field(default_factory=dict)


class RunsFailed(Exception):
    """Raised at the end of a job in which some runs failed. errors: run id -> its error."""

    def __init__(self, errors: Mapping[str, Exception]) -> None:
        super().__init__(errors)
        self.errors = dict(errors)

    def __str__(self) -> str:
        return "\n".join(f"{run_id}: {error}" for run_id, error in self.errors.items())


@dataclass(frozen=True, kw_only=True)
class Trained:
    """The result of a run's training. `save_model` writes the model into an empty folder; None: there is no model.

    cost: as `trainers.engine.meter` counts it; the lane that executes the run fills it in. share: this run's part
    of the cost of a training that it shared with other runs.
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
    """The result of scoring a run on one task."""

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
Body = Callable[[Job, "World"], Iterator[Result]]  # executes a job
