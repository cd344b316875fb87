"""Decodes equal columns of parquet files once: the runs of a study name the same items in the same order.

A decoded column is reused if its stored bytes and encoding are equal. The file was read completely and checked
against its seal before.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

KEPT = 8  # decoded versions kept of each column: each task of a study has its own item names
MEASURED = "value"  # the column that differs in every file, and is not kept


class OtherColumns(ValueError):
    """A file has other columns than expected."""


class DecodedColumns:
    """A cache of decoded columns. By column name: (stored bytes and encoding, column), the newest last."""

    def __init__(self) -> None:
        self._known: dict[str, deque[tuple[Any, pa.ChunkedArray]]] = {}
        self._distinct: deque[tuple[pa.ChunkedArray, list[Any]]] = deque(maxlen=KEPT)

    def table(self, content: bytes, schema: pa.Schema) -> pa.Table:
        """The table in a parquet file.

        Raises OtherColumns; ArrowException, OSError, ValueError, OverflowError or LookupError for no such file.
        """
        # not pq.read_table: it imports pyarrow.dataset and with it pandas, which is slow
        file = pq.ParquetFile(pa.BufferReader(content), page_checksum_verification=True)
        stored = file.schema_arrow
        if stored.names != schema.names:
            raise OtherColumns(f"it has the columns {stored.names}, expected {schema.names}")
        groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
        keys = {
            field.name: ([_chunk(group.column(place), content) for group in groups], field)
            for place, field in enumerate(stored)
            if field.name != MEASURED
        }
        columns = {name: self._decoded(name, key) for name, key in keys.items()}
        if lacking := [name for name in stored.names if columns.get(name) is None]:
            read = file.read(columns=lacking, use_threads=False)  # threads cost more than they save
            for name in lacking:
                columns[name] = read[name].cast(schema.field(name).type)
                if name in keys:
                    self._known.setdefault(name, deque(maxlen=KEPT)).append((keys[name], columns[name]))
        return pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)

    def distinct(self, column: pa.ChunkedArray) -> list[Any]:
        """The distinct values of a column, in the order of first appearance."""
        values = next((values for known, values in self._distinct if known.equals(column)), None)
        if values is None:
            values = column.unique().to_pylist()
            self._distinct.append((column, values))
        return values

    def _decoded(self, name: str, key: Any) -> pa.ChunkedArray | None:
        known = self._known.get(name, ())
        return next((column for other, column in reversed(known) if other == key), None)


def numbers(column: pa.ChunkedArray) -> np.ndarray:
    """A column of numbers as an array (M,), with nan for null. Do not write to it: it may share memory.

    Not the column's `to_numpy`, which imports pandas: a quarter of a second.
    """
    filled = column.fill_null(math.nan) if column.null_count else column
    chunks = [np.from_dlpack(chunk) for chunk in filled.chunks]
    return chunks[0] if len(chunks) == 1 else np.concatenate(chunks or [np.empty(0)])


def _chunk(column: Any, content: bytes) -> tuple[Any, ...]:
    """The stored bytes of one column in one row group, and their encoding."""
    begin = column.dictionary_page_offset if column.has_dictionary_page else column.data_page_offset
    stored = content[begin : begin + column.total_compressed_size]
    return stored, column.physical_type, column.compression, column.encodings, column.num_values
