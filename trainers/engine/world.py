"""The world a run executes in, as one frozen object: the engine learns of devices and storage only from here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from torch import nn

Precision = Literal["fp32", "bf16"]
Room = tuple[Path | None, Callable[[Path, int], None] | None]  # scratch and save, as `World` has them
# what a process group says of itself in the environment; what runs alone must not read it
GROUP = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Where a run is. `terms` are the weighted loss terms of the step; rates are per second of training.

    figures: what the family shows of a step besides, by name. doing: in words, what goes on before the first step.
    """

    step: int
    steps: int
    loss: float
    terms: Mapping[str, float] = field(default_factory=dict)
    figures: Mapping[str, float] = field(default_factory=dict)
    learning_rate: float = 0.0
    sentences_per_second: float = 0.0
    doing: str = ""


class Stopped(Exception):
    """The run was asked to stop: its last step has ended, and its checkpoint holds all steps so far."""


class Seat(Protocol):
    """A training's place among several that run a part of their models together (`trainers.encoders.stack`)."""

    @property
    def share(self) -> float:
        """This training's part of what all of them have spent until now."""
        ...

    @property
    def lighter(self) -> str:
        """What to set so that fewer train together, for a message where memory is short."""
        ...

    def joined(self, model: nn.Module) -> AbstractContextManager[None]:
        """Within, the shared part of the model runs together with those of the others."""
        ...

    def backward(self) -> None:
        """Finish a step's backward pass, which stopped at the shared part."""
        ...

    def flops(self) -> float:
        """Floating-point operations of the shared part since the last call."""
        ...


def _never() -> bool:
    """Nobody asks."""
    return False


def _unheard(*told: Any) -> None:
    """Nobody is watching, nor meters."""


def _unmeasured(*asked: Any) -> Mapping[str, float]:
    """Nothing is measured."""
    return {}


@dataclass(frozen=True, kw_only=True)
class World:
    """Device, process group, precision, and the two ways out: `report` (live) and `save` (durable).

    rank and size describe a process group that exists already when size > 1.
    scratch is a folder that survives a crash of this attempt and belongs to this run alone: the engine keeps
    its checkpoint there and continues from the one it finds. None: no checkpoints. local_rank: this rank's among
    those that share the folder; None where all of the world do.
    save is called by every rank after a checkpoint was written (Ray Train needs the rendezvous).
    stopping is asked after every step; once it says so the engine saves a checkpoint and raises Stopped. Of
    several ranks none may say so alone.
    After each of the steps look_at, counted from 1, `look` measures the encoder as it is then; its figures, by
    name, become part of that step's. It must leave the encoder's weights alone.
    spent is told each step's floating-point operations and seconds (`trainers.engine.meter`). so_far gives what
    the run has cost until now, for a checkpoint to keep; go_on is told what a continued checkpoint kept.
    seat: the training's place in a stack; None for one that trains alone. rooms: run id -> scratch and save of its
    training, where the world is that of several; `for_run` is the world of one.
    """

    rank: int = 0
    size: int = 1
    device: str = "cpu"
    precision: Precision = "fp32"
    zero_stage: int = 0
    threads: int = 1
    scratch: Path | None = None
    local_rank: int | None = None
    checkpoint_every: int = 0
    report: Callable[[Progress], None] = _unheard
    save: Callable[[Path, int], None] | None = None
    stopping: Callable[[], bool] = _never
    look_at: tuple[int, ...] = ()
    look: Callable[[Any], Mapping[str, float]] = _unmeasured
    spent: Callable[[float, float], None] = _unheard
    so_far: Callable[[], Mapping[str, float]] = _unmeasured
    go_on: Callable[[Mapping[str, float]], None] = _unheard
    seat: Seat | None = None
    rooms: Mapping[str, Room] = field(default_factory=dict)

    @property
    def keeps_scratch(self) -> bool:
        """Whether this rank is the one that clears, seals and hands over what is in its scratch folder."""
        return (self.rank if self.local_rank is None else self.local_rank) == 0

    def for_run(self, run_id: str) -> World:
        """The world of one of several trainings."""
        scratch, save = self.rooms.get(run_id, (self.scratch, self.save))
        return replace(self, scratch=scratch, save=save, rooms={})
