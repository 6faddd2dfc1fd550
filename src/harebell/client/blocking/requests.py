# Made from ../aio/requests.py by tools/blocking_api.py: change that file and run the tool.
"""Requests and replies: `connection.requester()`."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Unpack
from uuid import uuid4

from harebell.client.blocking.waits import RequesterWaits
from harebell.client.limits import REPLY_TIMEOUT_SECONDS
from harebell.client.message import Body, PropertyArguments
from harebell.client.protocol.requests import DIRECT, Reply, Request, Requests

if TYPE_CHECKING:
    from harebell.client.blocking.channel import Channel
    from harebell.client.blocking.connection import Connection


class Requester(RequesterWaits):
    """Send requests and receive their replies, on a separate channel.

    Args:
        connection: an open connection; its other channels are not used.
    """

    connection: Connection

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.requests = Requests(connection.url.version, uuid4().hex)
        self._channel: Channel | None = None
        self._reply_to = DIRECT
        self._opening = nullcontext()

    def call(
        self,
        body: Body,
        *,
        routing_key: str,
        exchange: str = "",
        timeout: float = REPLY_TIMEOUT_SECONDS,
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
        request = self._request(body, exchange, routing_key, dict(properties))
        return self._reply(request, timeout)

    def _request(
        self, body: Body, exchange: str, routing_key: str, properties: dict[str, Any]
    ) -> Request:
        """Append a request to the output."""
        channel = self._ready()
        reply_to = self.connection.name_now(self._reply_to)
        return self.requests.send(channel.core, body, exchange, routing_key, reply_to, properties)

    def _ready(self) -> Channel:
        """Return an open channel for replies: an error of a request closes the channel."""
        with self._opening:
            self.connection.usable()
            channel = self._channel
            if channel is not None and channel.is_open:
                return channel
            channel = self.connection.channel()
            if not self.requests.direct:
                queue = channel.declare_queue("", exclusive=True)
                self._reply_to = queue.name
            self.connection.finish(self.requests.receive_on(channel, self._reply_to))
            self._channel = channel
            return channel

    def close(self) -> None:
        """Close the channel; pending calls fail."""
        channel, self._channel = self._channel, None
        if channel is not None:
            channel.close()

    def __enter__(self) -> Requester:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
