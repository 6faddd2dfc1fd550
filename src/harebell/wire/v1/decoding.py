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
from typing import Any
from uuid import UUID

from harebell.base.c_types import C, Done, i32, i32_or_minus_1, isize
from harebell.base.errors import DecodeError
from harebell.kernels.limits import COMPOUND_BYTES, NESTING, VOID_ARRAY_ELEMENTS
from harebell.wire.v1.values import (
    Array,
    Byte,
    Char,
    Decimal32,
    Decimal64,
    Decimal128,
    Described,
    Float,
    Int,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
)

CODES = frozenset(
    b"\x40\x41\x42\x43\x44\x45\x50\x51\x52\x53\x54\x55\x56\x60\x61\x70\x71\x72\x73\x74"
    b"\x80\x81\x82\x83\x84\x94\x98\xa0\xa1\xa3\xb0\xb1\xb3\xc0\xc1\xd0\xd1\xe0\xf0"
)
"""All format codes."""

_NESTING: i32 = NESTING
_COMPOUND: isize = COMPOUND_BYTES
_VOID_ELEMENTS: isize = VOID_ARRAY_ELEMENTS
_LAST_CHARACTER = 0x10FFFF
_SURROGATES = (0xD800, 0xDFFF)
_CONSTANTS = {0x40: None, 0x41: True, 0x42: False, 0x43: UInt(0), 0x44: ULong(0)}
_UNSIGNED = {
    0x50: UByte,
    0x52: UInt,
    0x53: ULong,
    0x60: UShort,
    0x70: UInt,
    0x80: ULong,
}
_SIGNED = {
    0x51: Byte,
    0x54: Int,
    0x55: int,
    0x61: Short,
    0x71: Int,
    0x81: int,
    0x83: Timestamp,
}
_OCTETS = {0x74: Decimal32, 0x84: Decimal64, 0x94: Decimal128}
_FLOAT = struct.Struct(">f").unpack
_DOUBLE = struct.Struct(">d").unpack


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


