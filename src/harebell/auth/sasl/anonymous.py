"""SASL ANONYMOUS (RFC 4505): every client is a configured user."""

from __future__ import annotations

from harebell.auth.sasl.exchange import Context, Exchange


class Anonymous(Exchange):
    """The configured anonymous user."""

    NAME = "ANONYMOUS"

    @classmethod
    def possible(cls, context: Context) -> bool:
        """True if there is an anonymous user."""
        return context.users.get(context.anonymous) is not None

    def step(self, response: bytes) -> bytes | None:
        """Return the anonymous user; the client's trace information is ignored."""
        self.name = self.context.anonymous
        user = self.context.users.get(self.name)
        if user is not None and self.context.users.admits(user, self.context.address):
            self.user = user
        return None
