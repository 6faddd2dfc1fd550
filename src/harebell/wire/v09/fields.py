"""Field tables: named, typed values (AMQP 0-9-1 4.2.5.5), with RabbitMQ's type octets.

    table: size(4) then pairs   | name length(1) | name | tag(1) | value |
    array: size(4) then values                           | tag(1) | value |

    tag  value                         in Python                   from Python
    t    boolean octet                 bool                        bool
    b B  signed, unsigned octet        int
    s u  signed, unsigned short        int
    I    signed long                   int                         int that fits
    i    unsigned long                 int
    l L  signed longlong               int                         Long, other int (as l)
    f    float                         float
    d    double                        float                       float
    D    scale octet, signed long      Decimal                     Decimal
    S    size(4), octets               str; LongString: no UTF-8   str, LongString
    x    size(4), octets               bytes                       bytes, bytearray, memoryview
    T    longlong, seconds since 1970  datetime (UTC); Timestamp   datetime with a zone, Timestamp
    A    array                         list                        list, tuple
    F    table                         dict                        any mapping
    V    nothing                       None                        None

`s` is RabbitMQ's short and not the short string of the published grammar, and a decimal is signed,
as the published errata have it. Nothing is lost in reading: a timestamp after the year 9999
(milliseconds sent as seconds are) stays a number, octets that are no UTF-8 stay octets, and a name
that is no UTF-8 keeps its octets by `surrogateescape`. Of equal names the last one counts. A
datetime's fractions of a second are dropped.

Whatever the octets are, reading them returns or raises `ProtocolError` 502. Nesting is limited, and
every size is compared with the octets that are left before it is used. These checks accept the same
tables as those of `harebell.kernels.frames` in a content header, which build no values.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from harebell.base.errors import ProtocolError
from harebell.base.limits import NAME_BYTES, TABLE_DEPTH
from harebell.base.values import Long

_SIZE = 4
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_DATETIME = 253_402_300_799
_INT32 = 1 << 31
_INT64 = 1 << 63
_UINT64_MAX = (1 << 64) - 1
_MAX_SCALE = 255

_NUMBERS: dict[int, struct.Struct] = {
    ord(tag): struct.Struct(form)
    for tag, form in {
        "b": ">b", "B": ">B", "s": ">h", "u": ">H", "I": ">i", "i": ">I",
        "l": ">q", "L": ">q", "f": ">f", "d": ">d", "t": ">?",
    }.items()
}  # fmt: skip
_WIDTHS: dict[int, int] = {tag: number.size for tag, number in _NUMBERS.items()} | {
    ord("V"): 0,
    ord("T"): 8,
    ord("D"): 5,
}
_STRING, _OCTETS, _TABLE, _ARRAY = b"SxFA"
_VOID, _TIME, _DECIMAL = b"VTD"
_SIZED = frozenset((_STRING, _OCTETS, _TABLE, _ARRAY))


class Timestamp(int):
    """Seconds since 1970, where a datetime cannot hold them."""


class LongString(bytes):
    """A long string (tag S) whose octets are not UTF-8."""


class EncodedTable:
    """A table that is encoded already, as a value in another table.

    Args:
        octets: its entries, without the size.
        depth: how deep tables and arrays are nested in it; 1 if it holds none.
    """

    def __init__(self, octets: bytes, depth: int) -> None:
        self.octets = octets
        self.depth = depth


class Malformed(Exception):
    """A table is malformed; `path` has the names of the bad value, the innermost first."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why
        self.path: list[str] = []

    def error(self) -> ProtocolError:
        """Return the error that the peer gets."""
        path = "".join(f"{name!a}: " for name in reversed(self.path))
        return ProtocolError(502, f"malformed field table: {path}{self.why}")


# --- reading ------------------------------------------------------------------------------------


def decode_table(
    data: bytes | bytearray | memoryview, offset: int = 0
) -> tuple[dict[str, Any], int]:
    """Decode a table with its size in front.

    Args:
        data: octets that contain it.
        offset: of the size.

    Returns:
        The table, and the offset after it.

    Raises:
        ProtocolError: 502, the table is malformed.
    """
    # No copy of bytes. A slice of a memoryview has no `decode`, so one is copied here.
    if type(data) is not bytes:
        data = bytes(data)
    start = offset + _SIZE
    if start > len(data):
        raise ProtocolError(502, "malformed field table: its size is cut off")
    end = start + int.from_bytes(data[offset:start])
    if end > len(data):
        raise ProtocolError(
            502,
            f"malformed field table: {end - start} octets are announced, "
            f"{len(data) - start} are there",
        )
    try:
        return _read_table(data, start, end, 1), end
    except Malformed as malformed:
        raise malformed.error() from None


