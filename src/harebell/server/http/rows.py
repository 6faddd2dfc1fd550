"""Sort, filter and page the rows of a list, in slices, and encode them as JSON.

    GET /api/queues?page=2&page_size=50&name=^orders&use_regex=true&sort=messages&columns=name

A column may be nested: `message_stats.publish_details.rate`. Without `page` the answer is a list,
and with it an object that has one page and its place. `pagination` is ignored, as by RabbitMQ.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from heapq import merge
from typing import Any, NamedTuple

import msgspec

from harebell.base.limits import (
    HTTP_CHUNK_BYTES,
    HTTP_PAGE_MOST_ROWS,
    HTTP_PAGE_ROWS,
    HTTP_SORT_RUN_ROWS,
)
from harebell.base.patterns import search_for
from harebell.base.slices import Slices
from harebell.server.http.errors import HttpError, bad_request

Row = Mapping[str, Any]
_encode = msgspec.json.Encoder().encode


class Page(NamedTuple):
    """Which page of a list is wanted.

    Args:
        number: from 1.
        size: rows of a page.
        name: filters names; "" for no filter.
        is_regex: whether `name` is a regular expression, and not a part of the name.
    """

    number: int
    size: int
    name: str
    is_regex: bool


class Wanted(NamedTuple):
    """What a request wants of a list.

    Args:
        page: the page; None for all rows.
        sort: the columns to sort by, the most important one first.
        reverse: whether to sort in descending order.
        columns: the columns, each as the path to it; () for all.
    """

    page: Page | None
    sort: tuple[tuple[str, ...], ...]
    reverse: bool
    columns: tuple[tuple[str, ...], ...]


def wanted_of(query: Mapping[str, str]) -> Wanted:
    """Read what a query wants of a list.

    Raises:
        HttpError: 400, the page is invalid.
    """
    return Wanted(
        _page_of(query) if "page" in query else None,
        _columns_of(query.get("sort", "")),
        _is_true(query.get("sort_reverse", "")),
        _columns_of(query.get("columns", "")),
    )


def _is_true(text: str) -> bool:
    return text.lower() == "true"


def _columns_of(text: str) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(column.split(".")) for column in text.split(",") if column)


def _page_of(query: Mapping[str, str]) -> Page:
    number, size = query["page"], query.get("page_size") or str(HTTP_PAGE_ROWS)
    if not (number.isdecimal() and size.isdecimal()):
        raise HttpError(400, "page_invalid", f"page {number!r} or page_size {size!r} is no number")
    page = Page(
        *(int(number), int(size), query.get("name", "")), _is_true(query.get("use_regex", ""))
    )
    if page.number < 1 or not 1 <= page.size <= HTTP_PAGE_MOST_ROWS:
        raise HttpError(
            400,
            "invalid_pagination_parameters",
            f"Invalid pagination parameters: page number {page.number}, page size {page.size}: "
            f"pages count from 1, and have 1 to {HTTP_PAGE_MOST_ROWS} rows",
        )
    return page


def encoded(rows: list[Row], wanted: Wanted) -> Slices[list[bytes]]:
    """Encode what a request wants of a list, in pieces of about HTTP_CHUNK_BYTES.

    Raises:
        HttpError: 400, the page is out of range, or its filter is no regular expression.
    """
    page = wanted.page
    found = rows
    if page is not None and page.name:
        found = yield from _filtered(rows, page)
    if wanted.sort:
        found = yield from _sorted(found, wanted)
    if page is None:
        pieces = _Pieces(b"[")
        yield from pieces.add(found, wanted.columns)
        return pieces.end(b"]")
    count = max(-(-len(found) // page.size), 1)
    if page.number > count:
        raise HttpError(
            400,
            "page_out_of_range",
            f"Page out of range, page: {page.number} page size: {page.size}, len: {len(found)}",
        )
    start = (page.number - 1) * page.size
    here = found[start : start + page.size]
    about = {
        "filtered_count": len(found),
        "item_count": len(here),
        "page": page.number,
        "page_count": count,
        "page_size": page.size,
        "total_count": len(rows),
    }
    pieces = _Pieces(_encode(about)[:-1] + b',"items":[')
    yield from pieces.add(here, wanted.columns)
    return pieces.end(b"]}")


def _filtered(rows: list[Row], page: Page) -> Slices[list[Row]]:
    """Return the rows whose names match."""
    matches = _matcher(page)
    found = []
    for row in rows:
        if matches(str(row.get("name", ""))):
            found.append(row)
        yield
    return found


def _matcher(page: Page) -> Callable[[str], object]:
    if not page.is_regex:
        part = page.name.lower()
        return lambda name: part in name.lower()
    try:
        return search_for(page.name, re.IGNORECASE)
    except re.error as error:
        raise bad_request(
            f"Pagination parameters are invalid: name is not a regular expression: {error}"
        ) from None


def _sorted(rows: list[Row], wanted: Wanted) -> Slices[list[Row]]:
    """Sort rows: short runs at once, which are merged row by row."""
    keyed = []
    for at, row in enumerate(rows):
        keyed.append((tuple(_key(_at(row, path)) for path in wanted.sort), at))
        yield
    runs = []
    for at in range(0, len(keyed), HTTP_SORT_RUN_ROWS):
        runs.append(sorted(keyed[at : at + HTTP_SORT_RUN_ROWS], reverse=wanted.reverse))
        yield
    found = []
    for _, at in merge(*runs, reverse=wanted.reverse):
        found.append(rows[at])
        yield
    return found


def _key(value: Any) -> tuple[int, Any]:
    """Make values of different types comparable: nothing, numbers, texts, others."""
    if value is None:
        return (0, 0)
    if isinstance(value, int | float):
        return (1, value)
    if isinstance(value, str):
        return (2, value)
    return (3, _encode(value))


def _at(row: Any, path: Iterable[str]) -> Any:
    """Return the value at a path; None if there is none."""
    for name in path:
        if not isinstance(row, Mapping) or name not in row:
            return None
        row = row[name]
    return row


def chosen(row: Row, columns: Iterable[tuple[str, ...]]) -> Row:
    """Return some columns of a row; what it does not have is left out."""
    found: dict[str, Any] = {}
    for path in columns:
        if _has(row, path):
            place = found
            for name in path[:-1]:
                place = place.setdefault(name, {})
            place[path[-1]] = _at(row, path)
    return found


def _has(row: Any, path: Iterable[str]) -> bool:
    for name in path:
        if not isinstance(row, Mapping) or name not in row:
            return False
        row = row[name]
    return True


class _Pieces:
    """JSON in pieces of about HTTP_CHUNK_BYTES.

    Args:
        start: the first bytes.
    """

    def __init__(self, start: bytes) -> None:
        self._done: list[bytes] = []
        self._piece = bytearray(start)

    def add(self, rows: Iterable[Row], columns: tuple[tuple[str, ...], ...]) -> Iterator[None]:
        """Add rows, separated by commas; yields after each."""
        comma = b""
        for row in rows:
            self._piece += comma + _encode(chosen(row, columns) if columns else row)
            comma = b","
            if len(self._piece) >= HTTP_CHUNK_BYTES:
                self._done.append(bytes(self._piece))
                self._piece.clear()
            yield

    def end(self, end: bytes) -> list[bytes]:
        """Return all pieces."""
        return [*self._done, bytes(self._piece + end)]


def encoded_object(answer: Any, wanted: Wanted) -> list[bytes]:
    """Encode an answer that is no list, with the columns that are wanted."""
    if wanted.columns and isinstance(answer, Mapping):
        answer = chosen(answer, wanted.columns)
    return [_encode(answer)]
