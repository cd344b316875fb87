"""Large batches on a small GPU: the model encodes a step's texts in parts, and the loss still sees all of them.

    L = ℓ(e_1 … e_N),   e_i = f(x_i)

A part's activations are dropped once its vectors are computed, and recomputed when the gradient of ℓ reaches them.
Memory holds one part and N vectors, the gradient is that of the whole batch, and a step has a third more
arithmetic (Gao et al. 2021, "Scaling Deep Contrastive Learning Batch Size under Memory Limited Setup"). Each part
draws its dropout from its own stream, which is reset for the recomputation.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from trainers.engine.limits import MicroBatchSize, micro_batch_refusal
from trainers.engine.shortage import OutOfMemory, Shortage, give_back_memory, raising_shortage
from trainers.engine.streams import seed_global
from trainers.engine.transfers import moved

if TYPE_CHECKING:
    from trainers.engine.world import World

T = TypeVar("T")
NOT_EVEN_ONE = "a smaller train.max_length, a smaller backbone, or more memory"


class Divisible(Protocol):
    """Texts as token ids that can be split by text; `lengths` in tokens."""

    def __len__(self) -> int: ...

    @property
    def lengths(self) -> np.ndarray: ...

    def take(self, texts: np.ndarray) -> Any: ...


@dataclass
class MicroBatch:
    """How many texts the model encodes at a time: `size`, None for all. auto: halve it when memory runs out.

    reentrant: a part is read without gradients, as CUDA graphs need it, then again with them, and has a backward
    pass of its own. Else torch drops what the backward pass would need, and a parameter gets one gradient of all
    parts, as DeepSpeed needs it between workers and in ZeRO; a CPU would also cut its passes in another way.
    """

    size: int | None
    auto: bool
    reentrant: bool = False

    @staticmethod
    def of(asked: MicroBatchSize, world: World) -> MicroBatch:
        """From a family's setting train.micro_batch. Raises ValueError if it is impossible in this world."""
        if refusal := micro_batch_refusal(asked, workers=world.size, zero_stage=world.zero_stage):
            raise ValueError(refusal)
        return MicroBatch(asked if isinstance(asked, int) else None, auto=asked == "auto")

    @property
    def divides(self) -> bool:
        """True if a step's texts may be encoded in parts, now or later."""
        return self.auto or self.size is not None


class InParts(nn.Module):
    """Wraps a model of texts so that it encodes `micro.size` of them at a time. (…, N, D): N is the texts."""

    def __init__(self, model: nn.Module, micro: MicroBatch) -> None:
        super().__init__()
        self.model, self.micro = model, micro

    def forward(self, texts: Divisible, **named: Any) -> Tensor:
        return in_parts(lambda part, _: self.model(part, **named), texts, self.micro)


def in_parts(read: Callable[[Any, np.ndarray], Tensor], texts: Divisible, micro: MicroBatch) -> Tensor:
    """Apply `read` to the texts, `micro.size` at a time; the result keeps their order. -> (…, N, D).

    read(part, places): the rows of a part, whose texts lie at these places. It is called once more in the backward
    pass, and must draw random numbers from torch's global stream only. Texts of similar length share a part.
    """
    size = micro.size
    if size is None or len(texts) <= size:
        return read(texts, np.arange(len(texts)))
    order = np.argsort(-texts.lengths, kind="stable")
    parts = [order[begin : begin + size] for begin in range(0, len(order), size)]
    streams = torch.randint(2**62, (len(parts),)).tolist()

    anchor = torch.zeros((), requires_grad=True)  # what was read without gradients has one if its inputs have one

    def replayed(places: np.ndarray, stream: int, _: Tensor) -> Tensor:
        seed_global(stream)
        return read(texts.take(places), places)

    rows = [
        checkpoint(replayed, places, stream, anchor, use_reentrant=micro.reentrant, preserve_rng_state=False)
        for places, stream in zip(parts, streams, strict=True)
    ]
    whole = torch.cat(rows, dim=-2)
    return whole.index_select(-2, moved(np.argsort(order), whole.device))


def within_memory(
    work: Callable[[], T], undo: Callable[[], bool], micro: MicroBatch | None, texts: int, world: World
) -> T:
    """Do the work of a step over `texts` texts; if memory runs out, halve how many pass at a time until it fits.

    With "auto" training continues at that size. Otherwise OutOfMemory names the size that would have fitted, or
    one to try if this world cannot repeat a step. undo: removes what the failed attempt left, and tells if there
    was more to remove, so that a second may have room. micro: None in a family whose batches cannot be divided.
    """
    try:
        with raising_shortage():
            return work()
    except Shortage as shortage:
        message = str(shortage)
    at_a_time = -(-texts // world.size)  # per worker
    if micro is not None and micro.size is not None:
        at_a_time = min(micro.size, at_a_time)
    if micro is None or not micro.divides or world.size > 1 or world.zero_stage:
        raise _out_of_memory(at_a_time, message, _proposal(at_a_time, micro, world))
    if micro.auto and _undone(undo):  # else no step is repeated and kept: policies of RLRD learn from it once
        with suppress(Shortage), raising_shortage():
            return work()
    size = at_a_time
    while size > 1:
        size = micro.size = (size + 1) // 2
        _undone(undo)
        try:
            with raising_shortage():
                done = work()
        except Shortage:
            continue
        if micro.auto:
            return done
        raise _out_of_memory(at_a_time, message, f"train.micro_batch = {size}, which would have fitted, or auto")
    raise _out_of_memory(at_a_time, message, NOT_EVEN_ONE)


def _undone(undo: Callable[[], bool]) -> bool:
    """Undo, and give the device its memory back. -> what `undo` tells."""
    more = undo()
    give_back_memory()
    return more


def _out_of_memory(at_a_time: int, message: str, accepted: str) -> OutOfMemory:
    return OutOfMemory(
        f"the device has no memory for a step with {at_a_time} texts at a time: {message}\n  accepted: {accepted}"
    )


def _proposal(at_a_time: int, micro: MicroBatch | None, world: World) -> str:
    """The settings to try if no other size was tried; those that leave the recipe unchanged come first."""
    half, smaller = max(1, at_a_time // 2), "a smaller train.batch_size or train.max_length"
    if world.seat is not None:
        return f"{world.seat.lighter}; or {smaller}"
    if micro is None or micro_batch_refusal(half, workers=world.size, zero_stage=world.zero_stage):
        return smaller
    if micro.divides:
        return f"a smaller train.micro_batch, such as {half}" if at_a_time > 1 else NOT_EVEN_ONE
    auto_possible = not micro_batch_refusal("auto", workers=world.size, zero_stage=world.zero_stage)
    return f"train.micro_batch: {'auto' if auto_possible else half}; or {smaller}, which is another recipe"
