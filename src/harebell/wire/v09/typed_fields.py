"""Field tables of transitional 0-10: its own type octets, and those of 0-9 that its client wrote.

    table: size(4) then pairs   | name length(1) | name | type(1) | value |

    00 octet           10 2 octets        20 4 octets       30 8 octets      f0 void
    01 signed byte     11 signed short    21 signed int     31 signed long
    02 unsigned byte   12 unsigned short  22 unsigned int   32 unsigned long
    04 char            40 16 octets       23 float          33 double
    08 boolean         48 uuid            27 utf-32 char    38 datetime
    50 60 70 32, 64, 128 octets           c0 5 octets  c8 decimal (scale 1, signed 4)
                                          d0 9 octets  d8 decimal (scale 1, signed 8)
    80 90 a0 octets    84 94 a4 iso-8859-15    85 95 a5 utf-8    86 96 a6 utf-16    87 97 a7 utf-32
               with a size of 1 (8_), 2 (9_) or 4 (a_) octets in front
    a8 table   a9 sequence: size(4), then values with their types
    aa array   size(4) type(1) count(4), then values of that type

None of these octets is a letter that 0-9 has for a type, so both are read, mixed if need be.
What is written depends on what a peer has shown to know, its *dialect*:

    PLAIN    S and I only: all that the Python client of 2007 can read. What is neither text nor a
             32-bit number becomes text: true, 1.5, 2007-08-10T00:00:00+00:00, lists and tables JSON
    LETTERS  the types of `harebell.wire.v09.fields`
    TYPED    the types above
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from enum import IntEnum
from typing import Any
from uuid import UUID

from harebell.base.errors import ProtocolError
from harebell.base.limits import NAME_BYTES, TABLE_DEPTH
from harebell.base.values import Long
from harebell.wire.limits import VOID_ARRAY_ITEMS
from harebell.wire.v010.types import FIXED, NUMBERS, read_decimal
from harebell.wire.v09.fields import (
    LongString,
    Malformed,
    Timestamp,
    check_depth,
    encode_table,
    read_timestamp,
    read_value,
    write_timestamp,
)


class FieldDialect(IntEnum):
    """The types that a peer has used in its tables; a later dialect includes those before."""

    PLAIN = 0
    LETTERS = 1
    TYPED = 2


class TypedTable(dict[str, Any]):
    """A decoded table, with the dialect that it was encoded in."""

    dialect = FieldDialect.PLAIN


_SIZE = 4
_NUMBERS = {**NUMBERS, 0x08: struct.Struct(">?")}
_OCTETS = {code: width for code, width in FIXED.items() if width}
_CHAR, _UTF32_CHAR, _DATETIME, _UUID, _VOID = 0x04, 0x27, 0x38, 0x48, 0xF0
_DECIMALS = {0xC8: 5, 0xD8: 9}
_TABLE, _SEQUENCE, _ARRAY = 0xA8, 0xA9, 0xAA
_SIZES = {0x80: 1, 0x90: 2, 0xA0: 4}
"""The upper half of a type octet with a size in front: how long that is."""
_CHARSETS = {0x4: "iso8859-15", 0x5: "utf-8", 0x6: "utf-16-be", 0x7: "utf-32-be"}
"""The lower half of a text's type octet; 0 is octets."""
_LETTER_SIZED = b"SxFA"
_PLAIN_LETTERS = b"SI"
_FIXED = (
    {octet: number.size for octet, number in _NUMBERS.items()}
    | _OCTETS
    | _DECIMALS
    | {_CHAR: 1, _UTF32_CHAR: 4, _DATETIME: 8, _UUID: 16, _VOID: 0}
)
_INT32, _INT64, _UINT64 = 1 << 31, 1 << 63, 1 << 64
_SCALE_MAX = 255


# --- reading ------------------------------------------------------------------------------------


