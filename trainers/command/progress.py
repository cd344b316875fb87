"""What a script says of its progress: lines such as `step 120/1000 loss 0.53`, anywhere in what it prints.

After the step any number of `name value` pairs may follow, joined by a blank, `=` or `:`; `loss` is the curve's.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from trainers.engine.world import Progress

STEP = re.compile(r"\bstep[ =:]+(\d{1,12})\s*/\s*(\d{1,12})\b(.*)", re.IGNORECASE)
NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
PAIR = re.compile(rf"([A-Za-z_][\w/.@-]{{0,60}})\s*[ =:]\s*({NUMBER})(?![\w.])")


def progress_of(line: str) -> Progress | None:
    """Where a line says that the script is; None for all other lines. Without a loss that is nan."""
    found = STEP.search(line)
    if found is None:
        return None
    pairs = {name.lower(): float(value) for name, value in PAIR.findall(found[3])}
    figures = {name: value for name, value in pairs.items() if math.isfinite(value)}
    loss = figures.pop("loss", math.nan)
    return Progress(step=int(found[1]), steps=int(found[2]), loss=loss, figures=figures)


def curve_of(lines: Iterable[str]) -> list[Progress]:
    """One point for each step whose loss was told, the last word counting: a script that resumed told some
    twice."""
    told = map(progress_of, lines)
    by_step = {one.step: one for one in told if one is not None and not math.isnan(one.loss)}
    return [by_step[step] for step in sorted(by_step)]
