"""Columns of training rows: integers that index one array of distinct texts.

So a trainer tokenises every text once, and 400,000 rows take some tens of megabytes. The arrays are read-only
views of the cached files.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


class Texts(Sequence[str]):
    """Texts over an Arrow string array: `texts[i]`, `texts[a:b]`, `texts.take(indices)`."""

    def __init__(self, array: pa.Array) -> None:
        self._array = array

    @staticmethod
    def of(texts: Iterable[str]) -> Texts:
        """These texts, in memory."""
        return Texts(pa.array(list(texts), pa.large_string()))

    def __len__(self) -> int:
        return len(self._array)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return self._array[index].to_pylist()
        return self._array[int(index)].as_py()

    def __iter__(self) -> Iterator[str]:
        return iter(self._array.to_pylist())

    def take(self, indices: np.ndarray) -> list[str]:
        """The texts at these places, in this order. (N,) integers -> N strings."""
        return self._array.take(pa.array(indices)).to_pylist()

    def first_with(self, part: str) -> str | None:
        """The first text that holds this part; None if none does."""
        place = pc.index(pc.match_substring(self._array, part), True).as_py()
        return None if place < 0 else self[place]

    def filled(self) -> np.ndarray:
        """(N,) bool: which texts are not empty."""
        return pc.not_equal(pc.binary_length(self._array), 0).to_numpy(zero_copy_only=False)


@dataclass(frozen=True)
class Ragged:
    """N rows of different lengths: row i is `values[offsets[i]:offsets[i + 1]]`.

    values (M,) int32, offsets (N + 1,) int64.
    """

    values: np.ndarray
    offsets: np.ndarray

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> np.ndarray:
        return self.values[self.offsets[row] : self.offsets[row + 1]]

    @staticmethod
    def of(rows: Iterable[Sequence[int]]) -> Ragged:
        """Pack rows in their order; the rows are read once."""
        values, offsets = array("i"), array("q", [0])
        for row in rows:
            values.extend(row)
            offsets.append(len(values))
        return Ragged(np.array(values, np.int32), np.array(offsets, np.int64))
