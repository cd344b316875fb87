"""Which claims were written down before their outcome could be seen?

A claim is known by what it says: the recipes of its arms, backbone, metric, expectation, margins and the group
it is corrected with. The names of the claim, its arms and its study are no part of that, nor is the order of its
parts. Its seeds and rows are written beside it. A study that has written nothing down yet inherits what other
studies of the ledger wrote of the same claims on the same rows.
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
from orchestration.verdicts.declared_rows import on_other_rows, other_rows_in_words, rows_of, seen_there
from orchestration.verdicts.declared_seeds import on_other_seeds, other_seeds_in_words, seeds_of
from orchestration.verdicts.records import StudyRecords
from orchestration.verdicts.seen import could_be_seen

if TYPE_CHECKING:
    from evaluators.significance.claims import Declared
    from orchestration.ledger.ledger import Ledger
    from orchestration.study.run import Run
    from orchestration.study.study import Study

Order = Callable[[Iterable[Any]], list[Any]]  # in which the parts of a claim enter its digest
ANY: Order = partial(sorted, key=canonical)
AS_GIVEN: Order = list  # the order of the file, which digests in old ledgers depend on
# Fields of a claim as it is written down that its comparison itself does not say
NAMES = ("claim", "seen", "seeds", "says", "rows", "made_on", "of")


@dataclass(frozen=True, kw_only=True)
class Withdrawn:
    """Claims declared before they could be seen that the study makes no longer, or not as they were declared.

    They stay counted. nulls: their null hypotheses, over all backbones concerned. words: what became of them, for
    a reader. still: the study makes them yet, with other seeds or on other rows, as exploratory ones.
    """

    group: str | None
    nulls: int
    words: str
    still: bool = False


def declare(study: Study, runs: Sequence[Run], ledger: Ledger) -> Declaration:
    """Write the study's comparisons down before its first run, and return what stands there.

    A later call changes nothing but what may still be mended (`mended`). A claim whose two arms have scores
    already is written down as seen, unless another study declared it before that. Then it keeps the seeds of that
    declaration, and the claims declared in one group with it are written down too: it is corrected with them.
    """
    records = StudyRecords(study, runs, ledger)
    first = ledger.declared(study.name)
    if first is not None:
        claims = mended(first, records).claims
        return first if claims == first.claims else ledger.redeclare(study.name, claims)
    inherited = _inherited(records)
    own = [
        claim.said
        | {"says": _says(records, claim), **rows_of(records, claim)}
        | _standing(records, claim, inherited)
        for claim in study.compare
    ]
    beside = [claim for claim in inherited.claims if "of" in claim] if inherited else []
    return ledger.declare(study.name, [*own, *beside])


def _standing(records: StudyRecords, claim: Declared, inherited: Declaration | None) -> dict[str, Any]:
    """Whether a claim counts as seen when it is written down, and its seeds; both as another study declared it
    before, if one did."""
    seen = could_be_seen(records, claim)
    before = _before(inherited, records, claim) if seen else None
    if before is not None:
        return {"seen": False} | ({"seeds": before["seeds"]} if "seeds" in before else {})
    trained = any(records.study.arms[arm].train for arm in claim.arms)  # of others no seed moves a figure
    return {"seen": seen, **(seeds_of(records.study) if trained else {})}


def mended(declaration: Declaration, records: StudyRecords) -> Declaration:
    """The declaration with the study's present seeds and rows, as far as nothing was seen with the others.

    Seeds may be mended while the ledger is empty, the rows of a claim while no pair has scores on the old ones.
    """
    now, made = seeds_of(records.study), _made(records)
    reseeded = any(on_other_seeds(claim, now) for claim in declaration.claims) and not records.ledger.entries()

    def mend(claim: Mapping[str, Any]) -> Mapping[str, Any]:
        own = _still(claim, made)
        seeds = now if reseeded and on_other_seeds(claim, now) else {}
        unseen = own and on_other_rows(claim, records, own[0]) and not seen_there(claim, records, own[0])
        return {**claim, **seeds, **(rows_of(records, own[0]) if unseen else {})}

    return replace(declaration, claims=tuple(map(mend, declaration.claims)))


def claims_of(records: StudyRecords, declaration: Declaration | None) -> list[tuple[Declared, bool]]:
    """The study's claims, one per backbone, and whether each is exploratory: not declared before it could be seen.

    declaration: as `declaration_of` has it.
    """
    study = records.study
    judged = [one for claim in study.compare for one in claim.each(study.backbones)]
    return [(one.resolved(study.figures), _exploratory(declaration, records, one)) for one in judged]


def _exploratory(declaration: Declaration | None, records: StudyRecords, claim: Declared) -> bool:
    written = _written(declaration, records, claim) if declaration else None
    if written is not None:
        changed = on_other_seeds(written, seeds_of(records.study)) or on_other_rows(written, records, claim)
        return bool(written.get("seen")) or changed
    return declaration is not None or could_be_seen(records, claim)


def declaration_of(records: StudyRecords) -> Declaration | None:
    """What the study wrote down; where it wrote nothing, what others wrote of its claims; None without either."""
    own = records.ledger.declared(records.study.name)
    return own or _inherited(records)


def withdrawn(records: StudyRecords, declaration: Declaration | None) -> list[Withdrawn]:
    """The claims that were declared before they could be seen and are not in the study's file now, or not with the
    seeds or on the rows that they were declared with."""
    claims = [claim for claim in declaration.claims if not claim.get("seen")] if declaration else []
    made = _made(records)
    words = [_words(own.said) for own in records.study.compare]
    found = []
    for claim in claims:
        if "says" in claim:
            gone = sum(digest not in made for digest in claim["says"].values())
        else:  # in an old ledger: known by its words alone
            gone = 0 if _words(claim) in words else len(records.study.backbones)
        if gone:
            found.append(Withdrawn(group=claim.get("family"), nulls=_nulls(claim, gone), words=_farewell(claim)))
    return found + _reseeded(records, claims, made) + _on_other_rows(records, claims, made)


def _made(records: StudyRecords) -> dict[str, Declared]:
    """The study's claims, by the digest of what each says on a backbone."""
    return {
        digest: own
        for own in records.study.compare
        for order in (ANY, AS_GIVEN)
        for digest in _says(records, own, order).values()
    }


