"""The memory gauge: memory of queued messages, and the watermark that blocks publishers."""

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
    """Counts bytes; above `high` it is `over` until it falls below `low`.

    `add` and `take` are on the hot path and only count. Between two turns `crossed()` tells whether
    the state has changed since its last call.

    A message in several logs is counted once, and so is a large body that several messages share: a
    queue with a message TTL, for one, has a copy of the message with the same body.

    Args:
        high: bytes above which publishers are blocked; 0 means no limit.

    Attributes:
        unread: bytes of messages that are not received completely.
        uncommitted: bytes of transactions that are not committed.
    """

    __slots__ = ("_bodies", "high", "low", "over", "uncommitted", "unread", "used")

    def __init__(self, high: int = 0) -> None:
        self.used = 0
        self.unread = 0
        self.uncommitted = 0
        self.over = False
        # Number of messages by the address of their large body, which they keep in memory.
        self._bodies: dict[int, int] = {}
        self.high = high
        self.low = int(high * MEMORY_LOW_SHARE)

    def set_high(self, high: int) -> None:
        """Change the bytes above which publishers are blocked; 0 means no limit."""
        self.high = high
        self.low = int(high * MEMORY_LOW_SHARE)

    def add(self, byte_count: int) -> int:
        """Add bytes."""
        self.used += byte_count
        return 0

    def take(self, byte_count: int) -> int:
        """Subtract bytes."""
        self.used -= byte_count
        return 0

    def hold(self, message: Message) -> int:
        """Count one more log with this message; return its size without sharing."""
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
        """Count one log less with this message; return its size without sharing."""
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
        """Return how many logs have the message, or messages its large body, the higher number."""
        bodies = self._bodies.get(id(message.body), 0)
        return max(message.holders, bodies)

    def _first(self, message: Message) -> bool:
        """True if no other message has its body."""
        key = id(message.body)
        count = self._bodies.get(key, 0)
        self._bodies[key] = count + 1
        return count == 0

    def _last(self, message: Message) -> bool:
        """True if no other message has its body any more."""
        key = id(message.body)
        count = self._bodies.pop(key, 0) - 1
        if count > 0:
            self._bodies[key] = count
        return count <= 0

    def exceeded(self) -> bool:
        """True if publishers have to be blocked now."""
        return self.over or (self.high > 0 and self.used > self.high)

    def crossed(self) -> bool:
        """Update `over`; True if it has changed."""
        if self.over:
            if self.high == 0 or self.used < self.low:
                self.over = False
                return True
            return False
        if self.high > 0 and self.used > self.high:
            self.over = True
            return True
        return False
