"""From evidence and corrected p values to a verdict: better, worse, equivalent, not worse or undecided.

A large p is never a null result and a small one never speaks without its seeds: "equivalent" needs a margin
declared beforehand, a difference that is shown is never called undecided, and what is undecided says what would
decide it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from evaluators.significance.claims import Claim
from evaluators.significance.comparisons import PairedSeeds
from evaluators.significance.evidence import ITEM_FRAGILE, SEED_FRAGILE, Evidence, Rules, stream
from evaluators.significance.futility import HOPELESS, chance_left, may_stop
from evaluators.significance.level import ALPHA, places_of_p
from evaluators.significance.power import Aim, MoreSeeds, Noise, more_seeds, upper_sd_factor
from evaluators.significance.sequential import seeds_until

Word = Literal["better", "worse", "equivalent", "not worse", "undecided", "holds", "fails"]
AIM: dict[str, Aim] = {
    "better": "difference",
    "worse": "difference",
    "equivalent": "equivalent",
    "not_worse": "not worse",
}
ASKED = {"equivalent": "TOST"}  # lines of evidence that print under another name
OUTSIDE = "the estimate lies outside the margin: more seeds would sooner show a difference"
AGAINST = "the sign is against the claim"
HOPE = " if the observed effect is true"
NO_NOISE = "equal deltas have no noise to hold against the margin (degenerate)"
NEVER_EQUAL = "equal deltas show nothing at any look: seeds are added until some differ (degenerate)"
STOPPED = "stopped for futility"
BEYOND, OPEN = ", beyond the margin", ", by more or less than the margin: open"


@dataclass(frozen=True, kw_only=True)
class Decision:
    """words: the whole verdict. nuance: what they add to the plain verdict. advice: what would settle the rest.

    chance_left: the chance that all seeds of a study until decided would show the claim; None unless a smallest
    effect worth reporting was declared.
    """

    verdict: Word
    words: str
    nuance: str = ""
    advice: str = ""
    more: MoreSeeds | None = None
    chance_left: float | None = None


def decide(
    claim: Claim, pairs: PairedSeeds, evidence: Evidence, q: Mapping[str, float], rules: Rules, part: bool = False
) -> Decision:
    """The decision on one claim, or on a part of a joint one. q: its p values by line, corrected for its group."""
    if evidence.refusal:
        return Decision(verdict="undecided", words=f"undecided: {evidence.refusal}")
    if pairs.selected:
        return Decision(verdict="undecided", words="exploratory (selected on these seeds)")
    word = _word(claim, evidence, q)
    if word == "undecided":
        return _undecided(claim, evidence, q, rules, part)
    remark = _remark(claim, evidence, word, q)
    more, advice = _advice_on_margin(claim, evidence, rules) if remark == OPEN else (None, "")
    words = {"equivalent": f"equivalent within ±{claim.margin}", "not worse": f"not worse (margin {claim.margin})"}
    plain = words.get(word, f"{word} than {claim.control}" if claim.signal else word)
    nuance = remark + _fragility(evidence)
    return Decision(verdict=word, words=plain + nuance, nuance=nuance, advice=advice, more=more)


def _word(claim: Claim, evidence: Evidence, q: Mapping[str, float]) -> Word:
    holds = {line: value <= ALPHA for line, value in q.items()}  # NaN never holds
    difference: Word = "better" if evidence.sign > 0 else "worse"
    match claim.expect:
        case "not_worse":
            return "not worse" if holds["not worse"] else "worse" if holds["worse"] else "undecided"
        case "equivalent":
            return "equivalent" if holds["equivalent"] else difference if holds["difference"] else "undecided"
        case _:
            if holds["difference"]:
                return difference
            return "equivalent" if holds.get("equivalent") else "undecided"


def _remark(claim: Claim, evidence: Evidence, word: Word, q: Mapping[str, float]) -> str:
    """How the difference compares with the margin, and what it is due to, in words."""
    beyond, inside = _limits(claim, evidence)
    if claim.expect == "equivalent":
        if word == "equivalent":
            return ", though not zero" if q["difference"] <= ALPHA else ""
        return BEYOND if beyond else OPEN
    if claim.expect == "not_worse" or word == "equivalent":
        return ""
    return (", but inside the margin" if inside else "") + _due(claim, evidence, q)


def _limits(claim: Claim, evidence: Evidence) -> tuple[bool, bool]:
    """Two booleans: the interval lies outside of the margin; it lies inside."""
    if claim.margin is None or evidence.estimate is None:
        return False, False
    low, high = evidence.estimate.interval(ALPHA)
    return low > claim.margin or high < -claim.margin, -claim.margin < low <= high < claim.margin


def as_expected(claim: Claim, evidence: Evidence, word: Word, q: Mapping[str, float]) -> bool | None:
    """True if the verdict is the claimed one and, if the claim has a signal, due to it; None while open."""
    if word == "undecided":
        return None
    expected = word == claim.expect.replace("_", " ")
    return _is_due(evidence, q) if expected and claim.signal is not None else expected


def _is_due(evidence: Evidence, q: Mapping[str, float]) -> bool | None:
    """True if the difference is also shown against the matched control, with the same sign; None if not shown."""
    second = evidence.against_matched
    return second.sign == evidence.sign if second is not None and q["signal"] <= ALPHA else None


def _due(claim: Claim, evidence: Evidence, q: Mapping[str, float]) -> str:
    if claim.signal is None:
        return ""
    return f", {'due' if _is_due(evidence, q) else 'not shown to be due'} to {claim.signal}"


def _fragility(evidence: Evidence) -> str:
    return "".join(f"; {flag}" for flag in evidence.flags if flag in (ITEM_FRAGILE, SEED_FRAGILE))


def _undecided(claim: Claim, evidence: Evidence, q: Mapping[str, float], rules: Rules, part: bool) -> Decision:
    chance = _chance_left(claim, evidence, rules)
    if chance is not None and chance < HOPELESS:
        more, advice = None, f"{'futile' if part else STOPPED}: {_why_futile(claim, evidence, rules, chance)}"
    else:
        more, advice = _advice(claim, evidence, rules)
    kept_back = [ASKED.get(line, line) for line, p in evidence.lines.items() if p <= ALPHA < q[line]]
    others = (
        f" ({' and '.join(kept_back)} p alone at most {ALPHA}; the correction over {rules.nulls} claims "
        f"keeps {'it' if len(kept_back) == 1 else 'them'} back)"
        if kept_back
        else ""
    )
    words = f"undecided: {advice}{others}{_fragility(evidence)}"
    return Decision(verdict="undecided", words=words, more=more, chance_left=chance)


def _chance_left(claim: Claim, evidence: Evidence, rules: Rules) -> float | None:
    """The chance that all seeds would show the claim; None if it may not stop for futility, or not yet."""
    n, growing = len(evidence.deltas), rules.sequential
    if growing is None or claim.min_effect is None or not may_stop(claim) or evidence.estimate is None:
        return None
    if not growing.start <= n < growing.n_max:
        return None
    return chance_left(
        _as_claimed(claim, evidence),
        claim.min_effect,
        n_max=growing.n_max,
        rng=stream(claim.scores, "futility"),
        tau2=growing.tau2,
    )


def _as_claimed(claim: Claim, evidence: Evidence) -> np.ndarray:
    """The deltas with the sign at which positive agrees with the claim."""
    return evidence.deltas if claim.expect == "better" else -evidence.deltas


def _why_futile(claim: Claim, evidence: Evidence, rules: Rules, chance: float) -> str:
    assert rules.sequential is not None
    assert claim.min_effect is not None
    seen = float(_as_claimed(claim, evidence).mean())
    if seen > claim.min_effect:
        true = "were the observed difference the true one"
    else:
        true = f"were the true difference {claim.min_effect:g}, the smallest worth reporting"
    cases = "fewer than 1 %" if chance < 0.01 else f"{100 * chance:.0f} %"
    return f"{true}, all {rules.sequential.n_max} seeds would show it in {cases} of cases"


def _advice(claim: Claim, evidence: Evidence, rules: Rules) -> tuple[MoreSeeds | None, str]:
    """What would decide the claim if the observed difference is true: number of further seeds, and words."""
    n, observed = len(evidence.deltas), float(evidence.deltas.mean())
    if rules.sequential and n >= rules.sequential.n_max:
        return None, f"the declared maximum of {rules.sequential.n_max} seeds is reached"
    if evidence.estimate is None:
        return _advice_on_equal_deltas(claim, evidence, rules)
    aim = AIM[claim.expect]
    if aim == "difference":
        if observed == 0 or (observed > 0) != (claim.expect == "better"):
            return None, AGAINST if observed else "the observed difference is zero"
        target = claim.min_effect or claim.margin or abs(observed)
        hope = "" if claim.min_effect or claim.margin else HOPE
        return _seeds_for(evidence, rules, hope, effect=target)
    assert claim.margin is not None
    room = claim.margin - (abs(observed) if aim == "equivalent" else -observed)
    if room <= 0:
        return None, OUTSIDE
    return _seeds_for(evidence, rules, HOPE, aim=aim, effect=observed, margin=claim.margin)


def _advice_on_margin(claim: Claim, evidence: Evidence, rules: Rules) -> tuple[MoreSeeds | None, str]:
    """What would tell if a shown difference lies inside the margin or beyond it: further seeds, and words."""
    assert claim.margin is not None
    observed = float(evidence.deltas.mean())
    side = f"whether the {'gain' if observed > 0 else 'loss'} exceeds {claim.margin} is open"
    distance = abs(observed) - claim.margin
    if evidence.estimate is None:
        return None, f"{side}: {NO_NOISE}"
    if rules.sequential and len(evidence.deltas) >= rules.sequential.n_max:
        return None, f"{side}: the declared maximum of {rules.sequential.n_max} seeds is reached"
    if distance == 0:
        return None, side
    if distance > 0:
        more, words = _seeds_for(evidence, rules, HOPE, effect=distance)
    else:
        more, words = _seeds_for(evidence, rules, HOPE, aim="equivalent", effect=observed, margin=claim.margin)
    if not more.settles:
        return more, f"{side}: the {evidence.noise.groups:,} items limit it, not the seeds"
    return more, f"{side}: {words}"


def _advice_on_equal_deltas(claim: Claim, evidence: Evidence, rules: Rules) -> tuple[MoreSeeds | None, str]:
    n, p = len(evidence.deltas), evidence.lines.get("difference")
    if p is None or claim.expect == "equivalent":
        return None, NO_NOISE
    if rules.sequential:
        return None, NEVER_EQUAL
    if (evidence.sign > 0) != (claim.expect == "better"):
        return None, f"{AGAINST} (degenerate, sign-flip {said_p(p)}, n = {n})"
    k = max(1, math.ceil(1 - math.log2(ALPHA / rules.nulls)) - n)
    return MoreSeeds(k=k, k_upper=None), f"{_needs(k)} (degenerate, sign-flip {said_p(p)}, n = {n})"


def _seeds_for(
    evidence: Evidence, rules: Rules, hope: str, *, aim: Aim = "difference", effect: float, margin: float = 0.0
) -> tuple[MoreSeeds, str]:
    """How many further seeds would show the aim at this true difference, as a number and in words."""
    n, noise, level = len(evidence.deltas), evidence.noise, ALPHA / rules.nulls
    if rules.sequential:
        room = {"difference": abs(effect), "equivalent": margin - abs(effect), "not worse": margin + effect}[aim]
        more = _until(n, room, noise, rules.sequential.tau2, level, rules.sequential.n_max)
        if more.k is None:
            return more, f"the declared maximum of {rules.sequential.n_max} seeds may not settle this"
        most = f"or more than the declared maximum of {rules.sequential.n_max} allows"
    else:
        more = more_seeds(n, noise, aim=aim, alpha=level, effect=effect, margin=margin)
        most = "up to more than 200"
    if not more.settles:
        return more, "more seeds cannot settle this: the test set is too small"
    upper = "" if more.k is None else f" ({f'up to {more.k_upper}' if more.k_upper else most})"
    return more, _needs(more.k) + upper + hope


def _until(n: int, target: float, noise: Noise, tau2: float, level: float, n_max: int) -> MoreSeeds:
    def still(sd: float) -> int | None:
        stop = seeds_until(target, sd, tau2=tau2, level=level, n_max=n_max)
        return None if stop is None else max(1, stop - n)

    return MoreSeeds(k=still(noise.sd), k_upper=still(noise.sd * upper_sd_factor(n)))


def _needs(k: int | None) -> str:
    if k is None:
        return "needs more than 200 more seeds"
    return f"needs about {k} more seed{'s' if k > 1 else ''}"


def said_p(p: float) -> str:
    return f"p {number_of_p(p)}" if p < 1e-4 else f"p = {number_of_p(p)}"


def number_of_p(p: float) -> str:
    return "<0.0001" if p < 1e-4 else f"{p:.{places_of_p(p, 4)}f}"