def entries(data: bytes, offset: int) -> Iterator[tuple[bytes, int, int]]:
    """Yield the entries of a well-formed table with its size in front, values not decoded.

    Yields:
        The name, and the offsets of the entry, name included, and of the one after it.
    """
    begin = offset + _SIZE
    end = begin + int.from_bytes(data[offset:begin])
    while begin < end:
        value = begin + 1 + data[begin]
        tag = data[value]
        after = value + 1
        if tag in _SIZED:
            after += _SIZE + int.from_bytes(data[after : after + _SIZE])
        else:
            after += _WIDTHS[tag]
        yield data[begin + 1 : value], begin, after
        begin = after


def encode_entry(name: str, value: Any) -> bytes:
    """Encode one entry of a table.

    Raises:
        TypeError, ValueError: as `encode_table`.
    """
    return encode_table({name: value})[_SIZE:]


def _read_table(data: bytes, offset: int, end: int, depth: int) -> dict[str, Any]:
    table: dict[str, Any] = {}
    while offset < end:
        name_end = offset + 1 + data[offset]
        # Not `>`: the octet of the type has to follow (4.2.5.5).
        if name_end >= end:
            raise Malformed("a name runs over the end of its table")
        name = data[offset + 1 : name_end].decode(errors="surrogateescape")
        try:
            table[name], offset = read_value(data, name_end, end, depth)
        except Malformed as malformed:
            malformed.path.append(name)
            raise
    return table


def _read_array(data: bytes, offset: int, end: int, depth: int) -> list[Any]:
    array: list[Any] = []
    while offset < end:
        value, offset = read_value(data, offset, end, depth)
        array.append(value)
    return array


def read_value(data: bytes, offset: int, end: int, depth: int) -> tuple[Any, int]:
    """Decode a value with its type octet in front; raises `Malformed`."""
    # It exists: callers have compared `offset` with the end of the table or array.
    tag = data[offset]
    offset += 1
    if tag in _SIZED:
        return _read_sized(data, tag, offset, end, depth)
    width = _WIDTHS.get(tag)
    if width is None:
        raise Malformed(f"unknown type octet {tag:#04x} ({chr(tag)!a})")
    after = offset + width
    if after > end:
        raise Malformed("a value runs over the end of its table")
    if tag == _VOID:
        return None, after
    if tag == _TIME:
        return read_timestamp(int.from_bytes(data[offset:after])), after
    if tag == _DECIMAL:
        digits = int.from_bytes(data[offset + 1 : after], signed=True)
        sign = 1 if digits < 0 else 0
        # From its digits: arithmetic would round to the precision of the decimal context.
        parts = tuple(int(digit) for digit in str(abs(digits)))
        return Decimal((sign, parts, -data[offset])), after
    return _NUMBERS[tag].unpack_from(data, offset)[0], after


def _read_sized(data: bytes, tag: int, offset: int, end: int, depth: int) -> tuple[Any, int]:
    start = offset + _SIZE
    after = start + int.from_bytes(data[offset:start])
    # Compared with the end of the innermost table: a value must not reach into what follows it.
    if start > end or after > end:
        raise Malformed("a value runs over the end of its table")
    if tag == _OCTETS:
        return data[start:after], after
    if tag == _STRING:
        octets = data[start:after]
        # A long string is octets (4.2.5.3): text is only what most peers put in.
        try:
            return octets.decode(), after
        except UnicodeDecodeError:
            return LongString(octets), after
    if depth >= TABLE_DEPTH:
        raise Malformed(f"tables and arrays are nested deeper than {TABLE_DEPTH}")
    read = _read_table if tag == _TABLE else _read_array
    return read(data, start, after, depth + 1), after


def read_timestamp(seconds: int) -> datetime | Timestamp:
    """Return a time on the wire as a datetime in UTC, or as a number if it is too late for one."""
    if seconds > _LAST_DATETIME:
        return Timestamp(seconds)
    return _EPOCH + timedelta(seconds=seconds)


# --- writing ------------------------------------------------------------------------------------


def encode_table(table: Mapping[str, Any]) -> bytes:
    """Encode a table, with its size in front.

    Raises:
        TypeError: a value of a type that tables do not have; the text names its key.
        ValueError: a key or a value that does not fit; the text names the key.
    """
    return _write_table(table, "", 1)


def write_timestamp(value: datetime | int, key: str) -> bytes:
    """Encode a time; `key` names it in errors."""
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError(
                f"{key!r}: a datetime without a time zone is ambiguous; "
                "make it with datetime.now(timezone.utc)"
            )
        value = (value - _EPOCH) // timedelta(seconds=1)
    if not 0 <= value <= _UINT64_MAX:
        raise ValueError(f"{key!r}: a time {value} seconds from 1970 cannot be sent")
    return value.to_bytes(8)


