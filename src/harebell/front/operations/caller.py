"""The caller of an operation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from harebell.auth.users import User
from harebell.front.common.channel_like import ChannelLike
from harebell.model.vhost import VHost


@dataclass(slots=True)
class Caller:
    """The user and vhost of an operation; a `Principal` for permissions.

    Args:
        vhost: the vhost of the queues and exchanges.
        user: the user whose permissions are checked.
        owner: the owner of exclusive queues: a connection, or a session of 0-10. None for none.
        journal: writes a line of a level to the log.
    """

    vhost: VHost
    user: User
    owner: object
    journal: Callable[[str, str], None]


def caller_of(channel: ChannelLike) -> Caller:
    """Return the caller of a channel; its connection owns exclusive queues."""
    connection = channel.connection
    return Caller(channel.vhost, channel.user, connection, connection.settings.journal)


def caller_of_session(session: ChannelLike) -> Caller:
    """Return the caller of a session of 0-10, which owns exclusive queues."""
    return Caller(session.vhost, session.user, session, session.connection.settings.journal)
