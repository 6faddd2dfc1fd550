"""Serve the metrics of a broker on its configured port."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.management.http.listening import INSTALL, HttpListener, is_installed, open_listener
from harebell.management.http.serving import HttpAddress
from harebell.server.limits import METRICS_PORT
from harebell.server.net.listen_address import ListenAddress
from harebell.server.net.tls import StartError

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from harebell.config import Config
    from harebell.management.http.connections import HttpConnections
    from harebell.management.metrics.merging import Others
    from harebell.management.metrics.source import Source
    from harebell.server.net.handed_sockets import HandedSockets


def port_of(config: Config) -> int:
    """Return the port of the metrics over plain HTTP; 0 for none.

    By default that is 15692, and none for a broker that takes a free port for AMQP: several of
    them may run on one machine. A port for TLS alone is the only one, as in RabbitMQ.
    """
    if config.metrics_port is not None:
        return config.metrics_port
    return 0 if config.port == 0 or config.metrics_tls_port else METRICS_PORT


def metrics_addresses(config: Config) -> list[HttpAddress]:
    """Return the addresses of the metrics.

    Raises:
        StartError: packages are missing for a configured port.
    """
    port, tls_port = port_of(config), config.metrics_tls_port or 0
    if not (port or tls_port):
        return []
    if not is_installed():
        if config.metrics_port or tls_port:
            key = "metrics_port" if config.metrics_port else "metrics_tls_port"
            raise StartError(f"{key} is set, and the packages for HTTP are missing: {INSTALL}")
        return []
    host = config.metrics_host
    named = (("http", port, "metrics_port"), ("https", tls_port, "metrics_tls_port"))
    return [
        HttpAddress(ListenAddress(scheme, host, number), key, True)
        for scheme, number, key in named
        if number
    ]


async def serve_metrics(
    config: Config,
    tls: Callable[[], ssl.SSLContext],
    source: Callable[[], Source],
    trouble: Callable[[], str],
    connections: HttpConnections,
    handed: HandedSockets,
    others: Others | None = None,
) -> list[HttpListener]:
    """Open the listeners for metrics and probes.

    Args:
        config: the configuration.
        tls: returns the TLS context for new connections.
        source: returns what the metrics are read from.
        trouble: returns why the broker cannot serve clients; "" if it can.
        connections: counts those of clients.
        handed: sockets that listen already.
        others: the other workers, for which every port answers; None if there are none.

    Raises:
        StartError: a port cannot be listened on, or packages are missing for a configured port.
    """
    addresses = metrics_addresses(config)
    if not addresses:
        return []
    # Imported here, so that a broker without metrics starts as fast as before.
    from harebell.management.metrics.application import MetricsApplication
    from harebell.management.metrics.scrape import Scraper

    read, version = source(), config.compat_version
    per_object = config.metrics_per_object
    scraper = Scraper(read, version, 0 if others is None else others.store)
    app = MetricsApplication(scraper, trouble, per_object=per_object, others=others)
    if others is not None:
        others.serve(MetricsApplication(scraper.part(), trouble))
    listeners = []
    for address, key, _ in addresses:
        encrypted = tls if address.scheme == "https" else None
        sockets = handed.take(address)
        listeners.append(
            await open_listener(
                app, address.host, address.port, key, connections, encrypted, sockets
            )
        )
    return listeners
