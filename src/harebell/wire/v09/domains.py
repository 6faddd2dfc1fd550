"""The elementary data types of method fields, and how each one is read and written.

    octet, short, long, longlong   unsigned integers of 1, 2, 4, 8 octets    AMQP 0-9-1 4.2.5.1
    bit                            packed: see `harebell.wire.v09.spec`      4.2.5.2
    shortstr                       length octet, UTF-8                       4.2.5.3
    longstr                        length long, any octets                   4.2.5.3
    timestamp                      longlong, seconds since 1970              4.2.5.4
    table                          see `harebell.wire.v09.fields`            4.2.5.5
    plain-table                    see `harebell.wire.v09.plain_fields`      0-8, 0-9
    plain-table?                   a plain-table, or nothing, at the end of a method

Readers raise `ProtocolError` without naming the field and writers raise `ValueError` or
`TypeError`; the caller, who knows the method and the field, puts the names in front.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from harebell.base.errors import ProtocolError
from harebell.base.limits import NAME_BYTES
from harebell.wire.v09.fields import decode_table, encode_table
from harebell.wire.v09.method import Table
from harebell.wire.v09.plain_fields import encode_plain

BIT = "bit"

ABSENT: dict[str, Any] = {}
"""The value of an optional table that a peer has not sent; compared by identity."""


class Domain(NamedTuple):
    """How values of one data type are read and written.

    Args:
        read: (data, offset) -> (value, offset after it).
        write: value -> octets.
        zero: what a reserved field of this type is written as, and the default of others.
        annotation: the Python type of its values.
    """

    read: Callable[[bytes, int], tuple[Any, int]]
    write: Callable[[Any], bytes]
    zero: Any
    annotation: Any


def overrun() -> ProtocolError:
    """Return the error for a field that needs more octets than are left."""
    return ProtocolError(502, "it runs over the end of the frame")


def _unsigned(size: int) -> Domain:
    maximum = (1 << 8 * size) - 1

    def read(data: bytes, offset: int) -> tuple[int, int]:
        end = offset + size
        if end > len(data):
            raise overrun()
        return int.from_bytes(data[offset:end]), end

    def write(value: int) -> bytes:
        if not isinstance(value, int):
            raise TypeError(f"must be an int, not {type(value).__name__}")
        if not 0 <= value <= maximum:
            raise ValueError(f"{value} is not between 0 and {maximum}")
        return value.to_bytes(size)

    return Domain(read, write, 0, int)


def _read_shortstr(data: bytes, offset: int) -> tuple[str, int]:
    if offset >= len(data):
        raise overrun()
    end = offset + 1 + data[offset]
    if end > len(data):
        raise overrun()
    try:
        return data[offset + 1 : end].decode(), end
    except UnicodeDecodeError:
        # RabbitMQ's code and text; AMQP 0-9-1 4.2.5.3 has UTF-8 in short strings.
        raise ProtocolError(501, "Malformed UTF-8 in shortstr") from None


def _write_shortstr(value: str) -> bytes:
    if not isinstance(value, str):
        raise TypeError(f"must be a str, not {type(value).__name__}")
    try:
        octets = value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{value!a} holds characters that UTF-8 cannot express") from None
    if len(octets) > NAME_BYTES:
        raise ValueError(f"it has {len(octets)} octets, at most {NAME_BYTES} are possible")
    return bytes((len(octets),)) + octets


def _read_longstr(data: bytes, offset: int) -> tuple[bytes, int]:
    start = offset + 4
    end = start + int.from_bytes(data[offset:start])
    if start > len(data) or end > len(data):
        raise overrun()
    return data[start:end], end


def _write_longstr(value: bytes) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise TypeError(f"must be bytes, not {type(value).__name__}")
    octets = bytes(value)
    return len(octets).to_bytes(4) + octets


def _read_optional(data: bytes, offset: int) -> tuple[dict[str, Any], int]:
    # Some clients of 0-8 send basic.consume with arguments, which 0-9 added, and others do not.
    return (ABSENT, offset) if offset == len(data) else decode_table(data, offset)


def _write_optional(value: dict[str, Any]) -> bytes:
    return b"" if value is ABSENT else encode_plain(value)


DOMAINS: dict[str, Domain] = {
    "octet": _unsigned(1),
    "short": _unsigned(2),
    "long": _unsigned(4),
    "longlong": _unsigned(8),
    "timestamp": _unsigned(8),
    "shortstr": Domain(_read_shortstr, _write_shortstr, "", str),
    "longstr": Domain(_read_longstr, _write_longstr, b"", bytes),
    "table": Domain(decode_table, encode_table, {}, Table),
    "plain-table": Domain(decode_table, encode_plain, {}, Table),
    "plain-table?": Domain(_read_optional, _write_optional, ABSENT, Table),
}
"""The data types by name; `bit` is none of them, as it has no bytes of its own."""
