"""Decode values of AMQP 1.0.

A value is a constructor and its octets (AMQP 1.0 1.2):

    constructor   code                             a primitive type
                  00 descriptor constructor        a described value

    code     0x4_ 0x5_ 0x6_ 0x7_ 0x8_ 0x9_   no octets, 1, 2, 4, 8, 16
             0xa_ 0xb_                       length (1 or 4 octets), octets
             0xc_ 0xd_                       size, count (both 1 or 4 octets), values
             0xe_ 0xf_                       size, count, constructor of all, octets of each

A size counts what follows it, the count included.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any
from uuid import UUID

from harebell.base.errors import DecodeError
from harebell.kernels.limits import COMPOUND_BYTES, NESTING, VOID_ARRAY_ELEMENTS
from harebell.wire.v1 import values
from harebell.wire.v1.values import Array, Described, Symbol

DESCRIBED = 0x00
_WIDTHS = {0x40: 0, 0x50: 1, 0x60: 2, 0x70: 4, 0x80: 8, 0x90: 16}
"""Octets of the values of a code with these upper bits."""
_PREFIXES = {0xA0: 1, 0xB0: 4, 0xC0: 1, 0xD0: 4, 0xE0: 1, 0xF0: 4}
"""Octets of the length or the size, and for the last four of the count as well."""
_LAST_CHARACTER = 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)


def decode(data: bytes, start: int = 0) -> tuple[Any, int]:
    """Decode a value; return it and where it ends.

    Args:
        data: octets with the value in them.
        start: where its constructor begins.

    Raises:
        DecodeError: it is malformed, or more than the limits allow.
    """
    reader = ValueReader(data, start, len(data))
    return reader.value(), reader.offset


def _end(data: bytes, code: int, offset: int, end: int) -> int:
    """Return where the octets of a value end that begin at `offset`."""
    kind = code & 0xF0
    width = _WIDTHS.get(kind)
    if width is None:
        prefix = _PREFIXES.get(kind)
        if prefix is None:
            raise DecodeError(f"unknown format code {code:#04x}")
        if offset + prefix > end:
            raise DecodeError("a length that is cut off")
        width = prefix + int.from_bytes(data[offset : offset + prefix])
    if offset + width > end:
        raise DecodeError(f"a value of {width} octets, of which {end - offset} are there")
    return offset + width


class ValueReader:
    """Reads values one after the other.

    Args:
        data: octets with the values in them.
        offset: where the first one begins.
        end: where they end.
        lenient: whether the last of equal keys in a map counts; without it they are an error.

    Attributes:
        offset: where the next value begins.
        end: where the octets end that may belong to it.
    """

    __slots__ = ("data", "end", "lenient", "offset")

    def __init__(self, data: bytes, offset: int, end: int, lenient: bool = False) -> None:
        self.data = data
        self.offset = offset
        self.end = end
        self.lenient = lenient

    def value(self, depth: int = 0) -> Any:
        """Read a value.

        Raises:
            DecodeError: it is malformed, or more than the limits allow.
        """
        if self.offset >= self.end:
            raise DecodeError("a value without a constructor")
        code = self.data[self.offset]
        self.offset += 1
        if code == DESCRIBED:
            _check(depth)
            descriptor = self.value(depth + 1)
            return Described(descriptor, self.value(depth + 1))
        return self.of(code, depth)

    def of(self, code: int, depth: int = 0) -> Any:
        """Read a value whose constructor, a format code, was read before.

        Raises:
            DecodeError: it is malformed, or more than the limits allow.
        """
        read = _READERS.get(code)
        if read is None:
            raise DecodeError(f"unknown format code {code:#04x}")
        kind = code & 0xF0
        if kind >= 0xC0 or code == 0x45:
            return read(self, code, depth)
        start = self.offset
        end = _end(self.data, code, start, self.end)
        self.offset = end
        if kind >= 0xA0:
            start += _PREFIXES[kind]
        return read(self.data[start:end])

    def compound(self, code: int) -> tuple[int, int]:
        """Read size and count of a list, map or array; return where it ends, and the count.

        Raises:
            DecodeError: they do not fit.
        """
        prefix = _PREFIXES[code & 0xF0]
        end = _end(self.data, code, self.offset, self.end)
        start = self.offset + prefix
        if end - start < prefix:
            raise DecodeError("a list, map or array whose size leaves no room for its count")
        if end - start > COMPOUND_BYTES:
            raise DecodeError(
                f"a list, map or array of {end - start} octets, at most {COMPOUND_BYTES} may be"
            )
        self.offset = start + prefix
        return end, int.from_bytes(self.data[start : self.offset])

    def counted(self, code: int, what: str, depth: int) -> tuple[int, int]:
        """Read size and count of a list or map; return where what is around it ends, and the count.

        Until `close` only what belongs to it can be read.
        """
        _check(depth)
        end, count = self.compound(code)
        # Each value takes one octet at least.
        if count > end - self.offset:
            raise DecodeError(f"a {what} of {count} values in {end - self.offset} octets")
        outer, self.end = self.end, end
        return outer, count

    def close(self, outer: int, what: str) -> None:
        """End a list, map or array; `outer` is what `counted` returned."""
        if self.offset != self.end:
            left = self.end - self.offset
            raise DecodeError(f"{left} octets after the last value of {what}")
        self.end = outer


def _check(depth: int) -> None:
    if depth >= NESTING:
        raise DecodeError(f"values are nested deeper than {NESTING}")


def _read_list(reader: ValueReader, code: int, depth: int) -> list[Any]:
    outer, count = reader.counted(code, "list", depth)
    items = [reader.value(depth + 1) for _ in range(count)]
    reader.close(outer, "a list")
    return items


def _read_map(reader: ValueReader, code: int, depth: int) -> dict[Any, Any]:
    outer, count = reader.counted(code, "map", depth)
    if count & 1:
        raise DecodeError(f"a map of {count} values, which are no pairs")
    pairs: dict[Any, Any] = {}
    for _ in range(count // 2):
        key = reader.value(depth + 1)
        value = reader.value(depth + 1)
        try:
            pairs[key] = value
        except TypeError:
            raise DecodeError("a map with a list, map or array as a key") from None
    if len(pairs) != count // 2 and not reader.lenient:
        raise DecodeError("a map with two keys that are equal")
    reader.close(outer, "a map")
    return pairs


def _read_array(reader: ValueReader, code: int, depth: int) -> Array:
    _check(depth)
    end, count = reader.compound(code)
    outer, reader.end = reader.end, end
    element, descriptors = _element(reader, depth)
    width = _WIDTHS.get(element & 0xF0, 1)
    if width == 0 and count > VOID_ARRAY_ELEMENTS:
        raise DecodeError(
            f"an array of {count} values without octets, at most {VOID_ARRAY_ELEMENTS} may be"
        )
    if count * width > end - reader.offset:
        raise DecodeError(f"an array of {count} values in {end - reader.offset} octets")
    items = [reader.of(element, depth + 1) for _ in range(count)]
    reader.close(outer, "an array")
    return Array(element, items, descriptors)


def _element(reader: ValueReader, depth: int) -> tuple[int, tuple[Any, ...]]:
    """Read the constructor of the elements of an array: the format code, and descriptors."""
    descriptors: list[Any] = []
    while True:
        if reader.offset >= reader.end:
            raise DecodeError("an array without a constructor of its elements")
        code = reader.data[reader.offset]
        reader.offset += 1
        if code != DESCRIBED:
            if code not in _READERS:
                raise DecodeError(f"unknown format code {code:#04x}")
            return code, tuple(descriptors)
        _check(depth + len(descriptors))
        descriptors.append(reader.value(depth + len(descriptors) + 1))


def _read_boolean(octets: bytes) -> bool:
    if octets[0] > 1:
        raise DecodeError(f"a boolean {octets[0]:#04x}")
    return octets[0] == 1


def _read_text(octets: bytes) -> str:
    try:
        return octets.decode()
    except UnicodeDecodeError:
        raise DecodeError("a string that is not UTF-8") from None


def _read_symbol(octets: bytes) -> Symbol:
    try:
        return Symbol(octets.decode("ascii"))
    except UnicodeDecodeError:
        raise DecodeError("a symbol that is not ASCII") from None


def _read_character(octets: bytes) -> values.Char:
    number = int.from_bytes(octets)
    if number > _LAST_CHARACTER or number in _SURROGATES:
        raise DecodeError(f"a char {number:#x}, which is no Unicode character")
    return values.Char(chr(number))


def _unsigned(kind: type[int]) -> Callable[[bytes], int]:
    return lambda octets: kind(int.from_bytes(octets))


def _signed(kind: type[int]) -> Callable[[bytes], int]:
    return lambda octets: kind(int.from_bytes(octets, signed=True))


_UINT = _unsigned(values.UInt)
_ULONG = _unsigned(values.ULong)
_LONG = _signed(int)
_INT = _signed(values.Int)
_FLOAT = struct.Struct(">f").unpack
_DOUBLE = struct.Struct(">d").unpack
_COMPOUND: dict[int, Callable[..., Any]] = {
    0x45: lambda reader, code, depth: [],
    0xC0: _read_list,
    0xD0: _read_list,
    0xC1: _read_map,
    0xD1: _read_map,
    0xE0: _read_array,
    0xF0: _read_array,
}
_READERS: dict[int, Callable[..., Any]] = {
    0x40: lambda octets: None,
    0x41: lambda octets: True,
    0x42: lambda octets: False,
    0x43: lambda octets: values.UInt(0),
    0x44: lambda octets: values.ULong(0),
    0x50: _unsigned(values.UByte),
    0x51: _signed(values.Byte),
    0x52: _UINT,
    0x53: _ULONG,
    0x54: _INT,
    0x55: _LONG,
    0x56: _read_boolean,
    0x60: _unsigned(values.UShort),
    0x61: _signed(values.Short),
    0x70: _UINT,
    0x71: _INT,
    0x72: lambda octets: values.Float(_FLOAT(octets)[0]),
    0x73: _read_character,
    0x74: values.Decimal32,
    0x80: _ULONG,
    0x81: _LONG,
    0x82: lambda octets: _DOUBLE(octets)[0],
    0x83: _signed(values.Timestamp),
    0x84: values.Decimal64,
    0x94: values.Decimal128,
    0x98: lambda octets: UUID(bytes=octets),
    0xA0: bytes,
    0xA1: _read_text,
    0xA3: _read_symbol,
    0xB0: bytes,
    0xB1: _read_text,
    0xB3: _read_symbol,
    **_COMPOUND,
}
CODES = frozenset(_READERS)
"""All format codes."""
