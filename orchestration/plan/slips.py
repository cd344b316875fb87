"""Warnings about values of a study that are allowed but almost surely unintended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from orchestration.families.registry import family
from orchestration.study.names import listed

if TYPE_CHECKING:
    from orchestration.study.run import Run
    from orchestration.study.study import Study

WARM_UPS = (("warmup", "steps"), ("warmup_steps", "max_steps"))  # each with the setting for the length of training
LEARNING_RATE_AT_MOST = 0.1  # all recipes train with kinds of Adam, which diverge above this


def slips(study: Study) -> list[str]:
    """One warning for each slip, with the arms, the field and the value."""
    trained = {arm: settings for arm, settings in study.arms.items() if settings.train}
    arms_with: dict[str, list[str]] = {}
    for arm, settings in trained.items():
        for what in _slips_of_arm(settings):
            arms_with.setdefault(what, []).append(arm)
    found = [f"{listed(arms)}: {what}" for what, arms in arms_with.items()]
    found += family(study.family).slips(study)
    if trained and len(study.seeds.all) == 1 and study.compare:
        found.append("seeds: one seed tells nothing of how far seeds differ; 8 are the default")
    return [*found, *_said_twice(study)]


def _said_twice(study: Study) -> list[str]:
    """A warning for claims of one group that say the same under several names."""
    names: dict[tuple[str | None, str], dict[str, None]] = {}
    for claim in study.claims:
        names.setdefault((claim.family, claim.id), {})[claim.claim] = None
    twice = dict.fromkeys(tuple(same) for same in names.values() if len(same) > 1)
    return [
        f"{listed(same)}: one claim under {len(same)} names, and corrected as {len(same)} claims, so each needs a "
        "larger difference; one of them is enough"
        for same in twice
    ]


def slips_of_processor(runs: Iterable[Run]) -> list[str]:
    """A warning if runs in bf16 are to train on a processor that is slow at it.

    Runs are in bf16 if the study says so, or if the ledger holds runs of it from a machine that is fast at bf16. A
    processor without AVX512-bf16 or AMX computes such products one number after another.
    """
    from trainers.engine.precision import fast_at_bf16

    if fast_at_bf16("cpu") or not any(run.precision == "bf16" for run in runs):
        return []
    return [
        "bf16, in which this processor takes longer than in fp32, without AVX512-bf16 many times as long; "
        "`resources: {precision: fp32}` asks for other runs, all of them in fp32"
    ]


def _slips_of_arm(settings: Any) -> Iterator[str]:
    rate = getattr(settings, "learning_rate", None)
    if rate is not None and rate > LEARNING_RATE_AT_MOST:
        yield f"learning_rate = {rate:g} is far above what trains; 2.0e-5 to 1.0e-3 are usual"
    for field, length in WARM_UPS if getattr(settings, "lr_scheduler_type", None) != "constant" else ():
        warmup, steps = getattr(settings, field, None), getattr(settings, length, None)
        if isinstance(warmup, int) and steps is not None and warmup >= steps:
            lasts = f"lasts as long as the training of {steps} steps: the learning rate only rises"
            yield f"{field} = {warmup} {lasts}"
