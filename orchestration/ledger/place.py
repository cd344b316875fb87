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
    return () if place == url else ("--ledger", url)
