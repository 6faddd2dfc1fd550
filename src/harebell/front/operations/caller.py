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
        vhost: where the queues and exchanges are.
        user: whose permissions count.
        owner: whose exclusive queues may be used and made: a connection, or a session of 0-10.
            None for none.
        journal: writes a line of a level to the log.
    """

    vhost: VHost
    user: User
    owner: object
    journal: Callable[[str, str], None]


def caller_of(channel: ChannelLike) -> Caller:
    """The caller behind a channel; its exclusive queues are the connection's."""
    connection = channel.connection
    return Caller(channel.vhost, channel.user, connection, connection.settings.journal)


def caller_of_session(session: ChannelLike) -> Caller:
    """The caller behind a session of 0-10; its exclusive queues are its own."""
    return Caller(session.vhost, session.user, session, session.connection.settings.journal)
