"""The exchange of a SASL mechanism: challenges and responses until it is clear who it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from harebell.auth.sasl.mechanism import SaslError
from harebell.auth.sasl.plain import Plain
from harebell.auth.users import User, Users

__all__ = ["Context", "Exchange", "SaslError", "begin_exchange", "offers"]


@dataclass(frozen=True, slots=True)
class Context:
    """Who logs in from where.

    Args:
        users: who may.
        address: of the peer.
        rng: returns that many random octets.
    """

    users: Users
    address: str
    rng: Callable[[int], bytes]


class Exchange:
    """One login.

    Args:
        context: who logs in from where.

    Attributes:
        user: who it is; None until that is clear, and when nobody.
        name: who it says it is, for the log.
    """

    NAME = ""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.user: User | None = None
        self.name = "?"

    @classmethod
    def possible(cls, context: Context) -> bool:
        """Whether anybody can log in this way here."""
        return True

    def step(self, response: bytes) -> bytes | None:
        """Take a response; the next challenge, or None when the exchange is over.

        Raises:
            SaslError: the response is none of this mechanism.
        """
        raise NotImplementedError


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


EXCHANGES: tuple[type[Exchange], ...] = (PlainExchange,)
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
