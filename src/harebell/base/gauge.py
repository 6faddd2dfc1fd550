"""The memory gauge: what messages and the rest of the process use, and the watermark.

The watermark is one of the whole process, because its resident memory is what the kernel ends it
for. Messages are counted exactly, with each of them. The rest is measured now and then by the
shell, which also gives freed memory back to the system before publishers are blocked.
"""

from __future__ import annotations

from collections.abc import Callable

from harebell.base.c_types import C, Done, i64, isize
from harebell.base.limits import (
    HELD_AGAIN_BYTES,
    MEMORY_LOW_SHARE,
    MESSAGE_OVERHEAD_BYTES,
    SHARED_BODY_BYTES,
)
from harebell.base.message import Message

_AGAIN: i64 = HELD_AGAIN_BYTES
_OVERHEAD: isize = MESSAGE_OVERHEAD_BYTES
_SHARED: isize = SHARED_BODY_BYTES


NO_LIMIT = -1
"""The watermark of a gauge that never blocks."""


class Gauge:
    """Counts bytes of messages; it is `over` from `room` on until they fall below `low`.

    `room` is what the rest of the process leaves to messages below the watermark. It is negative if
    the rest alone is above it.

    `add` and `take` are on the hot path and only count. Between two turns `crossed()` tells whether
    the state has changed since its last call.

    A message in several logs is counted once, and so is a large body that several messages share: a
    queue with a message TTL, for one, has a copy of the message with the same body.

    Args:
        high: bytes of the process above which publishers are blocked: 0 blocks them at once;
            `NO_LIMIT` never does.

    Attributes:
        used: bytes of messages.
        other: bytes of the rest of the process when it was measured last.
        measure: called before publishers are blocked: it measures `other` once more; None if
            nothing measures it.
        unread: bytes of messages that are not received completely.
        uncommitted: bytes of transactions that are not committed.
    """

    def __init__(self, high: i64 = NO_LIMIT) -> None:
        self.used: i64 = 0
        self.other: i64 = 0
        self.unread: i64 = 0
        self.uncommitted: i64 = 0
        self.over = False
        # Number of messages by the address of their large body, which they keep in memory.
        self._bodies: dict[int, int] = {}
        self.measure: Callable[[], object] | None = None
        self.high = high
        self.room = high
        self.low: i64 = int(high * MEMORY_LOW_SHARE)

    def set_high(self, high: i64) -> Done:
        """Change the bytes above which publishers are blocked; see `Gauge`."""
        self.high = high
        self.room = high - self.other
        self.low = int(self.room * MEMORY_LOW_SHARE)
        return 0

    def set_resident(self, byte_count: i64) -> Done:
        """Note how much memory the process has now, messages included."""
        self.other = max(byte_count - self.used, 0)
        return self.set_high(self.high)

    def resident(self) -> i64:
        """Return the bytes that the process uses, by the last measurement and what came since."""
        return self.other + max(self.used, 0)

    def add(self, byte_count: i64) -> Done:
        """Add bytes."""
        self.used += byte_count
        return 0

    def take(self, byte_count: i64) -> Done:
        """Subtract bytes."""
        self.used -= byte_count
        return 0

    def hold(self, message: Message) -> isize:
        """Count one more log with this message; return its size without sharing."""
        size: isize = len(message.body)
        own: isize = len(message.raw) + _OVERHEAD
        message.holders += 1
        if message.holders > 1:
            self.used += _AGAIN
        elif size < _SHARED or self._first(message):
            self.used += own + size
        else:
            self.used += own
        return own + size

    def release(self, message: Message) -> isize:
        """Count one log less with this message; return its size without sharing."""
        size: isize = len(message.body)
        own: isize = len(message.raw) + _OVERHEAD
        message.holders -= 1
        if message.holders > 0:
            self.used -= _AGAIN
        elif size < _SHARED or self._last(message):
            self.used -= own + size
        else:
            self.used -= own
        return own + size

    def sharing(self, message: Message) -> isize:
        """Return how many logs have the message, or messages its large body, the higher number."""
        bodies: isize = self._bodies.get(id(message.body), 0)
        return max(message.holders, bodies)

    def _first(self, message: Message) -> C[bool]:
        """True if no other message has its body."""
        key = id(message.body)
        count: isize = self._bodies.get(key, 0)
        self._bodies[key] = count + 1
        return count == 0

    def _last(self, message: Message) -> C[bool]:
        """True if no other message has its body any more."""
        key = id(message.body)
        count: isize = self._bodies.pop(key, 0) - 1
        if count > 0:
            self._bodies[key] = count
        return count <= 0

    def crossed(self) -> C[bool]:
        """Update `over`; True if it has changed."""
        if self.over:
            if self.high < 0 or self.used < self.low:
                self.over = False
                return True
            return False
        if self.high >= 0 and self.used > self.room:
            if self.measure is not None:
                self.measure()
            self.over = self.used > self.room
        return self.over
