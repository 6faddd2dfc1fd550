"""Events and log lines on their way to the owner of store 1, which has the exchanges for them.

    owner of another store                                owner of store 1
    1 byte: the caller sends first                  -->
                                                     <--  1 byte: what is bound there
    size(4) kind(1) key length(1) key headers body   -->
    size(4) kind(1) ...                              -->
                                                     <--  1 byte, when that has changed

The byte is a sum: EVENTS if something is bound to the event exchange, LINES if something is bound
to the log exchange. Headers are a field table of AMQP 0-9-1; the kind is EVENTS or LINES.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from harebell.base.errors import ProtocolError
from harebell.base.limits import CLUSTER_EVENT_BYTES
from harebell.wire.v09.fields import decode_table, encode_table

SERVICE = "events"
"""The service at the cluster port that publishes them."""
EVENTS, LINES = 1, 2
SIZE_BYTES = 4
BEGIN = b"\0"
_KEY_AT = 2


class Record(NamedTuple):
    """An event or a log line.

    Args:
        kind: EVENTS or LINES.
        key: its routing key.
        headers: integers of any size in a table come out as `int`.
        body: its body; b"" for an event.
    """

    kind: int
    key: str
    headers: Mapping[str, Any]
    body: bytes = b""


def encoded(record: Record) -> bytes:
    """Return a record with its size.

    Raises:
        TypeError, ValueError: the headers are nested too deeply, or the key is too long.
    """
    key = record.key.encode()
    table = encode_table(record.headers)
    content = b"".join((bytes((record.kind, len(key))), key, table, record.body))
    return len(content).to_bytes(SIZE_BYTES) + content


def size_of(data: bytes) -> int:
    """Return the size of the record that follows.

    Raises:
        ValueError: no broker sends such a record.
    """
    size = int.from_bytes(data)
    if not _KEY_AT < size <= CLUSTER_EVENT_BYTES:
        raise ValueError(f"a record of {size} bytes")
    return size


def decoded(data: bytes) -> Record:
    """Return a record.

    Raises:
        ValueError: it is none.
    """
    at = _KEY_AT + data[1]
    try:
        headers, end = decode_table(data, at)
    except ProtocolError as error:
        raise ValueError(f"a record with damaged headers: {error}") from None
    return Record(data[0], data[_KEY_AT:at].decode(), headers, data[end:])
