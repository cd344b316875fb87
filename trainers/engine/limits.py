"""Limits that every family's settings share, as annotated types. No torch here: settings are read without it."""

from typing import Annotated, Literal

from annotated_types import Ge, Le

STEPS_AT_MOST = 10_000_000
Steps = Annotated[
    int, Ge(1), Le(STEPS_AT_MOST), f"a whole number from 1 to {STEPS_AT_MOST:,}, days of training at any speed"
]
STEP_NAMES = ("steps", "max_steps")  # of this setting in families
BATCH_AT_MOST = 1_000_000  # texts a step: more than any published recipe takes, and no memory holds
Batch = Annotated[int, Ge(1), Le(BATCH_AT_MOST), f"a whole number from 1 to {BATCH_AT_MOST:,}"]
MicroBatchSize = Annotated[int, Ge(1)] | Literal["auto"] | None  # texts that pass at a time; None: all of a step


def check_shared(batch_size: int, workers: int) -> None:
    """Raise ValueError if the batch size is no multiple of the number of workers."""
    if batch_size % workers:
        raise ValueError(f"train.batch_size = {batch_size}\n  accepted: a multiple of the {workers} workers")


def micro_batch_refusal(asked: MicroBatchSize, *, workers: int, zero_stage: int) -> str:
    """Why train.micro_batch = `asked` is impossible in this world, and what is accepted; "" if it is possible.

    Workers of ZeRO 3 fetch each layer's weights together, but may have different numbers of parts. "auto" repeats
    a step, which one of several workers cannot do alone.
    """
    if asked is not None and zero_stage == 3:
        return (
            f"train.micro_batch = {asked!r}\n  accepted: null with ZeRO stage 3; stages 0, 1 and 2 take a number"
        )
    if asked == "auto" and (workers > 1 or zero_stage):
        return "train.micro_batch = 'auto'\n  accepted: a number; auto with one worker and ZeRO stage 0"
    return ""
