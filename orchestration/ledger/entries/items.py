"""The items of one metric, out of a table of many."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from orchestration.ledger.columns import numbers


def of_metric(items: pa.Table, metric: str) -> pa.Table:
    """The items of one metric."""
    found = _told(items, metric)
    return items.slice(0, 0) if found is None else items.filter(found)


def is_of_metric(items: pa.Table, metric: str) -> np.ndarray:
    """Which rows are of one metric. -> (rows,) bool"""
    found = _told(items, metric)
    return np.zeros(len(items), bool) if found is None else numbers(found.cast(pa.uint8())).astype(bool)


def _told(items: pa.Table, metric: str) -> pa.ChunkedArray | None:
    """Of each row whether it is of one metric; None where none is.

    The value to compare with is taken from the column, chunk by chunk: to make one of a text, or one array of the
    chunks, pyarrow imports pandas, which is a quarter of a second of every command.
    """
    names = {name.as_py(): name for chunk in items["metric"].chunks for name in chunk.dictionary}
    return pc.equal(items["metric"].cast(pa.string()), names[metric]) if metric in names else None
