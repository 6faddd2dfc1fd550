"""Print rows as RabbitMQ's tools do: with tabs, as CSV, as JSON, or in boxes.

In a table values are printed as Erlang terms, because scripts compare them: `true`, an empty text
for what is unknown, and `[{"x-max-length",10}]` for a table of arguments.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

_INT32 = 2**31
FORMATTERS = ("table", "csv", "json", "json_stream", "pretty_table", "string", "erlang", "report")
MACHINE_FORMATTERS = ("csv", "json", "json_stream", "erlang")
"""Formats without sentences around the rows."""


class Rows(NamedTuple):
    """Rows to print.

    Args:
        columns: their names, in order.
        rows: a row each, by column.
        headers: print the names of the columns.
    """

    columns: Sequence[str]
    rows: Sequence[Mapping[str, Any]]
    headers: bool = True


class Arguments(dict[str, Any]):
    """A table of AMQP arguments, which RabbitMQ's JSON has with the types of its values."""


class Word(str):
    """A text that is printed without quotation marks inside lists, as Erlang's atoms are."""


def column_names(words: Iterable[str]) -> list[str]:
    """Return the columns that arguments name; commas and spaces separate them."""
    return [name for word in words for name in word.replace(",", " ").split()]


def term(value: Any, *, nested: bool = False) -> str:
    """Format a value of a cell as an Erlang term.

    Args:
        value: a value of JSON.
        nested: whether it is inside of a list or table, where texts have quotation marks.
    """
    if value is None:
        return "undefined" if nested else ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        members = (f'{{"{key}",{term(each, nested=True)}}}' for key, each in value.items())
        return f"[{','.join(members)}]"
    if isinstance(value, list | tuple):
        if all(isinstance(each, Word) for each in value):
            return f"[{', '.join(value)}]"
        return f"[{','.join(term(each, nested=True) for each in value)}]"
    if isinstance(value, str) and nested and not isinstance(value, Word):
        return f'"{value}"'
    return str(value).replace("\n", "\\n").replace("\t", "\\t") if not nested else str(value)


def plain(value: Any) -> Any:
    """Convert a value for JSON; arguments become lists of name, type and value."""
    if isinstance(value, Arguments):
        return [[key, *_typed(each)] for key, each in value.items()]
    return value


def _typed(value: Any) -> tuple[str, Any]:
    if isinstance(value, bool):
        return "bool", value
    if isinstance(value, int):
        return ("signedint" if -_INT32 <= value < _INT32 else "long"), value
    if isinstance(value, float):
        return "double", value
    if isinstance(value, dict):
        return "table", [[key, *_typed(each)] for key, each in value.items()]
    if isinstance(value, list):
        return "array", [list(_typed(each)) for each in value]
    if value is None:
        return "void", None
    return "longstr", str(value)


def lines(table: Rows, formatter: str, *, headers: bool) -> Iterable[str]:
    """Yield the lines of rows in a format.

    Args:
        table: the rows.
        formatter: one of `FORMATTERS`.
        headers: whether the names of the columns are wanted.
    """
    headers = headers and table.headers
    match formatter:
        case "json" | "json_stream":
            yield from _json_lines(table, stream=formatter == "json_stream")
        case "csv":
            if headers and table.rows:
                yield ",".join(_quoted(name) for name in table.columns)
            for row in table.rows:
                yield ",".join(_quoted(term(row[name])) for name in table.columns)
        case "pretty_table":
            yield from _boxes(table)
        case _:
            if headers and table.rows:
                yield "\t".join(table.columns)
            for row in table.rows:
                yield "\t".join(term(row[name]) for name in table.columns)


def encoded(value: Any) -> str:
    """Encode a value as JSON without spaces."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _json_lines(table: Rows, *, stream: bool) -> Iterable[str]:
    objects = (encoded({name: plain(row[name]) for name in table.columns}) for row in table.rows)
    if stream:
        yield from objects
        return
    yield "["
    for number, text in enumerate(objects):
        yield f",{text}" if number else text
    yield "]"


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _boxes(table: Rows) -> Iterable[str]:
    grid = [
        list(table.columns),
        *([term(row[name]) for name in table.columns] for row in table.rows),
    ]
    widths = [max(len(line[n]) for line in grid) for n in range(len(table.columns))]
    fancy = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    bar, top, middle, bottom, across = (
        ("│", "┌┬┐", "├┼┤", "└┴┘", "─") if fancy else ("|", "+++", "+++", "+++", "-")
    )

    def rule(ends: str) -> str:
        return ends[0] + ends[1].join(across * (width + 2) for width in widths) + ends[2]

    yield rule(top)
    for number, line in enumerate(grid):
        if number:
            yield rule(middle)
        cells = (f" {cell.ljust(width)} " for cell, width in zip(line, widths, strict=True))
        yield f"{bar}{bar.join(cells)}{bar}"
    yield rule(bottom)
