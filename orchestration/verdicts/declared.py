"""Which claims were written down before their outcome could be seen?

A claim is known by what it says: the recipes of its arms, backbone, metric, expectation, margins and the group
it is corrected with. What it, its arms or its study are called is no part of that. A study that has written
nothing down yet inherits what other studies of the ledger wrote of the same claims on the same rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from orchestration.ledger.claims import Declaration
from orchestration.study.run import canonical
from orchestration.verdicts.evidence import StudyRecords

if TYPE_CHECKING:
    from evaluators.significance.comparisons import Claim
    from orchestration.ledger.ledger import Ledger
    from orchestration.study.blocks import Comparison
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
            _said(comparison)
            | {"says": _says(evidence, comparison), "rows": _rows(evidence, comparison)}
            | {"seen": _seen(evidence, comparison) and not _before(inherited, evidence, comparison)}
            for comparison in study.compare
        ],
    )


def claims_of(evidence: StudyRecords) -> list[Claim]:
    """The study's comparisons, one per backbone; those that were not declared before they could be seen are
    exploratory."""
    declaration = declaration_of(evidence)
    claims = []
    for comparison, backbone in evidence.study.comparisons:
        written = _written(declaration, evidence, comparison, backbone) if declaration else None
        if written is not None:
            exploratory = bool(written.get("seen"))
        else:
            exploratory = declaration is not None or _seen(evidence, comparison)
        claims.append(comparison.claim_on(backbone, exploratory=exploratory))
    return claims


def declaration_of(evidence: StudyRecords) -> Declaration | None:
    """What the study wrote down; where it wrote nothing, what others wrote of its claims; None without either."""
    own = evidence.ledger.declared(evidence.study.name)
    return own or _inherited(evidence)


def _inherited(evidence: StudyRecords) -> Declaration | None:
    """The claims of other studies that say what this one's say, on the same rows, in the order of this study."""
    others = [claim for one in evidence.ledger.declarations() for claim in one.claims]
    found = []
    for comparison in evidence.study.compare:
        says, rows = _says(evidence, comparison), _rows(evidence, comparison)
        alike = [c for c in others if c.get("says") == says and c.get("rows") == rows]
        found += sorted(alike, key=lambda claim: bool(claim.get("seen")))[:1]  # one that was unseen, if any
    if not found:
        return None
    text = canonical(found)
    return Declaration(
        study=evidence.study.name, claims=tuple(found), digest=hashlib.sha256(text).hexdigest(), declared_at=""
    )


def _before(inherited: Declaration | None, evidence: StudyRecords, comparison: Comparison) -> bool:
    backbones = _backbones(evidence, comparison)
    written = [_written(inherited, evidence, comparison, on) if inherited else None for on in backbones]
    return all(claim is not None and not claim.get("seen") for claim in written)


def _written(
    declaration: Declaration, evidence: StudyRecords, comparison: Comparison, backbone: str
) -> Mapping[str, Any] | None:
    """The claim as it was written down, by whatever name.

    Ledgers of before hold its words alone, without the recipes: the arms' names stand for them there.
    """
    said, words = _says(evidence, comparison).get(backbone), _words(_said(comparison))
    for claim in declaration.claims:
        if claim["says"].get(backbone) == said if "says" in claim else _words(claim) == words:
            return claim
    return None


def _said(comparison: Comparison) -> dict[str, Any]:
    """What is written down of a comparison: only what it says, so that new optional fields change no old claim."""
    return {name: value for name, value in asdict(comparison).items() if value is not None}


def _words(claim: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in claim.items() if name not in NAMES}


def _says(evidence: StudyRecords, comparison: Comparison) -> dict[str, str]:
    """Backbone -> digest of what is claimed there: the words, with recipes for the names of arms."""
    words = {name: value for name, value in _words(_said(comparison)).items() if name != "backbone"}
    found = {}
    for backbone in _backbones(evidence, comparison):
        recipes = {role: _recipe(evidence, words[role], backbone) for role in _roles(comparison)}
        content = {**words, **recipes, "family of models": evidence.study.family, "backbone": backbone}
        found[backbone] = hashlib.sha256(canonical(content)).hexdigest()[:16]
    return found


def _roles(comparison: Comparison) -> list[str]:
    return ["treatment", "control", *(["matched_control"] if comparison.matched_control else [])]


def _recipe(evidence: StudyRecords, arm: str, backbone: str) -> Any:
    runs = (run for run in evidence.runs if (run.arm, run.backbone) == (arm, backbone))
    return next((dict(run.defining) for run in runs), arm)


def _rows(evidence: StudyRecords, comparison: Comparison) -> str:
    """Digest of what the claim's arms are trained and its metric is measured on."""
    arms = {getattr(comparison, role) for role in _roles(comparison)}
    tasks = [task.name for task in evidence.tasks if comparison.metric in task.metrics]
    runs = [run for run in evidence.runs if run.arm in arms]
    trained = {run.corpus_fingerprint for run in runs if run.seed is not None}
    measured = {run.tasks[task] for run in runs for task in tasks if task in run.tasks}
    return hashlib.sha256(canonical([sorted(trained), sorted(measured)])).hexdigest()[:16]


def _backbones(evidence: StudyRecords, comparison: Comparison) -> tuple[str, ...]:
    return (comparison.backbone,) if comparison.backbone else evidence.study.backbones


def _seen(evidence: StudyRecords, comparison: Comparison) -> bool:
    """Whether some pair of this comparison is finished, so that its outcome could be known."""
    arms = (comparison.treatment, comparison.control)
    return any(
        set.intersection(*(set(evidence.finished(arm, backbone)) for arm in arms))
        for backbone in _backbones(evidence, comparison)
    )
