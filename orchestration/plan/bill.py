"""What a study and each claim's verdict cost: the time, energy and money of the runs that they rest on.

Counted from what finished runs recorded of themselves. Runs that several claims rest on count for each of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evaluators.significance.claims import sides_of
from orchestration.plan.plan import by_arm
from orchestration.study.names import amount, counted

if TYPE_CHECKING:
    from orchestration.plan.plan import Plan

Recorded = Mapping[str, float]  # of one run, as `trainers.engine.meter` counts
JOULES = 3.6e6  # of a kilowatt-hour


@dataclass(frozen=True, kw_only=True)
class Bill:
    """Of some runs. hours: of one lane. kwh, and gpu_kwh of GPUs alone: None where one of them could not tell."""

    runs: int
    hours: float
    gpu_hours: float
    kwh: float | None
    gpu_kwh: float | None = None

    def money(self, price: float) -> float:
        """At a price of an hour: of a GPU where they used GPUs, else of a lane."""
        return price * (self.gpu_hours or self.hours)

    def words(self, price: float | None = None) -> str:
        """In a sentence: 24 runs, 2.3 h, 1.1 GPU-hours, 0.8 kWh, 5.75 in money."""
        parts = [counted(self.runs, "run"), f"{amount(self.hours)} h"]
        parts += [f"{amount(self.gpu_hours)} GPU-hours"] if self.gpu_hours else []
        parts += [energy] if (energy := self.energy()) else []
        parts += [f"{self.money(price):.2f} at {price:g} an hour"] if price else []
        return ", ".join(parts)

    def energy(self) -> str:
        """In words: all of it, else that of the GPUs; "" where neither is known."""
        if self.kwh is not None:
            return f"{amount(self.kwh)} kWh"
        return "" if self.gpu_kwh is None else f"{amount(self.gpu_kwh)} kWh of GPUs alone"


def total(recorded: Sequence[Recorded]) -> Bill:
    """Of runs that recorded what they cost."""
    return Bill(
        runs=len(recorded),
        hours=sum(one["seconds"] for one in recorded) / 3600,
        gpu_hours=sum(one.get("gpu_hours", 0.0) for one in recorded),
        kwh=_kwh(recorded, "joules"),
        gpu_kwh=_kwh(recorded, "gpu_joules"),
    )


def _kwh(recorded: Sequence[Recorded], name: str) -> float | None:
    joules = [one[name] for one in recorded if name in one]
    return sum(joules) / JOULES if recorded and len(joules) == len(recorded) else None


def cost_words(plan: Plan, price: float | None, left: float | None) -> list[str]:
    """A line for each claim, from finished runs; without those, for a price, one for the study, or why
    nothing can be said.

    price: of an hour. left: seconds of a lane that the runs that are left may take, where something tells it.
    """
    about = "" if all(run.id in plan.facts.costs for run in plan.runs) else "about "
    lines = [f"{claim}: {about}{bill.words(price)}" for claim, bill in of_claims(plan).items()]
    if lines or price is None:
        return lines
    if plan.left:
        if left is None:
            return ["unknown: nothing tells yet how long the runs that are left take"]
        hours, gpus = left / 3600, plan.study.resources.gpus_per_run
        bill = Bill(runs=len(plan.left), hours=hours, gpu_hours=hours * gpus, kwh=None)
        return [f"of what is left, by the time foretold: about {bill.words(price)}"]
    recorded = [plan.facts.costs[run.id] for run in plan.done if run.id in plan.facts.costs]
    if len(recorded) < len(plan.done):
        missing = len(plan.done) - len(recorded)
        return [f"unknown: {missing} of {len(plan.done)} finished runs are from before costs were recorded"]
    return [f"of all runs: {total(recorded).words(price)}"]


def of_claims(plan: Plan) -> dict[str, Bill]:
    """What each claim will have cost, by its name, from the finished runs of its arms; without those, nothing."""
    known = [run for run in plan.done if run.id in plan.facts.costs]
    if not known:
        return {}
    alike = {place: _mean([plan.facts.costs[run.id] for run in runs]) for place, runs in by_arm(known).items()}
    trained = _mean([plan.facts.costs[run.id] for run in known if run.seed is not None])
    expected = {
        run.id: plan.facts.costs.get(run.id) or alike.get((run.arm, run.backbone), trained) for run in plan.runs
    }
    place_of = {run.id: place for place, run in enumerate(plan.runs)}
    found = {}
    for claim in plan.study.compare:
        rests_on = {side for judged in plan.study.judged(claim) for side in sides_of(judged.parts)}
        asked_for = sorted(place_of[run.id] for place in rests_on for run in plan.runs_of.get(place, ()))
        costs = [expected[plan.runs[place].id] for place in asked_for]  # in the order of the plan
        told = [cost for cost in costs if cost]
        if told and len(told) == len(costs):
            found[claim.claim] = total(told)
    return found


def _mean(costs: Sequence[Recorded]) -> Recorded | None:
    if not costs:
        return None
    names = set.intersection(*(set(cost) for cost in costs))
    return {name: sum(cost[name] for cost in costs) / len(costs) for name in sorted(names)}
