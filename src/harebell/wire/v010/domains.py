"""The data types of fields: those of `harebell.wire.v010.types`, with the checks of a field.

sequence-no    4 octets, serial arithmetic (RFC 1982)
sequence-set   size(2) { first(4) last(4) }           byte-ranges   the same with 8 octets each
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from harebell.wire.v010 import types
from harebell.wire.v010.composites import Ranges, Table
from harebell.wire.v010.types import Malformed

_HALF = 1 << 31


class Domain(NamedTuple):
    """The encoding of one data type.

    Args:
        read: (data, offset, end) -> (value, offset after it); raises `Malformed`.
        write: (value, name of the field) -> bytes; raises `ValueError` or `TypeError`.
        annotation: the Python type of its values.
        zero: the default of a required field.
        empty: values that need not be sent.
    """

    read: Callable[[bytes, int, int], tuple[Any, int]]
    write: Callable[[Any, str], bytes]
    annotation: Any
    zero: Any
    empty: tuple[Any, ...] = ()


def _unsigned(width: int) -> Domain:
    maximum = (1 << 8 * width) - 1

    def read(data: bytes, offset: int, end: int) -> tuple[int, int]:
        after = offset + width
        if after > end:
            raise types.cut_off(width, end - offset)
        return int.from_bytes(data[offset:after]), after

    def write(value: Any, key: str) -> bytes:
        if not isinstance(value, int):
            raise TypeError(f"{key!r}: must be an int, not {type(value).__name__}")
        if not 0 <= value <= maximum:
            raise ValueError(f"{key!r}: {value} is not between 0 and {maximum}")
        return value.to_bytes(width)

    return Domain(read, write, int, 0)


def _text(prefix: int) -> Domain:
    def read(data: bytes, offset: int, end: int) -> tuple[str, int]:
        start, after = _extent(data, prefix, offset, end)
        return types.read_text(data[start:after]), after

    def write(value: Any, key: str) -> bytes:
        if not isinstance(value, str):
            raise TypeError(f"{key!r}: must be a str, not {type(value).__name__}")
        try:
            return types.sized(prefix, value.encode(), key)
        except UnicodeEncodeError:
            raise ValueError(f"{key!r}: {value!a} holds what UTF-8 cannot express") from None

    return Domain(read, write, str, "")


def _octets(prefix: int) -> Domain:
    def read(data: bytes, offset: int, end: int) -> tuple[bytes, int]:
        start, after = _extent(data, prefix, offset, end)
        return data[start:after], after

    def write(value: Any, key: str) -> bytes:
        if not isinstance(value, bytes | bytearray | memoryview):
            raise TypeError(f"{key!r}: must be bytes, not {type(value).__name__}")
        return types.sized(prefix, bytes(value), key)

    return Domain(read, write, bytes, b"")


def _extent(data: bytes, prefix: int, offset: int, end: int) -> tuple[int, int]:
    start = offset + prefix
    if start > end:
        raise types.cut_off(prefix, end - offset)
    after = start + int.from_bytes(data[offset:start])
    if after > end:
        raise types.cut_off(after - start, end - start)
    return start, after


def _ranges(width: int, serial: bool) -> Domain:
    """Convert ranges to pairs of first and last number."""

    def read(data: bytes, offset: int, end: int) -> tuple[tuple[tuple[int, int], ...], int]:
        start, after = _extent(data, 2, offset, end)
        if (after - start) % (2 * width):
            raise Malformed(f"{after - start} octets are no whole ranges")
        ranges = []
        for begin in range(start, after, 2 * width):
            first = int.from_bytes(data[begin : begin + width])
            last = int.from_bytes(data[begin + width : begin + 2 * width])
            # A serial range may cross the wrap to 0, so that its last number is the smaller one.
            backwards = (last - first) & 0xFFFFFFFF >= _HALF if serial else last < first
            if backwards:
                raise Malformed(f"the range from {first} to {last} goes backwards")
            ranges.append((first, last))
        return tuple(ranges), after

    def write(value: Any, key: str) -> bytes:
        out = bytearray()
        # More ranges than a size of two octets has room for are refused below.
        for first, last in value:
            out += first.to_bytes(width) + last.to_bytes(width)
        return types.sized(2, bytes(out), key)

    return Domain(read, write, Ranges, (), ((),))


def _compound(code: int, read: Any, write: Any, annotation: Any, empty: Any) -> Domain:
    def read_field(data: bytes, offset: int, end: int) -> tuple[Any, int]:
        start, after = types.extent(data, code, offset, end)
        return read(data, start, after), after

    return Domain(read_field, write, annotation, empty, (empty,))


def _plain(code: int, annotation: Any) -> Domain:
    def read(data: bytes, offset: int, end: int) -> tuple[Any, int]:
        return types.read_value(data, code, offset, end)

    def write(value: Any, key: str) -> bytes:
        return types.write_value(code, value, key)

    return Domain(read, write, annotation, None)


DOMAINS: dict[str, Domain] = {
    "uint8": _unsigned(1),
    "uint16": _unsigned(2),
    "uint32": _unsigned(4),
    "uint64": _unsigned(8),
    "sequence-no": _unsigned(4),
    "sequence-set": _ranges(4, serial=True),
    "byte-ranges": _ranges(8, serial=False),
    "str8": _text(1),
    "str16": _text(2),
    "vbin8": _octets(1),
    "vbin16": _octets(2),
    "vbin32": _octets(4),
    "datetime": _plain(types.DATETIME, datetime | int),
    "uuid": _plain(types.UUID_CODE, UUID),
    "map": _compound(types.MAP, types.read_map, types.write_map, Table, {}),
    "array": _compound(types.ARRAY, types.read_array, types.write_array, list[Any], []),
}
"""All data types except bit, struct32 and the structs."""
