"""Join the pieces of a body as they arrive.

Joining a large body at its end would copy all of it in one turn. Here each piece is copied behind
the ones before it. `bodies.pyx` beside this file is the same, compiled: its block grows without a
copy, because the system moves whole pages.
"""

from __future__ import annotations


class GatheredBody:
    """A body that arrives in pieces.

    Args:
        expected: the announced size in bytes; the body may be larger or smaller.

    Attributes:
        size: the size of all pieces in bytes.
    """

    __slots__ = ("_data", "size")

    def __init__(self, expected: int = 0) -> None:
        self._data = bytearray()
        self.size = 0

    def add(self, piece: bytes) -> int:
        """Append a piece."""
        self._data += piece
        self.size += len(piece)
        return 0

    def shrink(self, byte_count: int) -> bool:
        """Free the last bytes of a dropped body; return False if none are left.

        A large body is freed in slices, because freeing it at once would hold up the event loop.
        """
        self.size = max(self.size - byte_count, 0)
        del self._data[self.size :]
        return self.size > 0

    def take(self) -> bytes:
        """Return the whole body and forget it."""
        body, self._data = bytes(self._data), bytearray()
        self.size = 0
        return body
