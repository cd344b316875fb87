"""Values of a study that are warned of: numbers of texts at a time that divide nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestration.plan.slips import slips
from orchestration.reading.read_study import read_study

STUDY = """\
question: Is this meant?
family: {family}
backbones: [small]
data: {data}
train: {{batch_size: 16, micro_batch: {asked}}}
arms: {{{arms}, none: {{train: false}}, plain: {{micro_batch: null}}}}
evaluate: [sts]
resources: {{workers_per_run: {workers}}}
"""


def told(place: Path, family: str, arms: str, asked: str, *, data: str = "{}", workers: int = 1) -> list[str]:
    path = place / "slips.yaml"
    path.write_text(STUDY.format(family=family, arms=arms, asked=asked, data=data, workers=workers))
    return slips(read_study(path))


@pytest.mark.parametrize(
    ("family", "arm", "most"),
    [
        ("concept", "{}", 96),  # left and right of three views
        ("concept", "{syn_weight: 0}", 64),
        ("concept", "{hard_negatives: true, negatives_per_definition: 8}", 128),  # read after the pairs
        ("cale", "{}", 32),
        ("san", "{}", 32),
        ("san", "{host: simcse_sup}", 48),
        ("san", "{p2_of: second_view}", 16),  # at a rate of its own, after the first
    ],
)
def test_a_micro_batch_that_divides_nothing_is_told(tmp_path: Path, family: str, arm: str, most: int) -> None:
    assert told(tmp_path, family, f"A: {arm}", str(most - 1)) == []
    other = arm.replace("}", ", clip_norm: 0.5}").replace("{, ", "{")
    (line,) = told(tmp_path, family, f"A: {arm}, B: {other}", str(most))
    assert line.startswith(f"A, B: micro_batch = {most} divides no step: at most {most} texts pass at once")


def test_each_worker_divides_its_own_texts(tmp_path: Path) -> None:
    (line,) = told(tmp_path, "cale", "A: {}", "16", workers=2)
    assert "at most 16 texts of a worker pass at once" in line
    assert told(tmp_path, "cale", "A: {}", "15", workers=2) == []


def test_nothing_is_told_where_rows_decide_or_the_card_does(tmp_path: Path) -> None:
    assert told(tmp_path, "concept", "A: {hard_negatives: true}", "1000") == []
    assert told(tmp_path, "cale", "A: {}", "auto") == []
