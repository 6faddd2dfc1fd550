"""Sort, filter and page the rows of a list, in slices, and encode them as JSON.

    GET /api/queues?page=2&page_size=50&name=^orders&use_regex=true&sort=messages&columns=name

A column may be nested: `message_stats.publish_details.rate`. Without `page` the answer is a list,
and with it an object that has one page and its place. `pagination` is ignored, as by RabbitMQ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from heapq import merge
from typing import Any, NamedTuple

from harebell.base.limits import HTTP_PAGE_MAX_ROWS, HTTP_PAGE_ROWS, HTTP_SORT_RUN_ROWS
from harebell.base.patterns import PatternRefused, PatternTooSlow, linear_search_for
from harebell.base.slices import Slices, consumed, emptied, gathered
from harebell.server.http.errors import HttpError, bad_request
from harebell.server.json_rows import JsonPieces, Row, encode

_Entry = tuple[tuple[Any, ...], int, bytes]
"""What a row is sorted by, its number, and its JSON."""


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
    if page.number < 1 or not 1 <= page.size <= HTTP_PAGE_MAX_ROWS:
        raise HttpError(
            400,
            "invalid_pagination_parameters",
            f"Invalid pagination parameters: page number {page.number}, page size {page.size}: "
            f"pages count from 1, and have 1 to {HTTP_PAGE_MAX_ROWS} rows",
        )
    return page


def encoded(rows: Iterable[Row], wanted: Wanted) -> Slices[list[bytes]]:
    """Encode what a request wants of a list, in pieces of about HTTP_CHUNK_BYTES.

    Raises:
        HttpError: 400, the page is out of range, or its filter is no regular expression.
    """
    page = wanted.page
    if page is None and not wanted.sort:
        pieces = JsonPieces(b"[")
        for row in rows:
            pieces.add(_encoded(row, wanted))
            yield
        return pieces.end(b"]")
    found: list[_Entry] = []
    total = 0
    matches = None if page is None or not page.name else _matcher(page)
    on_page = _places(page) if page is not None and not wanted.sort else None
    for row in rows:
        total += 1
        if matches is None or matches(str(row.get("name", ""))):
            key = tuple(_key(_at(row, path)) for path in wanted.sort)
            is_sent = on_page is None or len(found) in on_page
            found.append((key, len(found), _encoded(row, wanted) if is_sent else b""))
        yield
    if wanted.sort:
        found = yield from _sorted(found, reverse=wanted.reverse)
    return (yield from (_joined(found, b"[", b"]") if page is None else _paged(found, page, total)))


def _encoded(row: Row, wanted: Wanted) -> bytes:
    return encode(chosen(row, wanted.columns) if wanted.columns else row)


def _paged(found: list[_Entry], page: Page, total: int) -> Slices[list[bytes]]:
    count = max(-(-len(found) // page.size), 1)
    if page.number > count:
        raise HttpError(
            400,
            "page_out_of_range",
            f"Page out of range, page: {page.number} page size: {page.size}, len: {len(found)}",
        )
    places = _places(page)
    here = found[places.start : places.stop]
    about = {
        "filtered_count": len(found),
        "item_count": len(here),
        "page": page.number,
        "page_count": count,
        "page_size": page.size,
        "total_count": total,
    }
    pieces = yield from _joined(here, encode(about)[:-1] + b',"items":[', b"]}")
    yield from emptied(found)
    return pieces


def _places(page: Page) -> range:
    """Return the places of a page's rows in the list."""
    return range((page.number - 1) * page.size, page.number * page.size)


def _joined(found: list[_Entry], start: bytes, end: bytes) -> Slices[list[bytes]]:
    pieces = JsonPieces(start)
    for _, _, row in consumed(found):
        pieces.add(row)
        yield
    return pieces.end(end)


def _matcher(page: Page) -> Callable[[str], object]:
    if not page.is_regex:
        part = page.name.lower()
        return lambda name: part in name.lower()
    try:
        search = linear_search_for(f"(?i){page.name}")
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


def _sorted(found: list[_Entry], *, reverse: bool) -> Slices[list[_Entry]]:
    """Sort entries: short runs at once, which are merged entry by entry."""
    runs = []
    for at in range(0, len(found), HTTP_SORT_RUN_ROWS):
        runs.append(sorted(found[at : at + HTTP_SORT_RUN_ROWS], reverse=reverse))
        yield
    return (yield from gathered(merge(*runs, reverse=reverse)))


def _key(value: Any) -> tuple[int, Any]:
    """Make values of different types comparable: nothing, numbers, texts, others."""
    if value is None:
        return (0, 0)
    if isinstance(value, int | float):
        return (1, value)
    if isinstance(value, str):
        return (2, value)
    return (3, encode(value))


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


def encoded_object(answer: Any, wanted: Wanted) -> list[bytes]:
    """Encode an answer that is no list, with the columns that are wanted."""
    if wanted.columns and isinstance(answer, Mapping):
        answer = chosen(answer, wanted.columns)
    return [encode(answer)]
