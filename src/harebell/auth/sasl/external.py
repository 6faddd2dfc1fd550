"""SASL EXTERNAL (RFC 4422): who it is was proved before, by the certificate of the client's TLS."""

from __future__ import annotations

from harebell.auth.sasl.exchange import Context, Exchange


class External(Exchange):
    """The user whose name stands in the certificate. What the client says is ignored."""

    NAME = "EXTERNAL"

    @classmethod
    def possible(cls, context: Context) -> bool:
        """Whether the client showed a certificate that was checked."""
        return bool(context.certificate)

    def step(self, response: bytes) -> bytes | None:
        """Look the user up."""
        self.name = self.context.certificate
        user = self.context.users.get(self.name)
        if user is not None and self.context.users.admits(user, self.context.address):
            self.user = user
        return None
