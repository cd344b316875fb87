"""What all commands share: exit codes, output for people, and reading the named study and ledger."""

from __future__ import annotations

import os
import re
import sys
import textwrap
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import TextIO

from orchestration.ledger.beside import nearest_ledger
from orchestration.ledger.ledger import Ledger
from orchestration.reading.read_study import read_study
from orchestration.study.errors import StudyError
from orchestration.study.names import names_accepted, printable, typed
from orchestration.study.study import Study

DONE, SOME_FAILED, WRONG_REQUEST = 0, 1, 2
STUDIES = Path("studies")  # where a study given by name is looked for


def study_of(options: Namespace) -> Study:
    """The study of a command line, with `--lanes` applied."""
    study = read_study(study_file(options.study))
    lanes = getattr(options, "lanes", None)
    return study if lanes is None else replace(study, resources=replace(study.resources, lanes=lanes))


def study_file(named: str) -> Path:
    """The file of a study, given as a path or by the name of a study in this folder or in `studies`."""
    path = Path(named)
    if not named or os.path.exists(named) or path.suffix or path.name != named:
        return path
    files = {file.stem: file for folder in (STUDIES, Path()) for file in _studies_in(folder)}
    if named not in files:
        known = names_accepted(named, sorted(files)) if files else f"`{typed('init', 'study', named)}` writes one"
        raise StudyError(
            f"{named}: no such file, and no study of that name here or in {STUDIES}/\n  accepted: {known}"
        )
    return files[named]


def _studies_in(folder: Path) -> list[Path]:
    return [file for ending in ("*.yml", "*.yaml") for file in folder.glob(ending) if file.is_file()]


def ledger_of(options: Namespace) -> Ledger:
    """The ledger of a command line. If it does not exist but one is near, a hint is printed."""
    near = nearest_ledger(options.ledger)
    if near is not None:
        say(f"ledger  none at {options.ledger}; the nearest is {near}:  --ledger {near}")
    return Ledger(options.ledger)


def say(*lines: str) -> None:
    """Print lines for a person on stderr."""
    for line in lines:
        print(fitted(printable(line, keep="\n"), width_of(sys.stderr)), file=sys.stderr, flush=True)


def width_of(stream: TextIO) -> int | None:
    """The width of the terminal of a stream, in cells; None for a file or a pipe, where lines are not broken."""
    if not stream.isatty():
        return None
    from rich.console import Console

    return Console(file=stream).width


def fitted(text: str, width: int | None) -> str:
    """The text with long lines broken at blanks. Continued lines are indented to behind the label of the line."""
    if width is None:
        return text
    return "\n".join(part for line in text.split("\n") for part in _broken(line, width))


def _broken(line: str, width: int) -> list[str]:
    if len(line) <= width:
        return [line]
    label = re.match(r"\S+\s{2,}", line)
    indent = " " * (len(label[0]) if label and len(label[0]) < width // 3 else 2)
    return textwrap.wrap(
        line,
        width,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
        drop_whitespace=True,
        replace_whitespace=False,
    )


def shown_path(path: Path | str) -> str:
    """A path as a person would type it from here."""
    try:
        near = os.path.relpath(path)
    except ValueError:  # another drive
        return str(path)
    return near if not near.startswith("../..") else str(path)
