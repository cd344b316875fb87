"""Which lines of a script's output are its progress."""

from __future__ import annotations

import math

import pytest

from trainers.command.progress import curve_of, progress_of


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("step 120/1000 loss 0.53", (120, 1000, 0.53, {})),
        ("[INFO] Step: 3 / 9  loss=1.5e-3 lr: 2e-5", (3, 9, 1.5e-3, {"lr": 2e-5})),
        ("step 1/2", (1, 2, math.nan, {})),
        ("step 1/4 loss .5 acc 1,2", (1, 4, 0.5, {})),  # a decimal comma, or thousands: no figure of ours
        ("step 1/4 loss .5,acc 1, f1 2", (1, 4, 0.5, {"acc": 1.0, "f1": 2.0})),
        ("step 1/2 loss nan", (1, 2, math.nan, {})),
    ],
)
def test_lines_that_tell(line: str, found: tuple) -> None:
    progress = progress_of(line)
    assert progress is not None
    assert (progress.step, progress.steps, progress.figures) == (found[0], found[1], found[3])
    assert progress.loss == pytest.approx(found[2], nan_ok=True)


@pytest.mark.parametrize("line", ["", "misstep 1/2", "step one of two", "epoch 1/2 loss 3"])
def test_lines_that_do_not(line: str) -> None:
    assert progress_of(line) is None


def test_a_step_that_is_told_twice_counts_as_last_told() -> None:
    """A script that resumed from step 1 did step 2 again; a step without a loss is no point."""
    curve = curve_of(["step 1/3 loss 4", "step 2/3 loss 3", "resuming", "step 2/3 loss 2", "step 3/3"])
    assert [(point.step, point.loss) for point in curve] == [(1, 4.0), (2, 2.0)]
