"""The caller of an operation."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from harebell.auth.topics import TopicRule
from harebell.auth.users import IMPERSONATOR, User
from harebell.front.common.channel_like import ChannelLike
from harebell.model.vhost import VHost


class Caller(Struct):
    """The user and vhost of an operation; a `Principal` for permissions.

    Args:
        vhost: the vhost of the queues and exchanges.
        user: the user whose permissions are checked.
        owner: the owner of exclusive queues: a connection, or a session of 0-10. None for none.
        log: writes a line of a level to the log.
    """

    vhost: VHost
    user: User
    owner: object
    log: Callable[[str, str], None]


class Operator(User):
    """The user who runs the broker and uses its control socket, and may do everything.

    Args:
        name: how events and errors name the operator.
    """

    __slots__ = ()

    def __init__(self, name: str) -> None:
        super().__init__(name, "", tags=("administrator", IMPERSONATOR))

    def opens(self, vhost: str) -> bool:
        """Return True: the operator may open every vhost."""
        return True

    def allows(self, vhost: str, action: str, kind: str, name: str) -> bool:
        """Return True: the operator has every permission."""
        return True

    def allows_some(self, vhost: str, action: str) -> bool:
        """Return True: the operator has every permission."""
        return True

    def topics(self, vhost: str, exchange: str) -> TopicRule | None:
        """Return None: the operator may use every routing key."""
        return None


def caller_of(channel: ChannelLike) -> Caller:
    """Return the caller of a channel; its connection owns exclusive queues."""
    connection = channel.connection
    return Caller(channel.vhost, channel.user, connection, connection.settings.log)


def caller_of_session(session: ChannelLike) -> Caller:
    """Return the caller of a session of 0-10, which owns exclusive queues."""
    return Caller(session.vhost, session.user, session, session.connection.settings.log)
