"""Requests and replies of the blocking API: `connection.requester()`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Unpack
from uuid import uuid4

from harebell.base.limits import REPLY_TIMEOUT_SECONDS
from harebell.client.message import Body, PropertyArguments
from harebell.client.protocol.call import Call
from harebell.client.protocol.requests import DIRECT, Reply, Requests, described

if TYPE_CHECKING:
    from harebell.client.blocking.channel import Channel
    from harebell.client.blocking.connection import Connection


class PendingReply:
    """A request without a reply yet."""

    def __init__(self, requester: Requester, number: str, call: Call[Reply], where: str) -> None:
        self._requester = requester
        self._number = number
        self._call = call
        self._where = where

    @property
    def done(self) -> bool:
        """Whether the call is done: the reply has arrived, or an error."""
        return self._call.done

    def wait(self, timeout: float = REPLY_TIMEOUT_SECONDS) -> Reply:
        """Wait for the reply; raise as `Requester.call`."""
        until = time.monotonic() + timeout
        while not self._call.done:
            remaining = until - time.monotonic()
            if remaining <= 0:
                raise self._requester.requests.give_up(self._number, timeout, self._where)
            self._requester.connection.pump(remaining)
        return self._call.value()


class Requester:
    """Send requests and receive their replies, on a separate channel.

    Args:
        connection: an open connection; its other channels are not used.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.requests = Requests(connection.url.version, uuid4().hex)
        self._channel: Channel | None = None
        self._reply_to = DIRECT

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
        pending = self.send(body, routing_key=routing_key, exchange=exchange, **properties)
        return pending.wait(timeout)

    def send(
        self,
        body: Body,
        *,
        routing_key: str,
        exchange: str = "",
        **properties: Unpack[PropertyArguments],
    ) -> PendingReply:
        """Send a request; call `wait()` for its reply later."""
        channel = self._ready()
        reply_to = self.connection.name_now(self._reply_to)
        arguments: dict[str, Any] = dict(properties)
        number, call = self.requests.send(
            channel.core, body, exchange, routing_key, reply_to, arguments
        )
        self.connection.flush()
        return PendingReply(self, number, call, described(exchange, routing_key))

    def _ready(self) -> Channel:
        """Return an open channel for replies: an error of a request closes the channel."""
        self.connection.usable()
        channel = self._channel
        if channel is not None and channel.is_open:
            return channel
        channel = self._channel = self.connection.channel()
        if not self.requests.direct:
            self._reply_to = channel.declare_queue("", exclusive=True).name
        self.connection.finish(self.requests.receive_on(channel, self._reply_to))
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
