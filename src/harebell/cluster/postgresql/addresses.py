"""Where other brokers of a store, and clients, reach this one."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harebell.config import Config

_ANY = ("0.0.0.0", "::")  # noqa: S104  # compared, not bound


def host_port(host: str, port: int) -> str:
    """Return an address as "host:port"."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def reachable(config: Config, listening: Iterable[tuple[str, str, int]]) -> dict[str, str]:
    """Return where this broker is reached, "host:port" by scheme.

    Args:
        config: `storage_address` names the host, and the port of AMQP without TLS.
        listening: scheme, address and port of what listens; the first of a scheme counts.
    """
    named_host, _, named_port = config.storage_address.rpartition(":")
    addresses: dict[str, str] = {}
    for scheme, host, port in listening:
        shown_host = platform.node() or "localhost" if host in _ANY else host
        if named_host:
            shown_host = named_host.strip("[]")
        shown_port = int(named_port) if named_host and scheme == "amqp" else port
        addresses.setdefault(scheme, host_port(shown_host, shown_port))
    if named_host and "amqp" not in addresses:
        addresses["amqp"] = config.storage_address
    return addresses
