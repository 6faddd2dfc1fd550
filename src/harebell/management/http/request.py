"""A request: its head, and the body that is read once its user may send one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from functools import cached_property
from typing import TYPE_CHECKING

from harebell.kernels.bodies import GatheredBody
from harebell.management.http.asgi import ClientDisconnect
from harebell.management.http.errors import too_large
from harebell.management.http.routes import with_path

if TYPE_CHECKING:
    from harebell.management.http.asgi import Receive, Scope
    from harebell.management.http.protocol import GuardedConnection

_READS = ("GET", "HEAD")


class HttpRequest:
    """A request of a client.

    Args:
        scope: its head, in ASGI's words; its target may be a whole URL.
        receive: returns the next part of its body, or that its client has gone.

    Attributes:
        scope, receive: as given; the target of the scope is a path.
        method: such as "GET".
        raw_path: the path as it was sent, not decoded.
        address: the address of the client; "" if it is unknown.
        reads: whether it changes nothing.
        deletes: whether it deletes something.
    """

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self.scope = scope = with_path(scope)
        self.receive = receive
        self.method: str = scope["method"]
        self.raw_path: bytes = scope.get("raw_path") or scope["path"].encode()
        self.address: str = (scope.get("client") or ("",))[0]
        self.reads = self.method in _READS
        self.deletes = self.method == "DELETE"

    def __str__(self) -> str:
        return f"{self.method} {self.scope['path']!r}"

    @property
    def connection(self) -> GuardedConnection:
        """Return the connection that the request came over."""
        connection: GuardedConnection = self.scope["state"]["connection"]
        return connection

    @cached_property
    def headers(self) -> dict[str, str]:
        """The headers, by their names in small letters; of several with one name the first."""
        return {
            name.decode("latin-1"): value.decode("latin-1")
            for name, value in reversed(self.scope["headers"])
        }

    @property
    def turn(self) -> Callable[[], Awaitable[None]]:
        """Return what waits for the next turn of the connection."""
        return self.connection.turns.turn

    async def read_body(self, limit: int) -> bytes:
        """Read the body.

        Args:
            limit: the most bytes that it may have.

        Raises:
            HttpError: 413, it is too large.
            ClientDisconnect: the client has closed its connection.
        """
        length = self.headers.get("content-length", "0")
        announced = int(length) if length.isdecimal() else 0
        if announced > limit:
            raise too_large(limit)
        body = GatheredBody(announced)
        async for piece in self._pieces():
            body.add(piece)
            # A chunked body announces no length.
            if body.size > limit:
                raise too_large(limit)
        return body.take()

    async def _pieces(self) -> AsyncIterator[bytes]:
        """Yield the pieces of the body.

        Raises:
            ClientDisconnect: the client has closed its connection.
        """
        more = True
        while more:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            more = message.get("more_body", False)
            if piece := message.get("body", b""):
                yield piece

    async def closed(self) -> None:
        """Wait until the client has closed its connection."""
        while (await self.receive())["type"] != "http.disconnect":
            pass  # the end of the body of the request
