"""The data types that transitional 0-10 has beside those of 0-9-1, as its clients write them.

    serial      long: a number of RFC 1982's arithmetic, such as a command id
    serials     count(2) of serials, then that many; pairs are closed intervals
    uuid        16 octets; or a longstr of 16 octets, which the Python client of 2007 writes
    body        octet 0 and the body as longstr (inline), or octet 1 and a reference as longstr
    typed-table a field table: see `harebell.wire.v09.typed_fields`

The count of `serials` is of single numbers, so an odd one is an error: 530, as Qpid had it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from harebell.base.errors import ProtocolError
from harebell.wire.v09.domains import DOMAINS, Domain, overrun
from harebell.wire.v09.method import Table
from harebell.wire.v09.typed_fields import decode_typed, encode_typed

INLINE = 0
"""The octets of a `Body` are the body."""
REFERENCE = 1
"""The octets of a `Body` are the name of one that came, or comes, in pieces."""

_UUID = 16
_SERIAL = 4
_COUNT = 2
_SERIAL_MAX = (1 << 32) - 1
_COUNT_MAX = (1 << 16) - 1
_LONGSTR = DOMAINS["longstr"]
Ranges = tuple[tuple[int, int], ...]
"""Closed intervals of serial numbers."""


class Body(NamedTuple):
    """The last field of message.transfer.

    Args:
        kind: INLINE or REFERENCE.
        octets: the body, or the name of it.
    """

    kind: int
    octets: bytes


def _read_uuid(data: bytes, offset: int) -> tuple[bytes, int]:
    # By the length as well: a UUID may begin with the octets of that size. It is the last field.
    prefixed = data[offset : offset + _SERIAL] == _UUID.to_bytes(_SERIAL)
    if prefixed and len(data) - offset == _SERIAL + _UUID:
        offset += _SERIAL
    end = offset + _UUID
    if end > len(data):
        raise overrun()
    return data[offset:end], end


def _write_uuid(value: bytes) -> bytes:
    if not isinstance(value, bytes):
        raise TypeError(f"must be bytes, not {type(value).__name__}")
    if len(value) != _UUID:
        raise ValueError(f"a UUID has {_UUID} octets, not {len(value)}")
    return value


def _read_serials(data: bytes, offset: int) -> tuple[Ranges, int]:
    start = offset + _COUNT
    count = int.from_bytes(data[offset:start])
    end = start + _SERIAL * count
    if start > len(data) or end > len(data):
        raise overrun()
    if count % 2:
        raise ProtocolError(530, f"a set of {count} numbers cannot be pairs")
    numbers = [int.from_bytes(data[n : n + _SERIAL]) for n in range(start, end, _SERIAL)]
    return tuple(zip(numbers[::2], numbers[1::2], strict=True)), end


def _write_serials(value: Ranges) -> bytes:
    if 2 * len(value) > _COUNT_MAX:
        raise ValueError(f"{len(value)} intervals are more than fit, {_COUNT_MAX // 2}")
    out = bytearray((2 * len(value)).to_bytes(_COUNT))
    for interval in value:
        for number in interval:
            if not 0 <= number <= _SERIAL_MAX:
                raise ValueError(f"{number} is not between 0 and {_SERIAL_MAX}")
            out += number.to_bytes(_SERIAL)
    return bytes(out)


def _read_body(data: bytes, offset: int) -> tuple[Body, int]:
    if offset >= len(data):
        raise overrun()
    kind = data[offset]
    if kind not in (INLINE, REFERENCE):
        raise ProtocolError(502, f"a body of kind {kind} is neither inline (0) nor a reference (1)")
    octets, offset = _LONGSTR.read(data, offset + 1)
    return Body(kind, octets), offset


def _write_body(value: Body) -> bytes:
    kind, octets = value
    if kind not in (INLINE, REFERENCE):
        raise ValueError(f"a body is inline (0) or a reference (1), not {kind}")
    return bytes((kind,)) + _LONGSTR.write(octets)


def _write_table(value: Mapping[str, Any] | bytes) -> bytes:
    """Encode a table; octets are a table that is encoded already."""
    return value if isinstance(value, bytes) else encode_typed(value)


TRANSITIONAL: dict[str, Domain] = {
    "serial": DOMAINS["long"],
    "serials": Domain(_read_serials, _write_serials, (), Ranges),
    "uuid": Domain(_read_uuid, _write_uuid, bytes(_UUID), bytes),
    "body": Domain(_read_body, _write_body, Body(INLINE, b""), Body),
    "typed-table": Domain(decode_typed, _write_table, {}, Table),
}
"""The data types of transitional 0-10 beside those of `harebell.wire.v09.domains`, by name."""
