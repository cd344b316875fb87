"""Checks the `search:` block of a study, and computes the space that is searched around an arm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from corpora.store.fields import flat, others_in
from evaluators.tasks.figures import is_each
from orchestration.reading.checking import WRONG, Checker
from orchestration.reading.read_objectives import check_objectives, written_objectives
from orchestration.study.blocks import Search
from orchestration.study.names import names_accepted
from search_spaces.space import OF_THE_STUDY, Dimension, Space, around, declared, is_at, moves, narrowed
from trainers.engine.limits import STEP_NAMES

if TYPE_CHECKING:
    from evaluators.significance.claims import Declared
    from orchestration.families.contract import Family
    from orchestration.reading.document import Place

PLACE: Place = ("search",)
STAND_INS: Mapping[str, Any] = {
    "space": "",
    "arms": (),
    "trials": 1,
    "objective": (),
    "seeds": (),
}  # values for fields that are missing or wrong, so that the others can be checked


def check_search(check: Checker, parts: Mapping[str, Any], family: Family | None) -> Any:
    """The search, or WRONG. All fields are checked, even if one is wrong.

    Its seeds must differ from those of the verdicts, so that a choice cannot confirm itself. It optimises a figure
    of development data that has a counterpart among what `evaluate` measures on test data.
    """
    given = check.mapping(PLACE)
    if given is WRONG:
        return WRONG
    if family and not (family.space or _has_own_settings(family)):
        check.refuse(PLACE, f"no such block: the family {parts['family']} has no search space")
        return WRONG
    before = len(check.problems)
    fields = check.block(Search, PLACE)
    check.refuse_missing(Search, [PLACE])
    search = Search(**{**STAND_INS, **fields})
    if isinstance(given.get("space"), str) and family:
        check.name((*PLACE, "space"), [parts["family"]])
    if "seeds" in fields:
        _check_seeds(check, parts, search)
    if search.backbone is not None and parts["backbones"] is not WRONG:
        check.name((*PLACE, "backbone"), parts["backbones"])
    _check_resources(check, parts["resources"])
    if "arms" in fields and family:
        _check_arms(check, parts["arms"], search)
    search = replace(search, arms=_searchable_arms(parts["arms"], search.arms))
    objectives = written_objectives(check, (*PLACE, "objective"))
    _check_number_of_objectives(check, search, given, len(objectives))
    if family and given.get("stop_early") is not None:
        _check_stop_early(check, parts["arms"], family, search)
    if family and parts["data"] is not WRONG:
        if "objective" in fields and not search.objectives:
            check.refuse((*PLACE, "objective"), "at least one objective")
        check.refuse_duplicates((*PLACE, "objective"), [one.metric for one in search.objectives])
        check_objectives(check, parts, family, objectives)
    if family:
        listed, claims = search.arms, _valid_claims(parts)
        search = _with_controls(search, parts, family.space, claims)
        if "dimensions" in fields or given.get("dimensions") is None:
            space = _declared_space(check, parts["arms"], search) if _has_own_settings(family) else family.space
            all_listed = 0 < len(listed) == len(fields.get("arms", ())) and claims == parts["compare"]
            _check_space(check, parts["arms"], space, search, listed, all_listed=all_listed)
    return search if len(check.problems) == before else WRONG


def _searchable_arms(arms: Any, names: Sequence[str]) -> tuple[str, ...]:
    """The names of arms that exist, have no mistake and are trained."""
    known = {} if arms is WRONG else arms
    return tuple(name for name in names if getattr(known.get(name, WRONG), "train", False))


def _valid_claims(parts: Mapping[str, Any]) -> tuple[Declared, ...]:
    """The claims without a mistake whose arms have none either."""
    if parts["arms"] is WRONG or parts["compare"] is WRONG:
        return ()
    return tuple(
        claim
        for claim in parts["compare"]
        if claim is not WRONG
        and all(parts["arms"].get(arm, WRONG) is not WRONG for arm in claim.arms)
        and all(part.metric in parts["figures"] or not is_each(part.metric) for part in claim.parts)
    )


def _with_controls(search: Search, parts: Mapping[str, Any], space: Space, declared: Sequence[Declared]) -> Search:
    """The search with the trained controls of its arms added behind the treatments, if controls are matched."""
    matched = any(one.tied for one in space) if search.match_control is None else search.match_control
    if not matched:
        return replace(search, match_control=matched)
    claims = [part for claim in declared for part in claim.resolved(parts["figures"]).parts]
    arms, controls = list(search.arms), set()
    for arm in arms:  # the list grows: a control may be the treatment of another claim
        against = [one for claim in claims if arm in claim.sides["treatment"].arms for one in claim.arms]
        trained = [one for one in dict.fromkeys(against) if one != arm and parts["arms"][one].train]
        controls.update(trained)
        arms += [one for one in trained if one not in arms]
    return replace(search, arms=tuple(sorted(arms, key=controls.__contains__)), match_control=matched)


def space_of(search: Search, family: Family, settings: Any) -> Space:
    """The dimensions searched around an arm: the family's, narrowed by the study, or those the study declares."""
    whole = _whole_space(search, family)
    wanted = _wanted(search, whole)
    space = tuple(narrowed(one, wanted[one.name]) for one in whole if one.name in wanted)
    return around(tuple(one for one in space if _may_move(one, space, settings)), settings)


