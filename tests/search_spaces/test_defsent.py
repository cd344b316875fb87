"""Only what an arm reads moves in a search."""

from __future__ import annotations

from typing import Any

import pytest

from search_spaces.defsent import SPACE
from search_spaces.space import moves
from trainers.defsent.settings import Settings, defining


@pytest.mark.parametrize(
    ("given", "still"),
    [
        ({}, set()),
        ({"learning_rate": 2e-5}, {"lr_exponent"}),
        ({"objective": "inference"}, {"freeze", "order"}),
        ({"steps": 40}, {"epochs"}),
        (
            {"objective": "inference", "matched_budget": True, "learning_rate": 2e-5},
            {"lr_exponent", "freeze", "order", "epochs"},
        ),
    ],
)
def test_what_an_arm_does_not_read_does_not_move(given: dict[str, Any], still: set[str]) -> None:
    arm = Settings(**given)
    assert {one.name for one in SPACE if not moves(one, arm, {})} == still
    kept = {"order"} if arm.objective == "inference" else set()  # in its id, where it has one value alone
    assert still == {one.name for one in SPACE} - (defining(arm).keys() - kept)
