"""Who hears how far long work is: a function of words."""

from __future__ import annotations

from collections.abc import Callable

Tell = Callable[[str], None]


def unheard(words: str) -> None:
    """For nobody."""
