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
from dataclasses import asdict, replace

from evaluators.significance.claims import Claim
from evaluators.significance.comparisons import ItemScores, PairedSeeds, align_items, pair
from evaluators.significance.decision import decide
from evaluators.significance.evidence import Rules, gather
from evaluators.significance.level import ALPHA
from evaluators.significance.multiplicity import benjamini_hochberg, holm
from evaluators.significance.sequential import Sequential
from evaluators.significance.verdict import Verdict, record
from evaluators.significance.wording import sentence

__all__ = [
    "Claim",
    "ItemScores",
    "PairedSeeds",
    "Sequential",
    "Verdict",
    "align_items",
    "family_digest",
    "judge",
    "pair",
]


def judge(
    family: Sequence[tuple[Claim, PairedSeeds]],
    *,
    alpha: float = ALPHA,
    sequential: Sequential | None = None,
    withdrawn: Mapping[str | None, int] | None = None,
) -> list[Verdict]:
    """Verdicts of declared claims, in their order.

    The claims of each group are corrected together by Holm; exploratory ones apart, by Benjamini-Hochberg. Every
    claim counts, also one whose runs failed. sequential: seeds are added while looking; p and intervals then
    hold at any time. withdrawn: group -> null hypotheses of claims that were declared in it and are claimed no
    longer; they count as those do whose runs failed. ValueError when a claim's items contradict its scores.
    """
    together: dict[tuple[bool, str | None], list[int]] = {}
    for k, (claim, pairs) in enumerate(family):
        together.setdefault((pairs.exploratory, None if pairs.exploratory else claim.family), []).append(k)
    verdicts: dict[int, Verdict] = {}
    for (exploratory, group), members in together.items():
        part = [family[k] for k in members]
        gone = 0 if exploratory else (withdrawn or {}).get(group, 0)
        nulls = gone + sum(claim.nulls for claim, _ in part)
        rules = Rules(nulls=nulls, alpha=alpha, sequential=sequential, withdrawn=gone)
        verdicts.update(zip(members, _judge_together(part, rules, exploratory), strict=True))
    return [verdicts[k] for k in range(len(family))]


def family_digest(claims: Sequence[Claim], *, alpha: float = ALPHA, sequential: Sequential | None = None) -> str:
    """SHA-256 of what was declared; to be recorded before the first confirmation run."""
    declared = {
        "claims": [claim.said for claim in claims],
        "alpha": alpha,
        "sequential": None if sequential is None else asdict(sequential),
    }
    return hashlib.sha256(json.dumps(declared, sort_keys=True).encode()).hexdigest()


def _judge_together(family: Sequence[tuple[Claim, PairedSeeds]], rules: Rules, exploratory: bool) -> list[Verdict]:
    evidence = [gather(claim, pairs, rules) for claim, pairs in family]
    lines = [(k, line, p) for k, part in enumerate(evidence) for line, p in part.lines.items()]
    values = [p for _, _, p in lines] + [math.nan] * rules.withdrawn
    adjusted = benjamini_hochberg(values) if exploratory else holm(values, true_at_most=rules.nulls)
    q: list[dict[str, float]] = [{} for _ in family]
    for (k, line, _), value in zip(lines, adjusted, strict=False):
        q[k][line] = float(value)
    complete = sum(len(pairs.seeds) >= 2 for _, pairs in family)
    digest = family_digest([claim for claim, _ in family], alpha=rules.alpha, sequential=rules.sequential)
    verdicts = []
    for (claim, pairs), part, corrected in zip(family, evidence, q, strict=True):
        decision = decide(claim, pairs, part, corrected, rules)
        remarks = ["exploratory: declared after results were seen"] if exploratory and not pairs.selected else []
        if complete < len(family) and part.test is not None:
            remarks.append(f"family incomplete: {complete} of {len(family)}")
        if rules.withdrawn:
            remarks.append(
                f"{rules.withdrawn} of the {rules.nulls} hypotheses it is corrected with were withdrawn"
            )
        remark = "".join(f" ({remark})" for remark in remarks)
        fields = record(claim, pairs, part, corrected, decision, rules) | {"family_digest": digest}
        verdict = Verdict(**fields, words=decision.words + remark, sentence="")
        verdicts.append(replace(verdict, sentence=sentence(verdict, decision) + remark))
    return verdicts
