"""Every point of the space is an arm that can be built, and only what matters moves."""

import itertools

import pytest

from search_spaces.difficulty import SPACE, Choice, settings_at, space_of
from trainers.difficulty import FORMS, Settings
from trainers.difficulty_stack import layout_of

WIDTH = 384


def arm(form: str) -> Settings:
    return Settings(form=form, matched_to="pair_lex" if form == "pair_ungated_matched" else None)


@pytest.mark.parametrize("form", [form for form in FORMS if arm(form).train])
def test_every_corner_can_be_built(form: str) -> None:
    """Ends of ranges, and for each choice every value, with each of the two starts."""
    space = space_of(arm(form))
    ends = {n: move.values if isinstance(move, Choice) else (move.low, move.high) for n, move in space.items()}
    for name, init in itertools.product(ends, ("linear", "identity")):
        for value in ends[name]:
            made = settings_at(arm(form), {"init": init, name: value})
            assert layout_of(made, WIDTH).size > 0


def test_only_what_can_change_the_arm_moves() -> None:
    assert space_of(arm("baseline")) == {}
    assert "ce_map" in space_of(arm("pair_judge"))
    assert "ce_map" not in space_of(arm("pair_lex"))
    assert "alpha0" not in space_of(arm("pair_lex"))
    assert "gamma" not in space_of(arm("complexity"))
    assert "lambda_hard" not in space_of(arm("pair_gate_free"))
    assert set(SPACE) == set().union(*(space_of(arm(form)) for form in FORMS))


def test_the_identity_has_full_width() -> None:
    made = settings_at(arm("pair_lex"), {"init": "identity", "d_h": 64})
    assert made.sizes(WIDTH) == (WIDTH, 64)
    with pytest.raises(ValueError, match="alpha0: accepted for pair_lex: gamma"):
        settings_at(arm("pair_lex"), {"alpha0": 0.5})
