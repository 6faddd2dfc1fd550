"""Print lists of objects: as a table, in long form, with tabs, as pairs, names or JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

_FIRST = ("vhost", "name", "type", "source", "destination", "destination_type", "routing_key")
"""Columns that come first where all are shown."""
_RULE = "\n" + "-" * 80 + "\n"
_ALL_LEVELS = 1_000
Table = list[list[str]]


def flattened(
    item: dict[str, Any], levels: int, as_json: Sequence[str], before: str = "", level: int = 1
) -> Iterable[tuple[str, str]]:
    """Yield the columns and values of an object; members of objects are named `a.b`.

    Args:
        item: the object.
        levels: how many levels of objects become columns.
        as_json: columns whose objects are shown as JSON.
        before: what stands before the names.
        level: the level of this object.
    """
    for key, value in item.items():
        column = f"{before}.{key}" if before else key
        if isinstance(value, dict):
            if key in as_json:
                yield column, json.dumps(value)
            elif level < levels:
                yield from flattened(value, levels, as_json, column, level + 1)
        elif isinstance(value, list):
            texts = all(isinstance(each, str) for each in value)
            yield column, " ".join(value) if texts else json.dumps(value)
        else:
            yield column, "" if value is None else str(value)


def table_of(
    items: list[dict[str, Any]], wanted: Sequence[str], levels: int, as_json: Sequence[str]
) -> tuple[list[str], Table]:
    """Return columns and rows.

    Args:
        items: the objects.
        wanted: the columns; () for all.
        levels: how many levels of objects become columns, where all are shown.
        as_json: columns whose objects are shown as JSON.
    """
    depth = _ALL_LEVELS if wanted else levels
    flat = [dict(flattened(item, depth, as_json)) for item in items]
    columns = list(wanted) or sorted({name for row in flat for name in row}, key=_place)
    return columns, [[row.get(name, "") for name in columns] for row in flat]


def _place(name: str) -> tuple[int, int, str]:
    return (0, _FIRST.index(name), "") if name in _FIRST else (1, 0, name)


def _tabs(columns: list[str], table: Table, *, verbose: bool) -> Iterable[str]:
    if verbose:
        yield "\t".join(columns)
    for row in table:
        yield "\t".join(row)


def _long(columns: list[str], table: Table, *, verbose: bool) -> Iterable[str]:
    width = max(len(name) for name in columns)
    yield _RULE
    for row in table:
        for name, value in zip(columns, row, strict=True):
            yield f"{name:>{width}}: {value}"
        yield _RULE


def _boxes(columns: list[str], table: Table, *, verbose: bool) -> Iterable[str]:
    lines = [columns, *table]
    widths = [max(len(line[n]) for line in lines) for n in range(len(columns))]
    bar = "+" + "".join("-" * (width + 2) + "+" for width in widths)
    yield bar
    for number, line in enumerate(lines):
        sides = "<" if number else "^"
        cells = (f" {cell:{sides}{width}} |" for cell, width in zip(line, widths, strict=True))
        yield "|" + "".join(cells)
        if not number:
            yield bar
    yield bar


def _pairs(columns: list[str], table: Table, *, verbose: bool) -> Iterable[str]:
    for row in table:
        yield " ".join(f'{name}="{value}"' for name, value in zip(columns, row, strict=True))


def _names(columns: list[str], table: Table, *, verbose: bool) -> Iterable[str]:
    if "name" in columns:
        place = columns.index("name")
        yield " ".join(row[place] for row in table)


Format = Callable[..., Iterable[str]]
FORMATS: dict[str, Format | None] = {
    "raw_json": None,
    "pretty_json": None,
    "tsv": _tabs,
    "long": _long,
    "table": _boxes,
    "kvp": _pairs,
    "bash": _names,
}
"""The formats by name; None for those that print the JSON of the answer."""
