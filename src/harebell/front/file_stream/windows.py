"""Limits of deliveries: windows of messages and bytes, and rates in bytes per second."""

from __future__ import annotations

from harebell.front.limits import RATE_SLACK_MS

_MS = 1000


class Window:
    """A window: unacknowledged deliveries and their limits; 0 is no limit.

    Attributes:
        max_messages, max_bytes: the limits.
        count, byte_count: the unacknowledged messages and bytes.
    """

    def __init__(self) -> None:
        self.max_messages = 0
        self.max_bytes = 0
        self.count = 0
        self.byte_count = 0

    def limit(self, messages: int, byte_count: int) -> None:
        """Set other limits; outstanding deliveries are not affected."""
        self.max_messages = messages
        self.max_bytes = byte_count

    def fits(self, byte_count: int) -> bool:
        """True if a message of that size may be sent.

        One that is larger than the whole window is sent alone, as it could not be sent otherwise.
        """
        if self.max_messages and self.count >= self.max_messages:
            return False
        return (
            not self.max_bytes or not self.count or self.byte_count + byte_count <= self.max_bytes
        )

    def add(self, byte_count: int) -> None:
        """Count a sent message."""
        self.count += 1
        self.byte_count += byte_count

    def remove(self, byte_count: int) -> None:
        """Stop counting a message that is acknowledged or requeued."""
        self.count -= 1
        self.byte_count -= byte_count


class Rate:
    """A rate of transfer: after a message nothing is sent until it would have arrived at that rate.

    Attributes:
        byte_count: bytes per second; 0 is no limit.
        free_at: when the next message may be sent, in milliseconds of the monotonic clock.
    """

    def __init__(self) -> None:
        self.byte_count = 0
        self.free_at = 0.0

    def limit(self, byte_count: int) -> None:
        """Set another rate; earlier messages no longer count."""
        self.byte_count = byte_count
        self.free_at = 0.0

    def allows(self, now: int) -> bool:
        """True if a message may be sent now."""
        # Timers have a resolution of one millisecond: send what is due within it.
        return not self.byte_count or self.free_at < now + 1

    def sent(self, byte_count: int, now: int) -> None:
        """Count a sent message."""
        if self.byte_count:
            # A late timer may catch up, but unused rate is not saved beyond that.
            begin = max(self.free_at, float(now - RATE_SLACK_MS))
            self.free_at = begin + byte_count * _MS / self.byte_count
