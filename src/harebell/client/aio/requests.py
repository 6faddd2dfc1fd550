"""Requests and replies: `connection.requester()`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Unpack
from uuid import uuid4

from harebell.client.aio.waits import RequesterWaits
from harebell.client.limits import REPLY_TIMEOUT_SECONDS
from harebell.client.message import Body, PropertyArguments
from harebell.client.protocol.requests import DIRECT, Reply, Request, Requests

if TYPE_CHECKING:
    from harebell.client.aio.channel import Channel
    from harebell.client.aio.connection import Connection


class Requester(RequesterWaits):
    """Send requests and receive their replies, on a separate channel.

    Any number of tasks may call concurrently.

    Args:
        connection: an open connection; its other channels are not used.
    """

    connection: Connection

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.requests = Requests(connection.url.version, uuid4().hex)
        self._channel: Channel | None = None
        self._reply_to = DIRECT
        self._opening = asyncio.Lock()

    async def call(
        self,
        body: Body,
        *,
        routing_key: str,
        exchange: str = "",
        timeout: float = REPLY_TIMEOUT_SECONDS,  # noqa: ASYNC109 - it names what was asked
        **properties: Unpack[PropertyArguments],
    ) -> Reply:
        """Send a request and wait for its reply.

        Args:
            body: the bytes of the request.
            routing_key: the queue of the server, or the routing key for `exchange`.
            exchange: the name of the exchange; "" is the default exchange.
            timeout: seconds to wait. A later reply is dropped.
            properties: content_type, headers and so on.

        Raises:
            PublishReturned: the request is unroutable.
            CallTimeout: no reply arrived in time.
            ConnectionLost: the request may or may not have been executed.
        """
        request = await self._request(body, exchange, routing_key, dict(properties))
        return await self._reply(request, timeout)

    async def _request(
        self, body: Body, exchange: str, routing_key: str, properties: dict[str, Any]
    ) -> Request:
        """Append a request to the output."""
        channel = await self._ready()
        reply_to = self.connection.name_now(self._reply_to)
        return self.requests.send(channel.core, body, exchange, routing_key, reply_to, properties)

    async def _ready(self) -> Channel:
        """Return an open channel for replies: an error of a request closes the channel."""
        async with self._opening:
            await self.connection.usable()
            channel = self._channel
            if channel is not None and channel.is_open:
                return channel
            channel = await self.connection.channel()
            if not self.requests.direct:
                queue = await channel.declare_queue("", exclusive=True)
                self._reply_to = queue.name
            await self.connection.finish(self.requests.receive_on(channel, self._reply_to))
            self._channel = channel
            return channel

    async def close(self) -> None:
        """Close the channel; pending calls fail."""
        channel, self._channel = self._channel, None
        if channel is not None:
            await channel.close()

    async def __aenter__(self) -> Requester:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()
