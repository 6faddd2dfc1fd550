"""Print the rows of a data frame: as a table, as lines of JSON, or as CSV."""

from __future__ import annotations

from typing import Any

from harebell.cli.progress import Progress
from harebell.cli.verb import echo, echo_json

_PLAN = "plan"
"""The only column of what EXPLAIN gives: a text of many lines."""


def print_rows(frame: Any, rows: int, output: str) -> None:
    """Print the rows of a data frame."""
    from harebell.pipeline.sql.shown_rows import first_rows

    with Progress("reading rows"):
        read = first_rows(frame, rows + 1, "T" if output == "json" else " ")
    shown = read[:rows]
    if output == "table" and frame.columns == [_PLAN]:
        for row in shown:
            echo(str(row[0]).rstrip())
    elif output == "table":
        from harebell.pipeline.sinks.console import table

        for line in table(frame.columns, [tuple(row) for row in shown]):
            echo(line)
    elif output == "json":
        for row in shown:
            echo_json(_plain(row.asDict(recursive=True)))
    else:
        import csv
        import sys

        writer = csv.writer(sys.stdout)
        writer.writerow(frame.columns)
        writer.writerows([[_csv(value) for value in row] for row in shown])
    if len(read) > rows:
        echo(f"... and more: --rows {rows * 10}", err=True)


def _plain(value: Any) -> Any:
    """Convert bytes to text if they are UTF-8."""
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, bytes | bytearray):
        try:
            return bytes(value).decode()
        except UnicodeDecodeError:
            return bytes(value)  # msgspec writes base64
    return value


def _csv(value: Any) -> Any:
    if isinstance(value, bytes | bytearray):
        return bytes(value).decode(errors="replace")
    return value