def _has_own_settings(family: Family) -> bool:
    """Whether arms take settings of the study's own, whose ranges only the study can declare."""
    return others_in(family.settings) is not None


def _whole_space(search: Search, family: Family) -> Space:
    """The family's space, or the space that the study declares for settings of its own."""
    if not _has_own_settings(family) or not isinstance(search.dimensions, Mapping):
        return family.space
    return tuple(declared(name, wanted) for name, wanted in search.dimensions.items())


def _declared_space(check: Checker, arms: Any, search: Search) -> Space:
    """The valid dimensions that a study declares. Every searched arm must have a value for each."""
    place = (*PLACE, "dimensions")
    if not isinstance(search.dimensions, Mapping) or not search.dimensions:
        check.refuse(place, "a mapping of placeholders to {low: …, high: …} or a list of values")
        return ()
    space = []
    for name, wanted in search.dimensions.items():
        before = len(check.problems)
        try:
            space.append(declared(name, wanted))
        except ValueError as error:
            check.refuse((*place, name), str(error) + check.number_hint((*place, name)))
        for arm in search.arms:
            others = others_in(type(arms[arm]))
            if others is not None and name not in getattr(arms[arm], others[0]):
                check.refuse(
                    (*place, name), f"a placeholder that arms.{arm} has a value for: the search starts there"
                )
        if len(check.problems) > before:
            space = [one for one in space if one.name != name]
    return tuple(space)


def _wanted(search: Search, space: Space) -> Mapping[str, Any]:
    """Dimension -> what the study writes for it: "all", "paper", a range or values."""
    if any(one.source == OF_THE_STUDY for one in space):
        return dict.fromkeys((one.name for one in space), "all")
    if search.dimensions == "paper":
        return {one.name: "paper" for one in space if one.paper}
    return dict.fromkeys((one.name for one in space), "all") if search.dimensions is None else search.dimensions


def _may_move(dimension: Dimension, space: Space, settings: Any) -> bool:
    """Whether the arm's fixed settings fulfil the conditions (`when`) of a dimension."""
    moving = {one.name for one in space}
    fixed = {name: among for name, among in dimension.when.items() if name not in moving}
    own = flat(settings)
    return is_at(dimension, own) and all(own[name] in among for name, among in fixed.items())


def _check_seeds(check: Checker, parts: Mapping[str, Any], search: Search) -> None:
    if not search.seeds:
        check.refuse((*PLACE, "seeds"), "at least one selection seed")
    check.refuse_duplicates((*PLACE, "seeds"), search.seeds)
    confirmation = parts["seeds"].all if parts["seeds"] is not WRONG else ()
    for index, seed in enumerate(search.seeds):
        if seed in confirmation:
            check.refuse((*PLACE, "seeds", index), "a seed that is not among `seeds`, such as 100")
    if search.budget is not None and search.budget < len(search.seeds):
        check.refuse((*PLACE, "budget"), f"at least {len(search.seeds)} runs: the seeds of one point")


def _check_resources(check: Checker, resources: Any) -> None:
    if resources is WRONG:
        return
    if resources.workers_per_run > 1:
        check.refuse(("resources", "workers_per_run"), "1 with a search: its runs share pooled lanes")
    if resources.launcher == "train":
        check.refuse(("resources", "launcher"), "auto or pool with a search: its runs share pooled lanes")
    if resources.runs_per_stack > 1:
        check.refuse(("resources", "runs_per_stack"), "1 with a search: its runs end at times of their own")


def _check_stop_early(check: Checker, arms: Any, family: Family, search: Search) -> None:
    """Refuse `stop_early` where runs cannot be scored in mid-training, or `at` lies behind their last step."""
    place = (*PLACE, "stop_early")
    if _has_own_settings(family):
        check.refuse(place, "absent in this family: nothing looks into a command before its end")
    if family.stacked:
        check.refuse(place, "absent in this family: its runs train as one stack, and end together")
    written = check.document.at((*place, "at")) if check.document.holds((*place, "at")) else None
    steps_at = [step for step in written if isinstance(step, int)] if isinstance(written, list) else []
    for name in search.arms:
        steps = next((getattr(arms[name], one) for one in STEP_NAMES if hasattr(arms[name], one)), None)
        if steps is not None and max(steps_at, default=0) >= steps:
            check.refuse((*place, "at"), f"steps below {steps}, which {name} is trained for")


