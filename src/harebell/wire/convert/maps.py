"""Convert between field tables (0-8 to 0-9-1) and maps (0-10), each value in its own type.

    table  tag                       map   type
    t                                0x08  boolean             0xf1 (bit) becomes t
    b B s u I i l                    0x01 0x02 0x11 0x12 0x21 0x22 0x31
    L                                0x31                      comes back as l, which is the same
    f d                              0x23 0x33
    D                                0xc8  dec32
    S                                0x95  str16               0xa0 when it is longer or no UTF-8
    x                                0x90, 0xa0  vbin          and all other binary types
    T                                0x38  datetime
    A                                0xa9  list                0xaa (array) becomes A
    F                                0xa8  map
    V                                0xf0  void
    l, or S in digits                0x32  uint64              S from 2**63 on
    D, or S in digits                0xd8  dec64               S when it has more than 31 bits
    S                                0x48  uuid                in its usual form
    S                                0x04 0x27 char; 0x84 0x85 0x86 0x94 0x96 texts

Numbers have the same bytes on both sides. The input is well-formed, because it was checked when the
message was received; anything else raises `ValueError`.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from uuid import UUID

from harebell.base.limits import TABLE_DEPTH
from harebell.wire.v010 import types

_SIZE = 4
_STR16_MAX = 65_535
_NUMBERS = {
    ord("t"): (types.BOOLEAN, 1),
    ord("b"): (0x01, 1),
    ord("B"): (0x02, 1),
    ord("s"): (0x11, 2),
    ord("u"): (0x12, 2),
    ord("I"): (types.INT32, 4),
    ord("i"): (0x22, 4),
    ord("l"): (types.INT64, 8),
    ord("L"): (types.INT64, 8),
    ord("f"): (0x23, 4),
    ord("d"): (types.DOUBLE, 8),
    ord("T"): (types.DATETIME, 8),
    ord("D"): (types.DEC32, 5),
    ord("V"): (types.VOID, 0),
}
"""Tags whose values have the same encoding in both: their code and width."""

_TAGS = {code: tag for tag, (code, _) in _NUMBERS.items() if tag != ord("L")}
_TEXT, _OCTETS, _TABLE, _ARRAY = (ord(tag) for tag in "SxFA")
_INT64_MAX = (1 << 63) - 1
_INT32 = 1 << 31
_BIT = 0xF1


def to_map(table: bytes, depth: int = 1) -> bytes:
    """Convert a table to a map, both without their sizes: count and entries.

    Raises:
        ValueError: it is not a table.
    """
    _check(depth)
    count = 0
    out = bytearray()
    offset = 0
    while offset < len(table):
        start = offset + 1 + table[offset]
        if start >= len(table):
            raise ValueError("a name runs over the end of its table")
        code, value, after = _to_value(table, start, depth)
        out += table[offset:start]
        out.append(code)
        out += value
        offset = after
        count += 1
    return count.to_bytes(_SIZE) + bytes(out)


def _to_value(data: bytes, offset: int, depth: int) -> tuple[int, bytes, int]:
    """Convert the value at a tag: return its code and bytes, and its end."""
    tag = data[offset]
    offset += 1
    number = _NUMBERS.get(tag)
    if number is not None:
        code, width = number
        return code, _piece(data, offset, width), offset + width
    size = int.from_bytes(_piece(data, offset, _SIZE))
    offset += _SIZE
    value = _piece(data, offset, size)
    offset += size
    if tag == _TABLE:
        return types.MAP, _sized(to_map(value, depth + 1)), offset
    if tag == _ARRAY:
        return types.LIST, _sized(_to_list(value, depth + 1)), offset
    if tag == _TEXT and size <= _STR16_MAX and _is_utf8(value):
        return types.STR16, size.to_bytes(2) + value, offset
    if tag not in (_TEXT, _OCTETS):
        raise ValueError(f"no value has the tag {tag:#04x}")
    # Octets, and texts that are no UTF-8 or too long for str16: 0-10 has no longer text.
    if size <= _STR16_MAX:
        return types.VBIN16, size.to_bytes(2) + value, offset
    return types.VBIN32, _sized(value), offset


def _to_list(data: bytes, depth: int) -> bytes:
    _check(depth)
    count = 0
    out = bytearray()
    offset = 0
    while offset < len(data):
        code, value, offset = _to_value(data, offset, depth)
        out.append(code)
        out += value
        count += 1
    return count.to_bytes(_SIZE) + bytes(out)


def to_table(data: bytes, depth: int = 1) -> bytes:
    """Convert a map to a table, both without their sizes.

    Raises:
        ValueError: it is not a map.
    """
    _check(depth)
    out = bytearray()
    # Behind the count, which tables do not have: the end of the bytes is the end of the entries.
    offset = _SIZE
    while offset < len(data):
        start = offset + 1 + data[offset]
        if start >= len(data):
            raise ValueError("a name runs over the end of its map")
        tag, value, after = _from_value(data, data[start], start + 1, depth)
        out += data[offset:start]
        out.append(tag)
        out += value
        offset = after
    return bytes(out)


def _from_value(data: bytes, code: int, offset: int, depth: int) -> tuple[int, bytes, int]:
    """Convert a value of a type: return its tag and bytes, and its end."""
    start, after = types.extent(data, code, offset, len(data))
    value = data[start:after]
    tag = _TAGS.get(code)
    if tag is not None:
        return tag, value, after
    if code == types.MAP:
        return _TABLE, _sized(to_table(value, depth + 1)), after
    if code == types.LIST:
        return _ARRAY, _sized(_from_list(value, depth + 1)), after
    if code == types.ARRAY:
        return _ARRAY, _sized(_from_array(value, depth + 1)), after
    if code == _BIT:
        return ord("t"), b"\1", after
    special = _SPECIAL.get(code)
    if special is not None:
        tag, value = special(value)
        return tag, value, after
    # Any other type: texts of other character sets become UTF-8, and the rest stays octets.
    decoded, _ = types.read_value(data, code, offset, len(data))
    if isinstance(decoded, str):
        return _TEXT, _sized(decoded.encode(errors="surrogateescape")), after
    return _OCTETS, _sized(value), after


def _from_list(data: bytes, depth: int) -> bytes:
    _check(depth)
    out = bytearray()
    offset = _SIZE
    while offset < len(data):
        tag, value, offset = _from_value(data, data[offset], offset + 1, depth)
        out.append(tag)
        out += value
    return bytes(out)


def _from_array(data: bytes, depth: int) -> bytes:
    _check(depth)
    out = bytearray()
    # Behind the code, which all values share, and the count.
    offset = 1 + _SIZE
    while offset < len(data):
        tag, value, offset = _from_value(data, data[0], offset, depth)
        out.append(tag)
        out += value
    return bytes(out)


def _unsigned(value: bytes) -> tuple[int, bytes]:
    number = int.from_bytes(value)
    return (ord("l"), value) if number <= _INT64_MAX else (_TEXT, _sized(str(number).encode()))


def _decimal(value: bytes) -> tuple[int, bytes]:
    digits = int.from_bytes(value[1:], signed=True)
    if -_INT32 <= digits < _INT32:
        return ord("D"), value[:1] + digits.to_bytes(4, signed=True)
    places = tuple(int(digit) for digit in str(abs(digits)))
    text = str(Decimal((int(digits < 0), places, -value[0])))
    return _TEXT, _sized(text.encode())


def _uuid(value: bytes) -> tuple[int, bytes]:
    return _TEXT, _sized(str(UUID(bytes=value)).encode())


_SPECIAL: dict[int, Callable[[bytes], tuple[int, bytes]]] = {
    types.UINT64: _unsigned,
    types.DEC64: _decimal,
    types.UUID_CODE: _uuid,
}


def _check(depth: int) -> None:
    if depth > TABLE_DEPTH:
        raise ValueError(f"tables are nested deeper than {TABLE_DEPTH}")


def _piece(data: bytes, offset: int, size: int) -> bytes:
    if offset + size > len(data):
        raise ValueError("a value runs over the end of its table")
    return data[offset : offset + size]


def _sized(value: bytes) -> bytes:
    return len(value).to_bytes(_SIZE) + value


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True
