"""The paper's grid lies inside the family's space, and the shipped search is over it."""

from __future__ import annotations

from pathlib import Path

import yaml

from search_spaces.san import PAPER, SPACE
from search_spaces.space import narrowed

STUDY = Path(__file__).resolve().parents[2] / "studies" / "san_search.yaml"


def test_the_papers_grid_lies_inside() -> None:
    space = {one.name: one for one in SPACE}
    for name, values in PAPER.items():
        assert narrowed(space[name], list(values)).choices == tuple(values)


def test_the_shipped_search_is_over_it() -> None:
    given = yaml.safe_load(STUDY.read_text())["search"]["dimensions"]
    assert {name: given[name] for name in ("tau2", "p2", "negatives")} == {
        name: values for name, values in PAPER.items() if name != "san_mle"
    }
