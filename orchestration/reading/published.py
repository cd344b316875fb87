"""The differences a paper prints for the claims of a study: published/<family>.yaml beside the study file.

source: the paper, and where in it
backbone: all-mpnet-base-v2        # unless a figure names another
seeds: 1
studies:
  concept_hypotheses:
    H1a: 0.102                     # treatment less control, in the metric's unit
    H1d: {difference: -0.048, not_comparable: why ours cannot be set beside it}
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corpora.store.errors import first_line
from orchestration.study.errors import StudyError

if TYPE_CHECKING:
    from orchestration.study.study import Study

FOLDER = "published"
HEAD = {"source", "backbone", "seeds", "studies"}
FIELDS = {"difference", "backbone", "seeds", "not_comparable"}


@dataclass(frozen=True, kw_only=True)
class Printed:
    """A difference that a paper prints. seeds: how many it rests on. not_comparable: the reason, or ""."""

    difference: float
    backbone: str
    seeds: int
    not_comparable: str = ""


def published(study: Study) -> Mapping[str, Printed]:
    """Claim -> its printed difference; empty if no such file lies beside the study.

    StudyError names the file and the wrong field.
    """
    path = study.path.parent / FOLDER / f"{study.family}.yaml"
    return read_published(path).get(study.path.stem, {}) if path.is_file() else {}


def read_published(path: Path) -> Mapping[str, Mapping[str, Printed]]:
    """Study -> claim -> printed difference. StudyError as in `published`."""
    import yaml

    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise StudyError(f"{path}: {first_line(error)}\n  accepted: YAML") from None
    if not isinstance(content, dict) or set(content) != HEAD or not isinstance(content["studies"], dict):
        raise StudyError(f"{path}\n  accepted: a mapping of {', '.join(sorted(HEAD))}")
    common = {name: content[name] for name in ("backbone", "seeds")}
    return {
        study: {name: _printed(entry, common, f"{path}: studies.{study}.{name}") for name, entry in claims.items()}
        for study, claims in content["studies"].items()
    }


def _printed(entry: Any, common: Mapping[str, Any], field: str) -> Printed:
    fields = entry if isinstance(entry, dict) else {"difference": entry}
    if unknown := sorted(set(fields) - FIELDS):
        raise StudyError(f"{field}.{unknown[0]}\n  accepted: a number, or {', '.join(sorted(FIELDS))}")
    given = {**common, **fields}
    difference = given.get("difference")
    if isinstance(difference, bool) or not isinstance(difference, int | float) or not math.isfinite(difference):
        raise StudyError(f"{field} = {difference!r}\n  accepted: the printed difference, a number")
    return Printed(**{**given, "difference": float(difference)})