def _still(claim: Mapping[str, Any], made: Mapping[str, Declared]) -> list[Declared]:
    """The study's claim that says the same as a declared one, once for each backbone on which it does."""
    return [made[digest] for digest in claim.get("says", {}).values() if digest in made]


def _reseeded(
    records: StudyRecords, claims: Sequence[Mapping[str, Any]], made: Mapping[str, Declared]
) -> list[Withdrawn]:
    """Those of the declared claims that the study makes with other seeds, by group and by their former seeds."""
    now = seeds_of(records.study)
    alike: dict[bytes, list[tuple[Mapping[str, Any], int]]] = {}
    for claim in (claim for claim in claims if on_other_seeds(claim, now)):
        if still := len(_still(claim, made)):
            alike.setdefault(canonical([claim.get("family"), claim["seeds"]]), []).append((claim, still))
    if not alike or not records.ledger.entries():  # in an empty ledger they are mended instead
        return []
    return [
        _exploratory_now(own, other_seeds_in_words(_named(own), own[0][0]["seeds"], now["seeds"]))
        for own in alike.values()
    ]


def _on_other_rows(
    records: StudyRecords, claims: Sequence[Mapping[str, Any]], made: Mapping[str, Declared]
) -> list[Withdrawn]:
    """Those of the declared claims that the study makes with the seeds declared, but on other rows, by group."""
    now = seeds_of(records.study)
    by_group: dict[str | None, list[tuple[Mapping[str, Any], int]]] = {}
    for claim in (claim for claim in claims if not on_other_seeds(claim, now)):
        own = _still(claim, made)
        if own and on_other_rows(claim, records, own[0]):
            by_group.setdefault(claim.get("family"), []).append((claim, len(own)))
    return [_exploratory_now(own, other_rows_in_words(_named(own))) for own in by_group.values()]


def _named(own: Sequence[tuple[Mapping[str, Any], int]]) -> list[str]:
    return [claim["claim"] for claim, _ in own]


def _exploratory_now(own: Sequence[tuple[Mapping[str, Any], int]], words: str) -> Withdrawn:
    """Claims of one group that the study still makes, each with the number of backbones on which it does."""
    nulls = sum(_nulls(claim, backbones) for claim, backbones in own)
    return Withdrawn(group=own[0][0].get("family"), nulls=nulls, words=words, still=True)


def _nulls(claim: Mapping[str, Any], backbones: int) -> int:
    """Null hypotheses of a declared claim on so many backbones."""
    both = claim.get("margin") is not None and claim.get("matched_control") is not None
    return backbones * (1 + both)


def nulls_by_group(gone: Iterable[Withdrawn]) -> dict[str | None, int]:
    """How many null hypotheses were withdrawn from each group of claims."""
    nulls: dict[str | None, int] = {}
    for one in gone:
        nulls[one.group] = nulls.get(one.group, 0) + one.nulls
    return nulls


def _farewell(claim: Mapping[str, Any]) -> str:
    said = [f"{claim.get('treatment')} - {claim.get('control')}", claim.get("metric"), claim.get("expect")]
    if "all" in claim:
        said = [f"all of {', '.join(str(part.get('claim')) for part in claim['all'])}"]
    of = [f"of {claim['of']}"] if "of" in claim else []
    named = f"{claim.get('claim')} ({', '.join(map(str, [*said, *of]))})"
    return f"withdrawn: {named} was declared and is claimed no longer; it stays counted"


