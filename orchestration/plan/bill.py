"""What a study and each claim cost: the time, energy and money of their runs.

The numbers are those that finished runs recorded. A run that several claims use counts for each of them.
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

Recorded = Mapping[str, float]  # the cost of one run, as `trainers.engine.meter` counts
JOULES = 3.6e6  # of a kilowatt-hour


@dataclass(frozen=True, kw_only=True)
class Bill:
    """The cost of some runs. hours: of one lane. kwh, gpu_kwh (GPUs only): None if a run did not record it."""

    runs: int
    hours: float
    gpu_hours: float
    kwh: float | None
    gpu_kwh: float | None = None

    def money(self, price: float) -> float:
        """The price of all hours. price: of one GPU hour if the runs used GPUs, else of one lane hour."""
        return price * (self.gpu_hours or self.hours)

    def words(self, price: float | None = None) -> str:
        """In words: 24 runs, 2.3 h, 1.1 GPU-hours, 0.8 kWh, 5.75 at 2.5 an hour."""
        parts = [counted(self.runs, "run"), f"{amount(self.hours)} h"]
        parts += [f"{amount(self.gpu_hours)} GPU-hours"] if self.gpu_hours else []
        parts += [energy] if (energy := self.energy()) else []
        parts += [f"{self.money(price):.2f} at {price:g} an hour"] if price else []
        return ", ".join(parts)

    def energy(self) -> str:
        """The energy in words: all of it, else that of the GPUs; "" if neither is known."""
        if self.kwh is not None:
            return f"{amount(self.kwh)} kWh"
        return "" if self.gpu_kwh is None else f"{amount(self.gpu_kwh)} kWh of GPUs alone"


def total(recorded: Sequence[Recorded]) -> Bill:
    """The sum of recorded costs."""
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
    """One line for each claim, from finished runs. If no run recorded costs and a price is given, one line for the
    study, or the reason why its cost is unknown.

    price: of an hour. left: the expected seconds of one lane for the remaining runs, None if unknown.
    """
    about = "" if all(run.id in plan.facts.costs for run in plan.runs) else "about "
    lines = [f"{claim}: {about}{bill.words(price)}" for claim, bill in bill_by_claim(plan).items()]
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


def bill_by_claim(plan: Plan) -> dict[str, Bill]:
    """Claim name -> its cost once all its runs are done, estimated from finished runs; empty without those."""
    known = [run for run in plan.done if run.id in plan.facts.costs]
    of_arm = {arm: _mean([plan.facts.costs[run.id] for run in runs]) for arm, runs in by_arm(known).items()}
    trained = _mean([plan.facts.costs[run.id] for run in known if run.seed is not None])
    expected = {
        run.id: plan.facts.costs.get(run.id) or of_arm.get((run.arm, run.backbone), trained) for run in plan.runs
    }
    position_of = {run.id: position for position, run in enumerate(plan.runs)}
    bills = {}
    for claim in plan.study.compare:
        sides = {side for judged in plan.study.judged(claim) for side in sides_of(judged.parts)}
        positions = sorted(position_of[run.id] for side in sides for run in plan.runs_of.get(side, ()))
        costs = [expected[plan.runs[position].id] for position in positions]  # in the order of the plan
        known_costs = [cost for cost in costs if cost]
        if len(known_costs) == len(costs):
            bills[claim.claim] = total(known_costs)
    return bills


def _mean(costs: Sequence[Recorded]) -> Recorded | None:
    if not costs:
        return None
    names = set.intersection(*(set(cost) for cost in costs))
    return {name: sum(cost[name] for cost in costs) / len(costs) for name in sorted(names)}
