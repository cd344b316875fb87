"""Reads a script's progress from what it prints: lines such as `step 120/1000 loss 0.53`.

`name value` pairs, joined by a blank, `=` or `:`, may follow the step; `loss` is the curve's.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from trainers.engine.world import Progress

STEP = re.compile(r"\bstep[ =:]+(\d{1,12})\s*/\s*(\d{1,12})\b(.*)", re.IGNORECASE)
NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
PAIR = re.compile(rf"([A-Za-z_][\w/.@-]{{0,60}})\s*[ =:]\s*({NUMBER})(?![\w.]|,\d)")  # 1,2 is no 1


def progress_of(line: str) -> Progress | None:
    """The progress that a line reports, or None. The loss is nan if the line has none."""
    found = STEP.search(line)
    if found is None:
        return None
    pairs = {name.lower(): float(value) for name, value in PAIR.findall(found[3])}
    figures = {name: value for name, value in pairs.items() if math.isfinite(value)}
    loss = figures.pop("loss", math.nan)
    return Progress(step=int(found[1]), steps=int(found[2]), loss=loss, figures=figures)


def curve_of(lines: Iterable[str]) -> list[Progress]:
    """One point for each step with a loss, by its last line: a script that resumes prints some steps twice."""
    points = map(progress_of, lines)
    by_step = {point.step: point for point in points if point is not None and not math.isnan(point.loss)}
    return [by_step[step] for step in sorted(by_step)]
