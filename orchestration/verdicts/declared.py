"""Which claims were written down before their outcome could be seen?

A claim is known by what it says: the recipes of its arms, backbone, metric, expectation, margins and the group
it is corrected with. What it, its arms or its study are called is no part of that. A study that has written
nothing down yet inherits what other studies of the ledger wrote of the same claims on the same rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from orchestration.ledger.claims import Declaration
from orchestration.study.run import canonical
from orchestration.verdicts.evidence import StudyRecords

if TYPE_CHECKING:
    from evaluators.significance.claims import Claim
    from orchestration.ledger.ledger import Ledger
    from orchestration.study.run import Run
    from orchestration.study.study import Study

NAMES = ("claim", "seen", "says", "rows")  # of what is written down, what is not said by the comparison itself


def declare(study: Study, runs: Sequence[Run], ledger: Ledger) -> Declaration:
    """Write the study's comparisons down before its first run; a later call changes nothing. Returns the first.

    A claim whose two arms have finished runs already is written down as seen, unless a study that declared it
    before is its source.
    """
    evidence = StudyRecords(study, runs, ledger)
    inherited = _inherited(evidence)
    return ledger.declare(
        study.name,
        [
            claim.said
            | {"says": _says(evidence, claim), "rows": _rows(evidence, claim)}
            | {"seen": _seen(evidence, claim) and not _before(inherited, evidence, claim)}
            for claim in study.compare
        ],
    )


def claims_of(evidence: StudyRecords) -> list[tuple[Claim, bool]]:
    """The study's claims, one per backbone, and whether each is exploratory: not declared before it could be
    seen."""
    declaration = declaration_of(evidence)
    return [(claim, _exploratory(declaration, evidence, claim)) for claim in evidence.study.claims]


def _exploratory(declaration: Declaration | None, evidence: StudyRecords, claim: Claim) -> bool:
    written = _written(declaration, evidence, claim) if declaration else None
    if written is not None:
        return bool(written.get("seen"))
    return declaration is not None or _seen(evidence, claim)


def declaration_of(evidence: StudyRecords) -> Declaration | None:
    """What the study wrote down; where it wrote nothing, what others wrote of its claims; None without either."""
    own = evidence.ledger.declared(evidence.study.name)
    return own or _inherited(evidence)


def _inherited(evidence: StudyRecords) -> Declaration | None:
    """The claims of other studies that say what this one's say, on the same rows, in the order of this study."""
    others = [claim for one in evidence.ledger.declarations() for claim in one.claims]
    found = []
    for claim in evidence.study.compare:
        says, rows = _says(evidence, claim), _rows(evidence, claim)
        alike = [c for c in others if c.get("says") == says and c.get("rows") == rows]
        found += sorted(alike, key=lambda one: bool(one.get("seen")))[:1]  # one that was unseen, if any
    if not found:
        return None
    text = canonical(found)
    return Declaration(
        study=evidence.study.name, claims=tuple(found), digest=hashlib.sha256(text).hexdigest(), declared_at=""
    )


def _before(inherited: Declaration | None, evidence: StudyRecords, claim: Claim) -> bool:
    judged = claim.each(evidence.study.backbones)
    written = [_written(inherited, evidence, one) if inherited else None for one in judged]
    return all(one is not None and not one.get("seen") for one in written)


def _written(declaration: Declaration, evidence: StudyRecords, claim: Claim) -> Mapping[str, Any] | None:
    """A judged claim as it was written down, by whatever name.

    Ledgers of before hold its words alone, without the recipes: the arms' names stand for them there.
    """
    said, words = _digest(evidence, claim), _words(claim.said)
    for one in declaration.claims:
        on = one.get("backbone") or claim.backbone
        same = one["says"].get(claim.backbone) == said if "says" in one else _words(one) == words
        if same and on == claim.backbone:
            return one
    return None


def _words(claim: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in claim.items() if name not in (*NAMES, "backbone")}


def _says(evidence: StudyRecords, claim: Claim) -> dict[str, str]:
    """Backbone -> digest of what is claimed there."""
    return {str(one.backbone): _digest(evidence, one) for one in claim.each(evidence.study.backbones)}


def _digest(evidence: StudyRecords, claim: Claim) -> str:
    """Names what a judged claim says: its words, with recipes for the names of arms."""
    recipes = {role: _recipe(evidence, arm, str(claim.backbone)) for role, arm in claim.arms.items()}
    study = {"family of models": evidence.study.family, "backbone": claim.backbone}
    return hashlib.sha256(canonical({**_words(claim.said), **recipes, **study})).hexdigest()[:16]


def _recipe(evidence: StudyRecords, arm: str, backbone: str) -> Any:
    runs = (run for run in evidence.runs if (run.arm, run.backbone) == (arm, backbone))
    return next((dict(run.defining) for run in runs), arm)


def _rows(evidence: StudyRecords, claim: Claim) -> str:
    """Digest of what the claim's arms are trained and its metric is measured on."""
    tasks = [task.name for task in evidence.tasks if claim.metric in task.metrics]
    runs = [run for run in evidence.runs if run.arm in claim.arms.values()]
    trained = {run.corpus_fingerprint for run in runs if run.seed is not None}
    measured = {run.tasks[task] for run in runs for task in tasks if task in run.tasks}
    return hashlib.sha256(canonical([sorted(trained), sorted(measured)])).hexdigest()[:16]


def _seen(evidence: StudyRecords, claim: Claim) -> bool:
    """Whether some pair of this claim is finished, so that its outcome could be known."""
    return any(
        set.intersection(*(set(evidence.finished(arm, str(one.backbone))) for arm in (one.treatment, one.control)))
        for one in claim.each(evidence.study.backbones)
    )
