"""Listening sockets, and what is said when one cannot be had."""

from __future__ import annotations

import asyncio
import errno
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harebell.base import limits
from harebell.base.errors import HarebellError
from harebell.server.connection import ServerProtocol
from harebell.wire import FINAL_0_10, TRANSITIONAL_0_10

if TYPE_CHECKING:
    from harebell.server.app import App
    from harebell.server.config import Config


DIALECTS = {"amqp-0-10t": TRANSITIONAL_0_10}
"""What the header `AMQP 1 1 0 10` means to listeners of a scheme; elsewhere the final 0-10."""


class StartError(HarebellError):
    """The broker cannot start; the text is a sentence for the user."""


@dataclass(frozen=True, slots=True)
class Listener:
    """One address that accepts connections.

    Args:
        scheme: "amqp", "amqps" or "amqp-0-10t".
        host: the address bound to.
        port: the port bound to, also when 0 was asked for.
        server: accepts.
    """

    scheme: str
    host: str
    port: int
    server: asyncio.Server

    @property
    def shown(self) -> str:
        """The address as users write it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


_WHY = {
    errno.EADDRINUSE: "is in use already: stop what listens there, or choose another port "
    "with --port (0 picks a free one)",
    errno.EACCES: "needs more rights: choose a port above 1023 with --port",
    errno.EADDRNOTAVAIL: "is no address of this machine: choose one with --host",
}


async def _open(
    app: App, host: str, port: int, tls: ssl.SSLContext | None, scheme: str = ""
) -> Listener:
    dialect = DIALECTS.get(scheme, FINAL_0_10)
    try:
        server = await app.loop.create_server(
            lambda: ServerProtocol(app, tls is not None, dialect),
            host,
            port,
            ssl=tls,
            backlog=limits.BACKLOG_CONNECTIONS,
        )
    except OSError as error:
        why = _WHY.get(error.errno or 0, f"cannot be listened on: {error.strerror or error}")
        raise StartError(f"{host}:{port} {why}") from None
    bound = server.sockets[0].getsockname()
    return Listener(scheme or ("amqps" if tls else "amqp"), bound[0], bound[1], server)


def tls_context(config: Config) -> ssl.SSLContext:
    """The server's TLS context from the configured files.

    Raises:
        StartError: a file is missing or unusable.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(config.tls_cert or "", config.tls_key or None)
        if config.tls_ca:
            context.load_verify_locations(config.tls_ca)
            context.verify_mode = ssl.CERT_OPTIONAL
    except (OSError, ssl.SSLError) as error:
        files = ", ".join(f for f in (config.tls_cert, config.tls_key, config.tls_ca) if f)
        raise StartError(f"cannot use the TLS files {files}: {error}") from None
    return context


async def listen(app: App) -> list[Listener]:
    """Open every configured listener.

    Raises:
        StartError: one of them cannot be had.
    """
    config = app.config
    listeners = [await _open(app, config.host, config.port, None)]
    if config.tls_port is not None:
        listeners.append(await _open(app, config.host, config.tls_port, tls_context(config)))
    for scheme, host, port in config.listen or ():
        listeners.append(await _open(app, host, port, None, scheme))
    return listeners
