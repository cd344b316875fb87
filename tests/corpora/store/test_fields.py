"""A field says what it accepts, and refuses the rest with its name, its value and those words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from annotated_types import Ge, Gt, Le, Lt

from corpora.store.fields import Count, Positive, accepts, check_fields, words

SHARE = Annotated[float, Ge(0), Lt(1)]
CASES: list[tuple[Any, list[Any], list[Any], str]] = [
    (Count, [1, 7], [0, -1], "a whole number from 1"),
    (Positive, [1e-9, 2], [0.0, -1.0, float("nan")], "a number above 0"),
    (SHARE, [0, 0.99], [1.0, -0.1], "a number from 0 below 1"),
    (Annotated[int, Gt(0), Le(3)], [1, 3], [0, 4], "a whole number above 0 up to 3"),
    (Positive | None, [None, 1.0], [0.0], "a number above 0 or null"),
    (Count | Literal["full"], [3, "full"], [0], "a whole number from 1 or full"),
    (Literal["a", "b"], ["a"], ["c"], "a, b"),
    (tuple[Count, ...], [(), (1, 2)], [(1, 0)], "a list of whole numbers from 1"),
    (str, ["", "anything"], [], "text"),
    (bool, [True, False], [], "true or false"),
]


@pytest.mark.parametrize(("kind", "good", "bad", "said"), CASES)
def test_what_is_accepted(kind: Any, good: list[Any], bad: list[Any], said: str) -> None:
    assert all(accepts(kind, value) for value in good)
    assert not any(accepts(kind, value) for value in bad)
    assert words(kind) == said


@dataclass(frozen=True, kw_only=True)
class Block:
    steps: Count = 3
    mode: Literal["slow", "fast"] = "slow"
    rate: Positive | None = None

    def __post_init__(self) -> None:
        check_fields(self, "train")


def test_every_wrong_field_is_named() -> None:
    Block(steps=1, mode="fast", rate=0.1)
    with pytest.raises(ValueError, match=r"train\.steps = 0\n  accepted: a whole number from 1") as told:
        Block(steps=0, mode="faster", rate=-1.0)  # type: ignore[arg-type]
    assert "train.mode = 'faster'\n  accepted: slow, fast" in str(told.value)
    assert "train.rate = -1.0\n  accepted: a number above 0 or null" in str(told.value)
