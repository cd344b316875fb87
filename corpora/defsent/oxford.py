"""Definitions of the Oxford Dictionary in the format of Ishiwatari et al. (2019), which DefSent was trained on.

Three files, train.txt, valid.txt and test.txt; six columns between tabs: `word%oxford.2`, `pos`, `oxford`, the
tokenised definition, `[]`, `[]`. A line is written for every example of a definition, so lines repeat. The data is
given out on request alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from corpora.defsent.records import Sourced
from corpora.store.errors import CorpusError
from corpora.store.places import lines, named_path

FILES = ("train.txt", "valid.txt", "test.txt")
COLUMNS = 6
_TIGHT = ((" .", "."), (" ,", ","), (" ;", ";"), ("( ", "("), (" )", ")"), (" '", "'"))
_QUOTED = re.compile(r"``(.*?)''")
_CURLY = re.compile("‘ (.*?) ’")


def locate(path: str | None) -> Path:
    """The folder with the three files. CorpusError names what is missing."""
    if path is None:
        raise CorpusError(
            "data.oxford = null\n  accepted with sources: [oxford]: the folder that holds "
            f"{', '.join(FILES)} (Ishiwatari et al. 2019; given out by its authors on request)"
        )
    folder = named_path(path)
    missing = [name for name in FILES if not (folder / name).is_file()]
    if missing:
        raise CorpusError(
            f"data.oxford = {path!r} lacks {', '.join(missing)}\n  accepted: a folder with all three"
        )
    return folder


def read(folder: Path, *, fixed: bool) -> Iterator[Sourced]:
    """The rows of all three files in their order, repeats included. CorpusError for a line of another form.

    fixed: close quotations as they were opened, which the authors' cleaning does not (`cleaned`).
    """
    for name in FILES:
        for number, fields in lines(folder / name):
            if len(fields) != COLUMNS or "%" not in fields[0]:
                raise CorpusError(
                    f"corpora: {folder / name}, line {number}: {len(fields)} columns, first {fields[0]!r}\n"
                    f"  accepted: {COLUMNS} columns, the first like word%oxford.1"
                )
            yield Sourced("oxford", fields[0].rpartition("%")[0].strip(), cleaned(fields[3], fixed=fixed), "")


def cleaned(definition: str, *, fixed: bool) -> str:
    """A tokenised definition as it is written: DefSent's own steps, in their order.

    `` WORDS '' becomes its content with one capital; ‘ words ’ becomes ’words’, an evident slip of the authors,
    or with `fixed` ‘words’.
    """
    text = definition
    for loose, tight in _TIGHT:
        text = text.replace(loose, tight)
    text = _QUOTED.sub(lambda match: match[1].strip().capitalize(), text)
    return _CURLY.sub("‘\\1’" if fixed else "’\\1’", text).strip()
