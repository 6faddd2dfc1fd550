"""Byte accounting: count the bodies that were ready before their bytes were limited.

    log      | counted counted counted | not yet ... | counted when they came ...
                                       ^ cursor      ^ end, when the counting began

A policy may limit a queue at any time, and a restart brings back what was in it. That backlog may
be large, so it is counted in turns. What leaves meanwhile is subtracted only if it was counted, and
what comes back before the cursor gets there is counted then. A queue with several logs has a cursor
and an end for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harebell.model.queue.features.limits import Limits
    from harebell.model.queue.order.contract import MessageOrder

BEHIND = 2**62
"""Where the cursor of a log is when everything in it is counted: behind any position."""


class ByteAccount:
    """How far the bodies of one queue are counted.

    Args:
        order: of the queue.

    Attributes:
        cursors: the first position of each log that is not looked at.
    """

    __slots__ = ("_bits", "_ends", "_mask", "_order", "cursors")

    def __init__(self, order: MessageOrder) -> None:
        self._order = order
        self._bits = order.level_bits
        self._mask = (1 << self._bits) - 1
        # What comes to a log that is made later is counted when it comes.
        ends = {level: each.end() for level, each in order.levels()}
        self._ends: Sequence[int] = [ends.get(level, 0) for level in range(1 << self._bits)]
        self.cursors = [0] * len(self._ends)

    def has(self, position: int) -> bool:
        """Return whether the message at a position is counted, if it is ready."""
        level = position & self._mask
        here = position >> self._bits
        return here < self.cursors[level] or here >= self._ends[level]

    def count(self, limits: Limits, most: int) -> bool:
        """Count bodies; return whether all are counted.

        Args:
            limits: take the octets.
            most: messages that are counted now.
        """
        order, cursors = self._order, self.cursors
        done = 0
        position = order.next_ready(cursors)
        while position >= 0:
            if self.has(position):
                cursors[position & self._mask] = BEHIND
            elif done >= most:
                return False
            else:
                message = order.read(position)
                if message is not None:
                    limits.octets += len(message.body)
                order.pass_by(cursors, position)
                done += 1
            position = order.next_ready(cursors)
        for _, each in order.levels():
            each.relax()
        return True
