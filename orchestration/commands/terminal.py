"""What every command shares: exit codes, words for a person, the study that a command line names."""

from __future__ import annotations

import sys
from argparse import Namespace
from dataclasses import replace

from orchestration.reading.read_study import read_study
from orchestration.study.names import printable
from orchestration.study.study import Study

DONE, SOME_FAILED, WRONG_REQUEST = 0, 1, 2


def study_of(options: Namespace) -> Study:
    """The study of a command line, with the lanes asked for there."""
    study = read_study(options.study)
    lanes = getattr(options, "lanes", None)
    return study if lanes is None else replace(study, resources=replace(study.resources, lanes=lanes))


def say(*lines: str) -> None:
    """Lines for a person, on stderr."""
    print(*(printable(line, keep="\n") for line in lines), sep="\n", file=sys.stderr, flush=True)
