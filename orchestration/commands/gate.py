"""`semray gate`: whether a claim is shown, for CI and for loops that act on the answer.

Exit codes: 0 shown, 1 not shown, 2 the request was wrong, 3 open: runs are missing, or a seed is to be added.
"""

from __future__ import annotations

import hashlib
import json
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

from orchestration.commands.terminal import DONE, ledger_of, study_of
from orchestration.ledger.budgets import Spent
from orchestration.ledger.ledger import Ledger
from orchestration.ledger.place import at
from orchestration.plan.held import planned
from orchestration.study.errors import StudyError
from orchestration.study.names import printable, typed
from orchestration.study.run import on
from orchestration.study.study import Study

if TYPE_CHECKING:
    from evaluators.significance.verdict import Verdict
    from orchestration.verdicts.findings import Finding, Findings

NOT_SHOWN, OPEN = 1, 3
CODES = {"shown": DONE, "not shown": NOT_SHOWN, "open": OPEN}


@dataclass(frozen=True, kw_only=True)
class Answer:
    """answer: shown, not shown or open. p and level: the uncorrected p and its level, if a budget is used."""

    study: str
    claim: str
    backbone: str
    answer: str
    why: str
    p: float | None = None
    level: float | None = None


def gate(options: Namespace) -> int:
    """Print the answer for each backbone on a line; the exit code is the largest of their codes."""
    from orchestration.verdicts.declared import ids_by_recipes
    from orchestration.verdicts.find import find, still_open
    from orchestration.verdicts.growing import grown, with_another_seed
    from orchestration.verdicts.records import StudyRecords

    study, ledger = study_of(options), ledger_of(options)
    plan = grown(planned(study, ledger), ledger)
    findings = find(study, plan.runs, ledger, asked=options.claim)
    missing = {(run.arm, run.backbone) for run in plan.left}
    whole = [one for one in findings.findings if not one.verdict.part_of]
    if not whole:
        joint = findings.findings[0].verdict.part_of
        raise StudyError(
            f"{study.path}: {options.claim} is a part of {joint}\n  accepted: {joint}, as it was declared"
        )
    budget = None
    if options.budget is not None:
        budget = _Budget(options.budget, ledger, ids_by_recipes(StudyRecords(study, plan.runs, ledger)))
    growing = still_open(findings) if with_another_seed(plan, findings) else []
    answers = [_answer(study, findings, one, missing, budget, grows=one in growing) for one in whole]
    if options.json:
        print(json.dumps([asdict(answer) for answer in answers], indent=1))
    else:
        for one in answers:
            print(printable(f"{one.answer}  {one.claim}{on(one.backbone)}: {one.why}"))
    return max(CODES[one.answer] for one in answers)


def _answer(
    study: Study,
    findings: Findings,
    finding: Finding,
    missing: set[tuple[str, str]],
    budget: _Budget | None,
    *,
    grows: bool,
) -> Answer:
    """grows: `semray run` would add a seed for the claim."""
    verdict, again = finding.verdict, typed("run", study.path, *at(findings.ledger))

    def answer(word: str, why: str, spent: Spent | None = None) -> Answer:
        return Answer(
            study=study.name,
            claim=verdict.claim,
            backbone=verdict.backbone,
            answer=word,
            why=why,
            p=spent.p if spent else None,
            level=spent.level if spent else None,
        )

    if unfinished := dict.fromkeys(arm for arm, backbone in finding.places if (arm, backbone) in missing):
        return answer("open", f"runs of {' and '.join(unfinished)} are missing; next: {again}")
    if verdict.exploratory:
        return answer(
            "not shown",
            "it, its seeds or its rows were declared after its outcome could be seen; fresh seeds would test it",
        )
    if grows:
        return answer("open", f"a seed is to be added for it; next: {again}")
    if budget is None:
        return answer("shown" if verdict.as_expected else "not shown", verdict.sentence)
    spent = budget.ask(findings, finding)
    allowed = f"as the budget {budget.name} allowed at {spent.asked_at}"
    p, level = _apart(spent.p, spent.level)
    comparison = f"p = {p}, held against {level}, {allowed}"
    return answer("shown" if spent.shown else "not shown", f"{comparison}; {verdict.sentence}", spent)


def _apart(p: float, level: float) -> tuple[str, str]:
    """Both with two digits, or with as many as it takes for different numbers to look different."""
    for digits in range(2, 18):
        shown = f"{p:.{digits}g}", f"{level:.{digits}g}"
        if shown[0] != shown[1]:
            break
    return shown if p != level else (f"{p:.2g}", f"{level:.2g}")


@dataclass(frozen=True)
class _Budget:
    """A budget of false discoveries in the ledger. recipes: claim id -> its id by recipes (`ids_by_recipes`)."""

    name: str
    ledger: Ledger
    recipes: Mapping[str, str]

    def ask(self, findings: Findings, finding: Finding) -> Spent:
        """Test the claim alone at the level that the budget has left; other claims of the study do not count.

        The question is identified by recipes, not by names of arms, unless it was asked before by those names.
        """
        from evaluators.significance.level import ALPHA
        from evaluators.significance.online import next_level

        verdict, finished = finding.verdict, findings.with_status("finished")
        runs = sorted({row.id for row in finished if (row.arm, row.backbone) in finding.places})
        says, former = (_digest([said, runs]) for said in (self.recipes[verdict.id], verdict.id))
        p = own_p(finding)

        def answer(earlier: Sequence[Spent]) -> Spent:
            level = next_level([one.shown for one in earlier], ALPHA)
            known = any(one.says == former for one in earlier)
            return Spent(
                study=findings.study,
                claim=verdict.claim,
                says=former if known else says,
                p=p,
                level=level,
                shown=p <= level,
            )

        return self.ledger.ask(self.name, answer)


def _digest(question: list[Any]) -> str:
    return hashlib.sha256(json.dumps(question).encode()).hexdigest()[:16]


def own_p(finding: Finding) -> float:
    """The uncorrected p of what the claim expects; 1 if the sign is against it or nothing was tested.

    For a gain attributed to a signal it is the larger p of the two comparisons.
    """
    verdict = finding.verdict
    p = verdict.tost_p if verdict.expect == "equivalent" else verdict.signal_p if verdict.signal else verdict.p
    opposite = {"better": -1.0, "worse": 1.0}.get(verdict.expect, 0.0)
    against = any(opposite * (delta or 0.0) > 0 for delta in (_mean_of_p(verdict), verdict.signal_delta))
    return 1.0 if p is None or against or verdict.verdict == "fails" else p


def _mean_of_p(verdict: Verdict) -> float | None:
    """The mean difference that p is about; with growing seeds, the mean at the strongest evidence."""
    if not verdict.e_values:
        return verdict.delta_mean
    strongest = verdict.e_values.index(max(verdict.e_values)) + 1
    return fmean(pair["delta"] for pair in verdict.per_seed[:strongest])
