"""Where finished runs are kept when a person names no place. Little is imported: `semray --help` asks too."""

from __future__ import annotations

import os

from corpora.store.places import named_path


def usual_place() -> str:
    """A folder or an fsspec URL."""
    return os.environ.get("SEMRAY_LEDGER") or "ledger"


def at(url: str) -> tuple[str, ...]:
    """The words to type behind a command for this ledger; none for the usual place."""
    usual = usual_place()
    place = usual if "://" in usual else str(named_path(usual).absolute())
    return () if _tidy(place) == _tidy(url) else ("--ledger", _tidy(url))


def _tidy(place: str) -> str:
    """A path without `..`, unless a link on the way makes that another place. A URL as it is."""
    if "://" in place:
        return place
    tidy = os.path.normpath(place)
    return tidy if os.path.realpath(tidy) == os.path.realpath(place) else place
