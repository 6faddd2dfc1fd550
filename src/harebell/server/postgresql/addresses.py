"""Where other brokers of a store, and clients, reach this one."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harebell.server.config import Config

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
    wanted, _, wanted_port = config.storage_address.rpartition(":")
    found: dict[str, str] = {}
    for scheme, host, port in listening:
        there = platform.node() or "localhost" if host in _ANY else host
        if wanted:
            there = wanted.strip("[]")
        known = int(wanted_port) if wanted and scheme == "amqp" else port
        found.setdefault(scheme, host_port(there, known))
    if wanted and "amqp" not in found:
        found["amqp"] = config.storage_address
    return found
