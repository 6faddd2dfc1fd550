"""What readers hold of segments: as many octets as the limit allows, those loaded last.

Every log has readers of its own, and each of them keeps what it read from the disk at once, which
may be a message of any size. There may be many logs, so all of them together have a limit.
"""

from __future__ import annotations

from typing import Protocol

from harebell.base.limits import READ_HELD_BYTES


class Held(Protocol):
    """Something that was read, and can be read again."""

    def empty(self) -> int:
        """Let it go."""


class Loaded:
    """The blocks of all readers of a store.

    Args:
        most: octets that they may hold together; the one loaded last may hold more.

    Attributes:
        octets: what they hold.
    """

    def __init__(self, most: int = READ_HELD_BYTES) -> None:
        self.octets = 0
        self._most = most
        self._blocks: dict[Held, int] = {}

    def add(self, block: Held, octets: int) -> None:
        """A block was loaded with so many octets; others are emptied if that is too much."""
        self.remove(block)
        self._blocks[block] = octets
        self.octets += octets
        while self.octets > self._most and len(self._blocks) > 1:
            oldest = next(iter(self._blocks))
            self.remove(oldest)
            oldest.empty()

    def remove(self, block: Held) -> None:
        """A block is not used any more, or is about to be loaded with something else."""
        self.octets -= self._blocks.pop(block, 0)
