"""Names: those that are accepted, the one that was probably meant, and which may become part of a path."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

LIST_AT_MOST = 12  # of longer lists only those nearest to what was written are repeated

NAME_BYTES = 200  # file systems take 255, with room for what we add
NAME_WORDS = "a name without /, \\ or control characters, that does not begin with a dot, of at most 200 bytes"


def is_path_component(name: str) -> bool:
    """Whether a name can be one part of a path, on a disk or in a URL, and leads nowhere else."""
    fits = 0 < len(name.encode(errors="replace")) <= NAME_BYTES and name == name.strip()
    return fits and not name.startswith(".") and name.isprintable() and not set("/\\") & set(name)


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
