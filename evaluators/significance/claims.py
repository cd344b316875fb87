"""A claim as a study declares it under `compare`, and the checks of its fields.

ValueErrors begin with the field and continue with what would be accepted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any, Literal

from annotated_types import Ge, MinLen, Predicate

from corpora.store.fields import NAME, Name, Positive, Text, check_fields, is_name
from evaluators.significance.expect import Expect
from evaluators.tasks.figures import is_each

ClaimName = Annotated[str, Predicate(is_name), f"a name for the claim, such as H1; {NAME}"]
Arm = Annotated[str, MinLen(1), "the name of an arm"]
Metric = Annotated[str, MinLen(1), "the name of a metric that `evaluate` yields"]
Group = Annotated[
    str, Predicate(is_name), f"a name for the claims that are corrected together, such as ranking; {NAME}"
]
Scope = Literal["task", "test_set"]


@dataclass(frozen=True, kw_only=True)
class ClaimSide:
    """One side of a claim: an arm, or its gain over another arm (`over`), possibly on a backbone of its own."""

    arm: Arm
    backbone: Text | None = None
    over: Arm | None = None

    def __post_init__(self) -> None:
        if self.over == self.arm:
            raise ValueError(f"over: another arm than {self.arm}, over which it gains")

    def __str__(self) -> str:
        gain = f"({self.arm} - {self.over})" if self.over else self.arm
        return f"{gain} on {self.backbone}" if self.backbone else gain

    @property
    def arms(self) -> tuple[str, ...]:
        return (self.arm,) if self.over is None else (self.arm, self.over)


Treatment = Annotated[Arm | ClaimSide, "the name of an arm, or {arm: …, backbone: …, over: …}"]
Control = Annotated[
    Arm | ClaimSide | tuple[Arm, ...], "the name of an arm, {arm: …, backbone: …, over: …}, or a list of arms"
]


@dataclass(frozen=True, kw_only=True)
class Claim:
    """Treatment against control on a metric, paired by seed, on each backbone of the study or on the one named.

    "worse" is the same two-sided test as "better"; only what counts as expected differs. margin: the largest
    difference, in the metric's unit, that counts as none. min_effect: the smallest worth reporting. scope: does
    the claim hold for the task its items were drawn from, or for these items only? matched_control: the arm in
    which only `signal` is destroyed; the gain is due to the signal when the treatment beats that arm too.
    at_least: on how many of the tasks of `each(…)` it must hold; None: on all. family: the group of claims that it
    is corrected with; None: all that name none. claim: its name, which no id or result depends on.
    """

    claim: ClaimName
    treatment: Treatment
    control: Control
    metric: Metric
    expect: Expect
    margin: Positive | None = None
    min_effect: Positive | None = None
    scope: Scope = "task"
    matched_control: Arm | None = None
    signal: Name | None = None
    at_least: Annotated[int, Ge(1)] | None = None
    backbone: Text | None = None
    family: Group | None = None

    def __post_init__(self) -> None:
        check_fields(self, f"claim {self.claim}")
        if self.expect in ("equivalent", "not_worse") and self.margin is None:
            raise ValueError(f"margin: with expect {self.expect}, the largest difference that counts as none")
        if self.signal is not None and self.matched_control is None:
            raise ValueError(
                "matched_control: the arm in which only the signal is destroyed, since `signal` is given"
            )
        if self.matched_control is not None and self.signal is None:
            raise ValueError("signal: what the matched control lacks, in words")
        if self.matched_control is not None and self.expect != "better":
            raise ValueError("expect: better, since a matched control asks what a gain is due to")
        self._check_sides()
        if self.at_least is not None and not is_each(self.metric):
            raise ValueError("at_least: absent, or on how many tasks of `metric: each(…)` the claim must hold")
        if self.at_least is not None and isinstance(self.control, tuple):
            raise ValueError("at_least: absent with several controls, each of which must be beaten")

    def _check_sides(self) -> None:
        if isinstance(self.control, tuple):
            if len(self.control) < 2 or len(set(self.control)) < len(self.control):
                raise ValueError("control: one arm, or a list of several, each once")
            controls = [ClaimSide(arm=arm) for arm in self.control]
        else:
            controls = [_side(self.control)]
        treatment = _side(self.treatment)
        for control in controls:
            if (control.backbone is None) != (treatment.backbone is None):
                raise ValueError("control: a backbone on both sides, {arm: …, backbone: …}, or on neither")
            if (control.over is None) != (treatment.over is None):
                raise ValueError(
                    "control: a gain over another arm on both sides, {arm: …, over: …}, or on neither"
                )
            if control == treatment:
                other = ", or another backbone" if treatment.backbone else ""
                raise ValueError(f"control: another arm than treatment{other}")
        if treatment.backbone is not None and self.backbone is not None:
            raise ValueError("backbone: absent where the sides name theirs")
        if self.matched_control is not None and (len(controls) > 1 or treatment != ClaimSide(arm=treatment.arm)):
            raise ValueError("matched_control: absent unless treatment and control are one arm each")

    @property
    def sides(self) -> dict[str, ClaimSide]:
        """Role -> side, with its own backbone or the claim's. Only for a claim with a single control."""
        assert not isinstance(self.control, tuple)
        roles = {"treatment": _side(self.treatment), "control": _side(self.control)}
        if self.matched_control is not None:
            roles["matched_control"] = ClaimSide(arm=self.matched_control)
        return {role: replace(side, backbone=side.backbone or self.backbone) for role, side in roles.items()}

    @property
    def arms(self) -> tuple[str, ...]:
        """Every arm of the claim, treatments first, then controls."""
        controls = self.control if isinstance(self.control, tuple) else _side(self.control).arms
        matched = () if self.matched_control is None else (self.matched_control,)
        return (*_side(self.treatment).arms, *controls, *matched)

    def each(self, backbones: Iterable[str]) -> list[Claim]:
        """The claims to judge: itself if it names backbones, else one for each of these backbones."""
        if self.backbone or _side(self.treatment).backbone:
            return [self]
        return [replace(self, backbone=backbone) for backbone in backbones]

    def resolved(self, figures: Mapping[str, tuple[str, ...]]) -> Claim | Joint:
        """The claim itself, or a joint claim with a part for each control and task.

        figures: an `each(…)` metric -> the metrics that it stands for.
        """
        controls = self.control if isinstance(self.control, tuple) else (self.control,)
        metrics = figures[self.metric] if is_each(self.metric) else (self.metric,)
        pairs = [(control, metric) for control in controls for metric in metrics]
        if len(pairs) == 1:
            return replace(self, control=controls[0], metric=metrics[0], at_least=None)
        parts = [
            replace(self, claim=f"{self.claim}.{k}", control=control, metric=metric, at_least=None)
            for k, (control, metric) in enumerate(pairs, 1)
        ]
        return Joint(claim=self.claim, all=tuple(parts), at_least=self.at_least, family=self.family)

    def renamed(self, names: Mapping[str, str]) -> Claim:
        """The same of arms that are called otherwise."""

        def of(side: Any) -> Any:
            if isinstance(side, ClaimSide):
                return replace(side, arm=of(side.arm), over=of(side.over))
            return tuple(map(of, side)) if isinstance(side, tuple) else names.get(side, side)

        sides = {role: of(getattr(self, role)) for role in ("treatment", "control", "matched_control")}
        return replace(self, **sides)

    @property
    def parts(self) -> tuple[Claim, ...]:
        return (self,)

    @property
    def said(self) -> dict[str, Any]:
        """What is written down of it: only what it says, so that new optional fields change no old claim."""
        return _given(asdict(self))

    @property
    def id(self) -> str:
        """What it says, whatever it is called."""
        margins = [f"{name} {getattr(self, name)}" for name in ("margin", "min_effect") if getattr(self, name)]
        due = [f"due to {self.signal}: {self.matched_control}"] if self.signal else []
        parts = (f"{self.treatment} - {self.control}", self.backbone, self.metric, self.expect, *margins, *due)
        return "/".join(part for part in (*parts, "" if self.scope == "task" else self.scope) if part)

    @property
    def scores(self) -> str:
        """Names the scores it rests on and so its random streams; the same when the sides are swapped."""
        sides = sorted((str(self.treatment), str(self.control)))
        return "/".join(part for part in (*sides, self.backbone, self.metric) if part)

    @property
    def nulls(self) -> int:
        """How many of its null hypotheses can be true together.

        No difference and no equivalence exclude each other, no difference implies no signal. But a treatment as
        far above the control as the margin, and no better than the matched control, is neither equivalent nor
        due to the signal.
        """
        return 2 if self.margin is not None and self.matched_control is not None else 1


