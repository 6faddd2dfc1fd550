"""The peer of a connection, with the properties of its listener."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harebell.front.common.tls_session import TlsSession


@dataclass(frozen=True, slots=True)
class Peer:
    """The peer of a connection.

    Args:
        address: the peer's IP address, "" for a Unix socket.
        port: the peer's port.
        tls: whether it uses TLS.
        host: the local address.
        host_port: the local port.
        dialect: the version that the header `AMQP 1 1 0 10` means on its listener: "0-10", or
            "0-10t" for the transitional 0-10, which begins with the same bytes.
        certificate: the name in its verified TLS certificate; "" without one.
        session: its TLS session; None before the end of the handshake.
    """

    address: str
    port: int = 0
    tls: bool = False
    host: str = ""
    host_port: int = 0
    dialect: str = "0-10"
    certificate: str = ""
    session: TlsSession | None = None

    def __str__(self) -> str:
        return f"{self.address}:{self.port}"

    @property
    def connection_name(self) -> str:
        """The name of its connection, as RabbitMQ's tools show it."""
        return f"{self} -> {self.host}:{self.host_port}"
