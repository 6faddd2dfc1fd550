"""Byte accounting: count the bodies that were ready before a byte limit was set.

    log      | counted counted counted | not yet ... | counted when published ...
                                       ^ cursor      ^ end when the count began

A policy may limit a queue at any time, and a restart restores its messages. That backlog may be
large, so it is counted in several turns. A message that leaves meanwhile is subtracted only if it
was counted. A message that is requeued before the cursor is added at once, any other one when
the cursor reaches it. A queue with several logs has a cursor and an end for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harebell.model.queue.features.limits import Limits
    from harebell.model.queue.order.contract import MessageOrder

BEHIND = 2**62
"""Cursor of a log in which everything is counted: behind any position."""


class ByteAccount:
    """How far the bodies of one queue are counted.

    Args:
        order: the message order of the queue.

    Attributes:
        cursors: for each log, the first position that is not counted yet.
    """

    __slots__ = ("_bits", "_ends", "_mask", "_order", "cursors")

    def __init__(self, order: MessageOrder) -> None:
        self._order = order
        self._bits = order.level_bits
        self._mask = (1 << self._bits) - 1
        # A log made later is not here: its messages are counted when they are published.
        ends = {level: each.end() for level, each in order.levels()}
        self._ends: Sequence[int] = [ends.get(level, 0) for level in range(1 << self._bits)]
        self.cursors = [0] * len(self._ends)

    def has(self, position: int) -> bool:
        """True if the message at a position is counted, provided it is ready."""
        level = position & self._mask
        in_log = position >> self._bits
        return in_log < self.cursors[level] or in_log >= self._ends[level]

    def count(self, limits: Limits, limit: int) -> bool:
        """Count bodies; return whether all are counted.

        Args:
            limits: the limits, which get the bytes.
            limit: most messages to count now.
        """
        order, cursors = self._order, self.cursors
        done = 0
        position = order.next_ready(cursors)
        while position >= 0:
            if self.has(position):
                # The first message behind the end: it was counted when it was published.
                cursors[position & self._mask] = BEHIND
            elif done >= limit:
                return False
            else:
                message = order.read(position)
                if message is not None:
                    limits.byte_count += len(message.body)
                order.pass_by(cursors, position)
                done += 1
            position = order.next_ready(cursors)
        # `next_ready` has sorted the requeued positions; deliveries are quicker with a heap.
        for _, each in order.levels():
            each.relax()
        return True
