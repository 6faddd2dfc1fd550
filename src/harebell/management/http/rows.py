"""Sort, filter and page the rows of a list, in slices, and encode them as JSON.

    GET /api/queues?page=2&page_size=50&name=^orders&use_regex=true&sort=messages&columns=name

A column may be nested: `message_stats.publish_details.rate`. Without `page` the answer is a list,
and with it an object that has one page and its place. `pagination` is ignored, as by RabbitMQ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from heapq import merge
from itertools import islice
from typing import Any, NamedTuple

from harebell.admin.message_row import LongRow
from harebell.admin.rows.lazy import LazyRow
from harebell.base.limits import PATTERN_TESTS
from harebell.base.patterns import PatternRefused, PatternTooSlow, linear_search_for
from harebell.base.slices import Slices, consumed, emptied, gathered
from harebell.management.http.errors import HttpError, bad_request
from harebell.management.json_rows import JsonPieces, Row, encode, encoded_members
from harebell.management.limits import (
    HTTP_PAGE_MAX_ROWS,
    HTTP_PAGE_ROWS,
    HTTP_SLICE_ROWS,
    HTTP_SORT_RUN_ROWS,
)

_DIGITS = 18
_NUMBERS = (int, float)
_OBJECTS = (dict, Mapping)
"""The usual class first, which is compared faster."""
_Entry = tuple[Any, ...]
"""What a row is sorted by, its number, and its JSON, or what makes it.

It is flat: a sort compares two tuples in tuples three times as long.
"""


class Page(NamedTuple):
    """A page of a list.

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


class RowQuery(NamedTuple):
    """Which rows and columns of a list a request asks for.

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


def query_of_rows(query: Mapping[str, str]) -> RowQuery:
    """Read which rows and columns of a list a query asks for.

    Raises:
        HttpError: 400, the page is invalid.
    """
    return RowQuery(
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
    if not (number.isdecimal() and size.isdecimal() and len(number + size) <= _DIGITS):
        text = f"page {number[:_DIGITS]!r} or page_size {size[:_DIGITS]!r} is no number of a page"
        raise HttpError(400, "page_invalid", text)
    page = Page(
        *(int(number), int(size), query.get("name", "")), _is_true(query.get("use_regex", ""))
    )
    if page.number < 1 or not 1 <= page.size <= HTTP_PAGE_MAX_ROWS:
        raise HttpError(
            400,
            "invalid_pagination_parameters",
            f"Invalid pagination parameters: page number {page.number}, page size {page.size}: "
            f"pages count from 1, and have 1 to {HTTP_PAGE_MAX_ROWS} rows",
        )
    return page


def encoded(rows: Iterable[Row], query: RowQuery) -> Slices[list[bytes]]:
    """Encode the rows that a request asks for, in pieces of about HTTP_CHUNK_BYTES.

    Raises:
        HttpError: 400, the page is out of range, or its filter is no regular expression.
    """
    page = query.page
    if page is None and not query.sort:
        pieces = JsonPieces(b"[")
        for row in rows:
            if isinstance(row, LongRow):
                yield from pieces.add_long(row)
            else:
                pieces.add(_encoded(row, query))
                yield
        return pieces.end(b"]")
    entries: list[_Entry] = []
    runs: list[list[_Entry]] = []
    total = matched = 0
    columns = [".".join(path) for path in query.sort]
    matches = None if page is None or not page.name else _matcher(page)
    on_page = _places(page) if page is not None and not query.sort else None
    end = None if page is None else page.number * page.size
    for row in rows:
        total += 1
        if matches is None or _is_found(row, matches):
            if isinstance(row, LazyRow):
                key = [part for column in columns for part in _key(row.at(column))]
                kept: bytes | LazyRow = row
            else:
                key = [part for path in query.sort for part in _key(_at(row, path))]
                kept = b"" if on_page and matched not in on_page else _encoded(row, query)
            entries.append((*key, matched, kept))
            matched += 1
            if query.sort and matched % HTTP_SORT_RUN_ROWS == 0:
                runs.append(sorted(entries, reverse=query.reverse)[:end])
                entries.clear()
        # A row that is made as a whole, or searched by a pattern, takes a slice of its own.
        if total % HTTP_SLICE_ROWS == 0 or matches is not None or not isinstance(row, LazyRow):
            yield
    if query.sort:
        runs.append(sorted(entries, reverse=query.reverse)[:end])
        entries = yield from gathered(islice(merge(*runs, reverse=query.reverse), end))
        for run in runs:
            yield from emptied(run)
    return (
        yield from (
            _joined(entries, query, b"[", b"]")
            if page is None
            else _paged(entries, query, page, matched, total)
        )
    )


def _encoded(row: Row, query: RowQuery) -> bytes:
    if query.columns:
        if isinstance(row, LazyRow):
            row = row.some(query.columns)
        return encode(chosen(row, query.columns))
    return encode(row)


def _paged(
    entries: list[_Entry], query: RowQuery, page: Page, matched: int, total: int
) -> Slices[list[bytes]]:
    count = max(-(-matched // page.size), 1)
    if page.number > count:
        raise HttpError(
            400,
            "page_out_of_range",
            f"Page out of range, page: {page.number} page size: {page.size}, len: {matched}",
        )
    places = _places(page)
    here = entries[places.start : places.stop]
    about = {
        "filtered_count": matched,
        "item_count": len(here),
        "page": page.number,
        "page_count": count,
        "page_size": page.size,
        "total_count": total,
    }
    pieces = yield from _joined(here, query, encode(about)[:-1] + b',"items":[', b"]}")
    yield from emptied(entries)
    return pieces


def _places(page: Page) -> range:
    """Return the places of a page's rows in the list."""
    return range((page.number - 1) * page.size, page.number * page.size)