def decode_typed(data: bytes, offset: int = 0) -> tuple[TypedTable, int]:
    """Read a table with its size in front.

    Returns:
        The table, which knows its dialect, and the offset after it.

    Raises:
        ProtocolError: 502, whatever is wrong.
    """
    start = offset + _SIZE
    if start > len(data):
        raise ProtocolError(502, "malformed field table: its size is cut off")
    end = start + int.from_bytes(data[offset:start])
    if end > len(data):
        text = f"{end - start} octets are announced, {len(data) - start} are there"
        raise ProtocolError(502, f"malformed field table: {text}")
    reader = _Reader(data)
    try:
        table = TypedTable(reader.pairs(start, end, 1))
    except Malformed as malformed:
        raise malformed.error() from None
    table.dialect = reader.dialect
    return table, end


class _Reader:
    """Reads values, and notes which types there were."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.dialect = FieldDialect.PLAIN

    def pairs(self, offset: int, end: int, depth: int) -> Iterator[tuple[str, Any]]:
        """The entries of a table."""
        while offset < end:
            name_end = offset + 1 + self.data[offset]
            if name_end >= end:
                raise Malformed("a name runs over the end of its table")
            name = self.data[offset + 1 : name_end].decode(errors="surrogateescape")
            try:
                value, offset = self.value(self.data[name_end], name_end + 1, end, depth)
            except Malformed as malformed:
                malformed.path.append(name)
                raise
            yield name, value

    def value(self, octet: int, offset: int, end: int, depth: int) -> tuple[Any, int]:
        """Decode a value of the type `octet`; return it and the offset after it."""
        # Letters with a size have branches of their own, as values inside may be typed.
        if octet in _LETTER_SIZED:
            self._saw(FieldDialect.PLAIN if octet in _PLAIN_LETTERS else FieldDialect.LETTERS)
            start, after = self._sized(offset, end, _SIZE)
            if octet == b"F"[0]:
                return dict(self._nested(start, after, depth)), after
            if octet == b"A"[0]:
                return self._sequence(start, after, depth), after
            return _text(self.data[start:after], "utf-8" if octet == b"S"[0] else ""), after
        if octet in _FIXED:
            self._saw(FieldDialect.TYPED)
            after = offset + _FIXED[octet]
            if after > end:
                raise Malformed("a value runs over the end of its table")
            return _fixed(octet, self.data[offset:after]), after
        if octet in (_TABLE, _SEQUENCE, _ARRAY):
            self._saw(FieldDialect.TYPED)
            start, after = self._sized(offset, end, _SIZE)
            if octet == _TABLE:
                return dict(self._nested(start, after, depth)), after
            how = self._sequence if octet == _SEQUENCE else self._array
            return how(start, after, depth), after
        # After tables and arrays, whose codes are in the same half.
        size, charset = _SIZES.get(octet & 0xF0), octet & 0x0F
        if size is not None and (charset == 0 or charset in _CHARSETS):
            self._saw(FieldDialect.TYPED)
            start, after = self._sized(offset, end, size)
            return _text(self.data[start:after], _CHARSETS.get(charset, "")), after
        self._saw(FieldDialect.PLAIN if octet in _PLAIN_LETTERS else FieldDialect.LETTERS)
        # From the octet on: it reads the letter again, and refuses what is none.
        return read_value(self.data, offset - 1, end, depth)

    def _saw(self, dialect: FieldDialect) -> None:
        self.dialect = max(self.dialect, dialect)

    def _sized(self, offset: int, end: int, width: int) -> tuple[int, int]:
        """Return begin and end of a value that has a size of `width` octets in front."""
        start = offset + width
        after = start + int.from_bytes(self.data[offset:start])
        if start > end or after > end:
            raise Malformed("a value runs over the end of its table")
        return start, after

    def _deeper(self, depth: int) -> int:
        if depth >= TABLE_DEPTH:
            raise Malformed(f"tables and arrays are nested deeper than {TABLE_DEPTH}")
        return depth + 1

    def _nested(self, offset: int, end: int, depth: int) -> Iterator[tuple[str, Any]]:
        return self.pairs(offset, end, self._deeper(depth))

    def _sequence(self, offset: int, end: int, depth: int) -> list[Any]:
        depth = self._deeper(depth)
        sequence: list[Any] = []
        while offset < end:
            value, offset = self.value(self.data[offset], offset + 1, end, depth)
            sequence.append(value)
        return sequence

    def _array(self, offset: int, end: int, depth: int) -> list[Any]:
        depth = self._deeper(depth)
        first = offset + 1 + _SIZE
        if first > end:
            raise Malformed("an array without type and count")
        octet, count = self.data[offset], int.from_bytes(self.data[offset + 1 : first])
        # Nothing but voids takes no room at all.
        if count > max(end - first, VOID_ARRAY_ITEMS):
            raise Malformed(f"an array of {count} values in {end - first} octets")
        offset = first
        items: list[Any] = []
        for _ in range(count):
            value, offset = self.value(octet, offset, end, depth)
            items.append(value)
        if offset != end:
            raise Malformed(f"{end - offset} octets of garbage at the end of an array")
        return items


def _fixed(octet: int, octets: bytes) -> Any:
    if octet in _NUMBERS:
        return _NUMBERS[octet].unpack(octets)[0]
    if octet in _DECIMALS:
        return read_decimal(octets, 0, len(octets))
    if octet == _CHAR:
        return octets.decode(_CHARSETS[4])
    if octet == _UTF32_CHAR:
        return _text(octets, _CHARSETS[7])
    if octet == _DATETIME:
        return read_timestamp(int.from_bytes(octets))
    if octet == _UUID:
        return UUID(bytes=octets)
    return octets if octet != _VOID else None


def _text(octets: bytes, charset: str) -> str | bytes:
    """Return a text; octets if they have no character set, or are none of that set."""
    if not charset:
        return octets
    try:
        return octets.decode(charset)
    except UnicodeDecodeError:
        return LongString(octets)


# --- writing ------------------------------------------------------------------------------------


def encode_typed(table: Mapping[str, Any], dialect: FieldDialect = FieldDialect.PLAIN) -> bytes:
    """Encode a table, with its size in front, for a peer that knows this dialect.

    Raises:
        TypeError: a value of a type that tables do not have; the text names its key.
        ValueError: a key or a value that does not fit; the text names the key.
    """
    if dialect == FieldDialect.PLAIN:
        return encode_table({key: _plainly(value) for key, value in table.items()})
    if dialect == FieldDialect.LETTERS:
        return encode_table({key: lettered(value) for key, value in table.items()})
    return _write_table(table, "", 1)


def lettered(value: Any) -> Any:
    """Convert a value to one that the types of 0-9-1 can carry; others become text."""
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, Mapping):
        return {key: lettered(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [lettered(each) for each in value]
    if type(value) is int and value >= _INT64:
        return str(value)
    if isinstance(value, Decimal):
        # Tried out: only the encoder knows which decimals fit 32 bits and their scale.
        try:
            encode_table({"": value})
        except ValueError:
            return str(value)
    return value


def _plainly(value: Any) -> Any:
    """Convert a value to text, or to a number of 32 bits."""
    if isinstance(value, bool) or value is None:
        return json.dumps(value) if value is not None else ""
    if isinstance(value, Timestamp):
        return str(int(value))
    if isinstance(value, int):
        return int(value) if -_INT32 <= value < _INT32 else str(int(value))
    if isinstance(value, str | LongString):
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        return LongString(value)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping | list | tuple):
        return json.dumps(_for_json(value), ensure_ascii=False)
    return str(value)


def _for_json(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {_readable(key): _for_json(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_for_json(each) for each in value]
    if isinstance(value, str):
        return _readable(value)
    if isinstance(value, bool | int | float) or value is None:
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).decode(errors="replace")
    return _plainly(value)


def _readable(text: str) -> str:
    """Return a text with replacements for octets that are no UTF-8, which JSON cannot have."""
    return text.encode(errors="surrogateescape").decode(errors="replace")


def _write_table(table: Mapping[str, Any], key: str, depth: int) -> bytes:
    check_depth(key, depth)
    out = bytearray(_SIZE)
    for name, value in table.items():
        if not isinstance(name, str):
            raise TypeError(f"the key {name!r} of a field table must be a str")
        octets = name.encode(errors="surrogateescape")
        if len(octets) > NAME_BYTES:
            text = f"is {len(octets)} octets long, at most {NAME_BYTES} are possible"
            raise ValueError(f"the key {name!r} {text}")
        out.append(len(octets))
        out += octets
        out += _write_value(value, name, depth)
    out[:_SIZE] = (len(out) - _SIZE).to_bytes(_SIZE)
    return bytes(out)


def _write_value(value: Any, key: str, depth: int) -> bytes:
    if value is None:
        return bytes((_VOID,))
    if isinstance(value, bool):
        return bytes((0x08, value))
    if isinstance(value, Timestamp | datetime):
        return bytes((_DATETIME,)) + write_timestamp(value, key)
    if isinstance(value, int):
        return _write_int(value, key)
    if isinstance(value, float):
        return bytes((0x33,)) + _NUMBERS[0x33].pack(value)
    if isinstance(value, Decimal):
        return _write_decimal(value, key)
    if isinstance(value, UUID):
        return bytes((_UUID,)) + value.bytes
    if isinstance(value, str):
        return _write_sized(0x05, value.encode(errors="surrogateescape"))
    if isinstance(value, bytes | bytearray | memoryview):
        return _write_sized(0x00, bytes(value))
    if isinstance(value, Mapping):
        return bytes((_TABLE,)) + _write_table(value, key, depth + 1)
    if isinstance(value, list | tuple):
        check_depth(key, depth + 1)
        octets = b"".join(_write_value(each, key, depth + 1) for each in value)
        return bytes((_SEQUENCE,)) + len(octets).to_bytes(_SIZE) + octets
    raise TypeError(f"{key!r}: a field table cannot hold {type(value).__name__}")


def _write_int(value: int, key: str) -> bytes:
    if -_INT32 <= value < _INT32 and not isinstance(value, Long):
        return bytes((0x21,)) + int(value).to_bytes(4, signed=True)
    if -_INT64 <= value < _INT64:
        return bytes((0x31,)) + int(value).to_bytes(8, signed=True)
    if 0 <= value < _UINT64:
        return bytes((0x32,)) + value.to_bytes(8)
    raise ValueError(f"{key!r}: {value} does not fit into 64 bits")


def _write_decimal(value: Decimal, key: str) -> bytes:
    sign, digits, exponent = value.as_tuple()
    # A huge exponent is refused before ten to the power of it is computed.
    if isinstance(exponent, int) and -_SCALE_MAX <= exponent <= _SCALE_MAX:
        number: int = int("".join(map(str, digits))) * 10 ** max(exponent, 0)
        number = -number if sign else number
        scale = bytes((max(-exponent, 0),))
        if -_INT32 <= number < _INT32:
            return b"\xc8" + scale + number.to_bytes(4, signed=True)
        if -_INT64 <= number < _INT64:
            return b"\xd8" + scale + number.to_bytes(8, signed=True)
    raise ValueError(
        f"{key!r}: {value} does not fit a decimal of 64 bits and at most {_SCALE_MAX} places"
    )


def _write_sized(charset: int, octets: bytes) -> bytes:
    for high, width in _SIZES.items():
        if len(octets) < 1 << 8 * width:
            return bytes((high | charset,)) + len(octets).to_bytes(width) + octets
    raise ValueError(f"a value of {len(octets)} octets cannot be sent")
