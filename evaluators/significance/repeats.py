"""What one published difference is worth: how far a recipe moves between seeds, and what a repeat would show.

Two figures of different papers share no seed, so both move: the noise of their difference is that of one figure
times the root of two. Runs paired by seed need fewer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy import special

from evaluators.significance.power import Noise, seeds_required


@dataclass(frozen=True, kw_only=True)
class Repeat:
    """difference: in the unit of the figures. by_chance: how often two runs of one recipe differ as much.

    keeps_sign: the chance that a repeat by the same means has the sign of the first, knowing nothing but the two
    figures. seeds: how many of each, unpaired, would show a true difference of this size (power .80); None: above
    10,000.
    """

    difference: float
    standard_error: float
    by_chance: float
    keeps_sign: float
    seeds: int | None


def repeat(control: float, treatment: float, sd: float, degrees: int, seeds: int) -> Repeat:
    """control, treatment: means of so many seeds each; sd: of single seeds, with its degrees of freedom."""
    difference, error = treatment - control, sd * math.sqrt(2 / seeds)
    t = abs(difference) / error
    return Repeat(
        difference=difference,
        standard_error=error,
        by_chance=float(2 * special.stdtr(degrees, -t)),
        keeps_sign=float(special.stdtr(degrees, t / math.sqrt(2))),
        seeds=seeds_required(Noise(sd=sd * math.sqrt(2)), effect=abs(difference)),
    )
