"""The `search:` block of a study, checked to the last field; and the space that it leaves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from corpora.store.fields import flat, others_in
from evaluators.tasks.figures import FORM, is_each
from evaluators.tasks.task import is_dev, metric_names, named
from orchestration.reading.checking import WRONG, Checker
from orchestration.reading.figures import figures_at
from orchestration.study.blocks import Objective, Search, StopEarly
from orchestration.study.names import names_accepted
from search_spaces.space import OF_THE_STUDY, Dimension, Space, declared, moves, narrowed

if TYPE_CHECKING:
    from orchestration.families.contract import Family
    from orchestration.reading.document import Place

PLACE: Place = ("search",)


def check_search(check: Checker, parts: Mapping[str, Any], family: Family | None) -> Any:
    """The search, or WRONG.

    Its seeds must not be those a verdict rests on: a choice would confirm itself. What it optimises is measured on
    development data, and has a counterpart on test data that `evaluate` yields.
    """
    given = check.mapping(PLACE)
    if given is WRONG:
        return WRONG
    before = len(check.problems)
    search = check.built(Search, PLACE)
    if isinstance(given.get("space"), str) and family:
        check.name((*PLACE, "space"), [parts["family"]] if family.space or _open(family) else [])
    if search is WRONG:
        return WRONG
    listed = search
    if family and not check.problems:  # else no run is made of it, and claims or arms may be wrong
        search = _with_controls(search, parts, family.space)
    _check_seeds(check, parts, search)
    if search.backbone is not None and parts["backbones"] is not WRONG:
        check.name((*PLACE, "backbone"), parts["backbones"])
    _check_resources(check, parts["resources"])
    if family and search.stop_early:
        _check_stop_early(check, parts["arms"], family, search, search.stop_early)
    if family and parts["data"] is not WRONG:
        _check_objectives(check, parts, family, search)
    if family and (family.space or _open(family)):
        _check_arms(check, parts["arms"], listed)
        if _open(family):
            _check_declared(check, parts["arms"], search)
        if len(check.problems) == before:
            _check_space(check, parts["arms"], _all_around(search, family), search, listed.arms)
    return search if len(check.problems) == before else WRONG


def _with_controls(search: Search, parts: Mapping[str, Any], space: Space) -> Search:
    """The search with the trained controls of its arms, treatments first, if these are to be matched."""
    matched = any(one.tied for one in space) if search.match_control is None else search.match_control
    if not matched:
        return replace(search, match_control=matched)
    claims = [
        part
        for declared in parts["compare"]
        for one in declared.each(parts["backbones"])
        for part in one.resolved(parts["figures"]).parts
    ]
    arms, controls = list(search.arms), set()
    for arm in arms:  # which grows: a control may be the treatment of another claim
        against = [one for claim in claims if arm in claim.sides["treatment"].arms for one in claim.arms]
        trained = [one for one in dict.fromkeys(against) if one != arm and parts["arms"][one].train]
        controls.update(trained)
        arms += [one for one in trained if one not in arms]
    return replace(search, arms=tuple(sorted(arms, key=controls.__contains__)), match_control=matched)


def space_of(search: Search, family: Family, settings: Any) -> Space:
    """What moves around an arm: the family's space, narrowed as the study wants it, or what the study declares."""
    whole = _all_around(search, family)
    wanted = _wanted(search, whole)
    space = tuple(narrowed(one, wanted[one.name]) for one in whole if one.name in wanted)
    return tuple(one for one in space if _may_move(one, space, settings))


def _open(family: Family) -> bool:
    """Whether arms have settings that their study alone knows: how far those may move it must say itself."""
    return others_in(family.settings) is not None


def _all_around(search: Search, family: Family) -> Space:
    """The family's space; of a study's own settings the one that it declares."""
    if not _open(family) or not isinstance(search.dimensions, Mapping):
        return family.space
    return tuple(declared(name, wanted) for name, wanted in search.dimensions.items())


def _check_declared(check: Checker, arms: Any, search: Search) -> None:
    """Dimensions that a study declares are each of a setting that every searched arm has."""
    place = (*PLACE, "dimensions")
    if not isinstance(search.dimensions, Mapping) or not search.dimensions:
        check.refuse(place, "a mapping of placeholders to {low: …, high: …} or a list of values")
        return
    for name, wanted in search.dimensions.items():
        try:
            declared(name, wanted)
        except ValueError as error:
            check.refuse((*place, name), str(error) + check.read_as_text((*place, name)))
        for arm in search.arms if arms is not WRONG else ():
            others = others_in(type(arms[arm])) if arms.get(arm, WRONG) is not WRONG else None
            if others is not None and name not in getattr(arms[arm], others[0]):
                check.refuse(
                    (*place, name), f"a placeholder that arms.{arm} has a value for: the search starts there"
                )


def _wanted(search: Search, space: Space) -> Mapping[str, Any]:
    if any(one.source == OF_THE_STUDY for one in space):
        return dict.fromkeys((one.name for one in space), "all")
    if search.dimensions == "paper":
        return {one.name: "paper" for one in space if one.paper}
    return dict.fromkeys((one.name for one in space), "all") if search.dimensions is None else search.dimensions


def _may_move(dimension: Dimension, space: Space, settings: Any) -> bool:
    """Whether the dimension matters for the arm, or somewhere else in the space."""
    moving = {one.name for one in space}
    fixed = {name: among for name, among in dimension.when.items() if name not in moving}
    own = flat(settings)
    return all(own[name] in among for name, among in fixed.items())


def _check_seeds(check: Checker, parts: Mapping[str, Any], search: Search) -> None:
    if not search.seeds:
        check.refuse((*PLACE, "seeds"), "at least one selection seed")
    check.different((*PLACE, "seeds"), search.seeds)
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


