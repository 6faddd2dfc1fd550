"""Deliveries that were read from the socket and not yet consumed."""

from __future__ import annotations

from collections import deque
from typing import Any, Protocol

from harebell.base.message import Properties
from harebell.client.errors import AMQPError
from harebell.client.protocol.call import Call

Item = tuple[int, bool, str, str, Properties, bytes]
"""The arguments of `channel_parts.OnDelivery`."""


class Owner(Protocol):
    """The connection of the deliveries."""

    buffered: int

    def survives(self, error: AMQPError | None) -> bool:
        """True if the connection recovers from this error, or is recovering already."""


class Inbox:
    """The deliveries of one consumer.

    Args:
        owner: the connection; it counts buffered deliveries.
        no_ack: whether deliveries count as acknowledged when they are sent.

    Attributes:
        arrival: done with the next delivery, the end or a recovery; None if no task waits for it.
        last: the properties of the delivery that was taken last; None before the first.
    """

    __slots__ = ("_owner", "arrival", "ended", "error", "items", "last", "no_ack")

    def __init__(self, owner: Owner, no_ack: bool) -> None:
        self.items: deque[Item] = deque()
        self.ended = False
        self.error: AMQPError | None = None
        self.last: Properties | None = None
        self.no_ack = no_ack
        self._owner = owner
        self.arrival: Call[None] | None = None

    def deliver(self, *delivery: Any) -> None:
        """Add a delivery (`channel_parts.OnDelivery`)."""
        self.items.append(delivery)
        self._owner.buffered += 1
        if self.arrival is not None:
            self.wake()

    def expect(self) -> Call[None]:
        """Return a call that is done with the next delivery, the end or a recovery."""
        if self.arrival is None:
            self.arrival = Call()
        return self.arrival

    def wake(self) -> None:
        """Wake the tasks that wait for a delivery."""
        arrival, self.arrival = self.arrival, None
        if arrival is not None:
            arrival.succeed(None)

    def take(self) -> Item:
        """Remove and return the oldest delivery."""
        self._owner.buffered -= 1
        item = self.items.popleft()
        self.last = item[4]
        return item

    def take_all(self) -> list[Item]:
        """Remove and return all deliveries."""
        items = list(self.items)
        self.items.clear()
        self._owner.buffered -= len(items)
        return items

    def end(self, error: AMQPError | None) -> None:
        """End the inbox (`channel_parts.OnEnd`), unless the connection recovers."""
        if error is not None and not self.no_ack:
            # The broker requeues unacknowledged deliveries when a channel ends.
            self.take_all()
        if not self._owner.survives(error):
            self.finish(error)

    def finish(self, error: AMQPError | None) -> None:
        """End the inbox."""
        if not self.ended:
            self.ended = True
            self.error = error
            self.wake()

    def check(self) -> None:
        """Raise the error that ended the inbox, if one did."""
        if self.error is not None:
            raise self.error.with_traceback(None)
