"""Lays out rows of text on a terminal: in columns if they fit, else each row as a list below its first cell."""

from __future__ import annotations

from collections.abc import Sequence

from orchestration.study.names import printable

GAP = "   "


def laid_out(head: Sequence[str], rows: Sequence[Sequence[str]], width: int | None) -> list[str]:
    """The lines of a table, in `width` cells if possible; None: one line a row, of any length."""
    from rich.cells import cell_len

    lines = aligned([head, *rows])
    if width is None or max(map(cell_len, lines)) <= width:
        return lines
    return [line for row in rows for line in _listed(head, row)]


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """The rows as lines, with columns as wide as their widest cell and three blanks apart."""
    from rich.cells import cell_len, set_cell_size

    shown = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(cell_len, column)) for column in zip(*shown, strict=True)]
    return [
        GAP.join(set_cell_size(cell, width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in shown
    ]


def _listed(head: Sequence[str], row: Sequence[str]) -> list[str]:
    """A line with the first cell, and an indented line for each other column."""
    return [printable(row[0]), *(f"  {line}" for line in aligned(list(zip(head[1:], row[1:], strict=True))))]
