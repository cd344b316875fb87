"""What a paper prints of the claims that a study makes: published/<family>.yaml beside the study's own file.

source: the paper, and where in it
backbone: all-mpnet-base-v2        # of every figure below that says no other
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
    """A difference as a paper prints it, on this backbone, of so many seeds. not_comparable: "" or the reason."""

    difference: float
    backbone: str
    seeds: int
    not_comparable: str = ""


def published(study: Study) -> Mapping[str, Printed]:
    """The printed figure of each claim that has one; none where no such file lies beside the study.

    StudyError names the file and the field that cannot be.
    """
    path = study.path.parent / FOLDER / f"{study.family}.yaml"
    return read_published(path).get(study.path.stem, {}) if path.is_file() else {}


def read_published(path: Path) -> Mapping[str, Mapping[str, Printed]]:
    """By study and claim. StudyError as `published` raises it."""
    import yaml

    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise StudyError(f"{path}: {first_line(error)}\n  accepted: YAML") from None
    if not isinstance(content, dict) or set(content) != HEAD or not isinstance(content["studies"], dict):
        raise StudyError(f"{path}\n  accepted: a mapping of {', '.join(sorted(HEAD))}")
    common = {name: content[name] for name in ("backbone", "seeds")}
    return {
        study: {one: _printed(said, common, f"{path}: studies.{study}.{one}") for one, said in claims.items()}
        for study, claims in content["studies"].items()
    }


def _printed(said: Any, common: Mapping[str, Any], at: str) -> Printed:
    fields = said if isinstance(said, dict) else {"difference": said}
    if strange := sorted(set(fields) - FIELDS):
        raise StudyError(f"{at}.{strange[0]}\n  accepted: a number, or {', '.join(sorted(FIELDS))}")
    given = {**common, **fields}
    difference = given.get("difference")
    if isinstance(difference, bool) or not isinstance(difference, int | float) or not math.isfinite(difference):
        raise StudyError(f"{at} = {difference!r}\n  accepted: the printed difference, a number")
    return Printed(**{**given, "difference": float(difference)})