class ValueReader:
    """Reads values one after the other.

    Args:
        data: octets with the values in them.
        offset: where the first one begins.
        end: where they end; not behind the data.
        lenient: whether the last of equal keys in a map counts; without it they are an error.
        values_max: the most values that may be read, nested ones included.

    Attributes:
        offset: where the next value begins.
        end: where the octets end that may belong to it.
    """

    def __init__(
        self,
        data: bytes,
        offset: isize,
        end: isize,
        lenient: bool = False,
        values_max: isize = COMPOUND_BYTES,
    ) -> None:
        self.data = data
        self.values_max = values_max
        self._left = values_max
        self.offset = offset
        self.end = end
        self.lenient = lenient

    def value(self, depth: i32 = 0) -> C[Any]:
        """Read a value.

        Raises:
            DecodeError: it is malformed, or more than the limits allow.
        """
        if self.offset >= self.end:
            raise DecodeError("a value without a constructor")
        self._count(1)
        code: i32 = self.data[self.offset]
        self.offset += 1
        if code != 0:
            return self._of(code, depth)
        # A described value: the descriptor, and then the value.
        _check(depth)
        descriptor = self.value(depth + 1)
        return Described(descriptor, self.value(depth + 1))

    def _count(self, count: isize) -> Done:
        self._left -= count
        if self._left < 0:
            raise DecodeError(f"more than {self.values_max} values")
        return 0

    def _of(self, code: i32, depth: i32) -> C[Any]:
        """Read a value whose constructor, a format code, was read before."""
        if code >= 0xC0:
            return self._compound(code, depth)
        if code not in CODES:
            raise DecodeError(f"unknown format code {code:#04x}")
        if code < 0x50:
            return [] if code == 0x45 else _CONSTANTS[code]
        start: isize = self.offset
        self.offset = self._after(code)
        if code < 0xA0:
            return _fixed(code, self.data[start : self.offset])
        octets: bytes = self.data[start + _prefix(code) : self.offset]
        if code & 0x0F == 0:
            return octets
        try:
            return octets.decode() if code & 0x0F == 1 else Symbol(octets.decode("ascii"))
        except UnicodeDecodeError:
            pass
        text = "string that is not UTF-8" if code & 0x0F == 1 else "symbol that is not ASCII"
        raise DecodeError(f"a {text}")

    def _after(self, code: i32) -> isize:
        """Return where the octets of a value end that begin at `offset`, after its code."""
        start: isize = self.offset
        width: isize = _width(code)
        if width < 0:
            prefix: isize = _prefix(code)
            if prefix == 0:
                raise DecodeError(f"unknown format code {code:#04x}")
            if start + prefix > self.end:
                raise DecodeError("a length that is cut off")
            width = prefix + self._number(start, prefix)
        if start + width > self.end:
            raise DecodeError(f"a value of {width} octets, of which {self.end - start} are there")
        return start + width

    def _number(self, start: isize, width: isize) -> isize:
        """Return an unsigned number of one or four octets."""
        if width == 1:
            return self.data[start]
        number: isize = 0
        index: isize
        for index in range(start, start + 4):
            number = number << 8 | self.data[index]
        return number

    def _compound(self, code: i32, depth: i32) -> C[Any]:
        """Read a list, map or array."""
        if code not in CODES:
            raise DecodeError(f"unknown format code {code:#04x}")
        _check(depth)
        outer: isize = self.end
        end: isize = self._after(code)
        prefix: isize = _prefix(code)
        start: isize = self.offset + prefix
        if end - start < prefix:
            raise DecodeError("a list, map or array whose size leaves no room for its count")
        if end - start > _COMPOUND:
            raise DecodeError(
                f"a list, map or array of {end - start} octets, at most {COMPOUND_BYTES} may be"
            )
        count: isize = self._number(start, prefix)
        self.offset = start + prefix
        # What belongs to it ends where it does.
        self.end = end
        value: Any = None
        if code >= 0xE0:
            value = self._array(count, depth)
        elif code & 0x0F == 1:
            value = self._map(count, depth)
        else:
            value = self._list(count, depth)
        self.end = outer
        return value

    def _list(self, count: isize, depth: i32) -> C[Any]:
        # Each value takes one octet at least.
        if count > self.end - self.offset:
            raise DecodeError(f"a list of {count} values in {self.end - self.offset} octets")
        items = [self.value(depth + 1) for _ in range(count)]
        self._close("a list")
        return items

    def _map(self, count: isize, depth: i32) -> C[Any]:
        if count > self.end - self.offset:
            raise DecodeError(f"a map of {count} values in {self.end - self.offset} octets")
        if count & 1:
            raise DecodeError(f"a map of {count} values, which are no pairs")
        pairs: dict[Any, Any] = {}
        for _ in range(count // 2):
            key = self.value(depth + 1)
            value = self.value(depth + 1)
            try:
                pairs[key] = value
            except TypeError:
                raise DecodeError("a map with a list, map or array as a key") from None
        if len(pairs) != count // 2 and not self.lenient:
            raise DecodeError("a map with two keys that are equal")
        self._close("a map")
        return pairs

    def _array(self, count: isize, depth: i32) -> C[Any]:
        descriptors: list[Any] = []
        element: i32 = self._element(descriptors, depth)
        width: isize = _width(element)
        if width == 0 and count > _VOID_ELEMENTS:
            raise DecodeError(
                f"an array of {count} values without octets, at most {VOID_ARRAY_ELEMENTS} may be"
            )
        if count * (1 if width < 0 else width) > self.end - self.offset:
            raise DecodeError(f"an array of {count} values in {self.end - self.offset} octets")
        self._count(count)
        items = [self._of(element, depth + 1) for _ in range(count)]
        self._close("an array")
        return Array(element, items, tuple(descriptors))

    def _element(self, descriptors: list[Any], depth: i32) -> i32:
        """Read the constructor of the elements of an array: descriptors, and the format code."""
        while True:
            if self.offset >= self.end:
                raise DecodeError("an array without a constructor of its elements")
            code: i32 = self.data[self.offset]
            self.offset += 1
            if code != 0:
                if code not in CODES:
                    raise DecodeError(f"unknown format code {code:#04x}")
                return code
            _check(depth + len(descriptors))
            descriptors.append(self.value(depth + len(descriptors) + 1))

    def _close(self, what: str) -> Done:
        """Check that nothing is behind the last value of a list, map or array."""
        if self.offset != self.end:
            raise DecodeError(f"{self.end - self.offset} octets after the last value of {what}")
        return 0


def _width(code: i32) -> i32_or_minus_1:
    """Return the octets of a value with this code; -1 if a length says it, or nothing does."""
    kind: i32 = code >> 4
    if kind == 4:
        return 0
    return 1 << (kind - 5) if 5 <= kind <= 9 else -1


def _prefix(code: i32) -> i32:
    """Return the octets of a length or size; 0 for a code that has none."""
    if code < 0xA0:
        return 0
    return 4 if code & 0x10 else 1


def _check(depth: isize) -> Done:
    if depth >= _NESTING:
        raise DecodeError(f"values are nested deeper than {NESTING}")
    return 0


def _fixed(code: i32, octets: bytes) -> C[Any]:
    """Return the value of a code with octets of a fixed number."""
    unsigned = _UNSIGNED.get(code)
    if unsigned is not None:
        return unsigned(int.from_bytes(octets))
    signed = _SIGNED.get(code)
    if signed is not None:
        return signed(int.from_bytes(octets, signed=True))
    if code == 0x56:
        if octets[0] > 1:
            raise DecodeError(f"a boolean {octets[0]:#04x}")
        return octets[0] == 1
    if code == 0x82:
        return _DOUBLE(octets)[0]
    if code == 0x72:
        return Float(_FLOAT(octets)[0])
    if code == 0x98:
        return UUID(bytes=octets)
    if code == 0x73:
        number = int.from_bytes(octets)
        if number > _LAST_CHARACTER or _SURROGATES[0] <= number <= _SURROGATES[1]:
            raise DecodeError(f"a char {number:#x}, which is no Unicode character")
        return Char(chr(number))
    return _OCTETS[code](octets)
