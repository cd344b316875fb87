"""The search space of the san family, with the grid of the paper (figure 3, tables 6 and 7).

To search only the arm with negatives would be unfair to its control: since p1 is tied, the controls of searched
arms are searched too. Every arm gets the same number of trials, over the dimensions that matter to it; its own
settings, the paper's in the shipped studies, are tried first. Objective to search by: `dev/sts/STS-B/spearman`.
"""

from __future__ import annotations

from search_spaces.space import Dimension, Space

_HINCE = {"san": ("hince",)}
_SAN = {"san": ("hince", "hard")}
_LISTS = {"host": ("rankcse", "rlrd"), **_SAN}
SCALES = ("scale-10", "scale-20", "scale-30", "scale-40")  # names of four prepared sets

SPACE: Space = (
    Dimension(
        name="tau2",
        low=0.04,
        high=0.6,
        log=True,
        when=_HINCE,
        paper=(0.05, 0.06, 0.07, 0.08, 0.09, 0.1),
        source="SAN, figure 3; its scripts reach .5",
    ),
    Dimension(
        name="p2",
        choices=(0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35),
        when=_SAN,
        paper=(0.1, 0.15, 0.2),
        source="SAN, figure 3",
    ),
    Dimension(
        name="p1",
        choices=(None, 0.1, 0.15),
        tied=True,
        source="SAN: the backbone's own, .1; .15 in three of its scripts",
    ),
    Dimension(
        name="negatives", choices=SCALES, when={**_SAN, "column": ("san",)}, paper=SCALES, source="SAN, table 7"
    ),
    Dimension(
        name="san_mle",
        low=0.05,
        high=0.8,
        log=True,
        when=_LISTS,
        paper=(0.1, 0.15, 0.2),
        source="SAN; its scripts reach .4",
    ),
    Dimension(name="tau1", low=0.03, high=0.1, log=True, source="SimCSE: .05"),
    Dimension(name="learning_rate", low=5e-6, high=5e-5, log=True, source="5e-6 to 3e-5 in the scripts"),
    Dimension(name="batch_size", choices=(64, 128, 256, 512), source="64 to 512 in the scripts"),
    Dimension(name="own_weight", low=-1.0, high=2.0, when=_HINCE, source="0 in every script"),
    Dimension(
        name="postprocess",
        choices=("off", "authors", "semray"),
        when={**_SAN, "column": ("san",)},
        source="SAN, table 6: with RankCSE and RLRD",
    ),
)
