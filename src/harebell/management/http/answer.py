"""The answer to a request: its parts, and how it is made from what a command returned."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from harebell.admin.streaming import HeldRows
from harebell.base.slices import Slices, ended
from harebell.management.http.rows import encoded, encoded_object, query_of_rows
from harebell.management.json_rows import encode

if TYPE_CHECKING:
    from harebell.admin.command import Command
    from harebell.management.control.row_reader import Rows

Headers = tuple[tuple[str, str], ...]
JSON = ("content-type", "application/json")
_LINES = ("content-type", "application/x-ndjson")


class Answer(NamedTuple):
    """A response.

    Args:
        status: the status code.
        headers: names and values, as they are sent.
        pieces: its body.
        rows: the rows that are its body, a line of JSON each; None for none.
        constant: whether all clients get the same body, so that it is compressed once.
        held: the messages that are settled when the body was sent; None for none.
        user: the user to whose unread answers it counts; "" for none.
    """

    status: int
    headers: Headers = ()
    pieces: tuple[bytes, ...] | list[bytes] = ()
    rows: Rows | None = None
    constant: bool = False
    held: HeldRows | None = None
    user: str = ""

    @property
    def size(self) -> int:
        """Bytes of its body."""
        return sum(map(len, self.pieces))

    def with_headers(self, *headers: tuple[str, str]) -> Answer:
        """Return the answer with further headers."""
        return self._replace(headers=(*self.headers, *headers))


def answer_of_rows(rows: Rows) -> Answer:
    """Return the answer whose rows are sent while they are made."""
    return Answer(200, (_LINES,), rows=rows)


def answer_with_held(held: HeldRows) -> Slices[Answer]:
    """Return the answer that settles messages when it was sent."""
    try:
        pieces = yield from encoded(held.rows, query_of_rows({}))
    except BaseException:
        ended(held.end(False))
        raise
    return Answer(200, (JSON,), pieces, held=held)


def whole_answer(result: Any) -> Slices[Answer]:
    """Return the answer of a command that was run by its name: its result as it is."""
    if isinstance(result, Iterator):
        return Answer(200, (JSON,), (yield from encoded(result, query_of_rows({}))))
    return Answer(200, (JSON,), (encode(result),))


def answer_of_route(
    method: str, command: Command, result: Any, query: dict[str, str]
) -> Slices[Answer]:
    """Return the answer of a command that a route has run.

    Args:
        method: the method of the request.
        command: the command that the route names.
        result: what it returned.
        query: which rows and columns a request that reads asks for; {} for all.
    """
    if method in ("GET", "HEAD") or command.status == 200:
        row_query = query_of_rows(query)
        if isinstance(result, Iterator):
            pieces = yield from encoded(result, row_query)
        else:
            pieces = yield from encoded_object(result, row_query)
        return Answer(200, (JSON,), pieces)
    if method == "PUT" and isinstance(result, dict) and result.get("made"):
        return Answer(201)
    if command.status:
        location = result.get("location") if isinstance(result, dict) else None
        return Answer(command.status, () if location is None else (("location", location),))
    return Answer(204)
