"""SASL EXTERNAL (RFC 4422): the user is the one of the TLS client certificate."""

from __future__ import annotations

from harebell.auth.sasl.exchange import Context, Exchange
from harebell.auth.users import Claim


class External(Exchange):
    """The user named in the certificate; the response is ignored."""

    NAME = "EXTERNAL"
    LOCAL = False

    @classmethod
    def possible(cls, context: Context) -> bool:
        """True if the client has sent a verified certificate."""
        return bool(context.certificate)

    def step(self, response: bytes) -> bytes | None:
        """Return the user of the certificate."""
        self.name = self.context.certificate
        if self.context.users.log_in is not None:
            self.claim = Claim(self.name, None, self.context.address)
            return None
        user = self.context.users.get(self.name)
        if user is not None and self.context.users.admits(user, self.context.address):
            self.user = user
        return None
