"""Error over claims that come one after the other, each chosen after the answers to those before.

A loop that proposes a recipe, asks, and proposes the next has no family of claims to correct together. It spends
instead: every question is asked at a level that depends on how many were asked and shown before, so that the false
discovery rate stays below alpha however long it goes on.

Source: LORD++ (Ramdas, Yang, Wainwright and Jordan 2017, "Online control of the false discovery rate with decaying
memory"), which grew out of alpha-investing (Foster and Stine 2008). It holds for p values that are valid whatever
was answered before, so each question needs seeds that no earlier answer has looked at.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

SCALE = 0.0722  # as published with these weights (Javanmard and Montanari 2018, section 5); their sum is below 1


def weight(age: int) -> float:
    """The share of a reward that is spent `age` questions after it was earned, from 1 on."""
    return SCALE * math.log(max(age, 2)) / (age * math.exp(math.sqrt(math.log(age))))


def next_level(shown: Sequence[bool], alpha: float) -> float:
    """The level at which the next question is asked. shown: what came of those before, in order.

    Half of alpha is there from the start. The first claim shown earns what is left of it, each later one alpha.
    """
    asked, start = len(shown) + 1, alpha / 2
    earned = [place for place, won in enumerate(shown, 1) if won]
    level = start * weight(asked)
    for number, place in enumerate(earned):
        level += (alpha - start if number == 0 else alpha) * weight(asked - place)
    return level
