"""Every point of the space is an arm that can be built, and only what matters moves."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest

from search_spaces.difficulty import SPACE
from search_spaces.space import Space, around, drawn, moves, settings_at
from trainers.difficulty.settings import FORMS, Settings, defining
from trainers.difficulty.stack import layout_of

WIDTH = 384
TRAINED = [
    form for form in FORMS if Settings(form=form, matched_to="pair_lex" if "matched" in form else None).train
]


def arm(form: str) -> Settings:
    return Settings(form=form, matched_to="pair_lex" if form == "pair_ungated_matched" else None)


def ends(space: Space, name: str) -> tuple[Any, ...]:
    (found,) = (dimension for dimension in space if dimension.name == name)
    return found.choices or (found.low, found.high)


@pytest.mark.parametrize("form", TRAINED)
def test_every_corner_can_be_built(form: str) -> None:
    """Ends of ranges, and for each choice every value, with each of the two starts."""
    space = around(SPACE, arm(form))
    for name, init in itertools.product((dimension.name for dimension in space), ("linear", "identity")):
        for value in ends(space, name):
            at = {"init": init, name: value}
            point = drawn(space, arm(form), lambda one, at=at: at.get(one.name, getattr(arm(form), one.name)))
            assert layout_of(settings_at(space, arm(form), point), WIDTH).size > 0


def test_a_blend_takes_no_more_than_all_of_the_adapted_vector() -> None:
    """(1 - γ) of the frozen vector and γ of the adapted one; what is added to a whole one may be more."""
    assert ends(around(SPACE, arm("interp_fixed")), "gamma") == (0.02, 1.0)
    for other in (arm("pair_lex"), replace(arm("interp_fixed"), interp_form="residual")):
        assert ends(around(SPACE, other), "gamma") == (0.02, 2.0)
    (gamma,) = (one for one in SPACE if one.name == "gamma")
    listed = replace(gamma, low=None, high=None, log=False, choices=(0.25, 1.0, 2.0))
    assert ends(around((listed,), arm("interp_fixed")), "gamma") == (0.25, 1.0)
    assert ends(around((replace(gamma, low=1.0),), arm("interp_fixed")), "gamma") == (1.0,)


@pytest.mark.parametrize("form", TRAINED)
def test_what_moves_is_what_can_change_the_arm(form: str) -> None:
    moving = {dimension.name for dimension in SPACE if moves(dimension, arm(form), {})}
    known = {dimension.name for dimension in SPACE}
    assert moving == known & set(defining(arm(form)))


def test_the_identity_has_full_width() -> None:
    point = {name: getattr(arm("pair_lex"), name) for name in ("gamma", "lambda_rank", "lambda_hard")}
    made = settings_at(SPACE, arm("pair_lex"), {**point, "init": "identity"})
    assert made.sizes(WIDTH) == (WIDTH, 64)
    with pytest.raises(ValueError, match="d_h: accepted with these settings: gamma"):
        settings_at(SPACE, arm("pair_lex"), {"init": "identity", "d_h": 64})
    with pytest.raises(ValueError, match="alpha0: accepted with these settings: gamma"):
        settings_at(SPACE, arm("pair_lex"), {"alpha0": 0.5})
