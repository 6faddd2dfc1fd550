"""Deliveries that were read from the socket and not yet consumed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol

from harebell.base.message import Properties
from harebell.client.errors import AMQPError

Item = tuple[int, bool, str, str, Properties, bytes]


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
        wake: called for a delivery or the end.

    Attributes:
        last: the properties of the delivery that was taken last; None before the first.
    """

    __slots__ = ("_owner", "ended", "error", "items", "last", "no_ack", "wake")

    def __init__(self, owner: Owner, no_ack: bool, wake: Callable[[], None]) -> None:
        self.items: deque[Item] = deque()
        self.ended = False
        self.error: AMQPError | None = None
        self.last: Properties | None = None
        self.no_ack = no_ack
        self._owner = owner
        self.wake = wake

    def deliver(
        self,
        tag: int,
        redelivered: bool,
        exchange: str,
        routing_key: str,
        properties: Properties,
        body: bytes,
    ) -> None:
        """Add a delivery (`channel_parts.OnDelivery`)."""
        self.items.append((tag, redelivered, exchange, routing_key, properties, body))
        self._owner.buffered += 1
        self.wake()

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
