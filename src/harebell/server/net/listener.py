"""Open listening sockets, and describe the errors."""

from __future__ import annotations

import asyncio
import errno
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harebell.base import limits
from harebell.server.net.acceptor import ALL_ADDRESSES, Acceptor, bound
from harebell.server.net.connection import ServerProtocol
from harebell.server.net.tls import ServerTls, StartError
from harebell.wire import FINAL_0_10, TRANSITIONAL_0_10

if TYPE_CHECKING:
    import socket

    from harebell.server.app import App
    from harebell.server.net.proxy_gate import Addresses, ProxyGate


__all__ = ["Listener", "StartError", "listen"]

DIALECTS = {"amqp-0-10t": TRANSITIONAL_0_10}
"""The version that the header `AMQP 1 1 0 10` selects, by scheme; else the final 0-10."""


@dataclass(frozen=True, slots=True)
class Listener:
    """One address that accepts connections.

    Args:
        scheme: "amqp", "amqps" or "amqp-0-10t".
        host: the address bound to.
        port: the port bound to, also if port 0 was configured.
        server: the asyncio server or `Acceptor`.
        asked: the host that was configured.
    """

    scheme: str
    host: str
    port: int
    server: asyncio.Server | Acceptor
    asked: str

    @property
    def shown(self) -> str:
        """Return the address as a URL."""
        return f"{self.scheme}://{self.address}"

    @property
    def address(self) -> str:
        """Return the address and the port."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


_WHY = {
    errno.EADDRINUSE: "is in use already: stop what listens there, or choose another port "
    "with --port (0 picks a free one)",
    errno.EACCES: "needs more rights: choose a port above 1023 with --port",
    errno.EADDRNOTAVAIL: "is no address of this machine: choose one with --host",
}


async def _plain(app: App, host: str, port: int, dialect: str) -> asyncio.Server:
    """Listen without TLS; `::` is all addresses of IPv4 too."""
    if host == ALL_ADDRESSES:
        (link,) = await bound(app.loop, host, port)
        return await app.loop.create_server(
            lambda: ServerProtocol(app, None, dialect),
            sock=link,
            backlog=limits.BACKLOG_CONNECTIONS,
        )
    return await app.loop.create_server(
        lambda: ServerProtocol(app, None, dialect),
        host,
        port,
        backlog=limits.BACKLOG_CONNECTIONS,
    )


def _proxy_gate(app: App, tls: ServerTls | None, dialect: str) -> ProxyGate:
    # Imported only if it is used.
    from harebell.server.net.proxy_gate import ProxyGate

    def has_room(waiting: int) -> bool:
        limit = app.config.unauthenticated_connection_max or app.max_connections
        return waiting < limit and app.has_room()

    async def serve(link: socket.socket, addresses: Addresses) -> None:
        protocol = ServerProtocol(app, tls, dialect, addresses)
        if tls is not None:
            protocol.secure(link)
        else:
            await app.loop.connect_accepted_socket(lambda: protocol, link)

    seconds = app.config.handshake_timeout_seconds
    return ProxyGate(app.loop, seconds, has_room, serve, app.logger.write)


async def _open(
    app: App, host: str, port: int, tls: ServerTls | None, scheme: str = ""
) -> Listener:
    dialect = DIALECTS.get(scheme, FINAL_0_10)
    server: asyncio.Server | Acceptor
    try:
        if app.config.proxy_protocol:
            gate = _proxy_gate(app, tls, dialect)
            server = Acceptor(app.loop, await bound(app.loop, host, port), gate.accepted)
        elif tls is None:
            server = await _plain(app, host, port, dialect)
        else:
            server = Acceptor(
                app.loop,
                await bound(app.loop, host, port),
                lambda link: ServerProtocol(app, tls, dialect).secure(link),
            )
    except OSError as error:
        why = _WHY.get(error.errno or 0, f"cannot be listened on: {error.strerror or error}")
        raise StartError(f"{host}:{port} {why}") from None
    there = server.sockets[0].getsockname()
    return Listener(scheme or ("amqps" if tls else "amqp"), there[0], there[1], server, host)


async def reopened(app: App, closed: Listener) -> Listener:
    """Open a listener again that was closed, at the same port.

    Raises:
        StartError: the address cannot be bound.
    """
    tls = app.tls if closed.scheme == "amqps" else None
    listener = await _open(app, closed.asked, closed.port, tls, closed.scheme)
    _announce(app, listener)
    return listener


def _announce(app: App, listener: Listener) -> None:
    what = "TLS (SSL)" if listener.scheme == "amqps" else "TCP"
    app.logger.write("info", f"started {what} listener on {listener.address}")


async def listen(app: App) -> list[Listener]:
    """Open every configured listener.

    Raises:
        StartError: an address cannot be bound, or TLS is unusable.
    """
    config = app.config
    listeners = []
    if config.port is not None:
        listeners.append(await _open(app, config.host, config.port, None))
    if config.tls_port is not None:
        host = config.tls_host or config.host
        listeners.append(await _open(app, host, config.tls_port, app.tls))
    for scheme, host, port in config.listen or ():
        tls = app.tls if scheme == "amqps" else None
        listeners.append(await _open(app, host, port, tls, scheme))
    for listener in listeners:
        _announce(app, listener)
    return listeners
