"""Field tables for peers that know five types of value: those of 0-8 and 0-9.

Such a peer does not skip a type that it does not know, it fails: it cannot tell where the value
ends. What the five types cannot say is written so that a reader of the text finds it again:

    S I D T F                as they are          bool       I 0 or 1
    int of more than 32 bits S, its digits        float      S, as written in Python
    octets                   S                    array      F with the keys "0", "1", ...
    nothing                  S, empty
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from harebell.wire.v09.fields import LongString, Timestamp, decode_table, encode_table, entries

_INT32 = 1 << 31
_PLAIN_TAGS = frozenset(b"SIDT")
_TABLE = ord("F")


def plain(value: Any) -> Any:
    """A value that the five types can carry."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, str | Timestamp | LongString | Decimal | datetime):
        return value
    if isinstance(value, int):
        return int(value) if -_INT32 <= value < _INT32 else str(int(value))
    if isinstance(value, bytes | bytearray | memoryview):
        return LongString(value)
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return {str(place): plain(item) for place, item in enumerate(value)}
    return "" if value is None else str(value)


def encode_plain(table: Mapping[str, Any]) -> bytes:
    """A table with its size in front, in the five types.

    Raises:
        TypeError, ValueError: as `encode_table`.
    """
    if not isinstance(table, Mapping):
        return encode_table(table)
    return encode_table({name: plain(value) for name, value in table.items()})


def is_plain(data: bytes, offset: int = 0) -> bool:
    """Whether a well-formed encoded table has the five types only."""
    for name, at, _ in entries(data, offset):
        tag = at + 1 + len(name)
        if data[tag] == _TABLE:
            if not is_plain(data, tag + 1):
                return False
        elif data[tag] not in _PLAIN_TAGS:
            return False
    return True


def made_plain(data: bytes, offset: int = 0) -> tuple[bytes, int]:
    """An encoded table in the five types, and the offset after the old one."""
    table, end = decode_table(data, offset)
    return encode_plain(table), end
