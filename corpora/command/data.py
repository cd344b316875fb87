"""The `data:` block of a study whose arms are commands."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

# how a metric's rows become one figure: their mean (more or less is better), or a comparison with gold
Reading = Literal["higher", "lower", "spearman", "pearson", "auc", "balanced_accuracy", "f1"]
SIGNS = "A-Za-z0-9@_.+-"  # of a name, as in a character class
PART = f"[A-Za-z0-9][{SIGNS}]{{0,199}}"  # a ledger takes no longer ones
NAME = re.compile(f"{PART}(/{PART})*")
NAMES = (
    "names of letters, digits and @_.+-, or several joined by /, that begin with a letter or a digit, "
    "each of at most 200 characters"
)


@dataclass(frozen=True, kw_only=True)
class CommandData:
    """The files and the metrics of every arm's script. ValueError names a field that is refused.

    watch: files and folders, relative to where semray is started, whose content is part of every run's id: the
    script, its own modules and its data. metrics: the metrics of the scores file, and how their rows are read.
    path: a folder to search for benchmarks before $SEMRAY_DATA.
    """

    watch: Annotated[tuple[str, ...], "a list of files and folders, such as [train.py, configs]"] = ()
    metrics: Annotated[
        Mapping[str, Reading],
        "a mapping of names to higher or lower, where rows are averaged, or to spearman, pearson, auc, "
        "balanced_accuracy or f1, where they are held against gold; such as {accuracy: higher}",
    ] = field(default_factory=dict)
    path: str | None = None  # a place, no choice

    def __post_init__(self) -> None:
        for name in self.metrics:
            if not NAME.fullmatch(name):
                raise ValueError(f"metrics: {NAMES}; not {name!r}")
