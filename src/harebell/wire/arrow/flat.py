"""Write flatbuffers, the encoding of Arrow's metadata: tables, vectors and strings.

A flatbuffer refers forward by unsigned offsets, so everything is written in one pass: a node
first, then the nodes that it refers to.

    | root offset | vtable | table ............ | vtable | table | vector | string ...
                             ^ distance back to its vtable, then the fields, the widest first

Scalars are aligned to their size, from the first byte of the buffer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from struct import Struct, calcsize, pack_into
from typing import Protocol

_U16 = Struct("<H")
_U32 = Struct("<I")
_I32 = Struct("<i")
_REFERENCE = 4
_WIDEST = 8

References = deque[tuple[int, "FlatNode"]]
"""An offset to write: its position, and its target."""


class FlatNode(Protocol):
    """A node that an offset can point to."""

    def write(self, out: bytearray, references: References) -> int:
        """Append it; return the position that offsets to it point to."""


class Scalar:
    """A number in a table.

    Args:
        form: its letter in the module `struct`.
        value: the number.
    """

    __slots__ = ("form", "value")

    def __init__(self, form: str, value: int) -> None:
        self.form = form
        self.value = value


class FlatText:
    """A string.

    Args:
        text: the string.
    """

    __slots__ = ("_data",)

    def __init__(self, text: str) -> None:
        self._data = text.encode()

    def write(self, out: bytearray, references: References) -> int:
        """Append its size, its bytes and a zero."""
        offset = _pad(out, 0, _REFERENCE)
        out += _U32.pack(len(self._data)) + self._data + b"\0"
        return offset


class Structs:
    """A vector of structs of 64-bit integers.

    Args:
        data: the structs, encoded.
        count: number of structs.
    """

    __slots__ = ("_count", "_data")

    def __init__(self, data: bytes, count: int) -> None:
        self._data = data
        self._count = count

    def write(self, out: bytearray, references: References) -> int:
        """Append their number and the structs."""
        offset = _pad(out, _REFERENCE, _WIDEST)
        out += _U32.pack(self._count) + self._data
        return offset


class Vector:
    """A vector of tables.

    Args:
        nodes: the tables.
    """

    __slots__ = ("_nodes",)

    def __init__(self, nodes: Sequence[FlatNode]) -> None:
        self._nodes = nodes

    def write(self, out: bytearray, references: References) -> int:
        """Append their number and room for the offsets."""
        offset = _pad(out, 0, _REFERENCE)
        out += _U32.pack(len(self._nodes))
        for node in self._nodes:
            references.append((len(out), node))
            out += bytes(_REFERENCE)
        return offset


class FlatTable:
    """A table.

    Args:
        fields: its fields by their numbers in the schema; missing ones have their default.
    """

    __slots__ = ("_fields",)

    def __init__(self, fields: Mapping[int, Scalar | FlatNode]) -> None:
        self._fields = fields

    def write(self, out: bytearray, references: References) -> int:
        """Append its vtable and itself."""
        slots = max(self._fields, default=-1) + 1
        sizes = {slot: _size(field) for slot, field in self._fields.items()}
        # Its own size, the size of the table, and an offset per slot; 0 is a missing field.
        vtable = bytearray(2 * _U16.size + slots * _U16.size)
        # The distance to the vtable takes four bytes; the widest fields follow it, aligned.
        offset = _pad(out, len(vtable) + _REFERENCE, _WIDEST) + len(vtable)
        body = bytearray(_I32.pack(len(vtable)))
        later: list[tuple[int, FlatNode]] = []
        # The widest first: each is then aligned to its size without padding.
        for slot in sorted(sizes, key=lambda each: (-sizes[each], each)):
            field = self._fields[slot]
            _U16.pack_into(vtable, 2 * _U16.size + slot * _U16.size, len(body))
            start = len(body)
            body += bytes(sizes[slot])
            if isinstance(field, Scalar):
                pack_into("<" + field.form, body, start, field.value)
            else:
                later.append((offset + start, field))
        pack_into("<HH", vtable, 0, len(vtable), len(body))
        out += vtable
        out += body
        references.extend(later)
        return offset


def _size(field: Scalar | FlatNode) -> int:
    return calcsize("<" + field.form) if isinstance(field, Scalar) else _REFERENCE


def _pad(out: bytearray, before: int, align: int) -> int:
    """Append zeros to align what follows `before` more bytes; return its position."""
    out += bytes(-(len(out) + before) % align)
    return len(out)


def flatbuffer(root: FlatTable) -> bytes:
    """Return a whole buffer, a multiple of eight bytes long."""
    out = bytearray(_REFERENCE)
    references: References = deque([(0, root)])
    while references:
        place, node = references.popleft()
        offset = node.write(out, references)
        _U32.pack_into(out, place, offset - place)
    _pad(out, 0, _WIDEST)
    return bytes(out)
