"""`semray gate`: has this claim been shown? For CI and for loops that go on by the answer.

Exit codes: 0 shown, 1 not shown, 2 the request was wrong, 3 open: runs are missing.
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
    """answer: shown, not shown, open. p and level: what was asked of one claim alone, where a budget is kept."""

    study: str
    claim: str
    backbone: str
    answer: str
    why: str
    p: float | None = None
    level: float | None = None


def gate(options: Namespace) -> int:
    """Print the answer, one line for each backbone; the exit code is that of the least certain one."""
    from orchestration.verdicts.declared import ids_by_recipes
    from orchestration.verdicts.find import find
    from orchestration.verdicts.growing import grown
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
    if options.budget:
        budget = _Budget(options.budget, ledger, ids_by_recipes(StudyRecords(study, plan.runs, ledger)))
    answers = [_answer(study, findings, one, missing, budget) for one in whole]
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
) -> Answer:
    verdict = finding.verdict

    def answer(word: str, why: str, asked: Spent | None = None) -> Answer:
        return Answer(
            study=study.name,
            claim=verdict.claim,
            backbone=verdict.backbone,
            answer=word,
            why=why,
            p=asked.p if asked else None,
            level=asked.level if asked else None,
        )

    if lacking := dict.fromkeys(arm for arm, backbone in finding.places if (arm, backbone) in missing):
        return answer("open", f"runs of {' and '.join(lacking)} are missing; next: {typed('run', study.path)}")
    if verdict.exploratory:
        return answer(
            "not shown",
            "it, its seeds or its rows were declared after its outcome could be seen; fresh seeds would test it",
        )
    if budget is None:
        return answer("shown" if verdict.as_expected else "not shown", verdict.sentence)
    asked = budget.ask(findings, finding)
    allowed = f"as the budget {budget.name} allowed at {asked.asked_at}"
    held = f"p = {asked.p:.2g}, held against {asked.level:.2g}, {allowed}"
    return answer("shown" if asked.shown else "not shown", f"{held}; {verdict.sentence}", asked)


@dataclass(frozen=True)
class _Budget:
    """What questions are held against. recipes: id of a claim -> what it is known by, as `ids_by_recipes`."""

    name: str
    ledger: Ledger
    recipes: Mapping[str, str]

    def ask(self, findings: Findings, finding: Finding) -> Spent:
        """The claim by itself, at the level that is left for it: no other claim of the study is counted.

        It is known by its recipes, whatever its arms are called; one that was asked when questions went by the
        names of arms, by those.
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
    """The uncorrected p of what the claim expects; 1 where the sign is against it or nothing was tested.

    Of a gain that is due to a signal it is that of both comparisons, the larger one.
    """
    verdict = finding.verdict
    p = verdict.tost_p if verdict.expect == "equivalent" else verdict.signal_p if verdict.signal else verdict.p
    turned = {"better": -1.0, "worse": 1.0}.get(verdict.expect, 0.0)
    against = any(turned * (delta or 0.0) > 0 for delta in (_mean_of_p(verdict), verdict.signal_delta))
    return 1.0 if p is None or against or verdict.verdict == "fails" else p


def _mean_of_p(verdict: Verdict) -> float | None:
    """The mean difference that p is about: of growing seeds that at the strongest evidence, as in the verdict."""
    if not verdict.e_values:
        return verdict.delta_mean
    strongest = verdict.e_values.index(max(verdict.e_values)) + 1
    return fmean(pair["delta"] for pair in verdict.per_seed[:strongest])
