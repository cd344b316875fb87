"""A study written beside its small corpus and backbone, with one thing changed."""

from __future__ import annotations

from pathlib import Path

from orchestration.reading.read_study import read_study
from orchestration.study.study import Study


def study_in(place: Path, text: str, old: str = "", new: str = "") -> Study:
    """The study of this text, in which PLACE stands for its folder; `old`, which stands there once, becomes `new`."""
    assert text.count(old) == 1 or not old
    path = place / "small.yaml"
    path.write_text((text.replace(old, new) if old else text).replace("PLACE", str(place)))
    return read_study(path)
