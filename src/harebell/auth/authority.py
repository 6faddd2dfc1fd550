"""What decides about the permissions of a user that a backend other than the broker's own admits.

A decision of a remote server is not there at once. The caller that checks a permission gets
`Undecided`, asks, and repeats what it was doing: nothing has been done before the check.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from harebell.auth.users import User
from harebell.base.errors import ErrorKind, Refusal

VHOST = "vhost"
RESOURCE = "resource"
TOPIC = "topic"
SOME = "some"


class Question(NamedTuple):
    """What is asked about a user.

    Args:
        about: VHOST, RESOURCE, TOPIC, or SOME for a permission for any name at all.
        vhost: the vhost, or where the resource is.
        kind: "queue" or "exchange"; for a topic "topic".
        name: of the resource; for a topic of the exchange.
        permission: configure, write or read.
        key: the routing key of a topic.
    """

    about: str
    vhost: str
    kind: str = ""
    name: str = ""
    permission: str = ""
    key: str = ""


class Undecided(Refusal):
    """What an operation needs is not there yet: a decision, or a message that is read in slices.

    The operation is repeated when it is there; without a request for it, it is refused.

    Args:
        ask: asks, and calls its argument when it is there; not within the call.
    """

    def __init__(self, ask: Callable[[Callable[[], None]], None]) -> None:
        text = "the backend that decides about this permission could not be asked here"
        super().__init__(ErrorKind.ACCESS_REFUSED, text)
        self.ask = ask


class Authority(Protocol):
    """Decides about one user."""

    def allows(self, question: Question) -> bool:
        """True if the user may do it.

        Raises:
            Undecided: it has to be asked first.
        """

    def settled(self) -> None:
        """Forget refusals: what needed the decisions is done."""


class _Topics:
    """The topic permissions of a user for one exchange; see `harebell.auth.topics`."""

    __slots__ = ("_exchange", "_user", "_vhost")

    def __init__(self, user: RemoteUser, vhost: str, exchange: str) -> None:
        self._user = user
        self._vhost = vhost
        self._exchange = exchange

    def allow(self, action: str, key: str) -> bool:
        """True if an action (write, read) with a routing key is allowed."""
        return self._user.decides(Question(TOPIC, self._vhost, TOPIC, self._exchange, action, key))


class RemoteUser(User):
    """A user whom another backend than the broker's own admits or restricts.

    Args:
        name: the user's name.
        tags: the tags that the backends gave.
        authorities: decide about permissions; all of them have to allow.
        loopback_only: whether only peers on this machine may log in.
        expires: when the login ends, in seconds since 1970; 0 for never.

    Attributes:
        renew: takes a new secret of `connection.update-secret`, and calls its second argument with
            the reason of a refusal or "", and the time when the login ends; None if there is none.
    """

    __slots__ = ("authorities", "renew")

    def __init__(
        self,
        name: str,
        tags: tuple[str, ...],
        authorities: tuple[Authority, ...],
        *,
        loopback_only: bool = False,
        expires: float = 0.0,
    ) -> None:
        super().__init__(name, "", loopback_only, tags)
        self.authorities = authorities
        self.expires = expires
        self.renew: Callable[[str, Callable[[str], None]], None] | None = None

    def decides(self, question: Question) -> bool:
        """True if all authorities allow it."""
        return all(authority.allows(question) for authority in self.authorities)

    def opens(self, vhost: str) -> bool:
        """True if the user may open a vhost."""
        return self.decides(Question(VHOST, vhost))

    def allows(self, vhost: str, action: str, kind: str, name: str) -> bool:
        """True if the user has a permission."""
        return self.decides(Question(RESOURCE, vhost, kind, name, action))

    def allows_some(self, vhost: str, action: str) -> bool:
        """True if the user has a permission for some name in a vhost."""
        return self.decides(Question(SOME, vhost, permission=action))

    def topics(self, vhost: str, exchange: str) -> _Topics:
        """Return the topic permissions of the user for an exchange."""
        return _Topics(self, vhost, exchange)

    def settled(self) -> None:
        """Forget refusals: what needed the decisions is done."""
        for authority in self.authorities:
            authority.settled()
