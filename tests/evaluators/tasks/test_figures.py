"""What a metric of a study stands for, and the means over STS sets that are tasks of their own."""

from __future__ import annotations

import math

import numpy as np
import pytest

from corpora.benchmarks.pairs import Pairs
from evaluators.tasks import suite
from evaluators.tasks.figures import mean_of, members
from evaluators.tasks.sts_averages import AVERAGES

TABLE = suite.tasks(None)


@pytest.mark.parametrize(
    ("metric", "figures"),
    [
        ("sts/STS12/MSRpar/spearman", ("sts/STS12/MSRpar/spearman",)),
        ("mean(senteval/MR, sts/STS13)", ("senteval/MR/accuracy", "sts/STS13/spearman")),
        ("each(senteval/MRPC/f1,senteval/MRPC)", ("senteval/MRPC/f1", "senteval/MRPC/accuracy")),
        ("mean(sts)", tuple(f"sts/{name}/spearman" for name in AVERAGES["sts/avg"])),
    ],
)
def test_a_task_or_a_group_stands_for_headlines(metric: str, figures: tuple[str, ...]) -> None:
    assert members(metric, TABLE, suite.GROUPS) == figures


@pytest.mark.parametrize(
    ("metric", "said"),
    [
        ("mean(sts/STS12)", "two figures or more, each once"),
        ("mean(sts/STS12, sts/STS13, sts/STS12/spearman)", "two figures or more, each once"),
        ("mean(sts/STS12, geometry/STS-B/alignment)", "all better when larger, or all when smaller"),
    ],
)
def test_figures_that_form_no_mean_are_refused(metric: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        members(metric, TABLE, suite.GROUPS)


def test_a_mean_without_one_of_its_figures_is_none() -> None:
    values = {"a": 0.25, "b": 0.75}
    assert mean_of(values, ("a", "b")) == 0.5
    assert mean_of(values, ("b",)) == 0.75
    assert math.isnan(mean_of(values, ("a", "c")))


@pytest.mark.parametrize("name", AVERAGES)
def test_an_average_of_sets_is_the_mean_of_their_figures(name: str) -> None:
    """The headline of each set counts once, however many pairs or subsets it has; without the pairs of STS-B's
    other parts where the name says so."""
    rng = np.random.default_rng(5)

    def pairs(rows: int) -> Pairs:
        ids = tuple(map(str, range(rows)))
        a, b = (tuple(f"{side} {draw}" for draw in rng.integers(10**9, size=rows)) for side in "ab")
        return Pairs(ids, a, b, rng.uniform(0, 5, rows))

    end = "/dedup" if name.endswith("_dedup") else ""
    sets = {
        f"sts/{published}{end}": {f"part {at}": pairs(4 + at) for at in range(2)} for published in AVERAGES[name]
    }

    def encode(texts):
        return np.stack([np.random.default_rng(int(text.split()[1])).standard_normal(4) for text in texts])

    (score,) = TABLE[name].score(sets, encode)
    headlines = [
        one.value
        for task, rows in sets.items()
        for one in TABLE[task].score(rows, encode)
        if one.metric == f"{task}/spearman"
    ]
    assert len(headlines) == (5 if "avg5" in name else 7)
    assert (score.metric, score.value) == (name, pytest.approx(sum(headlines) / len(headlines)))
