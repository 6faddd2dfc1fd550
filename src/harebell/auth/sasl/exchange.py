"""The exchange of a SASL mechanism: challenges and responses until it is clear who it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from harebell.auth.sasl.mechanism import SaslError
from harebell.auth.users import Doubt, User, Users

__all__ = ["Context", "Exchange", "SaslError"]


def _no_table(data: bytes) -> Mapping[str, Any]:
    raise SaslError("field tables are not known here")


@dataclass(frozen=True, slots=True)
class Context:
    """Who logs in from where.

    Args:
        users: who may.
        address: of the peer.
        rng: returns that many random octets.
        certificate: the name in the certificate that the peer's TLS showed; "" without one.
        anonymous: the user that everybody may be; "" for none.
        allowed: the mechanisms that the settings name; none for the usual ones.
        decode_table: decodes a field table without its length, for the mechanism that uses one.
    """

    users: Users
    address: str
    rng: Callable[[int], bytes]
    certificate: str = ""
    anonymous: str = ""
    allowed: tuple[str, ...] = ()
    decode_table: Callable[[bytes], Mapping[str, Any]] = _no_table


class Exchange:
    """One login.

    Args:
        context: who logs in from where.

    Attributes:
        user: who it is; None until that is clear, and when nobody.
        name: who it says it is, for the log.
        doubt: a password that takes long to compare, when the exchange is over but for that.
    """

    NAME = ""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.user: User | None = None
        self.name = "?"
        self.doubt: Doubt | None = None

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

    def settle(self, right: bool) -> None:
        """The password in doubt was compared.

        Args:
            right: whether it is the user's.
        """
        doubt, self.doubt = self.doubt, None
        users = self.context.users
        if doubt is not None and right and users.admits(doubt.user, self.context.address):
            self.user = doubt.user
