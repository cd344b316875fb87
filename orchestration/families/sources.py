"""Backbone and corpus as a lane finds them: it may run where a name stands for other files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from orchestration.study.errors import StudyError

if TYPE_CHECKING:
    from orchestration.study.run import Run


def check_sources(run: Run, folder: Path, corpus: str) -> None:
    """StudyError unless the backbone in `folder` and the corpus of fingerprint `corpus` are those of the run's id.

    A result is filed under what was planned; trained on anything else it would be filed under a wrong name.
    """
    from trainers.encoders.backbones import backbone_fingerprint

    held = (
        (f"backbone {run.backbone}, here {folder}", run.backbone_fingerprint, backbone_fingerprint(folder)),
        (f"corpus of the {run.family} family", run.corpus_fingerprint, corpus),
    )
    differing = [
        f"{run.label}: {name}, is not the one the run was planned with\n  expected {expected}\n  found    {found}"
        for name, expected, found in held
        if expected != found
    ]
    if differing:
        raise StudyError("\n".join(differing))
