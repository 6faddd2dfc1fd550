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
        offset: position of the table.

    Raises:
        BatchError: it exceeds the buffer.
    """

    __slots__ = ("_data", "_offset", "_size", "_vtable", "_vtable_size")

    def __init__(self, data: bytes, offset: int) -> None:
        self._data = data
        self._offset = offset
        # The distance is signed, so a peer's vtable may lie on either side: `_read` checks it.
        self._vtable = offset - _read(data, offset, _I32)
        self._vtable_size = _read(data, self._vtable, _U16)
        self._size = _read(data, self._vtable + _U16.size, _U16)
        fits = self._vtable + self._vtable_size <= len(data) and offset + self._size <= len(data)
        if self._vtable_size < _VTABLE_FIXED or not fits:
            raise malformed("a table runs over the end")

    def _field(self, slot: int, size: int) -> int:
        """Return the position of a field; -1 if missing."""
        entry = _VTABLE_FIXED + slot * _U16.size
        # A writer of an older schema has a shorter vtable: the fields after it have defaults.
        if entry + _U16.size > self._vtable_size:
            return -1
        offset = _read(self._data, self._vtable + entry, _U16)
        if offset == 0:
            return -1
        if offset + size > self._size:
            raise malformed("a field runs over the end of its table")
        return self._offset + offset

    def number(self, slot: int, form: Struct, default: int = 0) -> int:
        """Return a number; the default if missing."""
        offset = self._field(slot, form.size)
        return default if offset < 0 else _read(self._data, offset, form)

    def table(self, slot: int) -> ReadTable | None:
        """Return the table that a field refers to; None if missing."""
        offset = self._field(slot, _U32.size)
        return (
            None if offset < 0 else ReadTable(self._data, offset + _read(self._data, offset, _U32))
        )

    def structs(self, slot: int, size: int) -> memoryview:
        """Return the bytes of a vector of structs; empty if missing.

        Args:
            slot: the field.
            size: of one struct.
        """
        offset = self._field(slot, _U32.size)
        if offset < 0:
            return memoryview(b"")
        offset += _read(self._data, offset, _U32)
        count = _read(self._data, offset, _U32)
        offset += _U32.size
        # Before anything is made of them: the count is what the peer says.
        if count * size > len(self._data) - offset:
            raise malformed("a vector runs over the end")
        return memoryview(self._data)[offset : offset + count * size]


def root(data: bytes) -> ReadTable:
    """Return the first table of a buffer.

    Raises:
        BatchError: it has none.
    """
    return ReadTable(data, _read(data, 0, _U32))


def _read(data: bytes, offset: int, form: Struct) -> int:
    if offset < 0 or offset + form.size > len(data):
        raise malformed("an offset leads out of it")
    value: int = form.unpack_from(data, offset)[0]
    return value
