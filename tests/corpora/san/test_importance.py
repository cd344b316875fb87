"""The masking law, by the paper's table 2."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpora.san.importance import CODE, POS, Masking, read_scores
from corpora.store.errors import CorpusError


def of(*names: str) -> np.ndarray:
    return np.array([CODE[name] for name in names], np.uint8)


def masking(law="importance", scale=20.0) -> Masking:
    return Masking(law, scale, read_scores())


def test_probabilities_of_a_sentence():
    tags = of("DET", "NOUN", "AUX", "VERB", "ADP", "PROPN", "NUM", "PUNCT", "X", "SPECIAL")
    each = masking().probabilities(tags)
    assert each == pytest.approx([0.3, 0.45, 0.2, 0.45, 0.25, 0.4, 0.2, 0.05, 0.05, 0])
    assert each.sum() == pytest.approx(2.35)


@pytest.mark.parametrize(("scale", "noun"), [(10, 0.9), (30, 0.3), (40, 0.225), (5, 1.0)])
def test_scale(scale, noun):
    assert masking(scale=scale).probabilities(of("NOUN")) == pytest.approx([noun])


@given(st.lists(st.sampled_from(POS), min_size=1))
def test_uniform_masks_as_many_and_never_a_special(names):
    tags = of(*names)
    uniform, importance = masking("uniform").probabilities(tags), masking().probabilities(tags)
    assert uniform.sum() == pytest.approx(importance.sum())
    assert len(set(uniform[tags != CODE["SPECIAL"]])) <= 1
    assert not uniform[tags == CODE["SPECIAL"]].any()


def test_content_only():
    assert masking("content_only").probabilities(of("NOUN", "DET", "PROPN", "PRON")) == pytest.approx(
        [0.45, 0, 0.4, 0]
    )


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda text: text.replace("NOUN: 9", ""), "lacks NOUN"),
        (lambda text: text + "NUON: 9", "has NUON"),
        (lambda text: text.replace("NOUN: 9", "NOUN: nine"), "NOUN = 'nine'"),
        (lambda text: text.replace("NOUN: 9", "NOUN: -1"), "NOUN = -1"),
        (lambda text: "- NOUN", "lacks NOUN"),
    ],
)
def test_a_wrong_table(tmp_path, change, says):
    from corpora.san.importance import TABLE

    (tmp_path / "table.yaml").write_text(change(TABLE.read_text()))
    with pytest.raises(CorpusError, match=says):
        read_scores(tmp_path / "table.yaml")
