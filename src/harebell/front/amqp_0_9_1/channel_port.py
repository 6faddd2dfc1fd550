"""The interface between a connection and its channels.

It is separate from `Channel` so that connection and channel, which need each other, can both be
compiled: both import this module, and the connection does not import the channel.
"""

from __future__ import annotations

from typing import Any, Protocol

from harebell.base.message import Properties

RETURNED = 8
"""Flag of an unroutable publish that was returned to its publisher already."""


class ChannelPort:
    """The interface of a channel for its connection.

    Attributes:
        number: the channel's number.
        content: the content being assembled from single frames, or None.
    """

    __slots__ = ("content", "number")

    def __init__(self, number: int) -> None:
        self.number = number
        self.content: Any = None

    def publish(
        self, flags: int, exchange_name: str, routing_key: str, properties: Properties, body: bytes
    ) -> int:
        """Take a published message."""
        raise NotImplementedError

    def ack(self, tag: int, multiple: bool) -> int:
        """Take an acknowledgement."""
        raise NotImplementedError

    def too_large(self, size: int) -> Exception:
        """Make the error for a body over the configured limit."""
        raise NotImplementedError

    def close(self) -> None:
        """End the channel: consumers are removed, unacknowledged messages are requeued."""
        raise NotImplementedError


class ClosableChannel(Protocol):
    """A channel that a connection can end."""

    number: int

    def close(self) -> None:
        """End the channel."""


class PendingConfirms(Protocol):
    """The confirms of a channel that are written at the end of the turn."""

    def flush(self) -> int:
        """Write the confirms that are due."""


class BulkReads(Protocol):
    """The bulk reads of a connection that are not answered yet."""

    def serve(self) -> None:
        """Answer some of them, in their order."""

    def add(self, channel: Any, method: Any) -> None:
        """Take another read."""
