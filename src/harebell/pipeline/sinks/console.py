"""Sink: print the first rows of each micro-batch as a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from harebell.pipeline.sql.shown_rows import first_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_WIDEST = 60


class ConsoleSink:
    """Print micro-batches.

    Args:
        name: of the sink, printed above the rows.
        rows: maximum number of rows of a batch.
        say: prints a line.
    """

    def __init__(self, name: str, rows: int, say: Callable[[str], None]) -> None:
        self._name = name
        self._rows = rows
        self._say = say

    def write(self, frame: DataFrame, batch: int) -> int:
        """Print a batch; return the number of printed rows."""
        rows = first_rows(frame, self._rows + 1)
        shown = rows[: self._rows]
        if shown:
            more = ", and more" if len(rows) > len(shown) else ""
            self._say(f"{self._name}, micro-batch {batch}{more}:")
            for line in table(frame.columns, [tuple(row) for row in shown]):
                self._say(line)
        return len(shown)


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    """Format rows as lines of text, in columns as wide as necessary."""
    lines = [list(columns), *([cell(value) for value in row] for row in rows)]
    widths = [max(len(line[n]) for line in lines) for n in range(len(columns))]
    return [
        "  ".join(each.ljust(width) for each, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]


def cell(value: Any) -> str:
    """Format a value."""
    if value is None:
        return "null"
    if isinstance(value, bytes | bytearray):
        text = bytes(value).decode(errors="replace")
    elif isinstance(value, bool):
        text = str(value).lower()
    elif isinstance(value, float):
        text = f"{value:.6g}" if abs(value) < 1e15 else repr(value)
    elif isinstance(value, tuple) and hasattr(value, "asDict"):
        fields = value.asDict().items()
        text = "{" + ", ".join(f"{k}: {cell(v)}" for k, v in fields if v is not None) + "}"
    elif isinstance(value, dict):
        text = "{" + ", ".join(f"{k}: {cell(v)}" for k, v in value.items()) + "}"
    elif isinstance(value, list):
        text = "[" + ", ".join(map(cell, value)) + "]"
    else:
        text = str(value)
    text = "".join(each if each.isprintable() else " " for each in text)
    return text if len(text) <= _WIDEST else text[: _WIDEST - 3] + "..."
