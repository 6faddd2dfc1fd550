"""The access class of 0-8 and 0-9: clients that request a ticket get ticket 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.wire.v09 import methods

if TYPE_CHECKING:
    from harebell.front.amqp_0_9_1.channel import Channel


def request(channel: Channel, method: methods.AccessRequest) -> None:
    """access.request: the ticket has no effect, permissions are checked on every method."""
    channel.connection.send(channel.number, methods.AccessRequestOk())


HANDLERS = {methods.AccessRequest: request}
