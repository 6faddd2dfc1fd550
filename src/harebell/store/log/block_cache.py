"""The blocks that the readers of all logs keep in memory, least recently loaded first.

Each reader keeps the block that it read last, which may hold a message of any size. There may be
many logs, so the limit is for all blocks together.
"""

from __future__ import annotations

from typing import Protocol

from harebell.store.limits import READ_HELD_BYTES


class Rereadable(Protocol):
    """Data read from disk that can be read again."""

    def empty(self) -> int:
        """Release the data."""


class BlockCache:
    """The blocks of all readers of a store.

    Args:
        limit: limit of all blocks together in bytes; a single block may be larger.

    Attributes:
        byte_count: the size of all blocks in bytes.
    """

    def __init__(self, limit: int = READ_HELD_BYTES) -> None:
        self.byte_count = 0
        self._limit = limit
        self._blocks: dict[Rereadable, int] = {}

    def add(self, block: Rereadable, byte_count: int) -> None:
        """Note that a block was loaded; empty older ones until the limit is kept."""
        self.remove(block)
        self._blocks[block] = byte_count
        self.byte_count += byte_count
        # The block that was just added stays, even if it is larger than the limit: its reader needs
        # it.
        while self.byte_count > self._limit and len(self._blocks) > 1:
            oldest = next(iter(self._blocks))
            self.remove(oldest)
            oldest.empty()

    def remove(self, block: Rereadable) -> None:
        """Forget a block that is not used any more or is about to be loaded again."""
        self.byte_count -= self._blocks.pop(block, 0)
