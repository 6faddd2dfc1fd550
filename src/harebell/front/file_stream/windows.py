"""Limits of deliveries: windows of messages and bytes, and rates in bytes per second."""

from __future__ import annotations

from harebell.base.limits import RATE_SLACK_MS

_MS = 1000


class Window:
    """A window: unacknowledged deliveries and their limits; 0 is no limit.

    Attributes:
        most, most_octets: the limits.
        count, octets: the unacknowledged messages and bytes.
    """

    def __init__(self) -> None:
        self.most = 0
        self.most_octets = 0
        self.count = 0
        self.octets = 0

    def limit(self, messages: int, octets: int) -> None:
        """Set other limits; outstanding deliveries are not affected."""
        self.most = messages
        self.most_octets = octets

    def fits(self, octets: int) -> bool:
        """True if a message of that size may be sent.

        One that is larger than the whole window is sent alone, as it could not be sent otherwise.
        """
        if self.most and self.count >= self.most:
            return False
        return not self.most_octets or not self.count or self.octets + octets <= self.most_octets

    def add(self, octets: int) -> None:
        """Count a sent message."""
        self.count += 1
        self.octets += octets

    def remove(self, octets: int) -> None:
        """Stop counting a message that is acknowledged or requeued."""
        self.count -= 1
        self.octets -= octets


class Rate:
    """A rate of transfer: after a message nothing is sent until it would have arrived at that rate.

    Attributes:
        octets: bytes per second; 0 is no limit.
        free_at: when the next message may be sent, in milliseconds of the monotonic clock.
    """

    def __init__(self) -> None:
        self.octets = 0
        self.free_at = 0.0

    def limit(self, octets: int) -> None:
        """Set another rate; earlier messages no longer count."""
        self.octets = octets
        self.free_at = 0.0

    def allows(self, now: int) -> bool:
        """True if a message may be sent now."""
        # Timers have a resolution of one millisecond: send what is due within it.
        return not self.octets or self.free_at < now + 1

    def sent(self, octets: int, now: int) -> None:
        """Count a sent message."""
        if self.octets:
            # A late timer may catch up, but unused rate is not saved beyond that.
            begin = max(self.free_at, float(now - RATE_SLACK_MS))
            self.free_at = begin + octets * _MS / self.octets
