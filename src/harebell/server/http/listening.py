"""Run an ASGI application with uvicorn in the broker's own event loop.

uvicorn's `Server.serve` installs signal handlers, and wakes up ten times a second to update a
header. Its parts do without both: `startup` opens the server on sockets that are bound here, and
`shutdown` closes it. The application sets the header `date` itself.
"""

from __future__ import annotations

import asyncio
import errno
import ssl
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from harebell.base.limits import (
    HTTP_BACKLOG_CONNECTIONS,
    HTTP_CONCURRENT_REQUESTS,
    HTTP_IDLE_SECONDS,
    HTTP_SHUTDOWN_SECONDS,
)
from harebell.server.net.acceptor import bound
from harebell.server.net.asked_address import Asked
from harebell.server.net.tls import StartError

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

PACKAGES = ("starlette", "uvicorn", "h11")
INSTALL = "pip install harebell[management]"


def is_installed() -> bool:
    """True if the packages for HTTP are installed; nothing is imported."""
    return all(find_spec(name) is not None for name in PACKAGES)


class HttpListener:
    """One address that serves an ASGI application.

    Args:
        scheme: "http" or "https".
        host: the address bound to.
        port: the port bound to.
        asked: the address that was configured.
        server: uvicorn's server.
        sockets: the listening sockets.
        application: what answers the requests.

    Attributes:
        sockets: as given.
    """

    def __init__(
        self,
        scheme: str,
        host: str,
        port: int,
        asked: Asked,
        server: Any,
        sockets: list[socket.socket],
        application: Any,
    ) -> None:
        self.scheme = scheme
        self.host = host
        self.port = port
        self.asked = asked
        self._server = server
        self.sockets = sockets
        self.application = application

    @property
    def shown(self) -> str:
        """Return the address as a URL."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"

    async def close(self) -> None:
        """Stop listening, and end the connections; answers that are being sent are cut."""
        await self._server.shutdown(self.sockets)


async def bound_for(host: str, port: int, key: str) -> list[socket.socket]:
    """Return sockets that listen on an address for HTTP.

    Raises:
        StartError: the address cannot be bound; the text names the key.
    """
    try:
        return await bound(asyncio.get_running_loop(), host, port)
    except OSError as error:
        raise StartError(_why_not(host, port, key, error)) from None


async def open_listener(
    app: Any,
    host: str,
    port: int,
    key: str,
    tls: Callable[[], ssl.SSLContext] | None = None,
    sockets: list[socket.socket] | None = None,
) -> HttpListener:
    """Serve an ASGI application on an address.

    Args:
        app: the application.
        host: the address to listen on.
        port: the port to listen on.
        key: the configuration key of the port, for errors.
        tls: returns the current TLS context; None for plain HTTP.
        sockets: that listen there already; None if they have to be made.

    Raises:
        StartError: the address cannot be bound; the text names the key.
    """
    from uvicorn import Config, Server

    sockets = sockets or await bound_for(host, port, key)
    config = Config(
        app,
        loop="none",
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        backlog=HTTP_BACKLOG_CONNECTIONS,
        limit_concurrency=HTTP_CONCURRENT_REQUESTS,
        timeout_keep_alive=HTTP_IDLE_SECONDS,
        timeout_graceful_shutdown=HTTP_SHUTDOWN_SECONDS,
        ssl_context_factory=None if tls is None else lambda _config, _default: _following(tls),
    )
    config.load()
    server = Server(config)
    server.lifespan = config.lifespan_class(config)
    await server.startup(sockets=sockets)
    there = sockets[0].getsockname()
    asked = Asked("http" if tls is None else "https", host, port)
    return HttpListener(asked.scheme, there[0], there[1], asked, server, sockets, app)


def _following(current: Callable[[], ssl.SSLContext]) -> ssl.SSLContext:
    """Return a context for a server, whose connections use the files that were read last."""
    context = current()

    def choose(connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        connection.context = current()

    context.sni_callback = choose
    return context


def _why_not(host: str, port: int, key: str, error: OSError) -> str:
    where = f"{key}: {host}:{port}"
    if error.errno == errno.EADDRINUSE:
        return (
            f"{where} is in use already: stop what listens there, or set {key} to another port "
            "(0 for none)"
        )
    if error.errno == errno.EACCES:
        return f"{where} needs more rights: set {key} to a port above 1023"
    return f"{where} cannot be listened on: {error.strerror or error}"
