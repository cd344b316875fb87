"""Which claims were declared before their outcome could be seen?

A claim is identified by a digest of what it says: the recipes of its arms, backbone, metric, expectation, margins
and the group it is corrected with. The names of the claim, its arms and its study do not count, nor does the order
of its parts. Its seeds and rows are declared beside it. A study without a declaration inherits what other studies
of the ledger declared of the same claims on the same rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from evaluators.significance.claims import ClaimSide, Joint, sides_of
from orchestration.ledger.claims import Declaration
from orchestration.study.run import canonical
from orchestration.verdicts.declared_rows import (
    digests_of_rows,
    on_other_rows,
    other_rows_in_words,
    rows_of,
    seen_there,
)
from orchestration.verdicts.declared_seeds import on_other_seeds, other_seeds_in_words, seeds_of
from orchestration.verdicts.records import StudyRecords
from orchestration.verdicts.seen import could_be_seen

if TYPE_CHECKING:
    from evaluators.significance.claims import Declared
    from orchestration.ledger.ledger import Ledger
    from orchestration.study.run import Run
    from orchestration.study.study import Study

Order = Callable[[Iterable[Any]], list[Any]]  # the order in which the parts of a claim enter its digest
ANY: Order = partial(sorted, key=canonical)
AS_GIVEN: Order = list  # the order of the file, which digests in old ledgers depend on
# Fields of a declared claim that are no part of what it says
BESIDE = ("claim", "seen", "seeds", "says", "rows", "made_on", "of")


@dataclass(frozen=True, kw_only=True)
class Withdrawn:
    """Claims declared before they could be seen that the study no longer makes, or not as declared.

    They still count in the correction. nulls: their null hypotheses, over all backbones concerned. words: the
    change, for a reader. still: the study makes them with other seeds or on other rows, as exploratory claims.
    """

    group: str | None
    nulls: int
    words: str
    still: bool = False


def declare(study: Study, runs: Sequence[Run], ledger: Ledger) -> Declaration:
    """Declare the study's comparisons in the ledger before its first run, and return the declaration.

    A later call changes only what `amended` allows. A claim whose two arms have scores already is declared as
    seen, unless another study declared it before it had. Then it keeps the seeds of that declaration, and the
    claims that were declared in one group with it are declared too, as it is corrected with them.
    """
    records = StudyRecords(study, runs, ledger)
    first = ledger.declared(study.name)
    if first is not None:
        claims = amended(first, records).claims
        return first if claims == first.claims else ledger.redeclare(study.name, claims)
    inherited = _inherited(records)
    own = [
        claim.said
        | {"says": _digests(records, claim), **rows_of(records, claim)}
        | _seen_and_seeds(records, claim, inherited)
        for claim in study.compare
    ]
    of_others = [claim for claim in inherited.claims if "of" in claim] if inherited else []
    return ledger.declare(study.name, [*own, *of_others])


def _seen_and_seeds(records: StudyRecords, claim: Declared, inherited: Declaration | None) -> dict[str, Any]:
    """The fields `seen` and `seeds` of a claim to declare; those of an earlier declaration by another study, if
    there is one."""
    seen = could_be_seen(records, claim)
    before = _declared_unseen(inherited, records, claim) if seen else None
    if before is not None:
        return {"seen": False} | ({"seeds": before["seeds"]} if "seeds" in before else {})
    trained = any(records.study.arms[arm].train for arm in claim.arms)  # seeds change nothing for the others
    return {"seen": seen, **(seeds_of(records.study) if trained else {})}


def amended(declaration: Declaration, records: StudyRecords) -> Declaration:
    """The declaration with the study's present seeds and rows, where nothing was seen with the declared ones.

    Seeds may change while the ledger is empty, the rows of a claim while no pair has scores on the old rows.
    """
    now, present = seeds_of(records.study), _claims_by_digest(records)
    reseeded = any(on_other_seeds(claim, now) for claim in declaration.claims) and not records.ledger.entries()

    def amend(claim: Mapping[str, Any]) -> Mapping[str, Any]:
        own = _still_made(claim, present)
        seeds = now if reseeded and on_other_seeds(claim, now) else {}
        unseen = own and on_other_rows(claim, records, own[0]) and not seen_there(claim, records, own[0])
        return {**claim, **seeds, **(rows_of(records, own[0]) if unseen else {})}

    return replace(declaration, claims=tuple(map(amend, declaration.claims)))


def claims_of(records: StudyRecords, declaration: Declaration | None) -> list[tuple[Declared, bool]]:
    """The study's claims, one per backbone, and whether each is exploratory: not declared before it could be seen.

    declaration: from `declaration_of`.
    """
    study = records.study
    judged = [one for claim in study.compare for one in claim.each(study.backbones)]
    return [(one.resolved(study.figures), _exploratory(declaration, records, one)) for one in judged]


def _exploratory(declaration: Declaration | None, records: StudyRecords, claim: Declared) -> bool:
    declared = _declared_as(declaration, records, claim) if declaration else None
    if declared is not None:
        changed = on_other_seeds(declared, seeds_of(records.study)) or on_other_rows(declared, records, claim)
        return bool(declared.get("seen")) or changed
    return declaration is not None or could_be_seen(records, claim)


def late(records: StudyRecords, declaration: Declaration | None) -> list[Declared]:
    """The study's claims, one per backbone, that are exploratory even once `declare` has been called.

    declaration: from `declaration_of`.
    """
    study, own = records.study, records.ledger.declared(records.study.name)
    return [
        one
        for claim in study.compare
        for one in claim.each(study.backbones)
        if _exploratory(declaration, records, one) and (own or could_be_seen(records, one))
    ]


def never_declared(
    records: StudyRecords, declaration: Declaration | None, claims: Iterable[Declared]
) -> list[str]:
    """A line that names those of these late claims that were declared with no seeds or rows; none if all were."""
    added = dict[str, None]()
    for claim in claims:
        declared = _declared_as(declaration, records, claim) if declaration else None
        if declared is None or declared.get("seen"):
            added[claim.claim] = None
    if not added:
        return []
    were, them = ("was", "it") if len(added) == 1 else ("were", "them")
    return [
        f"{', '.join(added)} {were} not declared before the first run: exploratory, and corrected apart; a new "
        f"study with fresh seeds would declare {them}"
    ]


def declaration_of(records: StudyRecords) -> Declaration | None:
    """The study's declaration, else the one that it inherits from other studies, else None."""
    own = records.ledger.declared(records.study.name)
    return own or _inherited(records)


