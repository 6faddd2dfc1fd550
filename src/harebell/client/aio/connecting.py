"""`connect`: the way to a connection."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Generator
from typing import Any

from harebell.client.aio.connection import Connection
from harebell.client.options import options
from harebell.client.protocol.recovery import Recovery
from harebell.client.protocol.v09.core import Random
from harebell.client.url import URL


class _Connecting:
    """The result of `connect`: await it, or enter it with `async with`."""

    def __init__(self, make: Callable[[], Connection]) -> None:
        self._make = make
        self._connection: Connection | None = None

    def __await__(self) -> Generator[Any, None, Connection]:
        return self._make().open().__await__()

    async def __aenter__(self) -> Connection:
        self._connection = await self._make().open()
        return self._connection

    async def __aexit__(self, *error: object) -> None:
        assert self._connection is not None, "left before it was entered"
        await self._connection.close()


def connect(
    url: str | URL = "amqp://",
    *,
    version: str | None = None,
    recover: bool | Recovery = False,
    rng: Random | None = None,
    properties: dict[str, Any] | None = None,
    ssl_context: ssl.SSLContext | None = None,
    wait: float | None = None,
) -> _Connecting:
    """Open a connection, to be awaited or entered with `async with`.

    Args:
        url: the address, amqp:// or amqps:// (`harebell.client.url`).
        version: version of AMQP, "0-8" for example, in place of that of the address.
        recover: try several times to connect, reconnect when the connection is lost, and restore
            what was declared; a `Recovery` says how.
        rng: randomness for the jitter of the delays between attempts.
        properties: added to the client properties.
        ssl_context: TLS settings, instead of the parameters of an amqps:// address.
        wait: seconds to go on trying while the broker cannot be reached, because it starts. A
            refused login is not tried again.

    Raises:
        URLError: the address is invalid.
        ConnectionFailed: no connection could be opened (when awaited or entered).
    """
    given = options(url, version, recover, rng, properties, ssl_context, wait)
    return _Connecting(lambda: Connection(*given))