@dataclass(frozen=True, kw_only=True)
class Joint:
    """Claims that are one: all of them must hold, or at least so many. Corrected as one, judged by one p."""

    claim: ClaimName
    all: Annotated[tuple[Claim, ...], "a list of claims, each as under `compare`"]
    at_least: Annotated[int, Ge(1)] | None = None
    family: Group | None = None

    def __post_init__(self) -> None:
        if len(self.all) < 2:
            raise ValueError("all: two claims or more")
        if self.at_least is not None and self.at_least > len(self.all):
            raise ValueError(f"at_least: 1 to {len(self.all)}, as many as there are parts")
        for part in self.all:
            if part.at_least is not None:
                raise ValueError("all: claims without at_least: all of them must hold")
            if part.family is not None and part.family != self.family:
                raise ValueError("all: claims without a family of their own: they are corrected as one")

    @property
    def least(self) -> int:
        """How many of the parts must hold."""
        return self.at_least or len(self.all)

    @property
    def words(self) -> str:
        """`all of 3`, or `at least 2 of 3`."""
        return f"{'all' if self.least == len(self.all) else f'at least {self.least}'} of {len(self.all)}"

    @property
    def parts(self) -> tuple[Claim, ...]:
        return self.all

    @property
    def arms(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(arm for part in self.all for arm in part.arms))

    @property
    def backbone(self) -> str | None:
        """The backbone of all parts; None if they differ."""
        found = {part.backbone for part in self.all}
        return found.pop() if len(found) == 1 else None

    def each(self, backbones: Iterable[str]) -> list[Joint]:
        """The claims to judge: one for each backbone; only one if every part names its own."""
        columns = {backbone: [part.each([backbone])[0] for part in self.all] for backbone in backbones}
        claims = [replace(self, all=tuple(parts)) for parts in columns.values()]
        return list(dict.fromkeys(claims))

    def resolved(self, figures: Mapping[str, tuple[str, ...]]) -> Joint:
        """The same claim with every part resolved into its own parts."""
        parts = [resolved for part in self.all for resolved in part.resolved(figures).parts]
        return replace(self, all=tuple(parts))

    def renamed(self, names: Mapping[str, str]) -> Joint:
        return replace(self, all=tuple(part.renamed(names) for part in self.all))

    @property
    def said(self) -> dict[str, Any]:
        return _given({**asdict(self), "all": [part.said for part in self.all]})

    @property
    def id(self) -> str:
        """Depends on the content of the parts alone, not on names or order."""
        says = hashlib.sha256("\n".join(sorted(part.id for part in self.all)).encode()).hexdigest()[:16]
        return f"{self.words}/{says}"

    @property
    def nulls(self) -> int:
        """One: "too few parts hold" and "too many fail" can both be true only on the parts' bounds, where each
        uses one side of a two-sided p."""
        return 1


Declared = Claim | Joint


def sides_of(claims: Iterable[Claim]) -> Iterator[tuple[str, str]]:
    """(arm, backbone) of every run that judged claims rest on."""
    for claim in claims:
        for side in claim.sides.values():
            yield from ((arm, str(side.backbone)) for arm in side.arms)


def _side(given: str | ClaimSide) -> ClaimSide:
    return given if isinstance(given, ClaimSide) else ClaimSide(arm=given)


def _given(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that are not None, also within sides."""
    given = {name: _given(value) if isinstance(value, dict) else value for name, value in fields.items()}
    return {name: value for name, value in given.items() if value is not None}
