"""Print the rows of a query: as a table, as lines of JSON, or as CSV."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from harebell.base.printable import printable
from harebell.cli.last_result import kept
from harebell.cli.progress import Progress
from harebell.cli.verb import echo, echo_json

_PLAN = "plan"
"""The only column of what EXPLAIN gives: a text of many lines."""


def print_rows(frame: Any, rows: int, output: str) -> None:
    """Print the rows of a data frame."""
    from harebell.pipeline.sql.shown_rows import first_rows

    with Progress("reading rows"):
        read = first_rows(frame, rows + 1, between(output))
    print_first(frame.columns, read[:rows], output)
    say_more(len(read) > rows, rows)


def between(output: str) -> str:
    """Return what is between the date and the time of day in a format."""
    return "T" if output == "json" else " "


def say_more(more: bool, rows: int) -> None:
    """Say on standard error that there are more rows."""
    if more:
        echo(f"... and more: --rows {rows * 10}", err=True)


def print_first(columns: Sequence[str], rows: Sequence[Sequence[Any]], output: str) -> None:
    """Print rows.

    Args:
        columns: their names.
        rows: their values.
        output: table, json or csv.
    """
    if (keeper := kept()) is not None:
        keeper.keep(columns, rows, partial(print_first, columns, rows, output))
    if output == "table" and list(columns) == [_PLAN]:
        for row in rows:
            echo(str(row[0]).rstrip())
    elif output == "table":
        from harebell.pipeline.sinks.console import table

        for line in table(columns, [tuple(row) for row in rows]):
            echo(line)
    elif output == "json":
        for row in rows:
            echo_json(_plain(dict(zip(columns, row, strict=True))))
    else:
        import csv
        import sys

        writer = csv.writer(sys.stdout)
        writer.writerow([_csv(name) for name in columns])
        writer.writerows([[_csv(value) for value in row] for row in rows])


def _plain(value: Any) -> Any:
    """Convert bytes to text if they are UTF-8."""
    if isinstance(value, tuple) and hasattr(value, "asDict"):
        value = value.asDict()
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
    import sys

    if isinstance(value, dict | list) or hasattr(value, "asDict"):
        import msgspec

        value = msgspec.json.encode(_plain(value)).decode()
    if isinstance(value, bytes | bytearray):
        value = bytes(value).decode(errors="replace")
    if isinstance(value, str) and sys.stdout.isatty():
        return printable(value, "\n\t")
    return value