def _check_number_of_objectives(check: Checker, search: Search, given: Mapping[str, Any], objectives: int) -> None:
    if objectives <= 1:
        return
    if given.get("stop_early") is not None:
        check.refuse(
            (*PLACE, "stop_early"), "absent with several objectives, which do not say which of two runs is ahead"
        )
    if search.race:
        check.refuse((*PLACE, "race"), "0 or absent with several objectives: points are not raced against a front")


def _check_arms(check: Checker, arms: Any, search: Search) -> None:
    if not search.arms:
        check.refuse((*PLACE, "arms"), "at least one trained arm")
    check.refuse_duplicates((*PLACE, "arms"), search.arms)
    if arms is WRONG:
        return
    for index in range(len(search.arms)):
        check.name((*PLACE, "arms", index), [name for name, made in arms.items() if made is WRONG or made.train])


def _check_space(
    check: Checker, arms: Any, space: Space, search: Search, listed: Sequence[str], *, all_listed: bool
) -> None:
    """Refuse dimensions that move nothing for a listed arm, match no arm, or exclude an arm's own value.

    all_listed: whether `listed` has every arm that the study names, so that an idle dimension is a mistake.
    """
    if not space:
        return  # `_declared_space` has recorded a mistake
    place = (*PLACE, "dimensions")
    if search.dimensions == "paper" and not any(one.paper for one in space):
        check.refuse(place, "a mapping, or absent: no grid of a paper is known here")
        return
    wanted, refused = _narrowed(check, space, search)
    valid = [one for one in wanted if one.name not in refused]
    # an unknown name may be the misspelt name of a setting that others depend on
    names_known = refused <= {one.name for one in wanted}
    moved: set[str] = set()
    for name in search.arms:
        moving = [one for one in wanted if _may_move(one, wanted, arms[name])]
        moved.update(one.name for one in moving)
        if not moving and name in listed and names_known:
            check.refuse(place, f"at least one setting that matters for {name}")
        _check_arm_inside(check, name, arms[name], [one for one in moving if one in valid], space)
    for dimension in wanted if isinstance(search.dimensions, Mapping) and names_known and all_listed else ():
        if dimension.name not in moved:
            accepted = f"only with {_needs(dimension)}"
            check.refuse((*place, dimension.name), accepted, says="changes nothing in the arms searched")
    ranges = [one.name for one in valid if not one.choices and one.name in moved]
    if search.sampler == "grid" and ranges:
        check.refuse(
            (*PLACE, "sampler"), f"tpe, random, or grid with a list of values for each of {', '.join(ranges)}"
        )


def _needs(dimension: Dimension) -> str:
    """What an arm must have for a dimension to move something, in words."""
    if dimension.when:
        return ", ".join(f"{name} = {' or '.join(map(str, among))}" for name, among in dimension.when.items())
    field, _, key = dimension.name.partition(".")
    return f"a value in the arm, where the search starts: {field}: {{…, {key}: …}}"


def _narrowed(check: Checker, space: Space, search: Search) -> tuple[Space, set[str]]:
    """The wanted dimensions, narrowed, and the refused names; a refused dimension keeps its range in `space`."""
    place, by_name = (*PLACE, "dimensions"), {dimension.name: dimension for dimension in space}
    dimensions: dict[str, Dimension] = {}
    refused = set()
    for name, wanted in _wanted(search, space).items():
        if name not in by_name:
            check.refuse((*place, name), names_accepted(name, list(by_name)))
            refused.add(name)
            continue
        try:
            dimensions[name] = narrowed(by_name[name], wanted)
        except ValueError as error:
            numbers = not any(isinstance(one, str) for one in by_name[name].choices)
            check.refuse((*place, name), str(error) + (check.number_hint((*place, name)) if numbers else ""))
            dimensions[name] = by_name[name]
            refused.add(name)
    return tuple(dimensions[name] for name in by_name if name in dimensions), refused


def _check_arm_inside(check: Checker, name: str, settings: Any, moving: Sequence[Dimension], space: Space) -> None:
    """Refuse dimensions that exclude the arm's own value. space: the dimensions before the study narrowed them."""
    whole = {one.name: one for one in space}
    for dimension in moving:
        place, value = (*PLACE, "dimensions", dimension.name), flat(settings)[dimension.name]
        if not moves(dimension, settings, {}) or dimension.holds(value):
            continue
        widest = whole[dimension.name]
        if widest.holds(value) or widest.source == OF_THE_STUDY:
            accepted = f"bounds or values that hold {value}, where arms.{name} is: a search starts there"
            check.refuse(place, accepted)
        else:
            accepted = f"dimensions without this one, or an arm within {widest.words}: a search starts there"
            check.refuse(place, accepted, says=f"is {value} in arms.{name}")
