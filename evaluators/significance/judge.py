"""Judges the declared comparisons of a study: `judge` returns one verdict for each.

First it computes the p values of all claims (evidence.py), then corrects them within each group, then decides
(decision.py). Larger groups need stronger evidence, so a verdict is final only when all claims of its group have
their runs.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evaluators.significance.claims import Claim, Declared, Joint
from evaluators.significance.comparisons import PairedSeeds
from evaluators.significance.decision import decide
from evaluators.significance.evidence import Evidence, Rules, gather
from evaluators.significance.joint import joint_lines, record_joint
from evaluators.significance.level import ALPHA
from evaluators.significance.multiplicity import benjamini_hochberg, holm
from evaluators.significance.sequential import Sequential
from evaluators.significance.verdict import Verdict, record
from evaluators.significance.wording import joint_sentence, sentence

Scores = PairedSeeds | Sequence[PairedSeeds]  # of a claim, or of each part of a joint claim

LATE = "exploratory: declared, or its seeds or rows changed, after results were seen"


def judge(
    claims: Sequence[tuple[Declared, Scores]],
    *,
    sequential: Sequential | None = None,
    withdrawn: Mapping[str | None, int] | None = None,
    asked: str | None = None,
) -> list[Verdict]:
    """Verdicts of declared claims, in their order; the verdict of a joint claim is followed by those of its parts.

    The claims of each group are corrected together by Holm, exploratory claims apart by Benjamini-Hochberg. Every
    claim counts, also one whose runs failed; a joint claim counts as one, and its parts are not corrected.

    sequential: set if seeds are added while looking; p and intervals then hold at any time. withdrawn: group ->
    the number of null hypotheses of withdrawn claims; they count like claims whose runs failed. asked: the name of
    a claim or part; only its verdicts are returned, and of other claims only the p values for the correction are
    computed. Raises ItemsError if items contradict scores.
    """
    cases = [
        _Case(claim, (scores,) if isinstance(scores, PairedSeeds) else tuple(scores), is_asked(claim, asked))
        for claim, scores in claims
    ]
    groups: dict[tuple[bool, str | None], list[_Case]] = {}
    for case in cases:
        groups.setdefault(group_of(case.claim, case.exploratory), []).append(case)
    verdicts: dict[_Case, list[Verdict]] = {}
    for (exploratory, group), members in groups.items():
        withdrawn_here = 0 if exploratory else (withdrawn or {}).get(group, 0)
        rules = Rules(
            nulls=withdrawn_here + sum(case.claim.nulls for case in members),
            sequential=sequential,
            withdrawn=withdrawn_here,
            exploratory=exploratory,
            digest=family_digest([case.claim for case in members], sequential=sequential),
        )
        verdicts |= _judge_group(members, rules)
    return [verdict for case in cases for verdict in verdicts[case]]


def group_of(claim: Declared, exploratory: bool) -> tuple[bool, str | None]:
    """The key of a claim's group: all exploratory claims, or those of one `family:`, are corrected together."""
    return exploratory, None if exploratory else claim.family


def is_asked(claim: Declared, name: str | None) -> bool:
    """True if `name` is None, or the name of the claim or of one of its parts."""
    return name is None or name in (claim.claim, *(part.claim for part in claim.parts))


