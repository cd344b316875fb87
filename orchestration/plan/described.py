"""A plan in words: how many runs, what is done, how long the rest takes, what the seeds can show."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from orchestration.ledger.place import at
from orchestration.plan.launcher import launcher
from orchestration.plan.plan import by_arm
from orchestration.plan.slips import slips
from orchestration.study.names import counted, listed, typed

if TYPE_CHECKING:
    from orchestration.ledger.failures import Failure
    from orchestration.plan.launcher import Launcher
    from orchestration.plan.other_runs import Foretold
    from orchestration.plan.plan import Plan
    from orchestration.plan.reach import Reach
    from orchestration.study.run import Job, Run

ANY_ARM = ("", "")  # stands for all arms that train
LEAST_P = 1e-300  # of some 230 growing seeds; that of more is no number above 0


@dataclass(frozen=True)
class TimeEstimate:
    """The expected seconds of one lane for the remaining runs. finished: how many runs it rests on."""

    seconds: float
    finished: int


def estimate(plan: Plan) -> TimeEstimate | None:
    """From finished runs of the same arm and backbone, else of any trained arm; None if there are none.

    A run that needs no training takes the time of scoring, by its number of tasks, where that was recorded.
    """
    timed = [run for run in plan.done if run.id in plan.facts.seconds]
    whole, scoring = _means(timed, plan.facts.seconds), _means(timed, plan.facts.scoring)
    total = 0.0
    for run in plan.left:
        like = (run.arm, run.backbone) if (run.arm, run.backbone) in whole else ANY_ARM
        if like not in whole:
            return None
        share = len(run.remaining(plan.finished).tasks) / len(run.tasks)
        to_score = share * scoring.get(like, 0.0) if run.id in plan.only_scored else 0.0
        total += to_score or whole[like]
    return TimeEstimate(seconds=total, finished=len(timed))


def _means(timed: Sequence[Run], seconds: Mapping[str, float]) -> dict[tuple[str, str], float]:
    """(arm, backbone) -> the mean of its runs' seconds; under ANY_ARM that of all trained runs."""
    known = [run for run in timed if run.id in seconds]
    runs_of = {**by_arm(known), ANY_ARM: [run for run in known if run.seed is not None]}
    return {arm: fmean(seconds[run.id] for run in runs) for arm, runs in runs_of.items() if runs}


def describe(
    plan: Plan,
    *,
    reaches: Sequence[Reach] = (),
    failed: Mapping[str, Failure] | None = None,
    lanes: int | None = None,
    notes: Sequence[str] = (),
    time: str = "",
    costs: Sequence[str] = (),
    rows: Sequence[str] = (),
) -> str:
    """The plan in words. failed: the ledger's failures by run id; lanes: runs at a time, if known.

    notes: further remarks on its claims. time: the expected time in words, if no run of the study is finished.
    costs: lines about the cost. rows: lines about how many rows of each data set are used.
    """
    failures = [(run, failed[run.id]) for run in plan.left if failed and run.id in failed]
    counts = [f"done {len(plan.done)}"]
    counts += [f"failed {len(failures)}"] if failures else []
    counts += [
        f"left {len(plan.left) - len(failures)}",
        *_time_left(plan, lanes or 1),
    ]
    with_effect = [reach for reach in reaches if reach.smallest_effect or reach.smallest_difference]
    sections: tuple[tuple[str, Iterable[str]], ...] = (
        ("failed", (f"{run.label}   {failure.error}   {failure.log}" for run, failure in failures)),
        ("time", [time] if time else []),
        ("runs", _placement(plan)),
        ("rows", rows),
        ("scores", _scores(plan)),
        ("claims", (_claim(plan, reach) for reach in with_effect)),
        ("cost", costs),
        ("stops", _stops(plan)),
        ("spread", _once(plan, {reach: reach.whence for reach in with_effect})),
        ("warn", slips(plan.study)),
        ("warn", _once(plan, {reach: reach.warnings for reach in reaches})),
        ("note", notes),
    )
    lines = [f"{plan.study.name}   {_formula(plan)}", "   ".join(counts)]
    lines += [f"{label:8}{line}" for label, section in sections for line in section]
    return "\n".join(lines)


def next_step(plan: Plan, wider: Plan | None, ledger: str) -> str:
    """The line with the command to type next. wider: the plan with the seed that open claims ask for."""
    return f"next    {typed('run' if wider or plan.left else 'report', plan.study.path, *at(ledger))}"


def open_words(plan: Plan, wider: Plan | None) -> str:
    """A line about the seed by which `semray run` would widen the plan, as claims are still open; "" for none."""
    if wider is None:
        return ""
    added, last = wider.runs[len(plan.runs) :], plan.study.seeds.all[-1]
    arms = listed(list(dict.fromkeys(run.arm for run in added)))
    further = "the last one" if added[0].seed == last else f"and more up to {last} while they stay open"
    return f"open    claims on {arms}: `semray run` adds seed {added[0].seed}, {further}"


