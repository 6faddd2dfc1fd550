"""How much may be under way: windows of messages and octets, and rates of octets a second."""

from __future__ import annotations

from harebell.base.limits import RATE_SLACK_MS

_MS = 1000


class Window:
    """A window: unacknowledged deliveries and their limits; 0 is no limit.

    Attributes:
        most, most_octets: the limits.
        count, octets: what is out now.
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
        """Whether a message of that size may be sent.

        One that is larger than the whole window goes out alone: it is not sent in advance of
        anything, and it would never go out otherwise.
        """
        if self.most and self.count >= self.most:
            return False
        return not self.most_octets or not self.count or self.octets + octets <= self.most_octets

    def add(self, octets: int) -> None:
        """A message is sent."""
        self.count += 1
        self.octets += octets

    def remove(self, octets: int) -> None:
        """It is acknowledged, or came back."""
        self.count -= 1
        self.octets -= octets


class Rate:
    """A rate of transfer: after a message nothing is sent until it would have arrived at that rate.

    Attributes:
        octets: a second; 0 is no limit.
        free_at: when the next message may go, in milliseconds of the clock that only passes.
    """

    def __init__(self) -> None:
        self.octets = 0
        self.free_at = 0.0

    def limit(self, octets: int) -> None:
        """Set another rate; earlier messages do not count any more."""
        self.octets = octets
        self.free_at = 0.0

    def allows(self, now: int) -> bool:
        """Whether a message may go now."""
        # Timers know whole milliseconds: what is due within this one goes now.
        return not self.octets or self.free_at < now + 1

    def sent(self, octets: int, now: int) -> None:
        """A message went."""
        if self.octets:
            # A late wake-up catches up, but saves no more than that.
            begin = max(self.free_at, float(now - RATE_SLACK_MS))
            self.free_at = begin + octets * _MS / self.octets
