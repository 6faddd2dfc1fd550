"""Read flatbuffers of a peer: every offset is checked before it is followed.

`flat.py` documents the format. The vtable of a table has the position of each field; what exceeds
a table or the buffer is an error, and a missing field has its default.
"""

from __future__ import annotations

from struct import Struct

from harebell.base.errors import BatchError

_U16 = Struct("<H")
_U32 = Struct("<I")
_I32 = Struct("<i")
_VTABLE_FIXED = 4


def malformed(why: str) -> BatchError:
    """Return the error for malformed metadata."""
    return BatchError(f"malformed Arrow metadata: {why}")


class ReadTable:
    """A table in a buffer.

    Args:
        data: the whole buffer.
        at: position of the table.

    Raises:
        BatchError: it exceeds the buffer.
    """

    __slots__ = ("_at", "_data", "_size", "_vtable", "_vtable_size")

    def __init__(self, data: bytes, at: int) -> None:
        self._data = data
        self._at = at
        self._vtable = at - _read(data, at, _I32)
        self._vtable_size = _read(data, self._vtable, _U16)
        self._size = _read(data, self._vtable + _U16.size, _U16)
        fits = self._vtable + self._vtable_size <= len(data) and at + self._size <= len(data)
        if self._vtable_size < _VTABLE_FIXED or not fits:
            raise malformed("a table runs over the end")

    def _field(self, slot: int, size: int) -> int:
        """Return the position of a field; -1 if missing."""
        entry = _VTABLE_FIXED + slot * _U16.size
        if entry + _U16.size > self._vtable_size:
            return -1
        offset = _read(self._data, self._vtable + entry, _U16)
        if offset == 0:
            return -1
        if offset + size > self._size:
            raise malformed("a field runs over the end of its table")
        return self._at + offset

    def number(self, slot: int, form: Struct, default: int = 0) -> int:
        """Return a number; the default if missing."""
        at = self._field(slot, form.size)
        return default if at < 0 else _read(self._data, at, form)

    def table(self, slot: int) -> ReadTable | None:
        """Return the table that a field refers to; None if missing."""
        at = self._field(slot, _U32.size)
        return None if at < 0 else ReadTable(self._data, at + _read(self._data, at, _U32))

    def structs(self, slot: int, size: int) -> memoryview:
        """Return the bytes of a vector of structs; empty if missing.

        Args:
            slot: the field.
            size: of one struct.
        """
        at = self._field(slot, _U32.size)
        if at < 0:
            return memoryview(b"")
        at += _read(self._data, at, _U32)
        count = _read(self._data, at, _U32)
        at += _U32.size
        if count * size > len(self._data) - at:
            raise malformed("a vector runs over the end")
        return memoryview(self._data)[at : at + count * size]


def root(data: bytes) -> ReadTable:
    """Return the first table of a buffer.

    Raises:
        BatchError: it has none.
    """
    return ReadTable(data, _read(data, 0, _U32))


def _read(data: bytes, at: int, form: Struct) -> int:
    if at < 0 or at + form.size > len(data):
        raise malformed("an offset leads out of it")
    value: int = form.unpack_from(data, at)[0]
    return value
