"""Encode rows of a list as JSON in slices.

Rows are encoded one by one as they are made, and not kept: 10,000 rows of queues have 200,000
dictionaries, which would stop the loop for tens of milliseconds when they are freed.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from typing import Any

import msgspec

from harebell.base.limits import HTTP_CHUNK_BYTES
from harebell.base.slices import Slices, consumed, gathered

Row = Mapping[str, Any]
encode = msgspec.json.Encoder().encode


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
        self._piece += row
        self._comma = b","
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
    """

    def __init__(self, pieces: list[bytes]) -> None:
        self.pieces = pieces


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


def encoded_rows(rows: Iterable[Row]) -> Slices[EncodedRows]:
    """Encode rows as a list."""
    pieces = JsonPieces(b"[")
    for row in rows:
        pieces.add(encode(row))
        yield
    return EncodedRows(pieces.end(b"]"))
