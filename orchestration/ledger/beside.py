"""Where what belongs to a ledger is kept, but not in it: reports, the tracking database. And where one may be."""

from __future__ import annotations

import os
from pathlib import Path

LEVELS = 3  # folders above this one in which a ledger is looked for


def beside(url: str) -> Path:
    """The folder that holds a local ledger; this folder for one that is elsewhere."""
    return Path() if "://" in url else Path(url).parent


def reports(url: str, study: str) -> Path:
    """Where the report of a study goes, with its plots and the files of its searches."""
    return beside(url) / "reports" / study


def nearest_ledger(url: str) -> str | None:
    """The path of a ledger of the same name in a folder above, where nothing is at this one; None without such."""
    if "://" in url or Path(url).exists():
        return None
    place = Path(url).absolute()
    above = list(place.parents)[1 : LEVELS + 1]
    found = next((folder / place.name for folder in above if (folder / place.name / ".declared").is_dir()), None)
    return None if found is None else os.path.relpath(found)
