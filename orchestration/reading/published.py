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

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from corpora.store.fields import Count, Text
from orchestration.reading.checking import WRONG, Checker
from orchestration.reading.document import Place, read

if TYPE_CHECKING:
    from orchestration.study.study import Study

FOLDER = "published"
Difference = Annotated[float, "the printed difference, a number"]


@dataclass(frozen=True, kw_only=True)
class Printed:
    """A difference that a paper prints. seeds: how many it rests on. not_comparable: the reason, or ""."""

    difference: Difference
    backbone: Text
    seeds: Count
    not_comparable: str = ""


@dataclass(frozen=True, kw_only=True)
class _File:
    source: Text
    backbone: Text
    seeds: Count
    studies: Annotated[Mapping[str, Any], "a mapping of studies to their claims"]


def published(study: Study) -> Mapping[str, Printed]:
    """Claim -> its printed difference; empty if no such file lies beside the study.

    StudyError lists every mistake of the file.
    """
    path = study.path.parent / FOLDER / f"{study.family}.yaml"
    return read_published(path).get(study.path.stem, {}) if path.is_file() else {}


def read_published(path: Path) -> Mapping[str, Mapping[str, Printed]]:
    """Study -> claim -> printed difference. StudyError as in `published`."""
    check = Checker(read(path))
    file = check.build(_File, ())
    check.finish()
    written = {study: _entries(check, ("studies", study)) for study in file.studies}
    check.finish()
    common = {"backbone": file.backbone, "seeds": file.seeds}
    return {
        study: {claim: Printed(**{**common, **own}) for claim, own in entries.items()}
        for study, entries in written.items()
    }


def _entries(check: Checker, study: Place) -> dict[str, dict[str, Any]]:
    claims = check.mapping(study)
    return {} if claims is WRONG else {claim: _entry(check, (*study, claim)) for claim in claims}


def _entry(check: Checker, place: Place) -> dict[str, Any]:
    """The fields that a claim's entry gives: a mapping, or the difference alone. A mistake is recorded."""
    if not isinstance(check.document.at(place), dict):
        return {"difference": check.value(Difference, place)}
    check.refuse_missing(Printed, [(), place])  # the top of the file gives what all claims have in common
    return check.block(Printed, place)
