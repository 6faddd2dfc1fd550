"""Check property lists of class basic, and read the values that the broker itself needs.

A field table is checked without building its values. `properties.pyx` beside this file is the same,
compiled.

    flags(2)   bit 15 content-type  14 content-encoding  13 headers  12 delivery-mode  11 priority
                   10 correlation-id  9 reply-to  8 expiration  7 message-id  6 timestamp  5 type
                    4 user-id  3 app-id  2 cluster-id  1 unused  0 more flags  (AMQP 0-9-1 4.2.6.1)
    then       the properties whose bits are set, from bit 15 down
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
    # Bit 0 announces another word of flags, and bit 1 has no property in class basic.
    if flags & 3:
        raise _malformed("unknown property flags")
    mode, priority, offset = 0, -1, 2
    for bit in range(15, 1, -1):
        if not flags & (1 << bit):
            continue
        size = _property_size(raw, offset, bit)
        if bit == _DELIVERY_MODE:
            mode = raw[offset]
        elif bit == _PRIORITY:
            priority = raw[offset]
        offset += size
    if offset != len(raw):
        raise _malformed("octets after the last property")
    headers = bool(flags & 0x2000)
    # Only for these the broker decodes the properties before it routes the message.
    suspect = bool(flags & _SUSPECT) or (headers and _CARBON in raw)
    return Properties(raw, mode, priority, headers, suspect)


def _property_size(raw: bytes, offset: int, bit: int) -> int:
    """Return the size of the property at an offset."""
    left = len(raw) - offset
    if bit in (_DELIVERY_MODE, _PRIORITY):
        size = 1
    elif bit == _TIMESTAMP:
        size = 8
    elif bit == _HEADERS:
        if left < 4:
            raise _malformed("properties run over the end")
        size = 4 + int.from_bytes(raw[offset : offset + 4])
        if size > left:
            raise _malformed("headers run over the end")
        if not table_fits(raw[offset + 4 : offset + size], 1):
            raise _malformed("headers are not a field table")
    else:
        size = 1 + raw[offset] if left else 1
    if size > left:
        raise _malformed("properties run over the end")
    return size


def table_fits(data: bytes, depth: int) -> bool:
    """True if the bytes are name-value pairs that exactly fill the table."""
    offset = 0
    while offset < len(data):
        offset += 1 + data[offset]
        if offset >= len(data):
            return False
        size = _value_size(data, offset, depth)
        if size < 0:
            return False
        offset += size
    return offset == len(data)


def _value_size(data: bytes, offset: int, depth: int) -> int:
    """Return the size of a tagged value with its tag; -1 if it does not fit or is unknown."""
    tag = data[offset : offset + 1]
    left = len(data) - offset
    fixed = _FIXED_SIZES.get(tag)
    if fixed is not None:
        return 1 + fixed if left > fixed else -1
    if tag not in (b"S", b"x", b"F", b"A") or left < 5:
        return -1
    size = int.from_bytes(data[offset + 1 : offset + 5])
    if size > left - 5:
        return -1
    inner = data[offset + 5 : offset + 5 + size]
    # Tables within tables are checked by recursion: the limit keeps a peer from exhausting the
    # stack.
    if tag == b"F" and (depth >= TABLE_DEPTH or not table_fits(inner, depth + 1)):
        return -1
    if tag == b"A" and (depth >= TABLE_DEPTH or not _array_fits(inner, depth + 1)):
        return -1
    return 5 + size


def _array_fits(data: bytes, depth: int) -> bool:
    offset = 0
    while offset < len(data):
        size = _value_size(data, offset, depth)
        if size < 0:
            return False
        offset += size
    return True


def find_header(raw: bytes, name: bytes) -> int:
    """Return the offset of the value of a header with its tag; -1 if there is none.

    Of headers with equal names the last one counts, as in a table that is decoded.

    Args:
        raw: a property list; one that is not well-formed has no headers.
        name: the octets of the name.
    """
    if len(raw) < 2 or not raw[0] & 0x20:
        return -1
    begin = 2
    for flag in (0x80, 0x40):
        if raw[0] & flag:
            begin += 1 + int.from_bytes(raw[begin : begin + 1])
    end = begin + 4 + int.from_bytes(raw[begin : begin + 4])
    begin += 4
    if end > len(raw):
        return -1
    place = -1
    while begin < end:
        value = begin + 1 + raw[begin]
        size = _value_size(raw[value:end], 0, 1) if value < end else -1
        if size < 0:
            return -1
        if raw[begin + 1 : value] == name:
            place = value
        begin = value + size
    return place
