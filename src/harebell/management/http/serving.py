"""Serve the HTTP API of a broker on its configured ports."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from harebell.management.http.listening import INSTALL, HttpListener, is_installed, open_listener
from harebell.server.limits import MANAGEMENT_PORT
from harebell.server.net.listen_address import ListenAddress
from harebell.server.net.tls import StartError

if TYPE_CHECKING:
    from harebell.admin.context import AdminContext
    from harebell.config import Config
    from harebell.management.control.dispatcher import Dispatcher
    from harebell.management.http.application import ManagementApp
    from harebell.management.http.asgi import Receive, Scope, Send
    from harebell.management.http.connections import HttpConnections
    from harebell.server.net.handed_sockets import HandedSockets

_IMPORTS = tuple(
    f"harebell.management.http.{name}" for name in ("sending", "routes", "login", "application")
)
"""What is imported for the first request, a part in each turn."""


def port_of(config: Config) -> int:
    """Return the port for plain HTTP; 0 for none.

    By default that is 15672, and none for a broker that takes a free port for AMQP: several of
    them may run on one machine. A port for TLS alone is the only one, as in RabbitMQ.
    """
    if config.management_port is not None:
        return config.management_port
    return 0 if config.port == 0 or config.management_tls_port else MANAGEMENT_PORT


class HttpAddress(NamedTuple):
    """An address of the HTTP API.

    Args:
        address: its scheme, "http" or "https", and where it is.
        key: the key of the configuration with its port.
        given: whether the configuration has that key.
    """

    address: ListenAddress
    key: str
    given: bool


def http_addresses(config: Config) -> list[HttpAddress]:
    """Return the addresses of the HTTP API; none if packages are missing."""
    if not is_installed():
        return []
    host, addresses = config.management_host, []
    if port := port_of(config):
        given = config.management_port is not None
        addresses.append(HttpAddress(ListenAddress("http", host, port), "management_port", given))
    if port := config.management_tls_port or 0:
        addresses.append(
            HttpAddress(ListenAddress("https", host, port), "management_tls_port", True)
        )
    return addresses


class HttpApi:
    """The ASGI application of the HTTP API, which is imported and made for the first request.

    Args:
        config, context, dispatcher, count: as for `ManagementApp`.
    """

    def __init__(
        self,
        config: Config,
        context: AdminContext,
        dispatcher: Dispatcher,
        count: Callable[[int], object],
    ) -> None:
        self._config = config
        self._parts = (context, dispatcher, count)
        self._made: ManagementApp | None = None

    def configure(self, config: Config) -> None:
        """Use another configuration for requests from now on."""
        self._config = config
        if self._made is not None:
            self._made.configure(config)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if self._made is None:
            for name in _IMPORTS:
                import_module(name)
                await asyncio.sleep(0)
        await self._application()(scope, receive, send)

    def _application(self) -> ManagementApp:
        if self._made is None:
            from harebell.management.http.application import ManagementApp

            self._made = ManagementApp(self._config, *self._parts)
        return self._made


async def serve_http(
    config: Config,
    tls: Callable[[], ssl.SSLContext],
    log: Callable[[str, str], None],
    context: AdminContext,
    dispatcher: Dispatcher,
    handed: HandedSockets,
    connections: HttpConnections,
    count: Callable[[int], object],
) -> list[HttpListener]:
    """Open the listeners of the HTTP API.

    Args:
        config: the configuration.
        tls: returns the TLS context for new connections.
        log: takes a level and a line.
        context: the broker and its users.
        dispatcher: runs commands.
        handed: sockets that listen already.
        connections: counts those of clients.
        count: called with how many bytes of answers more, or fewer, wait for their clients.

    Raises:
        StartError: a port cannot be listened on, or packages are missing for a configured port.
    """
    if not (port_of(config) or config.management_tls_port):
        return []
    if not is_installed():
        if config.management_port or config.management_tls_port:
            key = "management_port" if config.management_port else "management_tls_port"
            raise StartError(f"{key} is set, and the packages for HTTP are missing: {INSTALL}")
        log("info", f"no HTTP API: its packages are missing ({INSTALL})")
        return []
    app = HttpApi(config, context, dispatcher, count)
    listeners = []
    for address, key, given in http_addresses(config):
        encrypted = tls if address.scheme == "https" else None
        try:
            sockets = handed.take(address)
            listeners.append(
                await open_listener(
                    app, address.host, address.port, key, connections, encrypted, sockets
                )
            )
        except StartError as error:
            if given:
                raise
            # Another broker of this machine may have the default port.
            log("warning", f"no HTTP API: {error}")
    return listeners
