"""What a connection calls on its channels for every message.

It stands apart from `Channel` so that connection and channel, which know each other, can both be
compiled: each of them imports this, and neither the other.
"""

from __future__ import annotations

from typing import Any

from harebell.base.message import Properties


class ChannelPort:
    """The two calls of the hot path.

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
