"""The paper's grid lies inside the family's space, and the shipped search is over it."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestration.families.registry import family
from orchestration.reading.read_search import space_of
from orchestration.reading.read_study import read_study
from orchestration.study.errors import StudyError
from search_spaces.san import SCALES, SPACE
from search_spaces.space import narrowed

STUDY = Path(__file__).resolve().parents[2] / "studies" / "san_search.yaml"
PAPER = {  # figure 3, table 7, and appendix C
    "tau2": (0.05, 0.06, 0.07, 0.08, 0.09, 0.1),
    "p2": (0.1, 0.15, 0.2),
    "negatives": SCALES,
    "san_mle": (0.1, 0.15, 0.2),
}


def test_the_papers_grid_is_a_preset() -> None:
    assert {one.name: narrowed(one, "paper").choices for one in SPACE if one.paper} == PAPER


def test_the_shipped_search_is_over_it_and_matches_the_control() -> None:
    study = read_study(STUDY)
    assert study.search is not None
    assert (study.search.arms, study.search.match_control) == (("simcse+san", "simcse"), True)
    moved = {one.name: one.choices for one in space_of(study.search, family("san"), study.arms["simcse+san"])}
    assert {name: moved[name] for name in ("tau2", "p2", "negatives")} == {
        name: values for name, values in PAPER.items() if name != "san_mle"
    }


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("claim: tuned", "claim: [tuned]"),
        ("claim: tuned, treatment: simcse+san", "claim: tuned, treatment: simcse+sam"),
        ("metric: mean(sts-dedup), expect", "metric: mean(sts-dedupe), expect"),
        ("expect: better", "expected: better"),
    ],
)
def test_a_mistake_in_a_claim_is_said_where_controls_are_matched(tmp_path: Path, old: str, new: str) -> None:
    text = STUDY.read_text()
    assert old in text
    (tmp_path / "wrong.yaml").write_text(text.replace(old, new))
    with pytest.raises(StudyError, match=r"compare\["):
        read_study(tmp_path / "wrong.yaml")
