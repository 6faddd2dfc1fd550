"""Serve the HTTP API of a broker on its configured ports."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from harebell.management.http.listening import INSTALL, HttpListener, is_installed, open_listener
from harebell.server.limits import MANAGEMENT_PORT
from harebell.server.net.listen_address import ListenAddress
from harebell.server.net.tls import StartError

if TYPE_CHECKING:
    from harebell.admin.context import AdminContext
    from harebell.config import Config
    from harebell.management.control.dispatcher import Dispatcher
    from harebell.management.http.connections import HttpConnections
    from harebell.server.net.handed_sockets import HandedSockets


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
    # Imported here, so that a broker without HTTP starts as fast as before.
    from harebell.management.http.application import ManagementApp

    app = ManagementApp(config, context, dispatcher, count)
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
