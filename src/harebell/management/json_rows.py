"""Encode rows of a list as JSON in slices.

Rows are encoded one by one as they are made, and not kept: 10,000 rows of queues have 200,000
dictionaries, which would stop the loop for tens of milliseconds when they are freed.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from typing import Any

import msgspec

from harebell.admin.limits import HTTP_CHUNK_BYTES
from harebell.admin.message_row import LongRow
from harebell.admin.rows.lazy import LazyRow
from harebell.admin.streaming import HeldRows
from harebell.base.slices import Slices, consumed, gathered

Row = Mapping[str, Any]


def _shown(value: Any) -> Any:
    # Imported here: nearly all rows have only what JSON can say.
    from harebell.wire.json_values import shown

    return shown(value)


_encode = msgspec.json.Encoder(enc_hook=_shown).encode


def encode(value: Any) -> bytes:
    """Encode a value as JSON; what JSON does not have is written as in `harebell.wire.json_values`.

    Rows have values that peers have sent: one that JSON does not have must not hide the others.
    """
    if isinstance(value, LazyRow):
        value = value.whole()
    try:
        return _encode(value)
    except (UnicodeEncodeError, TypeError, ValueError, OverflowError):
        return _encode(_shown(value))


class JsonPieces:
    """JSON in pieces of about HTTP_CHUNK_BYTES.

    Args:
        start: the first bytes.
    """

    def __init__(self, start: bytes) -> None:
        self._done: list[bytes] = []
        self._piece = bytearray(start)
        self._comma = b""

    def add(self, row: bytes) -> None:
        """Add an encoded row, behind a comma if it is not the first one."""
        self._piece += self._comma
        self._comma = b","
        self._extend(row)

    def add_long(self, row: LongRow) -> Slices[None]:
        """Add a row whose payload is long."""
        self.add(_encode(row)[:-1] + b',"payload":"')
        for text in row.pieces():
            self._extend(_encode(text)[1:-1])
            yield
        self._extend(b'"}')

    def add_member(self, name: str, value: Any) -> Slices[None]:
        """Add a member of an object; the items of a list are encoded one by one."""
        if not isinstance(value, list):
            self.add(encode(name) + b":" + encode(value))
            return
        self.add(encode(name) + b":[")
        comma = b""
        for item in value:
            self._extend(comma + encode(item))
            comma = b","
            yield
        self._extend(b"]")

    def _extend(self, data: bytes) -> None:
        self._piece += data
        if len(self._piece) >= HTTP_CHUNK_BYTES:
            self._done.append(bytes(self._piece))
            self._piece.clear()

    def end(self, end: bytes) -> list[bytes]:
        """Return all pieces."""
        return [*self._done, bytes(self._piece + end)]


class EncodedRows:
    """A list of rows that is encoded already.

    Args:
        pieces: the JSON of the list.
        held: what is settled when they were sent; None for nothing.
    """

    def __init__(self, pieces: list[bytes], held: HeldRows | None = None) -> None:
        self.pieces = pieces
        self.held = held


def rows_of(answer: Any) -> Slices[Any]:
    """Return the rows of a command's answer, to be taken once; another answer as it is.

    Args:
        answer: what the command returned: slices, a list, or something else.
    """
    if isinstance(answer, gathered):
        return answer.items
    if isinstance(answer, Generator):
        answer = yield from answer
    return consumed(answer) if isinstance(answer, list) else answer


def held_of(answer: Any) -> HeldRows | None:
    """Return what an answer holds until it was sent; None for nothing."""
    return answer if isinstance(answer, HeldRows) else getattr(answer, "held", None)


def encoded_rows(rows: Iterable[Row]) -> Slices[EncodedRows]:
    """Encode rows as a list."""
    pieces = JsonPieces(b"[")
    for row in rows:
        if isinstance(row, LongRow):
            yield from pieces.add_long(row)
        else:
            pieces.add(encode(row))
            yield
    return EncodedRows(pieces.end(b"]"))


def encoded_members(answer: Mapping[str, Any]) -> Slices[list[bytes]]:
    """Encode an object in pieces, the items of its lists one by one."""
    pieces = JsonPieces(b"{")
    for name, value in answer.items():
        yield from pieces.add_member(name, value)
    return pieces.end(b"}")
