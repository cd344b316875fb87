"""The world that a run executes in: the only object from which the engine learns of devices and storage."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from torch import nn

Precision = Literal["fp32", "bf16"]
RunStorage = tuple[Path | None, Callable[[Path, int], None] | None]  # scratch and save, as `World` has them
# environment variables of a process group; a process that runs alone must not see them
GROUP = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far a run is. `terms` are the weighted loss terms of the step; rates, where known, are of its training.

    figures: the family's other figures of the step, by name. doing: what the run is doing outside of its steps, in
    words.
    """

    step: int
    steps: int
    loss: float
    terms: Mapping[str, float] = field(default_factory=dict)
    figures: Mapping[str, float] = field(default_factory=dict)
    learning_rate: float | None = None
    sentences_per_second: float | None = None
    doing: str = ""


class Stopped(Exception):
    """The run was asked to stop and did so after a step; its checkpoint holds all steps so far."""


class Seat(Protocol):
    """A training's place among several whose models run in part together (`trainers.encoders.stack`)."""

    @property
    def share(self) -> float:
        """This training's fraction of what all of them have cost until now."""
        ...

    @property
    def lighter(self) -> str:
        """The setting by which fewer train together, for the message when memory runs out."""
        ...

    def joined(self, model: nn.Module) -> AbstractContextManager[None]:
        """Until the block ends, run the shared part of the model together with those of the other trainings."""
        ...

    def backward(self) -> None:
        """Finish a step's backward pass, which stopped at the shared part."""
        ...

    def flops(self) -> float:
        """Floating-point operations of the shared part since the last call."""
        ...


def _never() -> bool:
    return False


def _unheard(*ignored: Any) -> None:
    return None


def _unmeasured(*ignored: Any) -> Mapping[str, float]:
    return {}


@dataclass(frozen=True, kw_only=True)
class World:
    """Device, process group, precision, and callbacks: `report` shows progress, `save` keeps a checkpoint.

    rank, size: if size > 1, the process group exists already.
    scratch: a folder of this run alone that survives a crash: the engine keeps its checkpoint there and continues
    from the one it finds; None for no checkpoints. local_rank: the rank among those that share this folder; None
    if all ranks do.
    save: called by every rank after a checkpoint was written (Ray Train needs the rendezvous).
    stopping: called after every step; once it returns True the engine saves a checkpoint and raises Stopped. It
    must return the same on all ranks.
    look_at, look: after each of these steps, counted from 1, `look` measures the encoder; its figures join those
    of the step. It must not change the encoder's weights.
    spent: called with each step's floating-point operations and seconds (`trainers.engine.meter`). so_far: returns
    the cost of the run until now, for a checkpoint; go_on: called with the cost that a continued checkpoint holds.
    seat: the training's place in a stack; None if it trains alone. storage: run id -> scratch and save, if this
    world is that of several trainings; `for_run` returns the world of one.
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
    storage: Mapping[str, RunStorage] = field(default_factory=dict)

    @property
    def on_card(self) -> bool:
        """True if the device is no CPU."""
        return not self.device.startswith("cpu")

    @property
    def keeps_scratch(self) -> bool:
        """True for the one rank per scratch folder that clears, seals and publishes its content."""
        return (self.rank if self.local_rank is None else self.local_rank) == 0

    def tell(self, words: str) -> None:
        """Report what the run is doing outside of its steps; a run that reports nothing for long is ended."""
        self.report(Progress(step=0, steps=0, loss=0.0, doing=words))

    def for_run(self, run_id: str) -> World:
        """The world of one of several trainings."""
        scratch, save = self.storage.get(run_id, (self.scratch, self.save))
        return replace(self, scratch=scratch, save=save, storage={})
