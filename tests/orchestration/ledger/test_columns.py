"""Columns that are decoded once: what a file holds is what is read, however much of it was read before."""

from __future__ import annotations

import io
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from orchestration.ledger.columns import KEPT, DecodedColumns, OtherColumns, numbers

SCHEMA = pa.schema({"item": pa.string(), "value": pa.float64()})


def file_of(items: list[str], values: list[float], **how: Any) -> bytes:
    written = io.BytesIO()
    pq.write_table(pa.table({"item": items, "value": values}), written, write_page_checksum=True, **how)
    return written.getvalue()


def test_every_file_is_read_as_it_stands() -> None:
    """Names alike, other names, names alike in pages of another kind: each as if it were read alone."""
    columns = DecodedColumns()
    many = [[f"{number} {kind}" for number in range(30)] for kind in range(KEPT + 2)]
    for items in (*many, *many):
        for how in ({}, {"compression": "gzip"}, {"use_dictionary": False}, {"row_group_size": 7}):
            values = [len(how) + number / 3 for number in range(30)]
            table = columns.table(file_of(items, values, **how), SCHEMA)
            assert table.to_pydict() == {"item": items, "value": values}


def test_names_that_differ_in_their_last_byte_are_others() -> None:
    """Where no checksum of a page tells of it, as in files that others wrote."""
    columns = DecodedColumns()
    for last in ("b", "c"):
        written = io.BytesIO()
        table = pa.table({"item": ["a", last], "value": [1.0, 2.0]})
        pq.write_table(table, written, use_dictionary=False, compression="none", write_statistics=False)
        assert columns.table(written.getvalue(), SCHEMA)["item"].to_pylist() == ["a", last]


@pytest.mark.parametrize("chunks", [[], [[1.0, 2.5]], [[1.0], [None, 3.0]], [[None]]])
def test_numbers_are_nan_where_there_are_none(chunks: list[list[float | None]]) -> None:
    found = numbers(pa.chunked_array(chunks, pa.float64()))
    expected = [math.nan if value is None else value for chunk in chunks for value in chunk]
    np.testing.assert_array_equal(found, expected)


def test_names_that_were_read_before_are_not_decoded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []
    plainly = pq.ParquetFile.read

    def counted(file: pq.ParquetFile, columns: list[str], **how: Any) -> pa.Table:
        asked.append(columns)
        return plainly(file, columns=columns, **how)

    monkeypatch.setattr(pq.ParquetFile, "read", counted)
    columns = DecodedColumns()
    for values in ([1.0, 2.0], [3.0, 4.0]):
        assert columns.table(file_of(["a", "b"], values), SCHEMA)["value"].to_pylist() == values
    assert asked == [["item", "value"], ["value"]]


def test_names_are_told_apart_once_for_columns_alike() -> None:
    columns = DecodedColumns()
    first, alike, other = (
        columns.table(file_of(items, [1.0, 2.0, 3.0]), SCHEMA)["item"]
        for items in (["b", "a", "b"],) * 2 + (["a"] * 3,)
    )
    assert columns.distinct(first) == ["b", "a"]
    assert columns.distinct(alike) is columns.distinct(first)
    assert columns.distinct(other) == ["a"]


def test_a_damaged_page_is_told_though_its_like_was_read() -> None:
    columns, whole = DecodedColumns(), file_of(["first", "second"], [1.0, 2.0], compression="none")
    columns.table(whole, SCHEMA)
    with pytest.raises((pa.ArrowException, OSError)):
        columns.table(whole.replace(b"second", b"decond", 1), SCHEMA)


def test_other_columns_are_named() -> None:
    with pytest.raises(OtherColumns, match="'item', 'value'"):
        DecodedColumns().table(file_of(["a"], [1.0]), pa.schema({"item": pa.string()}))
