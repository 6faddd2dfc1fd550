"""Memory in use by queued messages, against the watermark that blocks publishers."""

from __future__ import annotations

from harebell.base.limits import MEMORY_LOW_SHARE


class Gauge:
    """Counts octets; above `high` it is `over` until it falls below `low`.

    Adding and taking away are on the hot path and only count. Whoever is between two turns asks
    `crossed()`, which says whether the state changed since it was last asked.

    Args:
        high: octets above which publishers are blocked; 0 means no limit.

    Attributes:
        unread: how many of the octets are of messages that were not read to their end yet.
        uncommitted: how many are of transactions that are not committed.
    """

    __slots__ = ("high", "low", "over", "uncommitted", "unread", "used")

    def __init__(self, high: int = 0) -> None:
        self.used = 0
        self.unread = 0
        self.uncommitted = 0
        self.over = False
        self.high = high
        self.low = int(high * MEMORY_LOW_SHARE)

    def add(self, octets: int) -> int:
        """Count octets in."""
        self.used += octets
        return 0

    def take(self, octets: int) -> int:
        """Count octets out."""
        self.used -= octets
        return 0

    def exceeded(self) -> bool:
        """Whether a publisher has to be held back now."""
        return self.over or (self.high > 0 and self.used > self.high)

    def crossed(self) -> bool:
        """Bring `over` up to date; True when it changed."""
        if self.over:
            if self.high == 0 or self.used < self.low:
                self.over = False
                return True
            return False
        if self.high > 0 and self.used > self.high:
            self.over = True
            return True
        return False
