"""Words for verdicts in reports. The p printed beside a verdict belongs to the question it answers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from evaluators.significance.decision import OPEN, Decision, number_of_p, said_p
from evaluators.significance.verdict import Verdict

ONE_RUN = "one run of each arm"  # if neither arm depends on the seed
ALIKE = "the same at every seed"  # if both arms have several runs with equal results


class Question(NamedTuple):
    """One p of a verdict: the name of the question, p, and p corrected for the group."""

    asked: str
    p: float
    adjusted: float


def questions(verdict: Verdict) -> list[Question]:
    """The questions that the verdict answers, first the one that decided it. Questions without a p are left out.

    A claim of a difference is decided by the p of the difference, a claim of equivalence by TOST. If a difference
    was found although equivalence was claimed, it is decided by the p of the difference; TOST is listed too while
    the margin is open.
    """
    difference = ("not worse" if verdict.expect == "not_worse" else "difference", verdict.p, verdict.p_adjusted)
    tost = ("TOST", verdict.tost_p, verdict.tost_p_adjusted)
    signal = ("signal", verdict.signal_p, verdict.signal_p_adjusted)
    if verdict.parts is not None:
        found = [("fails" if verdict.verdict == "fails" else "holds", verdict.p, verdict.p_adjusted)]
    elif verdict.verdict == "equivalent":
        found = [tost]
    elif verdict.verdict == "undecided":
        found = [tost] if verdict.expect == "equivalent" else [difference]
    elif verdict.expect == "not_worse" and verdict.verdict == "worse":
        found = [("worse", verdict.worse_p, verdict.worse_p_adjusted)]
    else:
        found = [difference, *([tost] if OPEN in verdict.words else [])]
    found += [signal] if verdict.verdict in ("better", "worse") else []
    return [Question(asked, p, q) for asked, p, q in found if p is not None and q is not None]


def sentence(verdict: Verdict, decision: Decision) -> str:
    """The verdict and its evidence on one line."""
    on = f"{verdict.control} on {verdict.metric}"
    match verdict.verdict:
        case "better" | "worse":
            said = f"{verdict.treatment} is {verdict.verdict} than {on}{decision.nuance}"
        case "equivalent":
            said = f"{verdict.treatment} is equivalent to {on} within ±{verdict.margin}{decision.nuance}"
        case "not worse":
            said = f"{verdict.treatment} is not worse than {on} (margin {verdict.margin}){decision.nuance}"
        case _:
            said = f"{verdict.treatment} against {on}: {decision.words}"
    return f"{said}: {_numbers(verdict)}" + (f"; {decision.advice}" if decision.advice else "")


def joint_sentence(verdict: Verdict, parts: Sequence[Verdict]) -> str:
    """The verdict of a joint claim, and what its parts say alone."""
    told = "; ".join(f"{part.claim} {part.words.removesuffix(f' (part of {verdict.claim})')}" for part in parts)
    tested = f"{_tested(verdict)}, n = {verdict.n_seeds} seeds" if verdict.test else "no test"
    return f"{verdict.claim} {verdict.words}: {tested}; {told}"


def _numbers(verdict: Verdict) -> str:
    n = verdict.n_seeds
    if verdict.delta_mean is None:
        return "n = 0 seeds"
    places = _decimals(verdict)
    value = f"{verdict.delta_mean:+.{places}f}"
    runs = ONE_RUN if verdict.seedless else f"n = {n} seed{'s' if n > 1 else ''}"
    if verdict.test is None:
        alone = verdict.single_run
        if alone is None or alone["p"] is None:
            return f"{value}, {ALIKE if 'check_arms_differ' in verdict.flags else runs}"
        return f"{value}, {runs}; this single run: {alone['test']}, {said_p(alone['p'])}, {verdict.n_items} items"
    return "".join(
        (
            f"{value}{_interval(verdict, places)}, {_tested(verdict)}, {runs}",
            "" if verdict.seedless else f", {verdict.k_agree}/{n} agree",
            "" if verdict.effect_dz is None else f", dz = {verdict.effect_dz:.2f}",
            f"; {verdict.scope}",
        )
    )


def _tested(verdict: Verdict) -> str:
    """The test, and each p it answers with, named by its question."""
    correction = "Benjamini-Hochberg" if verdict.exploratory else "Holm"
    told = [
        f"{one.asked} {said_p(one.p)} ({correction} {number_of_p(one.adjusted)} of {verdict.family_size})"
        for one in questions(verdict)
    ]
    return ", ".join([str(verdict.test), *told])


def _interval(verdict: Verdict, places: int) -> str:
    if verdict.ci_low is None or verdict.ci_high is None:
        return ""
    level = f"{100 * (1 - verdict.alpha):g} %"
    flips = "sign-flip" in str(verdict.test)
    kind = " confidence sequence" if verdict.e_values else " t interval" if flips else ""
    limits = f" [{verdict.ci_low:+.{places}f}, {verdict.ci_high:+.{places}f}; {level}{kind}"
    if verdict.family_size > 1 and verdict.ci_bonferroni_low is not None:
        limits += f"; all claims {verdict.ci_bonferroni_low:+.{places}f}, {verdict.ci_bonferroni_high:+.{places}f}"
    return limits + "]"


def _decimals(verdict: Verdict) -> int:
    """Two digits of the sd of the deltas, which is as far as their mean is known."""
    scale = verdict.delta_sd or abs(verdict.delta_mean or 0.0) or 1.0
    return min(12, max(2, 1 - math.floor(math.log10(scale))))
