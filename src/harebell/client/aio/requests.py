"""Requests and replies of the asyncio API: `connection.requester()`."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

from harebell.client.aio.driver import AsyncClosing, AsyncShell
from harebell.client.protocol.shared_requests import SharedRequester

if TYPE_CHECKING:
    from harebell.client.aio.connection import Connection


class Requester(SharedRequester, AsyncClosing, AsyncShell):
    """Send requests and receive their replies, on a separate channel.

    Any number of tasks may call concurrently.

    Args:
        connection: an open connection; its other channels are not used.
    """

    connection: Connection

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection, uuid4().hex)