def _write_table(table: Mapping[str, Any], key: str, depth: int) -> bytes:
    if not isinstance(table, Mapping):
        raise TypeError(f"a field table must be a mapping, not {type(table).__name__}")
    check_depth(key, depth)
    out = bytearray(_SIZE)
    for name, value in table.items():
        if not isinstance(name, str):
            raise TypeError(f"the key {name!r} of a field table must be a str")
        try:
            octets = name.encode(errors="surrogateescape")
        except UnicodeEncodeError:
            raise ValueError(
                f"the key {name!a} holds characters that UTF-8 cannot express"
            ) from None
        if len(octets) > NAME_BYTES:
            raise ValueError(
                f"the key {name!r} is {len(octets)} octets long, at most {NAME_BYTES} are possible"
            )
        out.append(len(octets))
        out += octets
        out += _write_value(value, name, depth)
    out[:_SIZE] = (len(out) - _SIZE).to_bytes(_SIZE)
    return bytes(out)


def check_depth(key: str, depth: int) -> None:
    """Refuse a table or an array that is nested too deeply; `key` names it in the error."""
    if depth > TABLE_DEPTH:
        raise ValueError(f"{key!r}: tables and arrays are nested deeper than {TABLE_DEPTH}")


def _write_value(value: Any, key: str, depth: int) -> bytes:
    write = _WRITERS.get(type(value))
    # A subclass of an application: the search is too slow for the usual types.
    if write is None:
        write = next((_WRITERS[kind] for kind in _WRITERS if isinstance(value, kind)), None)
    if write is not None:
        return write(value, key)
    if isinstance(value, Mapping):
        return b"F" + _write_table(value, key, depth + 1)
    if isinstance(value, EncodedTable):
        check_depth(key, depth + value.depth)
        return b"F" + len(value.octets).to_bytes(_SIZE) + value.octets
    if isinstance(value, list | tuple):
        check_depth(key, depth + 1)
        octets = b"".join(_write_value(item, key, depth + 1) for item in value)
        return b"A" + len(octets).to_bytes(_SIZE) + octets
    raise TypeError(
        f"{key!r}: a field table cannot hold {type(value).__name__}; it holds None, bool, int, "
        "float, Decimal, str, bytes, datetime, lists and dicts of them"
    )


def _write_int(value: int, key: str) -> bytes:
    # `I` where it fits: 0-8 and 0-9 have no type of 64 bits. `int` because of IntEnum and others.
    if -_INT32 <= value < _INT32:
        return b"I" + int(value).to_bytes(4, signed=True)
    return _write_long(value, key)


def _write_long(value: int, key: str) -> bytes:
    if -_INT64 <= value < _INT64:
        return b"l" + int(value).to_bytes(8, signed=True)
    raise ValueError(f"{key!r}: {value} does not fit into 64 bits")


def _write_string(value: str, key: str) -> bytes:
    try:
        octets = value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{key!r}: {value!a} holds characters that UTF-8 cannot express") from None
    return b"S" + len(octets).to_bytes(_SIZE) + octets


def _write_octets(value: bytes | bytearray | memoryview, key: str) -> bytes:
    octets = bytes(value)
    return b"x" + len(octets).to_bytes(_SIZE) + octets


def _write_decimal(value: Decimal, key: str) -> bytes:
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise ValueError(f"{key!r}: {value} is no decimal that AMQP can express")
    # A huge exponent is refused before anybody works out ten to the power of it.
    if -_MAX_SCALE <= exponent <= _MAX_SCALE and len(digits) <= _MAX_SCALE:
        number: int = int("".join(map(str, digits))) * 10 ** max(exponent, 0)
        number = -number if sign else number
        if -_INT32 <= number < _INT32:
            return b"D" + bytes((max(-exponent, 0),)) + number.to_bytes(4, signed=True)
    raise ValueError(
        f"{key!r}: {value} does not fit a decimal of 32 bits and at most {_MAX_SCALE} places"
    )


_WRITERS: dict[type, Callable[[Any, str], bytes]] = {
    bool: lambda value, _: b"t\x01" if value else b"t\x00",
    Timestamp: lambda value, key: b"T" + write_timestamp(value, key),
    Long: _write_long,
    int: _write_int,
    str: _write_string,
    LongString: lambda value, _: b"S" + len(value).to_bytes(_SIZE) + value,
    bytes: _write_octets,
    float: lambda value, _: b"d" + struct.pack(">d", value),
    Decimal: _write_decimal,
    datetime: lambda value, key: b"T" + write_timestamp(value, key),
    type(None): lambda value, _: b"V",
    bytearray: _write_octets,
    memoryview: _write_octets,
}
"""Writers of values that hold no others; a subclass stands before its base."""
