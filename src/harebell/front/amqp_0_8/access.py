"""The class access of 0-8 and 0-9 (class 30): tickets, which belong to their channel.

    method                               right
    exchange.declare  queue.declare      active; passive for passive declarations
    exchange.delete  queue.delete        active
    queue.bind  queue.unbind             active
    basic.publish                        write
    basic.consume  basic.get             read
    queue.purge                          read

0 is the ticket of clients that request none, and so is 1, which RabbitMQ gives to all: neither is
checked. An unknown number is ignored on a channel that has not requested a ticket.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.front.common.access_tickets import (
    ACTIVE,
    ADMIN,
    DATA,
    PASSIVE,
    READ,
    REALMS,
    WRITE,
    RealmInUse,
)
from harebell.front.common.errors import hard, soft
from harebell.wire.v09 import methods

if TYPE_CHECKING:
    from harebell.front.amqp_0_9_1.legacy_channel import LegacyChannel

_REQUEST = (30, 10)
_ADMINISTRATOR = "administrator"


def request(channel: LegacyChannel, method: methods.AccessRequest) -> None:
    """access.request: grant a ticket to this channel, in place of its earlier one."""
    realm, user = method.realm, channel.connection.user
    if not realm.startswith((DATA, ADMIN)):
        raise hard(403, f"there is no realm '{realm}': realms begin with {DATA} or {ADMIN}",
                   *_REQUEST)  # fmt: skip
    if realm not in REALMS:
        raise soft(402, f"unknown realm '{realm}': there are {' and '.join(REALMS)}", *_REQUEST)
    if realm == ADMIN and _ADMINISTRATOR not in user.tags:
        raise hard(403, f"access to realm '{realm}' refused for user '{user.name}'", *_REQUEST)
    rights = (PASSIVE, ACTIVE, WRITE, READ)
    requested = (method.passive, method.active, method.write, method.read)
    try:
        ticket = channel.connection.registry.tickets.grant(
            channel,
            channel.vhost.name,
            realm,
            [right for right, is_requested in zip(rights, requested, strict=True) if is_requested],
            exclusive=method.exclusive,
            user=user.name,
        )
    except RealmInUse as error:
        raise soft(403, str(error), *_REQUEST) from None
    channel.has_requested_ticket = True
    # The next publish looks its ticket up again: from now on unknown numbers are refused.
    channel.accepted_ticket = 0
    channel.connection.send(channel.number, methods.AccessRequestOk(ticket=ticket.number))


HANDLERS = {methods.AccessRequest: request}
