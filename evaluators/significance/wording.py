"""From evidence and family-corrected p values to a verdict, in the words a report may print.

A large p is never a null result and a small one never speaks without its seeds: "equivalent" needs a margin
declared beforehand, everything not shown is "undecided", and an undecided claim says what would decide it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from evaluators.significance.comparisons import Claim, PairedSeeds
from evaluators.significance.evidence import ITEM_FRAGILE, SEED_FRAGILE, Evidence, Rules
from evaluators.significance.power import Aim, MoreSeeds, more_seeds, upper_sd_factor
from evaluators.significance.sequential import seeds_until

Word = Literal["better", "worse", "equivalent", "not worse", "undecided"]
AIM: dict[str, Aim] = {
    "better": "difference",
    "worse": "difference",
    "equivalent": "equivalent",
    "not_worse": "not worse",
}


@dataclass(frozen=True, kw_only=True)
class Decision:
    """words: the whole verdict. nuance: what its words add to the plain verdict."""

    verdict: Word
    words: str
    nuance: str = ""
    more: MoreSeeds | None = None


def decide(claim: Claim, pairs: PairedSeeds, evidence: Evidence, q: Mapping[str, float], rules: Rules) -> Decision:
    """The verdict of one claim, q being its p values corrected for the family."""
    if evidence.refusal:
        return Decision(verdict="undecided", words=f"undecided: {evidence.refusal}")
    if pairs.selected:
        return Decision(verdict="undecided", words="exploratory (selected on these seeds)")
    word = _word(claim, evidence, q, rules.alpha)
    if word == "undecided":
        return _undecided(claim, pairs, evidence, q, rules)
    nuance = _nuance(claim, evidence, word, q, rules.alpha)
    words = {"equivalent": f"equivalent within ±{claim.margin}", "not worse": f"not worse (margin {claim.margin})"}
    plain = words.get(word, f"{word} than {claim.control}" if claim.signal else word)
    return Decision(verdict=word, words=plain + nuance, nuance=nuance)


def _word(claim: Claim, evidence: Evidence, q: Mapping[str, float], alpha: float) -> Word:
    holds = {line: value <= alpha for line, value in q.items()}  # NaN never holds
    difference: Word = "better" if evidence.sign > 0 else "worse"
    match claim.expect:
        case "not_worse":
            return "not worse" if holds["not worse"] else "worse" if holds["worse"] else "undecided"
        case "equivalent":
            if holds["equivalent"]:
                return "equivalent"
            return difference if holds["difference"] and _beyond_margin(claim, evidence, alpha) else "undecided"
        case _:
            if holds["difference"]:
                return difference
            return "equivalent" if holds.get("equivalent") else "undecided"


def _beyond_margin(claim: Claim, evidence: Evidence, alpha: float) -> bool:
    if evidence.estimate is None or claim.margin is None:
        return False
    low, high = evidence.estimate.interval(alpha)
    return low > claim.margin or high < -claim.margin


def _nuance(claim: Claim, evidence: Evidence, word: Word, q: Mapping[str, float], alpha: float) -> str:
    said = ""
    if word in ("better", "worse") and claim.expect != "not_worse":
        if claim.margin is not None and evidence.estimate is not None:
            low, high = evidence.estimate.interval(alpha)
            said += ", but inside the margin" if -claim.margin < low <= high < claim.margin else ""
        if claim.signal is not None:
            second = evidence.against_matched
            shown = q["signal"] <= alpha and second is not None and second.sign == evidence.sign
            said += f", {'due' if shown else 'not shown to be due'} to {claim.signal}"
    return said + _fragility(evidence)


def _fragility(evidence: Evidence) -> str:
    return "".join(f"; {flag}" for flag in evidence.flags if flag in (ITEM_FRAGILE, SEED_FRAGILE))


def _undecided(
    claim: Claim, pairs: PairedSeeds, evidence: Evidence, q: Mapping[str, float], rules: Rules
) -> Decision:
    more, advice = _advice(claim, pairs, evidence, rules)
    kept_back = [line for line, p in evidence.lines.items() if p <= rules.alpha < q[line] and line != "signal"]
    family = (
        f" (p alone is at most {rules.alpha}; the family of {rules.claims} keeps it back)" if kept_back else ""
    )
    words = f"undecided: {advice}{family}{_fragility(evidence)}"
    return Decision(verdict="undecided", words=words, more=more)


def _advice(claim: Claim, pairs: PairedSeeds, evidence: Evidence, rules: Rules) -> tuple[MoreSeeds | None, str]:
    n, level = len(evidence.deltas), rules.alpha / rules.claims
    if rules.sequential and n >= rules.sequential.n_max:
        return None, f"the declared maximum of {rules.sequential.n_max} seeds is reached"
    if evidence.estimate is None:
        p = evidence.lines.get("difference")
        if p is None or claim.expect == "equivalent":
            return None, "equal deltas have no noise to hold against the margin (degenerate)"
        k = max(1, math.ceil(1 - math.log2(level)) - n)
        return MoreSeeds(k=k, k_upper=None), f"{_needs(k)} (degenerate, sign-flip {_p(p)}, n = {n})"
    aim = AIM[claim.expect]
    observed = abs(float(evidence.deltas.mean()))
    target = claim.min_effect if aim == "difference" and claim.min_effect else claim.margin or observed
    hope = "" if target in (claim.min_effect, claim.margin) else " if the observed effect is true"
    sd = 0.0 if pairs.flat else float(np.std(evidence.deltas, ddof=1))
    if rules.sequential:
        more = _until(n, target, sd, rules.sequential.tau2, level, rules.sequential.n_max)
        if more.k is None:
            return more, f"the declared maximum of {rules.sequential.n_max} seeds may not settle this"
    else:
        items = evidence.items if evidence.estimate is (evidence.items and evidence.items.crossed) else None
        lasting, groups = (items.view.variance.lasting, items.view.groups) if items else (0.0, 0)
        more = more_seeds(n, target, sd, aim=aim, alpha=level, v_item=lasting, groups=groups)
    if not more.settles:
        return more, "more seeds cannot settle this: the test set is too small"
    upper = "" if more.k is None else f" (up to {more.k_upper or 'more than 200'})"
    return more, _needs(more.k) + upper + hope


def _until(n: int, target: float, sd: float, tau2: float, level: float, n_max: int) -> MoreSeeds:
    def still(sd: float) -> int | None:
        stop = seeds_until(target, sd, tau2=tau2, level=level, n_max=n_max)
        return None if stop is None else max(1, stop - n)

    return MoreSeeds(k=still(sd), k_upper=still(sd * upper_sd_factor(n)))


def _needs(k: int | None) -> str:
    if k is None:
        return "needs more than 200 more seeds"
    return f"needs about {k} more seed{'s' if k > 1 else ''}"


def sentence(claim: Claim, decision: Decision, record: Mapping[str, Any], correction: str) -> str:
    """The verdict and its evidence on one line. record: the fields of a `Verdict`; correction: that of q."""
    match decision.verdict:
        case "better" | "worse":
            said = _pair(claim, f"is {decision.verdict} than") + decision.nuance
        case "equivalent":
            said = _pair(claim, "is equivalent to") + f" within ±{claim.margin}{decision.nuance}"
        case "not worse":
            said = _pair(claim, "is not worse than") + f" (margin {claim.margin}){decision.nuance}"
        case _:
            said = f"{_pair(claim, 'against')}: {decision.words}"
    return f"{said}: {_numbers(claim, decision, record, correction)}"


def _pair(claim: Claim, relation: str) -> str:
    return f"{claim.treatment} {relation} {claim.control} on {claim.metric}"


def _numbers(claim: Claim, decision: Decision, record: Mapping[str, Any], correction: str) -> str:
    n = record["n_seeds"]
    if n == 0:
        return "n = 0 seeds"
    places = _decimals(record)
    value = f"{record['delta_mean']:+.{places}f}{' ' + claim.unit if claim.unit else ''}"
    runs = f"n = {n} seed{'s' if n > 1 else ''}"
    if record["test"] is None:
        alone = record["single_run"]
        if alone is None or alone["p"] is None:
            return f"{value}, {runs}"
        return f"{value}, {runs}; this single run: {alone['test']}, {_p(alone['p'])}, {record['n_items']} items"
    return "".join(
        (
            f"{value}{_interval(record, places)}, {_tested(claim, decision, record, correction)}, {runs}, ",
            f"{record['k_agree']}/{n} agree",
            "" if record["effect_dz"] is None else f", dz = {record['effect_dz']:.2f}",
            f"; {record['scope']}",
        )
    )


def _tested(claim: Claim, decision: Decision, record: Mapping[str, Any], correction: str) -> str:
    about_null = decision.verdict == "equivalent" or (decision.verdict, claim.expect) == (
        "undecided",
        "equivalent",
    )
    about_null = about_null and record["tost_p"] is not None
    p, q = (record["tost_p"], record["tost_p_adjusted"]) if about_null else (record["p"], record["p_adjusted"])
    name = f"TOST by {record['test']}" if about_null else record["test"]
    if p is None:
        return str(name)
    return f"{name}, {_p(p)} ({correction} {number_of_p(q)} of {record['family_size']})"


def _interval(record: Mapping[str, Any], places: int) -> str:
    if record["ci_low"] is None or record["ci_high"] is None:
        return ""
    level = f"{100 * (1 - record['alpha']):g} %"
    kind = " confidence sequence" if record["e_values"] else " t interval" if "sign-flip" in record["test"] else ""
    limits = f" [{record['ci_low']:+.{places}f}, {record['ci_high']:+.{places}f}; {level}{kind}"
    if record["family_size"] > 1 and record["ci_bonferroni_low"] is not None:
        limits += f"; family {record['ci_bonferroni_low']:+.{places}f}, {record['ci_bonferroni_high']:+.{places}f}"
    return limits + "]"


def _decimals(record: Mapping[str, Any]) -> int:
    """Two digits of the sd of the deltas, which is as far as their mean is known."""
    scale = record["delta_sd"] or abs(record["delta_mean"]) or 1.0
    return min(12, max(2, 1 - math.floor(math.log10(scale))))


def _p(p: float) -> str:
    return f"p {number_of_p(p)}" if p < 1e-4 else f"p = {number_of_p(p)}"


def number_of_p(p: float) -> str:
    return "<0.0001" if p < 1e-4 else f"{p:.4f}"