def _inherited(records: StudyRecords) -> Declaration | None:
    """What other studies declared of this study's claims, on the same rows, in the order of this study.

    Then the claims that were declared in one group with those and that this study does not make, since all of them
    are corrected together: `of` names their study. None while no claim of this study can be seen: it declares its
    claims itself then, and no other study is read.
    """
    if not any(could_be_seen(records, claim) for claim in records.study.compare):
        return None
    others: dict[bytes, list[tuple[Declaration, Mapping[str, Any]]]] = {}
    for one in records.ledger.declarations():
        for claim in one.claims:
            others.setdefault(canonical([claim.get("says"), claim.get("rows")]), []).append((one, claim))
    now, made = seeds_of(records.study), set[bytes]()
    found: list[Mapping[str, Any]] = []
    sources: dict[tuple[str, Any], Declaration] = {}  # study and group of the claims that were declared unseen
    for own in records.study.compare:
        says, rows = [_says(records, own, order) for order in (ANY, AS_GIVEN)], rows_of(records, own)["rows"]
        made.update(map(canonical, says))
        known = dict.fromkeys(canonical([one, rows]) for one in says)
        alike = [pair for key in known for pair in others.get(key, ())]
        if alike:  # an unseen one, if any, and of these one with the study's seeds
            source, claim = min(alike, key=lambda pair: (bool(pair[1].get("seen")), on_other_seeds(pair[1], now)))
            found.append(claim)
            if not claim.get("seen"):
                sources.setdefault((source.study, claim.get("family")), source)
    if not found:
        return None
    beside = [
        {"of": study, **other}
        for (study, group), source in sources.items()
        for other in source.claims
        if other.get("family") == group and not other.get("seen") and canonical(other.get("says")) not in made
    ]
    found += {canonical(claim): claim for claim in beside}.values()  # each once
    digest = hashlib.sha256(canonical(found)).hexdigest()
    return Declaration(study=records.study.name, claims=tuple(found), digest=digest, declared_at="")


def _before(inherited: Declaration | None, records: StudyRecords, claim: Declared) -> Mapping[str, Any] | None:
    """A claim as it was declared before it could be seen; None unless on all backbones, with equal seeds."""
    judged = claim.each(records.study.backbones)
    written = [_written(inherited, records, one) if inherited else None for one in judged]
    known = [one for one in written if one is not None and not one.get("seen")]
    alike = len({canonical(one.get("seeds")) for one in known}) == 1
    return known[0] if alike and len(known) == len(judged) else None


def _written(declaration: Declaration, records: StudyRecords, claim: Declared) -> Mapping[str, Any] | None:
    """A judged claim as it was written down, under whatever name.

    Old ledgers hold its words alone: there the names of the arms stand for their recipes.
    """
    said, words = [_digest(records, claim, order) for order in (ANY, AS_GIVEN)], _words(claim.said)
    for one in declaration.claims:
        on = one.get("backbone") or claim.backbone
        same = one["says"].get(claim.backbone or "") in said if "says" in one else _words(one) == words
        if same and on == claim.backbone:
            return one
    return None


def _words(claim: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in claim.items() if name not in (*NAMES, "backbone")}


def _says(records: StudyRecords, claim: Declared, order: Order = ANY) -> dict[str, str]:
    """Backbone -> digest of what is claimed there."""
    return {one.backbone or "": _digest(records, one, order) for one in claim.each(records.study.backbones)}


def _digest(records: StudyRecords, claim: Declared, order: Order) -> str:
    """Names what a judged claim says: its words, with recipes for the names of arms, and the figures."""
    recipes = {}
    if isinstance(claim, Joint):
        recipes = {"all": order(_digest(records, part, order) for part in claim.all)}
    else:
        stated = ("treatment", "control", "matched_control")
        sides = {role: getattr(claim, role) for role in stated if getattr(claim, role) is not None}
        recipes = {role: _recipes(records, side, claim.backbone, order) for role, side in sides.items()}
        figures = records.study.figures_of(claim.metric)
        recipes |= {"figures": list(figures)} if figures != (claim.metric,) else {}
    study = {"family of models": records.study.family, "backbone": claim.backbone}
    return hashlib.sha256(canonical({**_words(claim.said), **recipes, **study})).hexdigest()[:16]


def _recipes(records: StudyRecords, side: Any, backbone: str | None, order: Order) -> Any:
    """A side of a claim with what its arms are trained by."""
    if isinstance(side, tuple):
        return order(_recipe(records, arm, backbone) for arm in side)
    if isinstance(side, ClaimSide):
        on = side.backbone or backbone
        recipes = {"arm": _recipe(records, side.arm, on), "backbone": side.backbone}
        return recipes | ({"over": _recipe(records, side.over, on)} if side.over else {})
    return _recipe(records, side, backbone)


def _recipe(records: StudyRecords, arm: str, backbone: str | None) -> Any:
    runs = records.runs_of.get((arm, backbone or ""), ())
    return next((dict(run.defining) for run in runs), arm)


def ids_by_recipes(records: StudyRecords) -> dict[str, str]:
    """Id of a judged claim -> the same with recipes for the names of arms; as it is where two have one recipe."""
    found = {}
    for claim in records.study.claims:
        recipes = {arm: canonical(_recipe(records, arm, on)) for arm, on in sides_of(claim.parts)}
        names = {arm: hashlib.sha256(recipe).hexdigest()[:16] for arm, recipe in recipes.items()}
        apart = len(set(names.values())) == len(names)
        found[claim.id] = claim.renamed(names).id if apart else claim.id
    return found
