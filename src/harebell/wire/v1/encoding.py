"""Encode values of AMQP 1.0, each in its shortest form."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, lru_cache
from typing import Any
from uuid import UUID

from harebell.base.values import SectionValue
from harebell.kernels.limits import NESTING
from harebell.wire.v1 import values
from harebell.wire.v1.described_list import DescribedList
from harebell.wire.v1.values import WIDEST, Array, Described, Symbol

_SHORT = 255
"""Most octets behind a length, or a size, of one octet."""


def encode(value: Any, depth: int = 0) -> bytes:
    """Encode a value by its type in Python (`harebell.wire.v1.values`).

    Raises:
        TypeError: no type of AMQP 1.0 is that of the value.
        ValueError: it is out of the range of its type, or nested too deeply.
    """
    kind: Any = type(value)
    write = _WRITERS.get(kind) or _writer_of_base(kind)
    if write in _NESTED:
        # An empty list is a value without others, for who reads it as well.
        if depth >= NESTING and (value or write is not _list):
            raise ValueError(f"values are nested deeper than {NESTING}")
        return write(value, depth + 1)
    return write(value)


@lru_cache(maxsize=64)
def _writer_of_base(kind: type) -> Callable[..., bytes]:
    """Return what encodes a value of a subclass."""
    for base in kind.__mro__:
        if base in _WRITERS:
            return _WRITERS[base]
    if issubclass(kind, Mapping):
        return _map
    raise TypeError(f"{kind.__name__} is no type of AMQP 1.0")


def sized(short: int, octets: bytes) -> bytes:
    """Return octets after a code and their length.

    Args:
        short: the code with a length of one octet; that with four is 0x10 more.
        octets: of the value.
    """
    size = len(octets)
    if size <= _SHORT:
        return bytes((short, size)) + octets
    return bytes((short + 0x10,)) + _four(size) + octets


def compound(short: int, count: int, octets: bytes) -> bytes:
    """Return the octets of a list, map or array after a code, their size and their count.

    Args:
        short: the code with size and count of one octet; that with four is 0x10 more.
        count: of the values.
        octets: of the values; in an array their constructor first.
    """
    size = len(octets)
    # The size counts the count.
    if size < _SHORT and count <= _SHORT:
        return bytes((short, size + 1, count)) + octets
    return bytes((short + 0x10,)) + _four(size + 4) + _four(count) + octets


def encode_list(items: Iterable[bytes], count: int) -> bytes:
    """Return a list of values that are encoded."""
    return compound(0xC0, count, b"".join(items)) if count else b"\x45"


def _four(size: int) -> bytes:
    if size >> 32:
        raise ValueError(f"{size} octets, at most {(1 << 32) - 1} are possible")
    return size.to_bytes(4)


def text(value: str) -> bytes:
    """Encode a string."""
    try:
        return sized(0xA1, value.encode())
    except UnicodeEncodeError:
        raise ValueError(f"{value!a} holds what UTF-8 cannot express") from None


def symbol(value: str) -> bytes:
    """Encode a symbol."""
    try:
        return sized(0xA3, value.encode("ascii"))
    except UnicodeEncodeError:
        raise ValueError(f"{value!a} is not ASCII, as a symbol must be") from None


def _fixed(value: int, code: int, width: int, signed: bool = False) -> bytes:
    try:
        return bytes((code,)) + value.to_bytes(width, signed=signed)
    except OverflowError:
        raise ValueError(f"{int(value)} does not fit into {8 * width} bits") from None


def boolean(value: bool) -> bytes:
    """Encode a boolean."""
    return b"\x41" if value else b"\x42"


def ubyte(value: int) -> bytes:
    """Encode a ubyte."""
    return _fixed(value, 0x50, 1)


def ushort(value: int) -> bytes:
    """Encode a ushort."""
    return _fixed(value, 0x60, 2)


def uint(value: int) -> bytes:
    """Encode a uint."""
    if value == 0:
        return b"\x43"
    return bytes((0x52, value)) if 0 < value <= _SHORT else _fixed(value, 0x70, 4)


def ulong(value: int) -> bytes:
    """Encode a ulong."""
    if value == 0:
        return b"\x44"
    return bytes((0x53, value)) if 0 < value <= _SHORT else _fixed(value, 0x80, 8)


def timestamp(value: int) -> bytes:
    """Encode a timestamp."""
    return _fixed(value, 0x83, 8, signed=True)


def binary(value: bytes) -> bytes:
    """Encode a binary."""
    return sized(0xA0, value)


def _int(value: int) -> bytes:
    short = -128 <= value < 128
    return _fixed(value, 0x54, 1, signed=True) if short else _fixed(value, 0x71, 4, signed=True)


def _long(value: int) -> bytes:
    short = -128 <= value < 128
    return _fixed(value, 0x55, 1, signed=True) if short else _fixed(value, 0x81, 8, signed=True)


def _float(value: float) -> bytes:
    try:
        return b"\x72" + struct.pack(">f", value)
    except OverflowError:
        raise ValueError(f"{value} does not fit into 32 bits") from None


def _char(value: str) -> bytes:
    if len(value) != 1 or "\ud800" <= value <= "\udfff":
        raise ValueError(f"{value!a} is not one Unicode character")
    return b"\x73" + ord(value).to_bytes(4)


def _decimal(code: int, width: int) -> Callable[[bytes], bytes]:
    def write(value: bytes) -> bytes:
        if len(value) != width:
            raise ValueError(f"a decimal of {len(value)} octets, not {width}")
        return bytes((code,)) + value

    return write


def _list(items: Any, depth: int) -> bytes:
    return encode_list([encode(item, depth) for item in items], len(items))


def _map(pairs: Mapping[Any, Any], depth: int) -> bytes:
    octets = [encode(each, depth) for pair in pairs.items() for each in pair]
    return compound(0xC1, len(octets), b"".join(octets))


def _described(value: Described, depth: int) -> bytes:
    return b"\0" + encode(value.descriptor, depth) + encode(value.value, depth)


def _array(array: Array, depth: int) -> bytes:
    constructor = b"".join(b"\0" + encode(each, depth) for each in array.descriptors)
    return _array_of(array.code, constructor, [encode(item, depth) for item in array])


def _array_of(code: int, descriptors: bytes, items: list[bytes]) -> bytes:
    """Return an array of encoded values of one type, whose widest code is given."""
    short = _SHORT_TEXTS.get(code, code)
    # One constructor is that of all: it is the short one if each of them is short.
    if all(item[0] == short for item in items):
        code, parts = short, [item[1:] for item in items]
    else:
        parts = [_widened(code, item) for item in items]
    return compound(0xE0, len(items), descriptors + bytes((code,)) + b"".join(parts))


def fields(pairs: Mapping[str, Any]) -> bytes:
    """Encode a map whose keys are symbols."""
    octets = [each for key, item in pairs.items() for each in (symbol(key), encode(item, 1))]
    return compound(0xC1, len(octets), b"".join(octets))


def symbols(items: Iterable[str]) -> bytes:
    """Encode an array of symbols."""
    if type(items) is Symbols:
        return items.octets
    return _array_of(0xB3, b"", [symbol(item) for item in items])


class Symbols(tuple[str, ...]):
    """Symbols that are sent with each connection or link; they never change."""

    @cached_property
    def octets(self) -> bytes:
        """Their array, which is encoded once."""
        return symbols(tuple(self))


_SHORT_TEXTS = {0xB0: 0xA0, 0xB1: 0xA1, 0xB3: 0xA3}


def _widened(code: int, octets: bytes) -> bytes:
    """Return the octets of an element with the widest code of its type, without the code."""
    own = octets[0]
    if WIDEST.get(own, own) != code:
        raise TypeError(f"an array of type {code:#04x} with a value of type {own:#04x}")
    return octets[1:] if own == code else _WIDER[own](octets)


def _wider_compound(octets: bytes) -> bytes:
    return _four(octets[1] + 3) + _four(octets[2]) + octets[3:]


def _wider_text(octets: bytes) -> bytes:
    return _four(octets[1]) + octets[2:]


_WIDER: dict[int, Callable[[bytes], bytes]] = {
    0x41: lambda octets: b"\1",
    0x42: lambda octets: b"\0",
    0x43: lambda octets: bytes(4),
    0x52: lambda octets: bytes(3) + octets[1:],
    0x44: lambda octets: bytes(8),
    0x53: lambda octets: bytes(7) + octets[1:],
    0x54: lambda octets: _extended(octets, 4),
    0x55: lambda octets: _extended(octets, 8),
    0xA0: _wider_text,
    0xA1: _wider_text,
    0xA3: _wider_text,
    0x45: lambda octets: b"\0\0\0\4\0\0\0\0",
    0xC0: _wider_compound,
    0xC1: _wider_compound,
    0xE0: _wider_compound,
}


def _extended(octets: bytes, width: int) -> bytes:
    return int.from_bytes(octets[1:2], signed=True).to_bytes(width, signed=True)


_NESTED = frozenset({_list, _map, _array, _described})
_WRITERS: dict[type, Callable[..., bytes]] = {
    type(None): lambda value: b"\x40",
    bool: boolean,
    int: _long,
    float: lambda value: b"\x82" + struct.pack(">d", value),
    str: text,
    bytes: binary,
    bytearray: binary,
    memoryview: lambda value: binary(bytes(value)),
    Symbol: symbol,
    values.Char: _char,
    values.UByte: ubyte,
    values.UShort: ushort,
    values.UInt: uint,
    values.ULong: ulong,
    values.Byte: lambda value: _fixed(value, 0x51, 1, signed=True),
    values.Short: lambda value: _fixed(value, 0x61, 2, signed=True),
    values.Int: _int,
    values.Timestamp: timestamp,
    values.Float: _float,
    values.Decimal32: _decimal(0x74, 4),
    values.Decimal64: _decimal(0x84, 8),
    values.Decimal128: _decimal(0x94, 16),
    UUID: lambda value: b"\x98" + value.bytes,
    list: _list,
    tuple: _list,
    dict: _map,
    Array: _array,
    Described: _described,
    DescribedList: lambda value: value.encoded(),
    SectionValue: bytes,
}