def withdrawn(records: StudyRecords, declaration: Declaration | None) -> list[Withdrawn]:
    """The claims that were declared before they could be seen and that the study no longer makes, or makes with
    other seeds or on other rows."""
    claims = [claim for claim in declaration.claims if not claim.get("seen")] if declaration else []
    present = _claims_by_digest(records)
    words = [_words(own.said) for own in records.study.compare]
    found = []
    for claim in claims:
        if "says" in claim:
            gone = sum(digest not in present for digest in claim["says"].values())
        else:  # in an old ledger, which has no digests
            gone = 0 if _words(claim) in words else len(records.study.backbones)
        if gone:
            found.append(Withdrawn(group=claim.get("family"), nulls=_nulls(claim, gone), words=_withdrawal(claim)))
    return found + _with_other_seeds(records, claims, present) + _with_other_rows(records, claims, present)


def _claims_by_digest(records: StudyRecords) -> dict[str, Declared]:
    """Digest of what a claim says on a backbone -> the study's claim."""
    return {
        digest: own
        for own in records.study.compare
        for order in (ANY, AS_GIVEN)
        for digest in _digests(records, own, order).values()
    }


def _still_made(claim: Mapping[str, Any], present: Mapping[str, Declared]) -> list[Declared]:
    """The study's claim that says the same as a declared one, once for each backbone on which it does."""
    return [present[digest] for digest in claim.get("says", {}).values() if digest in present]


def _with_other_seeds(
    records: StudyRecords, claims: Sequence[Mapping[str, Any]], present: Mapping[str, Declared]
) -> list[Withdrawn]:
    """The declared claims that the study makes with other seeds, one entry for each group and former seeds."""
    now = seeds_of(records.study)
    by_seeds: dict[bytes, list[tuple[Mapping[str, Any], int]]] = {}
    for claim in (claim for claim in claims if on_other_seeds(claim, now)):
        if backbones := len(_still_made(claim, present)):
            by_seeds.setdefault(canonical([claim.get("family"), claim["seeds"]]), []).append((claim, backbones))
    if not by_seeds or not records.ledger.entries():  # in an empty ledger they are amended instead
        return []
    return [
        _exploratory_now(own, other_seeds_in_words(_names(own), own[0][0]["seeds"], now["seeds"]))
        for own in by_seeds.values()
    ]


