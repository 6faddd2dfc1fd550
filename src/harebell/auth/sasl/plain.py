"""SASL PLAIN (RFC 4616): authorization identity, user and password, separated by zero bytes."""

from __future__ import annotations

from harebell.auth.sasl.mechanism import Credentials, Mechanism, SaslError

_PARTS = 3


class Plain(Mechanism):
    """User and password in clear text; acting for another user is refused (RFC 4616 2)."""

    NAME = "PLAIN"

    def credentials(self, response: bytes) -> Credentials:
        """Return user and password."""
        parts = response.split(b"\0")
        if len(parts) != _PARTS:
            raise SaslError("a PLAIN response is <identity> NUL <user> NUL <password>")
        if parts[0] not in (b"", parts[1]):
            raise SaslError(
                "a PLAIN response asks to act for another user than the one that logs in: leave "
                "the authorization identity empty"
            )
        try:
            return Credentials(parts[1].decode(), parts[2].decode())
        except UnicodeDecodeError:
            raise SaslError("a PLAIN response is UTF-8") from None
