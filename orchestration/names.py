"""Names in a message: those that are accepted, and the one that was probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

LIST_AT_MOST = 12  # of longer lists only those nearest to what was written are repeated


def nearest(name: str, names: Iterable[str], count: int = 1) -> list[str]:
    """The names most like this one, whatever their case, best first; none when none is like it."""
    by_lower = {known.lower(): known for known in names}
    return [by_lower[near] for near in difflib.get_close_matches(name.lower(), by_lower, count, cutoff=0.6)]


def names_accepted(name: str, names: Sequence[str]) -> str:
    """The names as words for a message, with the nearest; of a long list the most alike."""
    if len(names) <= LIST_AT_MOST:
        shown = ", ".join(names)
    else:
        alike = nearest(name, names, 6) or list(names[:6])
        shown = f"{', '.join(alike)} and {len(names) - len(alike)} more"
    return shown + "".join(f" (did you mean {near}?)" for near in nearest(name, names))
