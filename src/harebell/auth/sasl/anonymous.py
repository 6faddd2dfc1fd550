"""SASL ANONYMOUS (RFC 4505): every client is the user that the settings name for it."""

from __future__ import annotations

from harebell.auth.sasl.exchange import Context, Exchange


class Anonymous(Exchange):
    """The user for everybody."""

    NAME = "ANONYMOUS"

    @classmethod
    def possible(cls, context: Context) -> bool:
        """Whether there is such a user."""
        return context.users.get(context.anonymous) is not None

    def step(self, response: bytes) -> bytes | None:
        """Look the user up; what the client says of itself is ignored."""
        self.name = self.context.anonymous
        user = self.context.users.get(self.name)
        if user is not None and self.context.users.admits(user, self.context.address):
            self.user = user
        return None
