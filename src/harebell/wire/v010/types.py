"""The data types of AMQP 0-10 and their encoding.

Every type has a code of one octet, and the code alone determines the width of a value. So values
of unknown types can be skipped:

    0x00 1   0x10 2   0x20 4   0x30 8   0x40 16   0x50 32   0x60 64   0x70 128     fixed widths
    0x80 length in 1 octet     0x90 in 2     0xa0 in 4                             variable
    0xc0 5   0xd0 9   0xf0 0                                                       odd widths

    map     size(4) count(4) { name(str8) code(1) value }
    list    size(4) count(4) { code(1) value }
    array   size(4) code(1) count(4) { value }

Lengths are compared with the available input before anything is allocated.

In Python: None is void, bool boolean, int the smallest of int32, int64 and uint64, float double,
Decimal dec32 or dec64, str str16, bytes vbin16 or vbin32, datetime datetime, UUID uuid, a dict a
map, a list a list, an `Array` an array. `Typed` holds values of all other types.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from harebell.base.limits import TABLE_DEPTH
from harebell.base.values import Typed
from harebell.wire.v09.fields import Timestamp, read_timestamp, write_timestamp

_SIZE = 4
_STR8_MAX = 255
_STR16_MAX = 65535
_INT32 = 1 << 31
_INT64 = 1 << 63

FIXED = {**{0x10 * power: 1 << power for power in range(8)}, 0xC0: 5, 0xD0: 9, 0xF0: 0}
"""The upper half of a code of a fixed width: that width."""
_VARIABLE = {0x80: 1, 0x90: 2, 0xA0: 4}

BOOLEAN = 0x08
INT32 = 0x21
INT64 = 0x31
UINT64 = 0x32
DOUBLE = 0x33
DATETIME = 0x38
UUID_CODE = 0x48
VBIN16 = 0x90
STR16 = 0x95
VBIN32 = 0xA0
MAP = 0xA8
LIST = 0xA9
ARRAY = 0xAA
STRUCT32 = 0xAB
DEC32 = 0xC8
DEC64 = 0xD8
VOID = 0xF0

NUMBERS = {
    0x01: struct.Struct(">b"),
    0x02: struct.Struct(">B"),
    0x11: struct.Struct(">h"),
    0x12: struct.Struct(">H"),
    0x21: struct.Struct(">i"),
    0x22: struct.Struct(">I"),
    0x23: struct.Struct(">f"),
    0x31: struct.Struct(">q"),
    0x32: struct.Struct(">Q"),
    0x33: struct.Struct(">d"),
}
_TEXTS = {
    0x84: "latin-1",
    0x94: "latin-1",
    0x85: "utf-8",
    0x95: "utf-8",
    0x86: "utf-16-be",
    0x96: "utf-16-be",
}
_OCTETS = frozenset((0x00, 0x10, 0x20, 0x30, 0x40, 0x50, 0x60, 0x70, 0x80, 0x90, 0xA0, 0xC0, 0xD0))
_CHARACTERS = {0x04: "latin-1", 0x27: "utf-32-be"}


class Malformed(ValueError):
    """Bytes that are not a value of the expected type."""


class Array(list[Any]):
    """A list whose items are all of one type.

    Args:
        code: the code of the type.
        items: the values.
    """

    def __init__(self, code: int, items: list[Any] | tuple[Any, ...] = ()) -> None:
        super().__init__(items)
        self.code = code

    def __repr__(self) -> str:
        return f"Array({self.code:#04x}, {list(self)!r})"


def cut_off(announced: int, available: int) -> Malformed:
    """Return the error for a value that exceeds its container."""
    return Malformed(f"{announced} octets are announced, {max(available, 0)} are there")


def extent(data: bytes, code: int, offset: int, end: int) -> tuple[int, int]:
    """Return where the bytes of a value of that type begin and end, without its length."""
    group = code & 0xF0
    width = FIXED.get(group)
    if width is None:
        prefix = _VARIABLE.get(group)
        if prefix is None:
            raise Malformed(f"unknown type code {code:#04x}")
        if offset + prefix > end:
            raise cut_off(prefix, end - offset)
        width = int.from_bytes(data[offset : offset + prefix])
        offset += prefix
    if offset + width > end:
        raise cut_off(width, end - offset)
    return offset, offset + width


# --- reading ------------------------------------------------------------------------------------


def read_value(data: bytes, code: int, offset: int, end: int, depth: int = 1) -> tuple[Any, int]:
    """Decode a value of that type; return it and its end.

    Raises:
        Malformed: the bytes do not fit the type.
    """
    start, after = extent(data, code, offset, end)
    number = NUMBERS.get(code)
    if number is not None:
        return number.unpack_from(data, start)[0], after
    if code in _TEXTS:
        try:
            return data[start:after].decode(_TEXTS[code]), after
        except UnicodeDecodeError:
            # A value in a map is the application's: it is passed on as it came.
            return Typed(code, data[start:after]), after
    if code in _OCTETS:
        return data[start:after], after
    if code in _CHARACTERS:
        return read_text(data[start:after], _CHARACTERS[code]), after
    read = _READERS.get(code)
    if read is not None:
        return read(data, start, after, depth), after
    return Typed(code, data[start:after]), after


def read_text(octets: bytes, encoding: str = "utf-8") -> str:
    """Decode a text."""
    try:
        return octets.decode(encoding)
    except UnicodeDecodeError:
        raise Malformed(f"a text is no {encoding.upper()}") from None


def read_map(data: bytes, offset: int, end: int, depth: int = 1) -> dict[str, Any]:
    """Decode a map, from its count on. Some peers encode an empty map as zero bytes."""
    if offset == end:
        return {}
    count, offset = _count(data, offset, end, depth)
    result: dict[str, Any] = {}
    for _ in range(count):
        # 2: the length of the name, and the code of the value behind it.
        if offset >= end or offset + 2 + data[offset] > end:
            raise Malformed("a name runs over the end of its map")
        name_end = offset + 1 + data[offset]
        name = data[offset + 1 : name_end].decode(errors="surrogateescape")
        try:
            result[name], offset = read_value(data, data[name_end], name_end + 1, end, depth + 1)
        except Malformed as malformed:
            raise Malformed(f"{name!a}: {malformed}") from None
    _check_end(offset, end, "map")
    return result


def read_list(data: bytes, offset: int, end: int, depth: int = 1) -> list[Any]:
    """Decode a list, from its count on."""
    if offset == end:
        return []
    count, offset = _count(data, offset, end, depth)
    result = []
    for _ in range(count):
        if offset >= end:
            raise Malformed("a list has fewer values than it says")
        value, offset = read_value(data, data[offset], offset + 1, end, depth + 1)
        result.append(value)
    _check_end(offset, end, "list")
    return result


def read_array(data: bytes, offset: int, end: int, depth: int = 1) -> Array:
    """Decode an array, from its type code on."""
    if offset == end:
        return Array(VOID)
    code = data[offset]
    count, offset = _count(data, offset + 1, end, depth)
    result = Array(code)
    # A count of four billion would take no input, and all memory.
    if code & 0xF0 == VOID and count > 0:
        raise Malformed("an array of values that take no octets")
    for _ in range(count):
        value, offset = read_value(data, code, offset, end, depth + 1)
        result.append(value)
    _check_end(offset, end, "array")
    return result


def _count(data: bytes, offset: int, end: int, depth: int) -> tuple[int, int]:
    if depth > TABLE_DEPTH:
        raise Malformed(f"maps, lists and arrays are nested deeper than {TABLE_DEPTH}")
    after = offset + _SIZE
    if after > end:
        raise cut_off(_SIZE, end - offset)
    return int.from_bytes(data[offset:after]), after


def _check_end(offset: int, end: int, what: str) -> None:
    if offset != end:
        raise Malformed(f"{end - offset} octets after the last value of a {what}")


def read_decimal(data: bytes, offset: int, end: int, depth: int = 1) -> Decimal:
    """Decode a decimal: its scale in an octet, and its digits."""
    digits = int.from_bytes(data[offset + 1 : end], signed=True)
    parts = tuple(int(digit) for digit in str(abs(digits)))
    return Decimal((int(digits < 0), parts, -data[offset]))


_READERS: dict[int, Callable[[bytes, int, int, int], Any]] = {
    BOOLEAN: lambda data, at, end, depth: data[at] != 0,
    DATETIME: lambda data, at, end, depth: read_timestamp(int.from_bytes(data[at:end])),
    UUID_CODE: lambda data, at, end, depth: UUID(bytes=data[at:end]),
    MAP: read_map,
    LIST: read_list,
    ARRAY: read_array,
    DEC32: read_decimal,
    DEC64: read_decimal,
    VOID: lambda data, at, end, depth: None,
    0xF1: lambda data, at, end, depth: True,
}


# --- writing ------------------------------------------------------------------------------------


def write_typed(value: Any, key: str = "", depth: int = 1) -> bytes:
    """Encode a value after the code of its type.

    Raises:
        TypeError: no type fits; the text names the key.
        ValueError: the value fits no type.
    """
    code = code_of(value, key)
    return bytes((code,)) + write_value(code, value, key, depth)


def code_of(value: Any, key: str = "") -> int:
    """Return the code of the type for a Python value."""
    # A bool and a Timestamp are ints in Python, with types of their own in AMQP.
    if isinstance(value, int) and not isinstance(value, bool | Timestamp):
        if -_INT32 <= value < _INT32:
            return INT32
        return INT64 if value < _INT64 else UINT64
    if isinstance(value, str):
        # There is no longer text type; as binary at least nothing is lost.
        return STR16 if len(value.encode(errors="surrogateescape")) <= _STR16_MAX else VBIN32
    if isinstance(value, bytes | bytearray | memoryview):
        return VBIN16 if len(value) <= _STR16_MAX else VBIN32
    if isinstance(value, Decimal):
        return DEC32 if abs(_digits(value, key)) < _INT32 else DEC64
    if isinstance(value, Typed):
        return value.code
    for kind, code in _CODES:
        if isinstance(value, kind):
            return code
    raise TypeError(
        f"{key!r}: a map cannot hold {type(value).__name__}; it holds None, bool, int, float, "
        "Decimal, str, bytes, datetime, UUID, lists and dicts of them"
    )


_CODES: tuple[tuple[type, int], ...] = (
    (bool, BOOLEAN),
    (float, DOUBLE),
    (datetime, DATETIME),
    (Timestamp, DATETIME),
    (UUID, UUID_CODE),
    (type(None), VOID),
    (Array, ARRAY),
    (Mapping, MAP),
    (list, LIST),
    (tuple, LIST),
)


def write_value(code: int, value: Any, key: str = "", depth: int = 1) -> bytes:
    """Encode a value of a type, without the code."""
    # Of a type that this module does not know: the code alone says whether a length is needed.
    if isinstance(value, Typed):
        octets = value.data
        prefix = _VARIABLE.get(code & 0xF0)
        return octets if prefix is None else sized(prefix, octets, key)
    if code == MAP:
        return write_map(value, key, depth)
    if code == LIST:
        _check_depth(depth, key)
        items = b"".join(write_typed(item, key, depth + 1) for item in value)
        return sized(_SIZE, len(value).to_bytes(_SIZE) + items, key)
    if code == ARRAY:
        return write_array(value, key, depth)
    write = _WRITERS.get(code)
    if write is None:
        return _write_plain(code, value, key)
    return write(value, key)


def write_map(value: Mapping[str, Any], key: str = "", depth: int = 1) -> bytes:
    """Encode a map after its size."""
    if not isinstance(value, Mapping):
        raise TypeError(f"{key!r}: must be a mapping, not {type(value).__name__}")
    _check_depth(depth, key)
    out = bytearray(len(value).to_bytes(_SIZE))
    for name, item in value.items():
        out += write_str8(name, key)
        out += write_typed(item, name, depth + 1)
    return sized(_SIZE, bytes(out), key)


def write_array(value: list[Any], key: str = "", depth: int = 1) -> bytes:
    """Encode an array; the items of a plain list determine its type."""
    _check_depth(depth, key)
    # An empty list has no item to say its type: any is right.
    code = code_of(value[0], key) if value else STR16
    if isinstance(value, Array):
        code = value.code
    items = b"".join(write_value(code, item, key, depth + 1) for item in value)
    return sized(_SIZE, bytes((code,)) + len(value).to_bytes(_SIZE) + items, key)


def write_str8(value: str, key: str = "") -> bytes:
    """Encode a text of at most 255 bytes after its length."""
    if not isinstance(value, str):
        raise TypeError(f"{key!r}: must be a str, not {type(value).__name__}")
    try:
        octets = value.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        raise ValueError(f"{key!r}: {value!a} holds what UTF-8 cannot express") from None
    return sized(1, octets, key)


def sized(prefix: int, octets: bytes, key: str = "") -> bytes:
    """Return bytes after their length."""
    if len(octets) >> (8 * prefix):
        maximum = (1 << 8 * prefix) - 1
        raise ValueError(f"{key!r}: {len(octets)} octets, at most {maximum} are possible")
    return len(octets).to_bytes(prefix) + octets


def _check_depth(depth: int, key: str) -> None:
    if depth > TABLE_DEPTH:
        raise ValueError(f"{key!r}: maps and lists are nested deeper than {TABLE_DEPTH}")


def _digits(value: Decimal, key: str) -> int:
    sign, digits, exponent = value.as_tuple()
    # The exponent of NaN and infinity is a letter; the scale on the wire has one octet.
    if not isinstance(exponent, int) or exponent > 0 or exponent < -_STR8_MAX:
        raise ValueError(f"{key!r}: {value} has no decimal form that can be sent")
    number = int("".join(map(str, digits)))
    number = -number if sign else number
    if not -_INT64 <= number < _INT64:
        raise ValueError(f"{key!r}: {value} has more digits than fit into 64 bits")
    return number


def _write_decimal(value: Decimal, key: str, width: int) -> bytes:
    digits = _digits(value, key)
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int), "_digits checks it"
    try:
        return bytes((-exponent,)) + digits.to_bytes(width, signed=True)
    except OverflowError:
        raise ValueError(f"{key!r}: {value} does not fit into {8 * width} bits") from None


def _write_plain(code: int, value: Any, key: str) -> bytes:
    """Encode a number, a text or bytes."""
    number = NUMBERS.get(code)
    if number is not None:
        try:
            return number.pack(value)
        except (struct.error, OverflowError):
            raise ValueError(f"{key!r}: {value!r} does not fit its type") from None
    encoding = _TEXTS.get(code)
    if isinstance(value, str):
        encoded_as = encoding or _CHARACTERS.get(code, "utf-8")
        octets = value.encode(encoded_as, "surrogateescape")
    elif encoding is None and isinstance(value, bytes | bytearray | memoryview):
        octets = bytes(value)
    else:
        raise TypeError(f"{key!r}: cannot write {value!r} as type {code:#04x}")
    prefix = _VARIABLE.get(code & 0xF0)
    # The upper half of a code says how its values are delimited, for every type.
    if prefix is None:
        if len(octets) != FIXED.get(code & 0xF0):
            raise ValueError(f"{key!r}: {octets!r} has not the width of type {code:#04x}")
        return octets
    return sized(prefix, octets, key)


_WRITERS: dict[int, Callable[[Any, str], bytes]] = {
    VOID: lambda value, key: b"",
    BOOLEAN: lambda value, key: b"\1" if value else b"\0",
    DATETIME: write_timestamp,
    UUID_CODE: lambda value, key: value.bytes,
    DEC32: lambda value, key: _write_decimal(value, key, 4),
    DEC64: lambda value, key: _write_decimal(value, key, 8),
}
