"""Access tickets of the classes `file` and `stream`, where the version has tickets."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from harebell.front.session09.older_access import check_ticket

if TYPE_CHECKING:
    from harebell.front.session09.channel import Channel
    from harebell.front.session09.older_channel import OlderChannel


def check_presented(channel: Channel, number: int, right: str, place: tuple[int, int]) -> None:
    """Refuse what a ticket does not allow.

    Raises:
        ProtocolError: 530 for the connection when it is another channel's, 403 otherwise.
    """
    if channel.connection.profile.tickets:
        check_ticket(cast("OlderChannel", channel), number, right, place)
