"""The addresses of AMQP as they are configured, and why one cannot be listened on."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, NamedTuple

from harebell.server.net.tls import StartError

if TYPE_CHECKING:
    from harebell.config import Config

_WHY = {
    errno.EADDRINUSE: "is in use already: stop what listens there, or choose another port "
    "with --port (0 picks a free one)",
    errno.EACCES: "needs more rights: choose a port above 1023 with --port",
    errno.EADDRNOTAVAIL: "is no address of this machine: choose one with --host",
}


class ListenAddress(NamedTuple):
    """An address of AMQP as it is configured.

    Args:
        scheme: "amqp", "amqps" or "amqp-0-10t".
        host: a name or an IP address.
        port: the port; 0 for a free one.
    """

    scheme: str
    host: str
    port: int


def listen_addresses(config: Config) -> list[ListenAddress]:
    """Return the configured addresses of AMQP."""
    addresses = []
    if config.port is not None:
        addresses.append(ListenAddress("amqp", config.host, config.port))
    if config.tls_port is not None:
        addresses.append(ListenAddress("amqps", config.tls_host or config.host, config.tls_port))
    return addresses + [ListenAddress(*each) for each in config.listen or ()]


def refused(address: ListenAddress, error: OSError) -> StartError:
    """Return the error for an address that cannot be listened on."""
    why = _WHY.get(error.errno or 0, f"cannot be listened on: {error.strerror or error}")
    return StartError(f"{address.host}:{address.port} {why}")
