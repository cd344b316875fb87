"""Built rows as an Arrow file that is mapped, not read."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpora.defsent.records import SPLITS, DefinitionRows, Split
from corpora.store.arrow_files import mapped_columns, write_columns
from corpora.store.columns import Texts

FILE = "rows.arrow"


def write_rows(folder: Path, parts: Split) -> None:
    """rows.arrow: train, then dev, then test."""
    rows = [(SPLITS.index(split), *row) for split in SPLITS for row in parts[split]]
    split, ids, keys, sourced = zip(*rows, strict=True)
    source, word, definition, pos = zip(*sourced, strict=True)
    text = {"id": ids, "key": keys, "word": word, "definition": definition, "source": source, "pos": pos}
    columns = {name: pa.array(values, pa.large_string()) for name, values in text.items()}
    write_columns(folder / FILE, {"split": pa.array(split, pa.uint8()), **columns})


def read_rows(folder: Path, *, eval_only: bool) -> dict[str, DefinitionRows]:
    """The rows by split, views of the mapped file.

    eval_only: leave out dev and test rows whose definition some training row has, whatever its word: the same
    questions for every vocabulary.
    """
    columns = mapped_columns(folder / FILE)
    split = columns["split"].to_numpy()
    bounds = np.searchsorted(split, range(len(SPLITS) + 1))
    parts = {}
    for number, name in enumerate(SPLITS):
        length = int(bounds[number + 1] - bounds[number])
        part = {column: values.slice(int(bounds[number]), length) for column, values in columns.items()}
        if eval_only and name != "train":
            known = columns["definition"].slice(0, int(bounds[1]))
            kept = np.flatnonzero(~pc.is_in(part["definition"], value_set=known).to_numpy(zero_copy_only=False))
            part = {column: values.take(pa.array(kept)) for column, values in part.items()}
        parts[name] = DefinitionRows(*(Texts(part[column]) for column in ("id", "word", "definition", "key")))
    return parts


def words_of(folder: Path, rows: DefinitionRows) -> dict[str, tuple[str, ...]]:
    """Every word of the corpus, of whatever split, that has one of the definitions of these rows."""
    columns = mapped_columns(folder / FILE)
    asked = set(rows.definitions)
    sharing: dict[str, dict[str, None]] = defaultdict(dict)
    held = pc.is_in(columns["definition"], value_set=pa.array(sorted(asked), pa.large_string()))
    for definition, word in zip(
        columns["definition"].filter(held).to_pylist(), columns["word"].filter(held).to_pylist(), strict=True
    ):
        sharing[definition][word] = None
    return {definition: tuple(words) for definition, words in sharing.items()}
