"""The class access (class 30): tickets, valid in their session and as long as it lives."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from harebell.front.common.access_tickets import (
    ACTIVE,
    ADMIN,
    PASSIVE,
    READ,
    REALMS,
    WRITE,
    RealmInUse,
)
from harebell.front.common.errors import hard, soft
from harebell.wire.v09 import methods

if TYPE_CHECKING:
    from harebell.front.amqp_0_10_transitional.channel import TransitionalChannel

Handler = Callable[[Any, Any], None]
_CLASS, _REQUEST = 30, 10
_REFUSED, _NOT_ALLOWED = 403, 530
_ADMINISTRATOR = "administrator"


def request(channel: TransitionalChannel, method: methods.AccessRequest) -> None:
    """access.request: unknown realms are refused like forbidden ones."""
    connection, realm = channel.connection, method.realm
    closed = realm == ADMIN and _ADMINISTRATOR not in connection.user.tags
    if realm not in REALMS or closed:
        text = f"access to realm '{realm}' refused for user '{connection.user.name}'"
        raise hard(_REFUSED, text, _CLASS, _REQUEST)
    requested = {
        PASSIVE: method.passive,
        ACTIVE: method.active,
        WRITE: method.write,
        READ: method.read,
    }
    try:
        ticket = connection.registry.tickets.grant(
            channel,
            channel.vhost.name,
            realm,
            [right for right, is_requested in requested.items() if is_requested],
            exclusive=method.exclusive,
            user=connection.user.name,
        )
    except RealmInUse as error:
        raise hard(_REFUSED, str(error), _CLASS, _REQUEST) from None
    connection.send(channel.number, methods.AccessRequestOk(ticket=ticket.number))


def check_ticket(
    channel: TransitionalChannel, number: int, right: str, ids: tuple[int, int]
) -> None:
    """Refuse an action that an access ticket does not allow; 0 is not checked.

    Raises:
        ProtocolError: 530 for the connection when it is another session's, 403 otherwise.
    """
    if number == 0:
        return
    ticket = channel.connection.registry.tickets.find(number)
    if ticket is not None and ticket.holder is not channel:
        text = f"ticket {number} was granted to another session"
        raise hard(_NOT_ALLOWED, text, *ids)
    if ticket is None:
        raise soft(_REFUSED, f"there is no ticket {number}", *ids)
    if right not in ticket.rights:
        text = f"ticket {number} for realm '{ticket.realm}' does not give {right} access"
        raise soft(_REFUSED, text, *ids)


def ticketed(right: str, ids: tuple[int, int], serve: Handler) -> Handler:
    """Return a handler that checks the access ticket of a method before it is served.

    Args:
        right: what the ticket has to allow.
        ids: class and method id.
        serve: serves the method.
    """

    def handle(channel: TransitionalChannel, method: Any) -> None:
        check_ticket(channel, method.ticket, right, ids)
        serve(channel, method)

    return handle


HANDLERS = {methods.AccessRequest: request}
