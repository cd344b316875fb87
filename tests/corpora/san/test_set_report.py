"""The figures of a set, on rows counted by hand."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from corpora.san.generate import SCHEMA
from corpora.san.records import BIT
from corpora.san.set_report import SetReport, report, shown


def table(*rows: dict[str, object]) -> pa.Table:
    """Rows of a set; what is not given is that of a sound negative of three tokens."""
    sound = {"text": "a cup", "san": "a jug", "kept": 0.5, "flags": 0, "n_tokens": 3, "n_masked": [1, 1]}
    return pa.Table.from_pylist([sound | row for row in rows], SCHEMA)


def test_figures_of_three_rows_in_two_tables():
    """Of 8 tokens 5 and 3 are masked; word overlaps are 1/3, 1 and 3/5; the authors' flag is none of semray's."""
    found = report([
        table(
            {"text": "a b", "san": "a x", "kept": 0.5, "n_tokens": 2, "n_masked": [1, 0]},
            {"text": "c d", "san": "C d!", "kept": 1.0, "n_tokens": 2, "n_masked": [1, 2], "flags": BIT["identical"]},
        ),
        table({"text": "e f g h", "san": "e f g x", "kept": 0.75, "n_tokens": 4, "n_masked": [3, 1],
               "flags": BIT["authors"]}),
    ])  # fmt: skip
    assert (found.sentences, found.kept, found.masked) == (3, pytest.approx(0.75), (0.625, 0.375))
    assert found.jaccard == pytest.approx((1 / 3 + 1 + 3 / 5) / 3)
    assert found.deciles == (0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)  # between .5, .75 and 1
    assert {name: share for name, share in found.flags.items() if share} == {
        "identical": pytest.approx(1 / 3),
        "authors": pytest.approx(1 / 3),
    }
    assert found.low_quality == pytest.approx(1 / 3)
    assert not found.warning
    assert "masked by iteration 62% 38%\nlow quality 33.3%   (identical 33.3%  authors 33.3%)\n" in shown(found)


@pytest.mark.parametrize(
    ("kept", "warning"),
    [
        (0.25, "0.25 of the words are kept, outside 0.30 to 0.75; word salad"),
        (0.5, ""),
        (0.75, ""),  # a number of binary fractions, as the bound itself
        (0.875, "0.88 of the words are kept, outside 0.30 to 0.75; nearly copies"),
    ],
)
def test_a_share_beyond_what_is_expected_is_told(kept: float, warning: str):
    found = report([table({"kept": kept}, {"kept": kept})])
    assert found.warning.partition(":")[0] == warning
    assert ("\nlook: " in shown(found)) is bool(warning)


def test_samples_are_eight_whatever_the_tables_and_repeats():
    rows = [{"text": f"text {n % 12}", "san": f"negative {n % 12}"} for n in range(24)]

    def of(sizes: tuple[int, ...]) -> SetReport:
        cuts = np.cumsum((0, *sizes))
        return report(table(*rows[a:b]) for a, b in pairwise(cuts))

    one, many = of((24,)), of((5, 1, 18))
    assert one.samples == many.samples
    assert len(set(one.samples)) == 8
    assert all(text.split()[1] == made.split()[1] for text, made in one.samples)
