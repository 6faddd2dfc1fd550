"""Memory in use by queued messages, against the watermark that blocks publishers."""

from __future__ import annotations

from harebell.base.limits import (
    HELD_AGAIN_BYTES,
    MEMORY_LOW_SHARE,
    MESSAGE_OVERHEAD_BYTES,
    SHARED_BODY_BYTES,
)
from harebell.base.message import Message

_AGAIN = HELD_AGAIN_BYTES
_OVERHEAD = MESSAGE_OVERHEAD_BYTES
_SHARED = SHARED_BODY_BYTES


class Gauge:
    """Counts octets; above `high` it is `over` until it falls below `low`.

    Adding and taking away are on the hot path and only count. Whoever is between two turns asks
    `crossed()`, which says whether the state changed since it was last asked.

    A message that several logs hold is counted once, and so is a large body of several messages:
    a queue with a time to live, for one, holds a copy of the message with the same body.

    Args:
        high: octets above which publishers are blocked; 0 means no limit.

    Attributes:
        unread: how many of the octets are of messages that were not read to their end yet.
        uncommitted: how many are of transactions that are not committed.
    """

    __slots__ = ("_bodies", "high", "low", "over", "uncommitted", "unread", "used")

    def __init__(self, high: int = 0) -> None:
        self.used = 0
        self.unread = 0
        self.uncommitted = 0
        self.over = False
        # How many messages have a large body, by its address: it stays there while one has it.
        self._bodies: dict[int, int] = {}
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

    def hold(self, message: Message) -> int:
        """Count a message that one more log holds; returns what it would count alone."""
        size = len(message.body)
        own = len(message.raw) + _OVERHEAD
        message.holders += 1
        if message.holders > 1:
            self.used += _AGAIN
        elif size < _SHARED or self._first(message):
            self.used += own + size
        else:
            self.used += own
        return own + size

    def let_go(self, message: Message) -> int:
        """Count that one log less holds a message; returns what it would count alone."""
        size = len(message.body)
        own = len(message.raw) + _OVERHEAD
        message.holders -= 1
        if message.holders > 0:
            self.used -= _AGAIN
        elif size < _SHARED or self._last(message):
            self.used -= own + size
        else:
            self.used -= own
        return own + size

    def sharing(self, message: Message) -> int:
        """How many hold a message, or its body if it is large."""
        bodies = self._bodies.get(id(message.body), 0)
        return max(message.holders, bodies)

    def _first(self, message: Message) -> bool:
        """Whether no other message has its body."""
        key = id(message.body)
        count = self._bodies.get(key, 0)
        self._bodies[key] = count + 1
        return count == 0

    def _last(self, message: Message) -> bool:
        """Whether no other message has its body any more."""
        key = id(message.body)
        count = self._bodies.pop(key, 0) - 1
        if count > 0:
            self._bodies[key] = count
        return count <= 0

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
