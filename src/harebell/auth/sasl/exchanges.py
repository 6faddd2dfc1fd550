"""Every SASL mechanism as an exchange, and which of them can succeed for a peer."""

from __future__ import annotations

from harebell.auth.sasl.anonymous import Anonymous
from harebell.auth.sasl.exchange import Context, Exchange
from harebell.auth.sasl.external import External
from harebell.auth.sasl.plain import Plain
from harebell.auth.sasl.scram import ScramSha1, ScramSha256


class PlainExchange(Exchange):
    """PLAIN: one response says it all."""

    NAME = Plain.NAME

    def step(self, response: bytes) -> bytes | None:
        """Take the user and the password."""
        credentials = Plain(lambda table: {}).credentials(response)
        self.name = credentials.user
        context = self.context
        self.user = context.users.authenticate(
            credentials.user, credentials.password, context.address
        )
        return None


EXCHANGES: tuple[type[Exchange], ...] = (
    External,
    ScramSha256,
    ScramSha1,
    PlainExchange,
    Anonymous,
)
"""In order of preference."""


def offers(context: Context) -> list[str]:
    """The mechanisms that can succeed."""
    return [kind.NAME for kind in EXCHANGES if kind.possible(context)]


def begin_exchange(name: str, context: Context) -> Exchange | None:
    """The exchange of a mechanism that is offered; None for others."""
    for kind in EXCHANGES:
        if name == kind.NAME and kind.possible(context):
            return kind(context)
    return None
