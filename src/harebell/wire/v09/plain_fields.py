"""Field tables for peers that know five types of value: those of 0-8 and 0-9.

Such a peer fails at a type that it does not know, because it cannot find the end of the value.
Values of other types are written in one of the five, so that a reader of the text can restore them:

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
PLAIN_TAGS = frozenset(b"SIDTF")
_TABLE = ord("F")
_SIZE = 4


def plain(value: Any) -> Any:
    """Convert a value to one that the five types can carry."""
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
    """Encode a table, with its size in front, in the five types.

    Raises:
        TypeError, ValueError: as `encode_table`.
    """
    if not isinstance(table, Mapping):
        return encode_table(table)
    return encode_table({name: plain(value) for name, value in table.items()})


def tags_of(data: bytes, offset: int = 0) -> frozenset[int]:
    """Return the types of all values of a well-formed encoded table, nested tables included."""
    tags: set[int] = set()
    for name, begin, _ in entries(data, offset):
        tag = begin + 1 + len(name)
        tags.add(data[tag])
        if data[tag] == _TABLE:
            tags |= tags_of(data, tag + 1)
    return frozenset(tags)


def is_plain(data: bytes, offset: int = 0, known: frozenset[int] = PLAIN_TAGS) -> bool:
    """True if a well-formed encoded table has only types that a peer knows."""
    return tags_of(data, offset) <= known


def made_plain(
    data: bytes, offset: int = 0, known: frozenset[int] = PLAIN_TAGS
) -> tuple[bytes, int]:
    """Convert an encoded table to types that a peer knows; also return the offset after the old.

    Args:
        data: octets that contain the table.
        offset: of the table.
        known: the types that are not converted.
    """
    out = b""
    for name, begin, end in entries(data, offset):
        tag = begin + 1 + len(name)
        # The values of a table inside are converted one by one as well.
        if data[tag] == _TABLE:
            out += data[begin : tag + 1] + made_plain(data, tag + 1, known)[0]
        elif data[tag] in known:
            out += data[begin:end]
        else:
            # Entry by entry: decoding the whole table would drop second entries of one name.
            entry, _ = decode_table((end - begin).to_bytes(_SIZE) + data[begin:end], 0)
            out += encode_plain(entry)[_SIZE:]
    after = offset + _SIZE + int.from_bytes(data[offset : offset + _SIZE])
    return len(out).to_bytes(_SIZE) + out, after
