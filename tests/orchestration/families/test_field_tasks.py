"""Published sets belong to no family: whoever reads what a task asks for may be measured on it."""

from __future__ import annotations

import pytest

from evaluators.tasks import suite
from orchestration.families.registry import FAMILIES, family

OF_THE_FIELD = suite.tasks(None)
ENCODERS = sorted(name for name in FAMILIES if name not in ("difficulty", "scored_elsewhere"))


def test_the_field_asks_for_texts_or_words_in_their_sentences() -> None:
    asked = {task.reads for task in OF_THE_FIELD.values()}
    assert asked == {"texts", "occurrences"}
    every = OF_THE_FIELD.keys()
    assert {"sts/avg", "rerank/SciDocsRR", "wic", "lscd/en", "cosimlex/en", "np", "distortion"} <= every


@pytest.mark.parametrize("name", ENCODERS)
def test_every_family_of_encoders_offers_them_all(name: str) -> None:
    of = family(name)
    assert OF_THE_FIELD.keys() <= of.tasks(of.data()).keys()


def test_what_corrects_cosines_offers_what_reads_pairs_alone() -> None:
    of = family("difficulty")
    assert {task.reads for task in of.tasks(of.data()).values()} == {"predictions"}