def _with_other_rows(
    records: StudyRecords, claims: Sequence[Mapping[str, Any]], present: Mapping[str, Declared]
) -> list[Withdrawn]:
    """The declared claims that the study makes with the declared seeds but on other rows, one entry a group."""
    now = seeds_of(records.study)
    by_group: dict[str | None, list[tuple[Mapping[str, Any], int]]] = {}
    for claim in (claim for claim in claims if not on_other_seeds(claim, now)):
        own = _still_made(claim, present)
        if own and on_other_rows(claim, records, own[0]):
            by_group.setdefault(claim.get("family"), []).append((claim, len(own)))
    return [_exploratory_now(own, other_rows_in_words(_names(own))) for own in by_group.values()]


def _names(own: Sequence[tuple[Mapping[str, Any], int]]) -> list[str]:
    return [claim["claim"] for claim, _ in own]


def _exploratory_now(own: Sequence[tuple[Mapping[str, Any], int]], words: str) -> Withdrawn:
    """One entry for claims of a group that are exploratory now. own: each with the number of its backbones."""
    nulls = sum(_nulls(claim, backbones) for claim, backbones in own)
    return Withdrawn(group=own[0][0].get("family"), nulls=nulls, words=words, still=True)


def _nulls(claim: Mapping[str, Any], backbones: int) -> int:
    """The number of null hypotheses of a declared claim on so many backbones."""
    both = claim.get("margin") is not None and claim.get("matched_control") is not None
    return backbones * (1 + both)


def nulls_by_group(gone: Iterable[Withdrawn]) -> dict[str | None, int]:
    """Group of claims -> how many null hypotheses were withdrawn from it."""
    nulls: dict[str | None, int] = {}
    for one in gone:
        nulls[one.group] = nulls.get(one.group, 0) + one.nulls
    return nulls


def _withdrawal(claim: Mapping[str, Any]) -> str:
    sides = " - ".join(_side_in_words(claim.get(side)) for side in ("treatment", "control"))
    content = [sides, claim.get("metric"), claim.get("expect")]
    if "all" in claim:
        content = [f"all of {', '.join(str(part.get('claim')) for part in claim['all'])}"]
    of = [f"of {claim['of']}"] if "of" in claim else []
    named = f"{claim.get('claim')} ({', '.join(map(str, [*content, *of]))})"
    return f"withdrawn: {named} was declared and is claimed no longer; it stays counted"


def _side_in_words(side: Any) -> str:
    """A side of a declared claim: an arm, a list of arms, or the fields of a ClaimSide."""
    if isinstance(side, Mapping):
        return str(ClaimSide(**side))
    return f"each of {', '.join(side)}" if isinstance(side, list | tuple) else str(side)


def _inherited(records: StudyRecords) -> Declaration | None:
    """What other studies declared of this study's claims on the same rows, in the order of this study.

    Behind them stand the claims that were declared in one group with them and that this study does not make, as
    all are corrected together; `of` names their study. None while no claim of this study can be seen: the study
    then declares its claims itself, and no other study is read.
    """
    if not any(could_be_seen(records, claim) for claim in records.study.compare):
        return None
    others: dict[bytes, list[tuple[Declaration, Mapping[str, Any]]]] = {}
    for source in records.ledger.declarations():
        for claim in source.claims:
            others.setdefault(canonical([claim.get("says"), claim.get("rows")]), []).append((source, claim))
    now, made = seeds_of(records.study), set[bytes]()
    found: list[Mapping[str, Any]] = []
    sources: dict[tuple[str, Any], Declaration] = {}  # study and group of the claims that were declared unseen
    for own in records.study.compare:
        says, rows = [_digests(records, own, order) for order in (ANY, AS_GIVEN)], [*digests_of_rows(records, own)]
        made.update(map(canonical, says))
        keys = dict.fromkeys(canonical([digests, digest]) for digests in says for digest in rows)
        known = [pair for key in keys for pair in others.get(key, ())]
        if known:  # prefer an unseen claim, and among those one with the study's seeds
            source, claim = min(known, key=lambda pair: (bool(pair[1].get("seen")), on_other_seeds(pair[1], now)))
            found.append(claim)
            if not claim.get("seen"):
                sources.setdefault((source.study, claim.get("family")), source)
    if not found:
        return None
    of_others = [
        {"of": study, **other}
        for (study, group), source in sources.items()
        for other in source.claims
        if other.get("family") == group and not other.get("seen") and canonical(other.get("says")) not in made
    ]
    found += {canonical(claim): claim for claim in of_others}.values()  # each once
    digest = hashlib.sha256(canonical(found)).hexdigest()
    return Declaration(study=records.study.name, claims=tuple(found), digest=digest, declared_at="")