def _formula(plan: Plan) -> str:
    """`24 runs = 3 arms x 8 seeds x 1 backbone`; untrained arms in a second term; no terms if seeds differ."""
    backbones = plan.study.backbones
    untrained = {run.arm for run in plan.runs if run.seed is None}
    trained = {run.arm for run in plan.runs} - untrained
    sizes = {len(plan.seeds(arm, backbone)) for arm in trained for backbone in backbones}
    if len(sizes) > 1:
        return counted(len(plan.runs), "run")
    over = counted(len(backbones), "backbone")
    parts = [f"{counted(len(trained), 'arm')} x {counted(n, 'seed')} x {over}" for n in sizes]
    if untrained:
        parts.append(f"{counted(len(untrained), 'untrained arm')} x {over}")
    return f"{counted(len(plan.runs), 'run')} = {' + '.join(parts)}"


def _placement(plan: Plan) -> Iterator[str]:
    """A line for each launcher: how many of the remaining runs it executes, and how."""
    jobs_of: dict[Launcher, list[Job]] = {}
    for job in plan.jobs:
        jobs_of.setdefault(launcher(job, plan.study.resources), []).append(job)
    for place, jobs in jobs_of.items():
        runs = [run for job in jobs for run in job.runs]
        workers = max(run.world_size for run in runs)
        where = "pooled lanes" if place == "pool" else f"Ray Train groups of {counted(workers, 'worker')}"
        together = f", stacked as {counted(len(jobs), 'job')}" if len(jobs) < len(runs) else ""
        yield f"{counted(len(runs), 'run')} in {where}{together}, {runs[0].precision}, ZeRO {runs[0].zero_stage}"


def _scores(plan: Plan) -> Iterator[str]:
    """Lines about runs that are trained: those only scored, and those trained again as their model is gone."""
    if kept := len(plan.only_scored):
        yield f"{counted(kept, 'run')} of these {'is' if kept == 1 else 'are'} trained, and only scored"
    if plan.gone:
        yield f"{counted(len(plan.gone), 'run')} of these trained before; the models are gone, so they train again"


def _time_left(plan: Plan, lanes: int) -> list[str]:
    expected = estimate(plan) if plan.left else None
    if expected is None:
        return []
    return [f"{_about(expected.seconds, lanes)} (from {counted(expected.finished, 'finished run')})"]


def foretold_words(expected: Foretold | None, lanes: int) -> str:
    """The expected time of a study in words, from runs of other studies; without those, how to find out."""
    if expected is None:
        return (
            "unknown: no finished run like these on this machine; `semray run` tells it from the "
            "first steps on, and after Ctrl-C the same command goes on"
        )
    places = ", ".join(map(_seen_from_here, expected.ledgers))
    return (
        f"{_about(expected.seconds, lanes)}: an estimate from {counted(expected.runs, 'run')} of the same "
        f"family and backbone in {places}, by their pace"
    )


def _seen_from_here(place: str) -> str:
    near = os.path.relpath(place)
    return near if len(near) < len(place) else place


def _about(seconds: float, lanes: int) -> str:
    wall = seconds / lanes
    steps = ((5400, f"{wall / 3600:.1f} h"), (90, f"{wall / 60:.0f} min"), (0, f"{wall:.0f} s"))
    amount = next(text for least, text in steps if wall >= least)
    return f"about {amount} on {counted(lanes, 'lane')}"


def _claim(plan: Plan, reach: Reach) -> str:
    """The smallest difference that the seeds can show for one comparison, and the test."""
    details = [reach.test]
    if reach.smallest_difference is not None:
        shown = f"{reach.smallest_difference:.2g}"
        details += [f"sd {reach.sd:.2g}"] if reach.sd else []
        details += [f"{reach.items:,} items {reach.item_sd:.2g}"] if reach.items else []
    else:
        shown = f"{reach.smallest_effect:.3g} sds of the paired deltas"
    if not reach.items:
        floor = reach.smallest_p if reach.test == "t e-process" else reach.sign_flip_floor
        least = f"down to {floor:.2g}" if floor >= LEAST_P else f"below {LEAST_P:g}"
        details.append(f"{'' if reach.test == 't e-process' else 'exact '}p {least}")
    if reach.correlation is not None:
        details.append(f"arms correlate {reach.correlation:.2f}")
    seeds = counted(reach.seeds, "seed") if reach.seeds else "the items"
    margin = f", {reach.on_margin}" if reach.on_margin else ""
    return f"{_name(plan, reach)}: {seeds} can show a difference of {shown}{margin} ({', '.join(details)})"


def _stops(plan: Plan) -> Iterator[str]:
    """A line for each claim that may stop for futility before the last seed."""
    from evaluators.significance.futility import HOPELESS, may_stop

    seeds = plan.study.seeds
    for claim in plan.study.compare if seeds.reserve else ():
        effects = list(dict.fromkeys(part.min_effect for part in claim.parts if may_stop(part)))
        if effects:
            yield (
                f"{claim.claim}: for futility, from {counted(len(seeds.initial), 'seed')} on, where the chance "
                f"that {len(seeds.all)} would show a true difference of "
                f"{' or '.join(f'{effect:g}' for effect in effects)} is below {100 * HOPELESS:g} %"
            )


def _once(plan: Plan, texts_of: Mapping[Reach, Sequence[str]]) -> Iterator[str]:
    """Each different text once, behind the names of all claims that it is about."""
    for text in dict.fromkeys(text for texts in texts_of.values() for text in texts):
        yield f"{listed([_name(plan, reach) for reach, texts in texts_of.items() if text in texts])}: {text}"


def _name(plan: Plan, reach: Reach) -> str:
    several = len(plan.study.backbones) > 1 and reach.backbone
    return f"{reach.claim} on {reach.backbone}" if several else reach.claim
