"""Columns in Arrow files, which are mapped into memory, so that several processes share one copy."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa


def write_columns(path: Path, columns: Mapping[str, pa.Array]) -> None:
    """Write columns of equal length as a file with one batch."""
    batch = pa.record_batch(list(columns.values()), names=list(columns))
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, batch.schema) as writer:
        writer.write_batch(batch)


def mapped_columns(path: Path) -> dict[str, pa.Array]:
    """The columns of the file's one batch, as views of the mapped file."""
    with pa.memory_map(str(path)) as file:
        batch = pa.ipc.open_file(file).get_batch(0)
    return dict(zip(batch.schema.names, batch.columns, strict=True))
