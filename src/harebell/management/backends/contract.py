"""What the chain of backends expects of each of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from harebell.auth.authority import Authority, Question
from harebell.auth.users import Claim

Log = Callable[[str, str], None]
"""Writes a line of a level to the log."""


class Denied(Exception):
    """A backend refuses a login.

    Args:
        why: for the log, as RabbitMQ says it.
        failed: whether it could not decide, for example because a server does not answer.
    """

    def __init__(self, why: str, *, failed: bool = False) -> None:
        super().__init__(why)
        self.why = why
        self.failed = failed


@dataclass(frozen=True, slots=True)
class Identity:
    """Who has logged in.

    Args:
        name: the user.
        tags: the tags that the backend gives.
        address: of the peer, for backends that look at it.
        expires: when the login ends, in seconds since 1970; 0 for never.
    """

    name: str
    tags: tuple[str, ...] = ()
    address: str = ""
    expires: float = 0.0


class Backend(Protocol):
    """A backend of users."""

    name: str

    async def authenticate(self, claim: Claim) -> Identity:
        """Return who it is.

        Raises:
            Denied: the password is wrong, or the backend cannot log.
        """

    async def authorize(self, claim: Claim, name: str) -> tuple[str, ...]:
        """Return the tags of a user whom another backend has authenticated.

        Raises:
            Denied: this backend does not know the user, or cannot log.
        """

    def authority(self, identity: Identity, claim: Claim) -> Authority:
        """Return what decides about the user's permissions."""


@runtime_checkable
class Renewable(Protocol):
    """An authority whose credential ends, and can be replaced by a new one."""

    async def renew(self, secret: str) -> str:
        """Take a new credential of the same user; return why not, "" if it is taken."""

    @property
    def expires(self) -> float:
        """When the credential ends, in seconds since 1970; 0 for never."""


Decide = Callable[[Question], Awaitable[bool | None]]
"""Asks a remote server; None if it does not answer, which is a refusal with a line in the log."""