def _declared_unseen(
    inherited: Declaration | None, records: StudyRecords, claim: Declared
) -> Mapping[str, Any] | None:
    """The claim as declared before it could be seen; None unless so on all backbones, with equal seeds."""
    judged = claim.each(records.study.backbones)
    declared = [_declared_as(inherited, records, one) if inherited else None for one in judged]
    unseen = [one for one in declared if one is not None and not one.get("seen")]
    same_seeds = len({canonical(one.get("seeds")) for one in unseen}) == 1
    return unseen[0] if same_seeds and len(unseen) == len(judged) else None


def _declared_as(declaration: Declaration, records: StudyRecords, claim: Declared) -> Mapping[str, Any] | None:
    """The declared claim that says the same as a judged one, under any name; None if there is none.

    Old ledgers have no digests: there the words are compared, in which arms are named and not their recipes.
    """
    digests, words = [_digest(records, claim, order) for order in (ANY, AS_GIVEN)], _words(claim.said)
    for one in declaration.claims:
        backbone = one.get("backbone") or claim.backbone
        same = one["says"].get(claim.backbone or "") in digests if "says" in one else _words(one) == words
        if same and backbone == claim.backbone:
            return one
    return None


def _words(claim: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a claim that say what it compares, as written in the study."""
    return {name: value for name, value in claim.items() if name not in (*BESIDE, "backbone")}


def _digests(records: StudyRecords, claim: Declared, order: Order = ANY) -> dict[str, str]:
    """Backbone -> digest of what the claim says there."""
    return {one.backbone or "": _digest(records, one, order) for one in claim.each(records.study.backbones)}


def _digest(records: StudyRecords, claim: Declared, order: Order) -> str:
    """The digest of what a judged claim says: its words, with arms replaced by their recipes, and its figures."""
    recipes = {}
    if isinstance(claim, Joint):
        recipes = {"all": order(_digest(records, part, order) for part in claim.all)}
    else:
        roles = ("treatment", "control", "matched_control")
        sides = {role: getattr(claim, role) for role in roles if getattr(claim, role) is not None}
        recipes = {role: _recipes(records, side, claim.backbone, order) for role, side in sides.items()}
        figures = records.study.figures_of(claim.metric)
        recipes |= {"figures": list(figures)} if figures != (claim.metric,) else {}
    study = {"family of models": records.study.family, "backbone": claim.backbone}
    return hashlib.sha256(canonical({**_words(claim.said), **recipes, **study})).hexdigest()[:16]


def _recipes(records: StudyRecords, side: Any, backbone: str | None, order: Order) -> Any:
    """A side of a claim with its arms replaced by their recipes."""
    if isinstance(side, tuple):
        return order(_recipe(records, arm, backbone) for arm in side)
    if isinstance(side, ClaimSide):
        backbone = side.backbone or backbone
        recipes = {"arm": _recipe(records, side.arm, backbone), "backbone": side.backbone}
        return recipes | ({"over": _recipe(records, side.over, backbone)} if side.over else {})
    return _recipe(records, side, backbone)


def _recipe(records: StudyRecords, arm: str, backbone: str | None) -> Any:
    runs = records.runs_of.get((arm, backbone or ""), ())
    return next((dict(run.defining) for run in runs), arm)


def ids_by_recipes(records: StudyRecords) -> dict[str, str]:
    """Id of a judged claim -> its id with recipes for the names of arms; unchanged if two arms have one recipe."""
    found = {}
    for claim in records.study.claims:
        recipes = {arm: canonical(_recipe(records, arm, backbone)) for arm, backbone in sides_of(claim.parts)}
        names = {arm: hashlib.sha256(recipe).hexdigest()[:16] for arm, recipe in recipes.items()}
        distinct = len(set(names.values())) == len(names)
        found[claim.id] = claim.renamed(names).id if distinct else claim.id
    return found
