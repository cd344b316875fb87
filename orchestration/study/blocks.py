"""The blocks of a study file as frozen data classes, with their ranges and the rules between fields.

A text in an annotation describes the field in messages. A ValueError names the field first and then what would
be accepted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from annotated_types import Ge, Gt, Le, Lt

from corpora.store.fields import Text
from evaluators.significance.claims import Arm, Metric

SEEDS_AT_MOST = 1000  # the interval of a mean is then a thirtieth of the spread of single seeds
Count = Annotated[int, Ge(1), Le(SEEDS_AT_MOST)]
Seed = Annotated[int, Ge(0), Le(2**32 - 1)]
MACHINES_AT_MOST = 10_000  # at a time, more than any cluster this runs on
GIB_AT_MOST = 1_000_000  # of a run's memory, a petabyte
STACK_AT_MOST = 64  # encoders that train as one: more would share out one card's memory too thinly
TRIALS_AT_MOST = 100_000  # of a search; a study may have as many runs
Models = Literal["keep", "best", "none"]
ETA = 3  # asha keeps one point in so many by default (Li et al., 2020)
DEFAULT_SEEDS = 8  # the fewest that pass Holm over five claims with an exact sign-flip test


@dataclass(frozen=True, kw_only=True)
class Seeds:
    """initial: the seeds of every trained arm. reserve: those added in this order while a claim is undecided."""

    initial: tuple[int, ...]
    reserve: tuple[int, ...] = ()

    @property
    def all(self) -> tuple[int, ...]:
        return self.initial + self.reserve


@dataclass(frozen=True, kw_only=True)
class Growing:
    """`seeds: {start, max}`: seeds 0 to start-1, then one more pair at a time up to `max` in all."""

    start: Count
    max: Count

    def __post_init__(self) -> None:
        if self.max <= self.start:
            raise ValueError(f"max: above start, which is {self.start}")


@dataclass(frozen=True, kw_only=True)
class Objective:
    """What a search optimises: a metric of the dev split.

    confirm: the metric of `evaluate` that tests the choice; None: the metric of the same name without dev/.
    """

    metric: Metric
    mode: Literal["max", "min"]
    confirm: Metric | None = None

    @property
    def confirmed(self) -> str:
        """The metric on test data."""
        return self.confirm or re.sub(r"(^|[(, ])dev/", r"\1", self.metric)


Objectives = Annotated[
    Objective | tuple[Objective, ...],
    "{metric: a metric of a dev task, mode: max or min}, or a list of such",
]


@dataclass(frozen=True, kw_only=True)
class StopEarly:
    """The rule by which runs of a search end early for poor development scores.

    at: steps after which a run is scored. least: how many other runs of the same seed must have reached that step
    before one is ended. rule median ends a run whose best score is below the median of those runs' mean scores so
    far (Golovin et al., 2017). asha ends a run that is not among the best 1/eta of those that reached the step (Li
    et al., 2020); eta: ETA unless given.
    """

    rule: Literal["median", "asha"]
    at: Annotated[tuple[Annotated[int, Ge(1)], ...], "a list of steps, such as [20, 40]"]
    least: Annotated[int, Ge(1)] = 4
    eta: Annotated[int, Ge(2)] | None = None

    def __post_init__(self) -> None:
        if not self.at or list(self.at) != sorted(set(self.at)):
            raise ValueError("at: one step or more, each above the one before")
        if self.eta is not None and self.rule != "asha":
            raise ValueError("eta: absent with rule median, which has no such share")

    @property
    def one_in(self) -> int:
        """asha keeps one run in so many."""
        return self.eta or ETA


@dataclass(frozen=True, kw_only=True)
class Search:
    """Points of a family's search space around some arms, each judged by its mean over the selection seeds.

    arms: each has a search of its own with equal trials. An arm's settings are its first point, and settings that
    no dimension moves keep their values. dimensions: the settings that move, and their ranges; None: the whole
    space; paper: the settings of the paper's grid, over that grid. match_control: whether the trained controls of
    these arms are searched too, after them, taking tied settings from them; None: if the space has tied settings.
    startup: points drawn at random before TPE looks at results. budget: the most runs a search may ask for.
    race: a point gets its next seed while its chance of ending above the best point is at least this; 0: always;
    None: 0.1 with one objective, 0 with several, which have a front and no best point. at_once: points tried side
    by side (None: one a lane); a stacked family trains them as one stack in each lane.
    """

    space: Annotated[Text, "the name of the study's family"]
    arms: Annotated[tuple[Arm, ...], "a list of trained arms, such as [B1]"]
    trials: Annotated[int, Ge(1), Le(TRIALS_AT_MOST)]
    objective: Objectives
    seeds: tuple[Seed, ...]
    dimensions: Annotated[
        Literal["paper"] | Mapping[str, Any] | None,
        "paper, or a mapping of settings to `all`, `paper`, {low: …, high: …} or a list of values",
    ] = None
    match_control: bool | None = None
    sampler: Literal["tpe", "grid", "random"] = "tpe"
    sampler_seed: Seed = 0
    startup: Annotated[int, Ge(1)] = 10
    budget: Annotated[int, Ge(1)] | None = None
    race: Annotated[float, Ge(0), Lt(0.5)] | None = None
    stop_early: StopEarly | None = None
    at_once: Annotated[int, Ge(1)] | None = None
    backbone: Text | None = None

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """All objectives. The first decides which point is confirmed."""
        return (self.objective,) if isinstance(self.objective, Objective) else self.objective

    @property
    def least_chance(self) -> float:
        """`race` as a number: a point whose chance is lower gets no further seed."""
        if self.race is None:
            return 0.1 if len(self.objectives) == 1 else 0.0
        return self.race


@dataclass(frozen=True, kw_only=True)
class DeepSpeed:
    """The settings of DeepSpeed. All arms share one ZeRO stage: stages differ in their last digits."""

    zero_stage: Annotated[int, Ge(0), Le(3)] = 0


@dataclass(frozen=True, kw_only=True)
class Resources:
    """What a run may use. lanes: runs at a time (None: as many as fit). checkpoint_every: steps, 0 for never.

    runs_per_stack: how many runs of one shape train as one stack of encoders in one lane; gpus_per_run and
    memory_gib_per_run then hold for a stack. memory_gib_per_run: the memory reserved for each run; 0: memory is
    not counted. stall_minutes: a run without progress for so long is ended and tried again like a failed one.
    models: which models the ledger keeps: all; best: of each arm and backbone the best seed by the first claim's
    metric, once the study is done; or none.
    """

    gpus_per_run: Annotated[float, Ge(0)] = 0.0
    memory_gib_per_run: Annotated[float, Ge(0), Le(GIB_AT_MOST)] = 0.0
    workers_per_run: Annotated[int, Ge(1), Le(MACHINES_AT_MOST)] = 1
    runs_per_stack: Annotated[int, Ge(1), Le(STACK_AT_MOST)] = 1
    lanes: Annotated[int, Ge(1), Le(MACHINES_AT_MOST)] | None = None
    precision: Literal["auto", "fp32", "bf16"] = "auto"
    retries: Annotated[int, Ge(0), Le(100)] = 2
    launcher: Literal["auto", "pool", "train"] = "auto"
    deepspeed: DeepSpeed = field(default_factory=DeepSpeed)
    checkpoint_every: Annotated[int, Ge(0)] = 0
    stall_minutes: Annotated[float, Gt(0), Le(10_080)] = 30.0  # a week at most
    models: Models = "keep"

    @property
    def stall_seconds(self) -> float:
        return self.stall_minutes * 60

    @property
    def gpus_per_worker(self) -> float:
        return self.gpus_per_run / self.workers_per_run

    @property
    def memory_per_worker(self) -> int:
        """In bytes; 0 if memory is not counted."""
        return int(self.memory_gib_per_run * 2**30) // self.workers_per_run

    def __post_init__(self) -> None:
        if self.workers_per_run == 1 and self.gpus_per_run > 1:
            raise ValueError(
                "gpus_per_run: 0 to 1 with one worker, which uses one GPU; `workers_per_run` adds more"
            )
        if self.launcher == "train" and 0 < self.gpus_per_run < 1:
            raise ValueError("gpus_per_run: 0 or 1 with launcher train: a pooled lane alone keeps to its share")
        if self.workers_per_run > 1 and self.gpus_per_run not in (0, self.workers_per_run):
            raise ValueError(f"gpus_per_run: 0, or {self.workers_per_run}: one GPU for each of the workers")
        if self.workers_per_run > 1 and self.launcher == "pool":
            raise ValueError(f"launcher: auto or train: a pooled lane has one worker, not {self.workers_per_run}")
        alone = self.workers_per_run == 1 and self.launcher != "train" and not self.deepspeed.zero_stage
        if self.runs_per_stack > 1 and not alone:
            raise ValueError(
                "runs_per_stack: 1, or more with workers_per_run 1, launcher auto or pool, and ZeRO stage 0:"
                " a stack trains in one lane"
            )
