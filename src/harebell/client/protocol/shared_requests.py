"""Requests and replies of both APIs, written once: `connection.requester()`."""

from __future__ import annotations

from typing import Any, Unpack

from harebell.client.limits import REPLY_TIMEOUT_SECONDS
from harebell.client.message import Body, PropertyArguments
from harebell.client.protocol.call import Call
from harebell.client.protocol.requests import DIRECT, Reply, Request, Requests
from harebell.client.protocol.shared_channel import SharedChannel
from harebell.client.protocol.shared_connection import SharedConnection
from harebell.client.protocol.shown import REQUESTER_PARTS, without
from harebell.client.protocol.waits import USABLE, Steps, Until, steps


class SharedRequester:
    """A requester of either API.

    Args:
        connection: an open connection; its other channels are not used.
        nonce: prefix of the correlation ids, unique for the program.
    """

    def __init__(self, connection: Any, nonce: str) -> None:
        self.connection = self._connection = connection
        self.requests = Requests(connection.url.version, nonce)
        self._channel: Any = None
        self._reply_to = DIRECT
        self._opening: Call[None] | None = None

    def __repr__(self) -> str:
        """Return the connection and the number of requests without a reply, for people."""
        where = self.connection.url.address
        return f"<{type(self).__name__} on {where}, {len(self.requests)} requests wait>"

    def __dir__(self) -> list[str]:
        """Return the names for completion, without parts that only the client itself uses."""
        return without(REQUESTER_PARTS, super().__dir__())

    @steps
    def call(
        self,
        body: Body,
        *,
        routing_key: str,
        exchange: str = "",
        timeout: float = REPLY_TIMEOUT_SECONDS,
        **properties: Unpack[PropertyArguments],
    ) -> Steps[Reply]:
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
        request = yield from self._request(body, exchange, routing_key, dict(properties))
        try:
            return (yield from self._reply(request, timeout))
        finally:
            self.requests.forget(request)

    def _request(
        self, body: Body, exchange: str, routing_key: str, properties: dict[str, Any]
    ) -> Steps[Request]:
        """Append a request to the output."""
        channel = yield from self._ready()
        reply_to = self._connection.name_now(self._reply_to)
        return self.requests.send(channel.core, body, exchange, routing_key, reply_to, properties)

    def _reply(self, request: Request, seconds: float) -> Steps[Reply]:
        """Wait for the reply of a request."""
        in_time = yield Until(request.reply, seconds)
        if not in_time:
            self.requests.forget(request)
            raise request.timed_out(seconds)
        return request.reply.value()

    def _ready(self) -> Steps[Any]:
        """Return an open channel for replies: an error of a request closes the channel."""
        while self._opening is not None:
            yield Until(self._opening)
        opening = self._opening = Call()
        try:
            yield USABLE
            channel = self._channel
            if channel is None or not channel.is_open:
                channel = yield from self._opened()
                self._channel = channel
            return channel
        finally:
            self._opening = None
            opening.succeed(None)

    def _opened(self) -> Steps[Any]:
        connection = self._connection
        channel = yield from SharedConnection.channel.function(connection)
        if not self.requests.direct:
            queue = yield channel.core.declare_queue("", exclusive=True)
            self._reply_to = queue.name
        yield self.requests.receive_on(channel, self._reply_to)
        return channel

    @steps
    def close(self) -> Steps[None]:
        """Close the channel; pending calls fail."""
        channel, self._channel = self._channel, None
        if channel is not None:
            yield from SharedChannel.close.function(channel)
