"""What moves around an arm of the concept family is what its loss reads."""

from __future__ import annotations

from typing import get_args

import pytest

from search_spaces.concept import SPACE
from search_spaces.space import moves, settings_at
from trainers.concept.settings import HardNegativeMode, Settings, defining


@pytest.mark.parametrize("mode", get_args(HardNegativeMode))
def test_a_mode_of_hard_negatives_moves_what_it_reads(mode: str) -> None:
    """A dimension moves if another value of it makes another arm."""
    arm = Settings(hard_negatives=True, hn_mode=mode)
    others = {"hn_margin": 0.4, "hn_coefficient": 1.0, "hn_temperature": 0.1}
    read = {
        name
        for name in others
        if defining(Settings(hard_negatives=True, hn_mode=mode, **{name: others[name]})) != defining(arm)
    }
    assert {one.name for one in SPACE if one.name in others and moves(one, arm, {})} == read


def test_the_weight_of_pairs_across_sources_moves_where_they_are_read() -> None:
    """Its whole range is searched, the paper's .7 within."""
    (weight,) = (one for one in SPACE if one.name == "d2d_weight")
    assert (weight.low, weight.high, weight.log) == (0.0, 1.0, False)
    assert moves(weight, Settings(), {})
    assert not moves(weight, Settings(rows="ontology"), {})


def test_a_mode_that_moves_takes_its_temperature_along() -> None:
    arm = Settings(hard_negatives=True, hn_mode="unscaled")
    point = {"hn_mode": "relative", "hn_temperature": 0.5}
    made = settings_at(SPACE, arm, point)
    assert (made.hn_mode, made.hn_temperature) == ("relative", 0.5)
    with pytest.raises(ValueError, match="hn_temperature: accepted with these settings: "):
        settings_at(SPACE, arm, {"hn_temperature": 0.5})
