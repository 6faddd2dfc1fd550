"""The data types of fields: those of `harebell.wire.v010.types`, with the checks of a field.

sequence-no    4 octets, serial arithmetic (RFC 1982)
sequence-set   size(2) { first(4) last(4) }           byte-ranges   the same with 8 octets each
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from harebell.wire.v010 import types
from harebell.wire.v010.types import Malformed

_HALF = 1 << 31


class Domain(NamedTuple):
    """The encoding of one data type.

    Args:
        read: (data, offset, end) -> (value, offset after it); raises `Malformed`.
        write: (value, name of the field) -> bytes; raises `ValueError` or `TypeError`.
        empty: values that need not be sent.
    """

    read: Callable[[bytes, int, int], tuple[Any, int]]
    write: Callable[[Any, str], bytes]
    empty: tuple[Any, ...] = ()


def _unsigned(width: int) -> Domain:
    maximum = (1 << 8 * width) - 1

    def read(data: bytes, at: int, end: int) -> tuple[int, int]:
        after = at + width
        if after > end:
            raise types.cut_off(width, end - at)
        return int.from_bytes(data[at:after]), after

    def write(value: Any, key: str) -> bytes:
        if not isinstance(value, int):
            raise TypeError(f"{key!r}: must be an int, not {type(value).__name__}")
        if not 0 <= value <= maximum:
            raise ValueError(f"{key!r}: {value} is not between 0 and {maximum}")
        return value.to_bytes(width)

    return Domain(read, write)


def _text(prefix: int) -> Domain:
    def read(data: bytes, at: int, end: int) -> tuple[str, int]:
        start, after = _extent(data, prefix, at, end)
        return types.read_text(data[start:after]), after

    def write(value: Any, key: str) -> bytes:
        if not isinstance(value, str):
            raise TypeError(f"{key!r}: must be a str, not {type(value).__name__}")
        try:
            return types.sized(prefix, value.encode(), key)
        except UnicodeEncodeError:
            raise ValueError(f"{key!r}: {value!a} holds what UTF-8 cannot express") from None

    return Domain(read, write)


def _octets(prefix: int) -> Domain:
    def read(data: bytes, at: int, end: int) -> tuple[bytes, int]:
        start, after = _extent(data, prefix, at, end)
        return data[start:after], after

    def write(value: Any, key: str) -> bytes:
        if not isinstance(value, bytes | bytearray | memoryview):
            raise TypeError(f"{key!r}: must be bytes, not {type(value).__name__}")
        return types.sized(prefix, bytes(value), key)

    return Domain(read, write)


def _extent(data: bytes, prefix: int, at: int, end: int) -> tuple[int, int]:
    start = at + prefix
    if start > end:
        raise types.cut_off(prefix, end - at)
    after = start + int.from_bytes(data[at:start])
    if after > end:
        raise types.cut_off(after - start, end - start)
    return start, after


def _ranges(width: int, serial: bool) -> Domain:
    """Convert ranges to pairs of first and last number."""

    def read(data: bytes, at: int, end: int) -> tuple[tuple[tuple[int, int], ...], int]:
        start, after = _extent(data, 2, at, end)
        if (after - start) % (2 * width):
            raise Malformed(f"{after - start} octets are no whole ranges")
        found = []
        for place in range(start, after, 2 * width):
            first = int.from_bytes(data[place : place + width])
            last = int.from_bytes(data[place + width : place + 2 * width])
            backwards = (last - first) & 0xFFFFFFFF >= _HALF if serial else last < first
            if backwards:
                raise Malformed(f"the range from {first} to {last} goes backwards")
            found.append((first, last))
        return tuple(found), after

    def write(value: Any, key: str) -> bytes:
        out = bytearray()
        for first, last in value:
            out += first.to_bytes(width) + last.to_bytes(width)
        return types.sized(2, bytes(out), key)

    return Domain(read, write, ((),))


def _compound(code: int, read: Any, write: Any, empty: Any) -> Domain:
    def read_field(data: bytes, at: int, end: int) -> tuple[Any, int]:
        start, after = types.extent(data, code, at, end)
        return read(data, start, after), after

    return Domain(read_field, write, (empty,))


def _plain(code: int) -> Domain:
    def read(data: bytes, at: int, end: int) -> tuple[Any, int]:
        return types.read_value(data, code, at, end)

    def write(value: Any, key: str) -> bytes:
        return types.write_value(code, value, key)

    return Domain(read, write)


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
    "datetime": _plain(types.DATETIME),
    "uuid": _plain(types.UUID_CODE),
    "map": _compound(types.MAP, types.read_map, types.write_map, {}),
    "array": _compound(types.ARRAY, types.read_array, types.write_array, []),
}
"""All data types except bit, struct32 and the structs."""
