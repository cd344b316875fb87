"""Which differences hold: one verdict for every declared comparison of a study.

`judge` is the entry. It takes two passes: the p values of all claims first (evidence.py), then their correction
as a group, then the decision (decision.py). Bigger groups need stronger evidence, so a verdict is only final when
all its members are there.
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

Scores = PairedSeeds | Sequence[PairedSeeds]  # of a claim, or of each part of a joint one

LATE = "exploratory: declared, or its seeds or rows changed, after results were seen"


def judge(
    family: Sequence[tuple[Declared, Scores]],
    *,
    sequential: Sequential | None = None,
    withdrawn: Mapping[str | None, int] | None = None,
    asked: str | None = None,
) -> list[Verdict]:
    """Verdicts of declared claims, in their order; that of a joint claim is followed by those of its parts.

    The claims of each group are corrected together by Holm; exploratory ones apart, by Benjamini-Hochberg. Every
    claim counts, also one whose runs failed; a joint claim counts as one, and its parts stand uncorrected.
    sequential: seeds are added while looking; p and intervals then hold at any time. withdrawn: group -> null
    hypotheses of claims that were declared in it and are claimed no longer; they count as those do whose runs
    failed. asked: a claim, or a part of one: its verdicts alone are returned, and of the others no more is
    computed than the p values that these are corrected with. ItemsError when items contradict scores.
    """
    cases = [
        _Case(claim, (scores,) if isinstance(scores, PairedSeeds) else tuple(scores)) for claim, scores in family
    ]
    together: dict[tuple[bool, str | None], list[int]] = {}
    for k, case in enumerate(cases):
        together.setdefault(group_of(case.claim, case.exploratory), []).append(k)
    verdicts: dict[int, list[Verdict]] = {}
    for (exploratory, group), members in together.items():
        part = [cases[k] for k in members]
        gone = 0 if exploratory else (withdrawn or {}).get(group, 0)
        nulls = gone + sum(case.claim.nulls for case in part)
        rules = Rules(nulls=nulls, sequential=sequential, withdrawn=gone)
        verdicts.update(zip(members, _judge_together(part, rules, exploratory, asked), strict=True))
    return [verdict for k in range(len(cases)) for verdict in verdicts[k]]


def group_of(claim: Declared, exploratory: bool) -> tuple[bool, str | None]:
    """What claims have in common that are corrected together: all exploratory ones, or those of one `family:`."""
    return exploratory, None if exploratory else claim.family


def is_asked(claim: Declared, name: str | None) -> bool:
    """Whether a claim, or a part of it, has the name that is asked for; None: all are."""
    return name is None or name in (claim.claim, *(part.claim for part in claim.parts))


def family_digest(claims: Sequence[Declared], *, sequential: Sequential | None = None) -> str:
    """SHA-256 of what was declared; to be recorded before the first confirmation run."""
    declared = {
        "claims": [claim.said for claim in claims],
        "alpha": ALPHA,
        "sequential": None if sequential is None else {"tau2": sequential.tau2, "n_max": sequential.n_max},
    }
    return hashlib.sha256(json.dumps(declared, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class _Case:
    """A claim with the scores of each of its parts; a claim that is not joint is its own part."""

    claim: Declared
    scores: tuple[PairedSeeds, ...]

    @property
    def exploratory(self) -> bool:
        return any(pairs.exploratory for pairs in self.scores)

    @property
    def selected(self) -> bool:
        return any(pairs.selected for pairs in self.scores)

    @property
    def complete(self) -> bool:
        return all(len(pairs.seeds) >= 2 for pairs in self.scores)


def _judge_together(
    cases: Sequence[_Case], rules: Rules, exploratory: bool, asked: str | None
) -> list[list[Verdict]]:
    told = [is_asked(case.claim, asked) for case in cases]
    evidence = [
        [gather(part, pairs, rules, told=tell) for part, pairs in zip(case.claim.parts, case.scores, strict=True)]
        for case, tell in zip(cases, told, strict=True)
    ]
    every = [
        joint_lines(case.claim, parts, case.selected) if isinstance(case.claim, Joint) else parts[0].lines
        for case, parts in zip(cases, evidence, strict=True)
    ]
    q = _corrected(every, rules, exploratory)
    complete = sum(case.complete for case in cases)
    digest = family_digest([case.claim for case in cases], sequential=rules.sequential)
    verdicts: list[list[Verdict]] = []
    for case, tell, parts, own, corrected in zip(cases, told, evidence, every, q, strict=True):
        if not tell:
            verdicts.append([])
            continue
        remarks = [LATE] if exploratory and not case.selected else []
        if complete < len(cases) and any(part.test is not None for part in parts):
            remarks.append(f"family incomplete: {complete} of {len(cases)}")
        if rules.withdrawn:
            remarks.append(
                f"{rules.withdrawn} of the {rules.nulls} hypotheses it is corrected with were withdrawn"
            )
        remark = "".join(f" ({remark})" for remark in remarks)
        if not isinstance(case.claim, Joint):
            verdicts.append([_verdict(case.claim, case.scores[0], parts[0], corrected, rules, remark, digest)])
            continue
        within = replace(rules, nulls=1, withdrawn=0)
        of_parts = [
            _verdict(part, pairs, found, found.lines, within, f" (part of {case.claim.claim})", digest, case.claim)
            for part, pairs, found in zip(case.claim.parts, case.scores, parts, strict=True)
        ]
        joint = record_joint(case.claim, of_parts, own, corrected, rules, exploratory)
        joint = replace(joint, words=joint.words + remark)
        verdicts.append([replace(joint, sentence=joint_sentence(joint, of_parts) + remark), *of_parts])
    return verdicts


def _corrected(every: Sequence[Mapping[str, float]], rules: Rules, exploratory: bool) -> list[dict[str, float]]:
    """Each claim's p by line, corrected for all of them: by Holm, of late ones by Benjamini and Hochberg."""
    lines = [(k, line, p) for k, of_claim in enumerate(every) for line, p in of_claim.items()]
    if exploratory:
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
    digest: str,
    joint: Joint | None = None,
) -> Verdict:
    decision = decide(claim, pairs, evidence, q, rules, part=joint is not None)
    fields = record(claim, pairs, evidence, q, decision, rules) | {"family_digest": digest}
    if joint is not None:
        fields |= {"part_of": joint.claim, "id": f"{joint.id}/{claim.id}"}
    remark = _outside(fields) + remark
    verdict = Verdict(**fields, words=decision.words + remark, sentence="")
    return replace(verdict, sentence=sentence(verdict, decision) + remark)


def _outside(fields: Mapping[str, Any]) -> str:
    """Of growing seeds the interval is that of all looks, and the mean that of the last."""
    low, mean, high = (fields[name] for name in ("cs_low", "delta_mean", "cs_high"))
    outside = low is not None and high is not None and not low <= mean <= high
    return " (later seeds took the mean of all out of the interval, which holds at every look)" if outside else ""
