"""Joint claims: all of several parts hold, or at least a number of them.

Method: the p of a partial conjunction (Benjamini and Heller 2008, Bonferroni's form), valid however the parts
depend on each other: of n parts at least u hold at

    p = (n - u + 1) p_(u),      p_(1) <= … <= p_(n)

which for u = n is the largest p of a part, the intersection-union test.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from evaluators.significance.claims import Claim, Joint
from evaluators.significance.decision import OPEN, STOPPED, Word
from evaluators.significance.evidence import Evidence, Rules
from evaluators.significance.futility import HOPELESS, joint_chance
from evaluators.significance.level import ALPHA
from evaluators.significance.verdict import Verdict

HOLDS, FAILS = "holds", "fails"


def partial_conjunction(p: Sequence[float], least: int) -> float:
    """The p that at least `least` of these null hypotheses are false; nan if fewer parts than that have a p."""
    ordered = sorted(1.0 if math.isnan(value) else value for value in p)
    reached = ordered[least - 1]
    known = sum(not math.isnan(value) for value in p)
    return math.nan if known < least else min(1.0, (len(p) - least + 1) * reached)


def joint_lines(joint: Joint, parts: Sequence[Evidence], selected: bool = False) -> dict[str, float]:
    """p that enough parts hold, and p that too many fail; nan if the claim was selected on these runs."""
    if selected:
        return {HOLDS: math.nan, FAILS: math.nan}
    n, least = len(parts), joint.least
    pairs = list(zip(joint.all, parts, strict=True))
    return {
        HOLDS: partial_conjunction([p_of(claim, part) for claim, part in pairs], least),
        FAILS: partial_conjunction([p_against(claim, part) for claim, part in pairs], n - least + 1),
    }


def p_of(claim: Claim, evidence: Evidence) -> float:
    """p of a part's claim; 1 if the difference has the other sign."""
    lines = evidence.lines
    if claim.expect in ("equivalent", "not_worse"):
        return lines["equivalent" if claim.expect == "equivalent" else "not worse"]
    sign, second = (1 if claim.expect == "better" else -1), evidence.against_matched
    if second is None:
        return _towards(lines["difference"], evidence, sign)
    return _towards(_towards(lines["signal"], second, sign), evidence, sign)  # better than both controls


def p_against(claim: Claim, evidence: Evidence) -> float:
    """p that the part fails: a difference with the other sign, or one beyond the margin."""
    lines, estimate, margin = evidence.lines, evidence.estimate, claim.margin
    if claim.expect == "not_worse":
        return lines["worse"]
    if claim.expect != "equivalent":
        return _towards(lines["difference"], evidence, -1 if claim.expect == "better" else 1)
    if estimate is None or margin is None:
        return math.nan
    return min(1.0, 2 * min(estimate.p_above(margin), estimate.p_below(-margin)))


def _towards(p: float, evidence: Evidence, sign: int) -> float:
    """The two-sided p if the difference has this sign, else 1; so both directions together use it once."""
    return p if math.isnan(p) or evidence.sign == sign else 1.0


def record_joint(
    joint: Joint,
    parts: Sequence[Verdict],
    lines: Mapping[str, float],
    q: Mapping[str, float],
    rules: Rules,
) -> Verdict:
    """The verdict of a joint claim without its sentence. q: its p values corrected for its group."""
    holds, fails = (q[line] <= ALPHA for line in (HOLDS, FAILS))
    verdict: Word = "holds" if holds else "fails" if fails else "undecided"
    line = FAILS if verdict == "fails" else HOLDS
    chance = _chance_left(joint, parts) if verdict == "undecided" else None
    known = math.isfinite(lines[line])
    kind = "intersection-union" if joint.least == len(parts) else "partial conjunction"
    return Verdict(
        id=joint.id,
        claim=joint.claim,
        treatment=_listed(part.treatment for part in parts),
        control=_listed(part.control for part in parts),
        backbone=joint.backbone or "",
        metric=_listed(part.metric for part in parts),
        larger_is_better=True,
        expect=joint.words,
        declared_scope=_listed(part.declared_scope for part in parts),
        group=joint.family or "",
        exploratory=rules.exploratory,
        alpha=ALPHA,
        family_size=rules.nulls,
        family_digest=rules.digest,
        n_seeds=min(part.n_seeds for part in parts),
        dropped=tuple(dict.fromkeys(row for part in parts for row in part.dropped)),
        test=kind if known else None,
        p=lines[line] if known else None,
        p_adjusted=q[line] if known else None,
        verdict=verdict,
        words=_words(joint, parts, verdict, chance, kept_back=lines[HOLDS] <= ALPHA),
        chance_left=chance,
        sentence="",
        scope=_listed(part.scope for part in parts),
        as_expected=None if verdict == "undecided" else verdict == "holds",
        parts=len(parts),
    )


def _chance_left(joint: Joint, parts: Sequence[Verdict]) -> float | None:
    """That enough parts are shown with all seeds; None where nothing is known of any part that is open."""
    if all(part.chance_left is None for part in parts):
        return None
    known = (1.0 if part.chance_left is None else part.chance_left for part in parts)
    return joint_chance(list(known), joint.least)


def _words(joint: Joint, parts: Sequence[Verdict], verdict: Word, chance: float | None, *, kept_back: bool) -> str:
    if verdict == "holds":
        return f"holds: {joint.words}"
    if verdict == "fails":
        few = "not all" if joint.least == len(parts) else f"fewer than {joint.least}"
        return f"fails: {few} of {len(parts)} hold"
    refused = list(dict.fromkeys(part.words.partition(" (part of")[0] for part in parts if part.test is None))
    if len(parts) - sum(part.test is None for part in parts) < joint.least:
        return f"undecided: {'; '.join(word.removeprefix('undecided: ') for word in refused)}"
    lacking = [part.claim for claim, part in zip(joint.all, parts, strict=True) if not _shown(claim, part)]
    shown = f"{len(parts) - len(lacking)} of {len(parts)} parts shown, {joint.least} asked"
    if kept_back:
        return f"undecided: {shown}; the correction over the claims of its group keeps it back"
    if len(parts) - len(lacking) >= joint.least:
        shown += f"; taken together their p is above {ALPHA:g}"
    if chance is not None and chance < HOPELESS:
        futile = [part.claim for part in parts if part.chance_left is not None and part.chance_left < HOPELESS]
        return f"undecided: {STOPPED}: {shown}; futile: {', '.join(futile)}"
    unlike = [part.claim for part in parts if _is_otherwise(part)]
    left = {"open": [name for name in lacking if name not in unlike], "otherwise": unlike}
    told = [f"{word}: {', '.join(names)}" for word, names in left.items() if names]
    return "; ".join([f"undecided: {shown}", *told])


def _is_otherwise(part: Verdict) -> bool:
    """Whether a part, taken alone, says something else than was claimed; where the margin is open it may not."""
    return part.as_expected is False and OPEN not in part.words


def _shown(claim: Claim, part: Verdict) -> bool:
    """Whether a part, taken alone, says what was claimed."""
    due = claim.signal is None or ", due to" in part.words
    return part.verdict == claim.expect.replace("_", " ") and due


def _listed(names: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(names))
