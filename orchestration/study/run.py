"""A run, the unit of training, evaluation, resumption and caching; and what it leaves behind."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evaluators.metrics.scores import Score
    from trainers.engine.world import Precision, Progress

SCHEMA = 1  # raised whenever the same settings would give another result


@dataclass(frozen=True, kw_only=True)
class Run:
    """family × arm × backbone × seed, fully resolved.

    `defining` holds every setting that can change the result and nothing else, so that arms with other names,
    or the same frozen baseline in five studies, share one id. `settings` and `data` are what the family receives.
    seed is None for an arm without training: its one result is paired with every seed. look_at: steps after which
    development data are scored; that changes nothing, and is no part of the id.
    """

    family: str
    arm: str
    backbone: str
    seed: int | None
    settings: Mapping[str, Any]
    data: Mapping[str, Any]
    evaluate: tuple[str, ...]
    defining: Mapping[str, Any]
    backbone_fingerprint: str
    corpus_fingerprint: str
    world_size: int = 1
    precision: Precision = "fp32"
    zero_stage: int = 0
    look_at: tuple[int, ...] = ()

    @property
    def id(self) -> str:
        """16 hex digits: the hash of everything that can change the result."""
        identity = {
            "schema": SCHEMA,
            "family": self.family,
            "defining": dict(self.defining),
            "evaluate": sorted(self.evaluate),
            "seed": self.seed,
            "backbone": self.backbone_fingerprint,
            "corpus": self.corpus_fingerprint,
            "world": self._world,
        }
        return hashlib.sha256(canonical(identity)).hexdigest()[:16]

    @property
    def _world(self) -> list[Any]:
        """What counts of the machine. An untrained run only encodes, alone; bf16 rounds that too.

        MiniLM over the quickstart's 3,337 texts, one thread of an AVX512-bf16 core: 9.1 s in fp32, 3.1 s in bf16.
        """
        return [self.precision] if self.seed is None else [self.world_size, self.precision, self.zero_stage]

    @property
    def label(self) -> str:
        """How the run is called on a terminal."""
        return f"{self.arm} on {self.backbone}" + ("" if self.seed is None else f", seed {self.seed}")

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types; `Run.from_dict` reads it back."""
        return json.loads(canonical(asdict(self)))

    @staticmethod
    def from_dict(fields: Mapping[str, Any]) -> Run:
        looks = tuple(fields.get("look_at", ()))
        return Run(**{**fields, "evaluate": tuple(fields["evaluate"]), "look_at": looks})


def canonical(value: Any) -> bytes:
    """The one JSON text of a value: keys sorted, no blanks, no NaN."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def built(kind: type[Any], fields: Mapping[str, Any]) -> Any:
    """A settings or data object from plain JSON types, in which its tuples are lists."""
    return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()})


@dataclass(frozen=True, kw_only=True)
class Job:
    """Runs that execute together. One run as a rule; a stacked family trains all it is given as one model."""

    runs: tuple[Run, ...]


@dataclass(frozen=True, kw_only=True)
class Result:
    """What `execute` hands to the ledger for one run. `save_model` writes the model into an empty folder."""

    scores: Sequence[Score]
    curve: Sequence[Progress] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
    notes: Mapping[str, Any] = field(default_factory=dict)
    save_model: Callable[[Path], None] | None = None
