"""Open listening sockets, and describe the errors."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from msgspec import Struct

from harebell.front.common.peer import Peer
from harebell.server.net.acceptor import Acceptor, bound
from harebell.server.net.connection import ServerProtocol
from harebell.server.net.handed_sockets import HandedSockets
from harebell.server.net.listen_address import ListenAddress, listen_addresses, refused
from harebell.server.net.tcp_options import options_of
from harebell.server.net.tls import ServerTls, StartError
from harebell.wire import FINAL_0_10, TRANSITIONAL_0_10

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from harebell.auth.users import User
    from harebell.server.app import App
    from harebell.server.net.proxy_gate import Addresses, ProxyGate


__all__ = ["Listener", "StartError", "listen"]

_HERE = "127.0.0.1"
DIALECTS = {"amqp-0-10t": TRANSITIONAL_0_10}
"""The version that the header `AMQP 1 1 0 10` selects, by scheme; else the final 0-10."""


class Listener(Struct, frozen=True):
    """One address that accepts connections.

    Args:
        scheme: "amqp", "amqps" or "amqp-0-10t".
        host: the address bound to.
        port: the port bound to, also if port 0 was configured.
        server: the asyncio server or `Acceptor`.
        configured_host: the host that was configured.
        configured_port: the port that was configured; 0 for a free one.
    """

    scheme: str
    host: str
    port: int
    server: asyncio.Server | Acceptor
    configured_host: str
    configured_port: int = 0

    @property
    def shown(self) -> str:
        """Return the address as a URL."""
        return f"{self.scheme}://{self.address}"

    @property
    def address(self) -> str:
        """Return the address and the port."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def _proxy_gate(app: App, tls: ServerTls | None, dialect: str) -> ProxyGate:
    # Imported only if it is used.
    from harebell.server.net.proxy_gate import ProxyGate

    def has_room(waiting: int) -> bool:
        limit = app.config.unauthenticated_connection_max or app.max_connections
        return waiting < limit and app.has_room()

    async def serve(sock: socket.socket, addresses: Addresses) -> None:
        protocol = ServerProtocol(app, tls, dialect, addresses)
        if tls is not None:
            protocol.secure(sock)
        else:
            await app.loop.connect_accepted_socket(lambda: protocol, sock)

    seconds = app.config.handshake_timeout_seconds
    return ProxyGate(app.loop, seconds, has_room, serve, app.logger.write)


def _served(app: App, tls: ServerTls | None, dialect: str) -> Callable[[socket.socket], None]:
    """Return what serves a socket that was accepted here."""
    if app.config.proxy_protocol:
        return _proxy_gate(app, tls, dialect).accepted
    if tls is not None:
        return lambda sock: ServerProtocol(app, tls, dialect).secure(sock)
    # The event loop has weak references to its tasks only.
    beginning: set[asyncio.Task[object]] = set()

    def serve(sock: socket.socket) -> None:
        made = app.loop.connect_accepted_socket(lambda: ServerProtocol(app, None, dialect), sock)
        task: asyncio.Task[object] = app.loop.create_task(made)
        beginning.add(task)
        task.add_done_callback(beginning.discard)

    return serve


async def serve_user(app: App, user: User, sock: socket.socket) -> None:
    """Serve the socket of a process that the broker has started for a user."""
    protocol = ServerProtocol(app, None, peer=Peer(_HERE, host=_HERE, user=user))
    await app.loop.connect_accepted_socket(lambda: protocol, sock)


async def _open(
    app: App,
    address: ListenAddress,
    tls: ServerTls | None,
    sockets: list[socket.socket] | None = None,
) -> Listener:
    """Open a listener.

    Args:
        app: the broker.
        address: where to listen.
        tls: the context; None for plain AMQP.
        sockets: that listen there already; None if they have to be made.
    """
    scheme, host, port = address
    dialect = DIALECTS.get(scheme, FINAL_0_10)
    server: asyncio.Server | Acceptor
    options = options_of(app.config)
    try:
        listening = sockets or await bound(app.loop, host, port, options)
        plain = sockets is None and tls is None and not app.config.proxy_protocol
        if plain and len(listening) == 1:
            server = await app.loop.create_server(
                lambda: ServerProtocol(app, None, dialect),
                sock=listening[0],
                backlog=options.backlog,
            )
        else:
            server = Acceptor(app.loop, listening, _served(app, tls, dialect))
    except OSError as error:
        raise refused(address, error) from None
    bound_to = server.sockets[0].getsockname()
    return Listener(scheme, bound_to[0], bound_to[1], server, host, port)


async def reopened(app: App, closed: Listener) -> Listener:
    """Open a listener again that was closed, at the same port.

    Raises:
        StartError: the address cannot be bound.
    """
    tls = app.tls if closed.scheme == "amqps" else None
    listener = await _open(
        app, ListenAddress(closed.scheme, closed.configured_host, closed.port), tls
    )
    _announce(app, listener)
    return listener


def _announce(app: App, listener: Listener) -> None:
    what = "TLS (SSL)" if listener.scheme == "amqps" else "TCP"
    app.logger.write("info", f"started {what} listener on {listener.address}")


async def listen(app: App, handed: HandedSockets | None = None) -> list[Listener]:
    """Open every configured listener.

    Args:
        app: the broker.
        handed: sockets that listen already, and clients that wait; None if there are none.

    Raises:
        StartError: an address cannot be bound, or TLS is unusable.
    """
    handed = handed or HandedSockets()
    listeners = []
    for address in listen_addresses(app.config):
        tls = app.tls if address.scheme == "amqps" else None
        listeners.append(await _open(app, address, tls, handed.take(address)))
    # After the last address is bound: a start that fails has announced no listener, and taken no
    # client that was handed over.
    for listener in listeners:
        _announce(app, listener)
        if isinstance(listener.server, Acceptor):
            for sock in handed.take_clients(listener.scheme):
                listener.server.accepted(sock)
    return listeners
