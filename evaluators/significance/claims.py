"""A claim as a study declares it: what may be written under `compare`, and what goes together.

A ValueError begins with the field it is about and goes on with what would be accepted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any, Literal

from annotated_types import MinLen, Predicate

from corpora.store.fields import NAME, Name, Positive, Text, check_fields, is_name

ClaimName = Annotated[str, Predicate(is_name), f"a name for the claim, such as H1; {NAME}"]
Arm = Annotated[str, MinLen(1), "the name of an arm"]
Metric = Annotated[str, MinLen(1), "the name of a metric that `evaluate` yields"]
Group = Annotated[
    str, Predicate(is_name), f"a name for the claims that are corrected together, such as ranking; {NAME}"
]
Expect = Literal["better", "worse", "equivalent", "not_worse"]
Scope = Literal["task", "test_set"]


@dataclass(frozen=True, kw_only=True)
class Claim:
    """Treatment against control on a metric, paired by seed, on each backbone of the study or on the one named.

    "worse" is the same two-sided test as "better"; only what counts as expected differs. margin: the largest
    difference, in the metric's unit, that counts as none. min_effect: the smallest worth reporting. scope: does
    the claim hold for the task its items were drawn from, or for these items only? matched_control: the arm in
    which only `signal` is destroyed; the gain is due to the signal when the treatment beats that arm too. family:
    the group of claims that it is corrected with; None: all that name none. claim is what it is called; nothing
    rests on that.
    """

    claim: ClaimName
    treatment: Arm
    control: Arm
    metric: Metric
    expect: Expect
    margin: Positive | None = None
    min_effect: Positive | None = None
    scope: Scope = "task"
    matched_control: Arm | None = None
    signal: Name | None = None
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

    def each(self, backbones: Iterable[str]) -> list[Claim]:
        """The claims that are judged: on the backbone it names, else on each of these."""
        return [self] if self.backbone else [replace(self, backbone=one) for one in backbones]

    @property
    def arms(self) -> dict[str, str]:
        """Each role that an arm plays in it."""
        roles = {"treatment": self.treatment, "control": self.control}
        return roles if self.matched_control is None else roles | {"matched_control": self.matched_control}

    @property
    def said(self) -> dict[str, Any]:
        """What is written down of it: only what it says, so that new optional fields change no old claim."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @property
    def id(self) -> str:
        """What it says, whatever it is called."""
        margins = [f"{name} {getattr(self, name)}" for name in ("margin", "min_effect") if getattr(self, name)]
        due = [f"due to {self.signal}: {self.matched_control}"] if self.signal else []
        parts = (f"{self.treatment} - {self.control}", self.backbone, self.metric, self.expect, *margins, *due)
        return "/".join(part for part in (*parts, "" if self.scope == "task" else self.scope) if part)

    @property
    def scores(self) -> str:
        """Names the scores it rests on and so its random streams; the same when the arms are swapped."""
        arms = sorted((self.treatment, self.control))
        return "/".join(part for part in (*arms, self.backbone, self.metric) if part)

    @property
    def nulls(self) -> int:
        """How many of its null hypotheses can be true together.

        No difference and no equivalence exclude each other, no difference implies no signal. But a treatment as
        far above the control as the margin, and no better than the matched control, is neither equivalent nor
        due to the signal.
        """
        return 2 if self.margin is not None and self.matched_control is not None else 1
