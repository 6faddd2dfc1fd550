"""The peer of a connection, with the properties of its listener and of its TLS session."""

from __future__ import annotations

from typing import Any, NamedTuple

from msgspec import Struct


class TlsSession(NamedTuple):
    """What the TLS handshake of a connection ended with, in RabbitMQ's words.

    Args:
        protocol: such as "tlsv1.3".
        key_exchange: such as "ecdhe_rsa"; "any" in TLS 1.3.
        cipher: such as "aes_256_gcm".
        hash: the hash function of the message authentication; "aead" if the cipher has its own.
        subject: the subject of the peer's verified certificate; "" without one.
        issuer: who has signed that certificate.
        validity: from when and until when it is valid: "2026-01-31T00:00:00Z - 2027-...".
    """

    protocol: str
    key_exchange: str
    cipher: str
    hash: str
    subject: str = ""
    issuer: str = ""
    validity: str = ""


class Peer(Struct, frozen=True):
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
        replayed: whether another broker has answered the client until connection.open, and passes
            on what it has sent: nothing is sent twice.
        entropy: the random bytes of the challenge that it had from that broker, and has answered;
            empty without one.
        user: the `User` whose process it is, which the broker has started for one question; None
            for others. It never comes from another broker.
    """

    address: str
    port: int = 0
    tls: bool = False
    host: str = ""
    host_port: int = 0
    dialect: str = "0-10"
    certificate: str = ""
    session: TlsSession | None = None
    replayed: bool = False
    entropy: bytes = b""
    user: Any = None

    def __str__(self) -> str:
        return f"{self.address}:{self.port}"

    @property
    def connection_name(self) -> str:
        """The name of its connection, as RabbitMQ's tools show it."""
        return f"{self.address}:{self.port} -> {self.host}:{self.host_port}"
