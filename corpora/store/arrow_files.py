"""Columns as an Arrow file that is mapped, not read: several processes share one copy of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa


def write_columns(path: Path, columns: Mapping[str, pa.Array]) -> None:
    """The columns, of equal length, as the file's one batch."""
    batch = pa.record_batch(list(columns.values()), names=list(columns))
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, batch.schema) as writer:
        writer.write_batch(batch)


def mapped_columns(path: Path) -> dict[str, pa.Array]:
    """Columns of the file's one batch, still in the mapped file."""
    with pa.memory_map(str(path)) as file:
        batch = pa.ipc.open_file(file).get_batch(0)
    return dict(zip(batch.schema.names, batch.columns, strict=True))
