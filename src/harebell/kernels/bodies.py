"""A body that arrives in pieces, put together as it comes.

A large body is not joined at its end, which would take a copy of all of it in one turn: there is
room for the next piece behind those before it. `bodies.pyx` beside this file is the same, compiled:
room grows without a copy, for the system moves whole pages.
"""

from __future__ import annotations


class GatheredBody:
    """Pieces of a body, side by side.

    Args:
        expected: octets that are announced; there may be more or fewer.

    Attributes:
        size: octets of all pieces.
    """

    __slots__ = ("_data", "size")

    def __init__(self, expected: int = 0) -> None:
        self._data = bytearray()
        self.size = 0

    def add(self, piece: bytes) -> int:
        """Put a piece behind those before it."""
        self._data += piece
        self.size += len(piece)
        return 0

    def shrink(self, byte_count: int) -> bool:
        """Free the last octets of a body that is dropped; False when nothing is left."""
        self.size = max(self.size - byte_count, 0)
        del self._data[self.size :]
        return self.size > 0

    def take(self) -> bytes:
        """The whole body; nothing is left here."""
        body, self._data = bytes(self._data), bytearray()
        self.size = 0
        return body
