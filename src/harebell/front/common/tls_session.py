"""The TLS session of a connection, in RabbitMQ's words."""

from __future__ import annotations

from typing import NamedTuple


class TlsSession(NamedTuple):
    """What the handshake of a connection ended with.

    Args:
        protocol: such as "tlsv1.3".
        key_exchange: such as "ecdhe_rsa"; "any" in TLS 1.3.
        cipher: such as "aes_256_gcm".
        hash: the hash function of the message authentication; "aead" if the cipher has its own.
        subject: the subject of the peer's verified certificate; "" without one.
        issuer: its issuer.
        validity: from when and until when it is valid: "2026-01-31T00:00:00Z - 2027-...".
    """

    protocol: str
    key_exchange: str
    cipher: str
    hash: str
    subject: str = ""
    issuer: str = ""
    validity: str = ""
