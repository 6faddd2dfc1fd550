"""Property lists of class basic: checked whole, and read as far as the broker itself needs it.

A field table is looked through without building its values. `properties.pyx` beside this file is
the same, compiled.
"""

from __future__ import annotations

from harebell.base.errors import ProtocolError
from harebell.base.limits import TABLE_DEPTH
from harebell.base.message import Properties

_HEADERS = 13
_DELIVERY_MODE = 12
_PRIORITY = 11
_TIMESTAMP = 6
_SUSPECT = 0x0310
"""The flags of reply-to, expiration and user-id."""
_CARBON = b"CC"
"""In the name of both headers that add routing keys, CC and BCC."""

_FIXED_SIZES = {b"V": 0, b"t": 1, b"b": 1, b"B": 1, b"s": 2, b"u": 2, b"I": 4, b"i": 4, b"f": 4}
_FIXED_SIZES |= {b"l": 8, b"L": 8, b"d": 8, b"T": 8, b"D": 5}


def _malformed(why: str) -> ProtocolError:
    return ProtocolError(505, f"malformed content header: {why}", 60, 0)


def parse_properties(raw: bytes) -> Properties:
    """Check an encoded property list and pick out what the broker itself needs.

    Raises:
        ProtocolError: 505, the list is not what AMQP 0-9-1 4.2.6.1 describes.
    """
    if len(raw) < 2:
        raise _malformed("property flags are missing")
    flags = int.from_bytes(raw[:2])
    if flags & 3:
        raise _malformed("unknown property flags")
    mode, priority, at = 0, -1, 2
    for bit in range(15, 1, -1):
        if not flags & (1 << bit):
            continue
        size = _property_size(raw, at, bit)
        if bit == _DELIVERY_MODE:
            mode = raw[at]
        elif bit == _PRIORITY:
            priority = raw[at]
        at += size
    if at != len(raw):
        raise _malformed("octets after the last property")
    headers = bool(flags & 0x2000)
    suspect = bool(flags & _SUSPECT) or (headers and _CARBON in raw)
    return Properties(raw, mode, priority, headers, suspect)


def _property_size(raw: bytes, at: int, bit: int) -> int:
    """Octets of the property at `at`."""
    left = len(raw) - at
    if bit in (_DELIVERY_MODE, _PRIORITY):
        size = 1
    elif bit == _TIMESTAMP:
        size = 8
    elif bit == _HEADERS:
        if left < 4:
            raise _malformed("properties run over the end")
        size = 4 + int.from_bytes(raw[at : at + 4])
        if size > left:
            raise _malformed("headers run over the end")
        if not table_fits(raw[at + 4 : at + size], 1):
            raise _malformed("headers are not a field table")
    else:
        size = 1 + raw[at] if left else 1
    if size > left:
        raise _malformed("properties run over the end")
    return size


def table_fits(data: bytes, depth: int) -> bool:
    """Whether the octets are name-value pairs that exactly fill the table."""
    at = 0
    while at < len(data):
        at += 1 + data[at]
        if at >= len(data):
            return False
        size = _value_size(data, at, depth)
        if size < 0:
            return False
        at += size
    return at == len(data)


def _value_size(data: bytes, at: int, depth: int) -> int:
    """Octets of a tagged value, tag included; -1 when it does not fit or is unknown."""
    tag = data[at : at + 1]
    left = len(data) - at
    fixed = _FIXED_SIZES.get(tag)
    if fixed is not None:
        return 1 + fixed if left > fixed else -1
    if tag not in (b"S", b"x", b"F", b"A") or left < 5:
        return -1
    size = int.from_bytes(data[at + 1 : at + 5])
    if size > left - 5:
        return -1
    inner = data[at + 5 : at + 5 + size]
    if tag == b"F" and (depth >= TABLE_DEPTH or not table_fits(inner, depth + 1)):
        return -1
    if tag == b"A" and (depth >= TABLE_DEPTH or not _array_fits(inner, depth + 1)):
        return -1
    return 5 + size


def _array_fits(data: bytes, depth: int) -> bool:
    at = 0
    while at < len(data):
        size = _value_size(data, at, depth)
        if size < 0:
            return False
        at += size
    return True
