"""Requests and replies of the blocking API: `connection.requester()`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Unpack
from uuid import uuid4

from harebell.client.blocking.driver import BlockingClosing, BlockingShell, run
from harebell.client.limits import REPLY_TIMEOUT_SECONDS
from harebell.client.message import Body, PropertyArguments
from harebell.client.protocol.requests import Reply, Request
from harebell.client.protocol.shared_requests import SharedRequester

if TYPE_CHECKING:
    from harebell.client.blocking.connection import Connection


class PendingReply:
    """A request without a reply yet."""

    def __init__(self, request: Request, wait: Callable[[float], Reply]) -> None:
        self._request = request
        self._wait = wait

    @property
    def done(self) -> bool:
        """Whether the call is done: the reply has arrived, or an error."""
        return self._request.reply.done

    def wait(self, timeout: float = REPLY_TIMEOUT_SECONDS) -> Reply:
        """Wait for the reply; raise as `Requester.call`."""
        return self._wait(timeout)


class Requester(SharedRequester, BlockingClosing, BlockingShell):
    """Send requests and receive their replies, on a separate channel.

    Args:
        connection: an open connection; its other channels are not used.
    """

    connection: Connection

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection, uuid4().hex)

    def send(
        self,
        body: Body,
        *,
        routing_key: str,
        exchange: str = "",
        **properties: Unpack[PropertyArguments],
    ) -> PendingReply:
        """Send a request; call `wait()` for its reply later."""
        connection = self.connection
        request = run(connection, self._request(body, exchange, routing_key, dict(properties)))
        connection.flush()

        return PendingReply(request, lambda seconds: run(connection, self._reply(request, seconds)))
