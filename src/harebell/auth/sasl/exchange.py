"""The contract of a SASL exchange: challenges and responses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from harebell.auth.sasl.mechanism import SaslError
from harebell.auth.users import Claim, Doubt, User, Users

__all__ = ["Context", "Exchange", "SaslError"]


def _no_table(data: bytes) -> Mapping[str, Any]:
    raise SaslError("field tables are not known here")


class Context(Struct, frozen=True):
    """The parameters of an authentication.

    Args:
        users: whom the password is checked with.
        address: the address of the peer.
        rng: returns random bytes.
        certificate: the name in the TLS certificate of the peer; "" without one.
        anonymous: the user of ANONYMOUS; "" for none.
        allowed: the configured mechanisms; empty for the default ones.
        decode_table: decodes a field table without its length, for the mechanism that uses one.
        user: whose the peer is already, whatever it says; None if it has to log in.
    """

    users: Users
    address: str
    rng: Callable[[int], bytes]
    certificate: str = ""
    anonymous: str = ""
    allowed: tuple[str, ...] = ()
    decode_table: Callable[[bytes], Mapping[str, Any]] = _no_table
    user: User | None = None


class Exchange:
    """One authentication.

    Args:
        context: its parameters.

    Attributes:
        user: the authenticated user; None before, and after a failure.
        name: the claimed user name, for the log.
        doubt: a password that is slow to compare and decides the exchange.
        claim: a login that the configured backends of users decide about.
        why: why they refuse it; "" for no reason.
        barred: whether the user may log in, from other addresses.
        guess: whether the last step was given a password, or the proof of one.
        right: whether that is known to be right.
        waited: whether its outcome may be told: see `harebell.front.common.password_guesses`.
    """

    NAME = ""
    LOCAL = True
    """Whether it knows only the users of the broker itself."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.user: User | None = None
        self.name = "?"
        self.doubt: Doubt | None = None
        self.claim: Claim | None = None
        self.why = ""
        self.barred = False
        self.guess = self.right = self.waited = False

    @classmethod
    def possible(cls, context: Context) -> bool:
        """True if some user can log in with this mechanism here."""
        return True

    def step(self, response: bytes) -> bytes | None:
        """Process a response; return the next challenge, or None at the end.

        Raises:
            SaslError: the response is invalid for this mechanism.
        """
        raise NotImplementedError

    def settle(self, right: bool) -> None:
        """Finish with the result of the slow comparison.

        Args:
            right: whether the password is right.
        """
        doubt, self.doubt = self.doubt, None
        users = self.context.users
        if doubt is not None and right and users.admits(doubt.user, self.context.address):
            self.user = doubt.user

    def answer(self, user: User | None, why: str) -> None:
        """Finish with the answer of the backends of users.

        Args:
            user: the user; None if all refuse.
            why: why the last one refuses.
        """
        self.claim = None
        self.why = why
        if user is None:
            return
        if self.context.users.admits(user, self.context.address):
            self.user = user
        else:
            self.barred = True