def _joined(
    entries: list[_Entry], query: RowQuery, start: bytes, end: bytes
) -> Slices[list[bytes]]:
    pieces = JsonPieces(start)
    for *_, row in consumed(entries):
        pieces.add(row if isinstance(row, bytes) else _encoded(row, query))
        yield
    return pieces.end(end)


def _is_found(row: Row, matches: Callable[[str], object]) -> object:
    """Compare the name, and that which a client gave its connection, with a filter."""
    found = matches(str(row.get("name", "")))
    if found or isinstance(row, LazyRow):
        return found
    given = row.get("user_provided_name")
    return given and matches(given)


def _matcher(page: Page) -> Callable[[str], object]:
    if not page.is_regex:
        part = page.name.lower()
        return lambda name: part in name.lower()
    try:
        search = linear_search_for(f"(?i){page.name}", PATTERN_TESTS)
    except PatternRefused as error:
        raise _bad_name(f"the regular expression {error}") from None

    def matches(name: str) -> bool:
        try:
            return search(name)
        except PatternTooSlow:
            raise _bad_name("the regular expression takes too long") from None

    return matches


def _bad_name(why: str) -> HttpError:
    return bad_request(f"Pagination parameters are invalid: name: {why}")


def _key(value: Any) -> tuple[int, Any]:
    """Make values of different types comparable: nothing, numbers, texts, others."""
    if value is None:
        return (0, 0)
    if isinstance(value, str):
        return (2, value)
    if isinstance(value, _NUMBERS):
        return (1, value)
    return (3, encode(value))


def _at(row: Any, path: Iterable[str]) -> Any:
    """Return the value at a path; None if there is none."""
    for name in path:
        row = row.get(name) if isinstance(row, _OBJECTS) else None
    return row


def chosen(row: Row, columns: Iterable[tuple[str, ...]]) -> Row:
    """Return some columns of a row; what it does not have is left out."""
    chosen: dict[str, Any] = {}
    for path in columns:
        if _has(row, path):
            place = chosen
            for name in path[:-1]:
                place = place.setdefault(name, {})
            place[path[-1]] = _at(row, path)
    return chosen


def _has(row: Any, path: Iterable[str]) -> bool:
    for name in path:
        if not isinstance(row, _OBJECTS) or name not in row:
            return False
        row = row[name]
    return True


def encoded_object(answer: Any, query: RowQuery) -> Slices[list[bytes]]:
    """Encode an answer that is no list, with the columns that a request asks for, in pieces."""
    if isinstance(answer, LazyRow):
        answer = answer.whole()
    if not isinstance(answer, dict):
        return [encode(answer)]
    members = chosen(answer, query.columns) if query.columns else answer
    return (yield from encoded_members(members))
