"""The interface between a connection and its sessions, for every message.

It is separate from the session so that connection and session, which need each other, can both be
compiled: each of them imports this, and neither the other.
"""

from __future__ import annotations

from harebell.base.message import Properties


class SessionPort:
    """The interface of a session for its connection.

    Attributes:
        number: the channel of the session.
    """

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number

    def transfer(
        self, flags: int, destination: str, routing_key: str, properties: Properties, body: bytes
    ) -> int:
        """Take a message.transfer; `flags` as for `SegmentSink.transfer`."""
        raise NotImplementedError