def _check_stop_early(check: Checker, arms: Any, family: Family, search: Search, rule: StopEarly) -> None:
    place = (*PLACE, "stop_early")
    if _open(family):
        check.refuse(place, "absent in this family: nothing looks into a command before its end")
    if family.stacked:
        check.refuse(place, "absent in this family: its runs train as one stack, and end together")
    if len(search.objectives) > 1:
        check.refuse(place, "absent with several objectives, which do not say which of two runs is ahead")
    for name in search.arms if arms is not WRONG else ():
        steps = getattr(arms.get(name, WRONG), "steps", None)
        if steps is not None and max(rule.at) >= steps:
            check.refuse((*place, "at"), f"steps below {steps}, which {name} is trained for")


def _check_objectives(check: Checker, parts: Mapping[str, Any], family: Family, search: Search) -> None:
    place = (*PLACE, "objective")
    table, groups = family.tasks(parts["data"]), family.groups(parts["data"])
    of_dev = {name: task for name, task in table.items() if is_dev(name)}
    of_test = {} if parts["evaluate"] is WRONG else {task.name: task for task in named(table, parts["evaluate"])}
    known, tested = metric_names(of_dev.values()), metric_names(of_test.values())
    single = isinstance(search.objective, Objective)
    if not search.objectives:
        check.refuse(place, "at least one objective")
    check.different(place, [objective.metric for objective in search.objectives])
    for index, objective in enumerate(search.objectives):
        here = place if single else (*place, index)
        if is_each(objective.metric) or is_each(objective.confirmed):
            check.refuse((*here, "metric"), "one figure, or their mean(…)")
            continue
        chosen = figures_at(check, (*here, "metric"), objective.metric, of_dev, groups, of_dev)
        if chosen is None:
            continue
        parts["figures"][objective.metric] = chosen
        known[objective.metric] = known[chosen[0]]
        if tested and FORM.fullmatch(objective.confirmed):
            place_of = (*here, "confirm" if objective.confirm else "metric")
            confirmed = figures_at(check, place_of, objective.confirmed, of_test, groups, {})
            if confirmed is None:
                continue
            parts["figures"][objective.confirmed] = confirmed
            tested[objective.confirmed] = tested[confirmed[0]]
        if objective.mode != ("max" if known[objective.metric] else "min"):
            better = "larger" if known[objective.metric] else "smaller"
            check.refuse((*here, "mode"), f"{'max' if known[objective.metric] else 'min'}: {better} is better")
        if tested and objective.confirmed not in tested:
            check.refuse(
                (*here, "confirm" if objective.confirm else "metric"),
                f"one that `evaluate` measures on test data, or with `confirm` set to such: {', '.join(tested)}",
            )
        elif tested and tested[objective.confirmed] != known[objective.metric]:
            better = "larger" if known[objective.metric] else "smaller"
            check.refuse((*here, "confirm"), f"one that is better when {better}, as {objective.metric} is")
    if search.race and len(search.objectives) > 1:
        check.refuse((*PLACE, "race"), "0 or absent with several objectives: points are not raced against a front")


def _check_arms(check: Checker, arms: Any, search: Search) -> None:
    if not search.arms:
        check.refuse((*PLACE, "arms"), "at least one trained arm")
    check.different((*PLACE, "arms"), search.arms)
    if arms is WRONG:
        return
    for index in range(len(search.arms)):
        check.name((*PLACE, "arms", index), [name for name, made in arms.items() if made is WRONG or made.train])


def _check_space(check: Checker, arms: Any, space: Space, search: Search, listed: Sequence[str]) -> None:
    """Does something move around every arm that is listed, and does every arm lie in what moves?"""
    if arms is WRONG or any(arms[name] is WRONG for name in search.arms):
        return
    place = (*PLACE, "dimensions")
    if search.dimensions == "paper" and not any(one.paper for one in space):
        check.refuse(place, "a mapping, or absent: no grid of a paper is known here")
        return
    of_name = {dimension.name: dimension for dimension in space}
    narrow: dict[str, Dimension] = {}
    for name, wanted in _wanted(search, space).items():
        try:
            if name in of_name:
                narrow[name] = narrowed(of_name[name], wanted)
            else:
                check.refuse((*place, name), names_accepted(name, list(of_name)))
        except ValueError as error:
            numbers = name in of_name and not any(isinstance(one, str) for one in of_name[name].choices)
            check.refuse((*place, name), str(error) + (check.read_as_text((*place, name)) if numbers else ""))
    left = tuple(narrow[name] for name in of_name if name in narrow)
    for name in search.arms:
        moving = tuple(one for one in left if _may_move(one, left, arms[name]))
        if not moving and name in listed:
            check.refuse(place, f"at least one setting that matters for {name}")
        _check_arm_inside(check, name, arms[name], moving)
    for dimension in left if isinstance(search.dimensions, Mapping) else ():
        if not any(_may_move(dimension, left, arms[name]) for name in search.arms):
            needs = ", ".join(f"{name} = {' or '.join(map(str, among))}" for name, among in dimension.when.items())
            check.refuse(
                (*place, dimension.name), f"only with {needs}", says="changes nothing in the arms searched"
            )
    if search.sampler == "grid" and (ranges := [one.name for one in left if not one.choices]):
        check.refuse(
            (*PLACE, "sampler"), f"tpe, random, or grid with a list of values for each of {', '.join(ranges)}"
        )


def _check_arm_inside(check: Checker, name: str, settings: Any, space: Space) -> None:
    for dimension in space:
        value = flat(settings)[dimension.name]
        if moves(dimension, settings, {}) and not dimension.holds(value):
            check.refuse(
                (*PLACE, "dimensions", dimension.name),
                f"bounds or values that hold {value}, where arms.{name} is: a search starts there",
            )