def family_digest(claims: Sequence[Declared], *, sequential: Sequential | None = None) -> str:
    """SHA-256 of the declared claims and rules, to be recorded before the first confirmation run."""
    declared = {
        "claims": [claim.said for claim in claims],
        "alpha": ALPHA,
        "sequential": None if sequential is None else {"tau2": sequential.tau2, "n_max": sequential.n_max},
    }
    return hashlib.sha256(json.dumps(declared, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, eq=False)
class _Case:
    """A claim with the scores of each of its parts; a single claim is its own only part.

    asked: True if its verdicts are wanted, False if only its p values.
    """

    claim: Declared
    scores: tuple[PairedSeeds, ...]
    asked: bool

    @property
    def parts(self) -> list[tuple[Claim, PairedSeeds]]:
        return list(zip(self.claim.parts, self.scores, strict=True))

    @property
    def exploratory(self) -> bool:
        return any(pairs.exploratory for pairs in self.scores)

    @property
    def selected(self) -> bool:
        return any(pairs.selected for pairs in self.scores)

    @property
    def complete(self) -> bool:
        return all(len(pairs.seeds) >= 2 for pairs in self.scores)


def _judge_group(cases: Sequence[_Case], rules: Rules) -> dict[_Case, list[Verdict]]:
    """The verdicts of the claims of a group; [] for a claim that is not asked for."""
    evidence = [[gather(part, pairs, rules, in_full=case.asked) for part, pairs in case.parts] for case in cases]
    lines = [
        joint_lines(case.claim, parts, case.selected) if isinstance(case.claim, Joint) else parts[0].lines
        for case, parts in zip(cases, evidence, strict=True)
    ]
    q = _corrected(lines, rules)
    incomplete = [case for case in cases if not case.complete]
    verdicts: dict[_Case, list[Verdict]] = {}
    for case, parts, own, corrected in zip(cases, evidence, lines, q, strict=True):
        remarks = [LATE] if rules.exploratory and not case.selected else []
        if incomplete and any(part.test is not None for part in parts):
            remarks.append(f"family incomplete: {len(cases) - len(incomplete)} of {len(cases)}")
        if rules.withdrawn:
            remarks.append(
                f"{rules.withdrawn} of the {rules.nulls} hypotheses it is corrected with were withdrawn"
            )
        remark = "".join(f" ({remark})" for remark in remarks)
        if not case.asked:
            verdicts[case] = []
        elif isinstance(case.claim, Joint):
            verdicts[case] = _joint_verdicts(case.claim, case.parts, parts, own, corrected, rules, remark)
        else:
            verdicts[case] = [_verdict(case.claim, case.scores[0], parts[0], corrected, rules, remark)]
    return verdicts


def _joint_verdicts(
    joint: Joint,
    claimed: Sequence[tuple[Claim, PairedSeeds]],
    evidence: Sequence[Evidence],
    lines: Mapping[str, float],
    q: Mapping[str, float],
    rules: Rules,
    remark: str,
) -> list[Verdict]:
    """The verdict of a joint claim, then those of its parts, each judged without correction."""
    alone = replace(rules, nulls=1, withdrawn=0)
    of_parts = [
        _verdict(part, pairs, found, found.lines, alone, f" (part of {joint.claim})", joint)
        for (part, pairs), found in zip(claimed, evidence, strict=True)
    ]
    verdict = record_joint(joint, of_parts, lines, q, rules)
    verdict = replace(verdict, words=verdict.words + remark)
    return [replace(verdict, sentence=joint_sentence(verdict, of_parts) + remark), *of_parts]


def _corrected(every: Sequence[Mapping[str, float]], rules: Rules) -> list[dict[str, float]]:
    """Each claim's p values by line, corrected for the group: by Holm, or Benjamini-Hochberg if exploratory."""
    lines = [(k, line, p) for k, of_claim in enumerate(every) for line, p in of_claim.items()]
    if rules.exploratory:
        values, claims = [p for _, _, p in lines], [k for k, _, _ in lines]
        adjusted = benjamini_hochberg(values, claims=claims, true_at_most=rules.nulls)
    else:
        values = [p for _, _, p in lines] + [math.nan] * rules.withdrawn
        adjusted = holm(values, true_at_most=rules.nulls)
    q: list[dict[str, float]] = [{} for _ in every]
    for (k, line, _), value in zip(lines, adjusted, strict=False):
        q[k][line] = float(value)
    return q


def _verdict(
    claim: Claim,
    pairs: PairedSeeds,
    evidence: Evidence,
    q: dict[str, float],
    rules: Rules,
    remark: str,
    joint: Joint | None = None,
) -> Verdict:
    """The verdict of a claim. joint: the claim that it is a part of. q: its corrected p values by line."""
    decision = decide(claim, pairs, evidence, q, rules, part=joint is not None)
    fields = record(claim, pairs, evidence, q, decision, rules)
    if joint is not None:
        fields |= {"part_of": joint.claim, "id": f"{joint.id}/{claim.id}"}
    remark = _outside(fields) + remark
    verdict = Verdict(**fields, words=decision.words + remark, sentence="")
    return replace(verdict, sentence=sentence(verdict, decision) + remark)


def _outside(fields: Mapping[str, Any]) -> str:
    """A remark if the last look's mean lies outside the interval, which with growing seeds holds for all looks."""
    low, mean, high = (fields[name] for name in ("cs_low", "delta_mean", "cs_high"))
    outside = low is not None and high is not None and not low <= mean <= high
    return " (later seeds took the mean of all out of the interval, which holds at every look)" if outside else ""
