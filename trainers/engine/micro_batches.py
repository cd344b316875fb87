"""A large batch on a small card: a step's texts pass through the model some at a time, and its loss sees them all.

    L = ℓ(e_1 … e_N),   e_i = f(x_i)

What lies between a text and its vector is forgotten once the vector is there, and made again, part by part, when
the gradient of ℓ reaches it: memory is that of one part and of N vectors, the gradient is that of the whole batch,
and a step has a third more arithmetic (Gao et al. 2021, "Scaling Deep Contrastive Learning Batch Size under Memory
Limited Setup"). Each part draws its dropout from a stream of its own, from its beginning both times.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from trainers.engine.limits import MicroBatchSize, micro_batch_refusal
from trainers.engine.shortage import OutOfMemory, Shortage, shortage_told
from trainers.engine.transfers import moved

if TYPE_CHECKING:
    from trainers.engine.world import World

T = TypeVar("T")
NOT_EVEN_ONE = "a smaller train.max_length, a smaller backbone, or more memory"


class Divisible(Protocol):
    """Texts as token ids, of known lengths."""

    def __len__(self) -> int: ...

    @property
    def lengths(self) -> np.ndarray: ...

    def take(self, texts: np.ndarray) -> Any: ...


@dataclass
class MicroBatch:
    """How many texts pass at a time: `size`, None for all. auto: it becomes smaller where memory is short."""

    size: int | None
    auto: bool

    @staticmethod
    def of(asked: MicroBatchSize, world: World) -> MicroBatch:
        """Of a family's setting train.micro_batch. ValueError where this world cannot do what is asked."""
        if said := micro_batch_refusal(asked, workers=world.size, zero_stage=world.zero_stage):
            raise ValueError(said)
        return MicroBatch(asked if isinstance(asked, int) else None, auto=asked == "auto")

    @property
    def asked(self) -> bool:
        """Whether texts may pass in parts; else all of a step pass at a time, always."""
        return self.auto or self.size is not None


class InParts(nn.Module):
    """A model of texts that reads some of them at a time. Rows of texts are the last dimension but one."""

    def __init__(self, model: nn.Module, micro: MicroBatch) -> None:
        super().__init__()
        self.model, self.micro = model, micro

    def forward(self, texts: Divisible, **named: Any) -> Tensor:
        return in_parts(lambda part, _: self.model(part, **named), texts, self.micro.size)


def in_parts(read: Callable[[Any, np.ndarray], Tensor], texts: Divisible, size: int | None) -> Tensor:
    """What `read` gives for the texts, `size` at a time, in their order. -> (…, N, D).

    read(part, places): the rows of a part, whose texts lie at these places; it is called again for the gradient,
    and what it draws it draws from torch's own stream. Long texts are read together.
    """
    if size is None or len(texts) <= size:
        return read(texts, np.arange(len(texts)))
    order = np.argsort(-texts.lengths, kind="stable")
    parts = [order[begin : begin + size] for begin in range(0, len(order), size)]
    streams = torch.randint(2**62, (len(parts),)).tolist()

    def replayed(places: np.ndarray, stream: int) -> Tensor:
        torch.manual_seed(stream)
        return read(texts.take(places), places)

    rows = [
        checkpoint(replayed, places, stream, use_reentrant=False, preserve_rng_state=False)
        for places, stream in zip(parts, streams, strict=True)
    ]
    whole = torch.cat(rows, dim=-2)
    return whole.index_select(-2, moved(np.argsort(order), whole.device))


def within_memory(
    work: Callable[[], T], undo: Callable[[], None], micro: MicroBatch | None, texts: int, world: World
) -> T:
    """Do the work of a step of so many texts; where memory is short, halve what passes at a time until it fits.

    With "auto" the run goes on so. Else OutOfMemory says which size would have fitted; where none may be tried,
    which to try. undo: as if the step had not begun. micro: None in a family whose batches cannot be divided.
    """
    try:
        with shortage_told():
            return work()
    except Shortage as short:
        said = str(short)
    passed = -(-texts // world.size)  # by this worker at a time
    if micro is not None and micro.size is not None:
        passed = min(micro.size, passed)
    if micro is None or not micro.asked or world.size > 1 or world.zero_stage:
        raise _short(passed, said, _untried(passed, micro, world))
    size = passed
    while size > 1:
        size = micro.size = (size + 1) // 2
        gc.collect()  # the frames of what failed hold what it had computed
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        undo()
        try:
            with shortage_told():
                done = work()
        except Shortage:
            continue
        if micro.auto:
            return done
        raise _short(passed, said, f"train.micro_batch = {size}, which would have fitted, or auto")
    raise _short(passed, said, NOT_EVEN_ONE)


def _short(passed: int, said: str, accepted: str) -> OutOfMemory:
    """passed: how many texts at a time there was no room for."""
    return OutOfMemory(
        f"the device has no memory for a step with {passed} texts at a time: {said}\n  accepted: {accepted}"
    )


def _untried(passed: int, micro: MicroBatch | None, world: World) -> str:
    """What is accepted where no other size was tried: what leaves the recipe as it is comes first."""
    half, smaller = max(1, passed // 2), "a smaller train.batch_size or train.max_length"
    if world.seat is not None:
        return f"{world.seat.lighter}; or {smaller}"
    if micro is None or micro_batch_refusal(half, workers=world.size, zero_stage=world.zero_stage):
        return smaller
    if micro.asked:
        return f"a smaller train.micro_batch, such as {half}" if passed > 1 else NOT_EVEN_ONE
    alone = not micro_batch_refusal("auto", workers=world.size, zero_stage=world.zero_stage)
    return f"train.micro_batch: {'auto' if alone else half}; or {smaller}, which is another recipe"
