"""Limits that every family's settings share, as annotated types. No torch here: settings are read without it."""

from typing import Annotated

from annotated_types import Ge, Le

STEPS_AT_MOST = 10_000_000
Steps = Annotated[
    int, Ge(1), Le(STEPS_AT_MOST), f"a whole number from 1 to {STEPS_AT_MOST:,}, days of training at any speed"
]
BATCH_AT_MOST = 1_000_000  # texts a step: more than any published recipe takes, and no memory holds
Batch = Annotated[int, Ge(1), Le(BATCH_AT_MOST), f"a whole number from 1 to {BATCH_AT_MOST:,}"]
