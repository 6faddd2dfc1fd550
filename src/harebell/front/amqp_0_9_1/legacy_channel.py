"""A channel of 0-8 or 0-9, with the features that RabbitMQ does not have.

    immediate        a message that no consumer gets at once is returned (313)
    channel.flow     deliveries stop and resume
    prefetch-size    limit of unacknowledged bytes, beside their number
    tickets          the actions that a client has announced, checked if it presents a ticket

The immediate bit is moved internally, because the base channel refuses it in its usual position.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.base.c_types import C, i32
from harebell.base.message import Message, Properties
from harebell.front.amqp_0_9_1.channel import Channel
from harebell.front.amqp_0_9_1.prefetch_size_window import Window
from harebell.front.common.access_tickets import WRITE
from harebell.front.common.errors import hard, soft
from harebell.front.convert.plain import tags_in
from harebell.front.operations.returns import (
    AT_ONCE,
    IMMEDIATE,
    MANDATORY,
    RETURNED,
    count_return,
    takers,
    undelivered_code,
)
from harebell.kernels.output import Passage
from harebell.model.queue.contract import Queue

if TYPE_CHECKING:
    from harebell.front.amqp_0_9_1.connection import Connection

_MANDATORY: i32 = MANDATORY
_IMMEDIATE: i32 = IMMEDIATE
_AT_ONCE: i32 = AT_ONCE
_TICKET_SHIFT: i32 = 8
_PUBLISH = (60, 40)
_UNCHECKED_TICKETS = (0, 1)
"""0 is the ticket of clients that ask for none, and 1 is what RabbitMQ gives to all of them."""


class LegacyChannel(Channel):
    """A channel of a connection that speaks 0-8 or 0-9.

    Args:
        connection: the connection it belongs to.
        number: its channel number, from 1.

    Attributes:
        stopped: whether the client has stopped deliveries.
        window: the limit of unacknowledged bytes.
        windowed: whether there is such a limit.
        has_requested_ticket: whether the client has sent access.request on this channel.
        checked_properties: the properties whose header types were added to `connection.known`
            last; a publisher mostly repeats them.
        accepted_ticket: the ticket that was last accepted for a publish.
    """

    def __init__(self, connection: Connection, number: int) -> None:
        super().__init__(connection, number)
        self.stopped = False
        self.window = Window()
        self.windowed = False
        self.has_requested_ticket = False
        self.accepted_ticket: i32 = 0
        self.checked_properties: Properties | None = None

    def may_deliver(self) -> bool:
        """True if the client has flow switched on."""
        return not self.stopped

    def publish(
        self, flags: i32, exchange_name: str, routing_key: str, properties: Properties, body: bytes
    ) -> i32:
        """Publish a message, after a check of its ticket."""
        # A publisher mostly presents one ticket: its rights are looked up when it changes.
        if flags >> _TICKET_SHIFT != self.accepted_ticket:
            self.check_ticket(flags >> _TICKET_SHIFT, WRITE, _PUBLISH)
            self.accepted_ticket = flags >> _TICKET_SHIFT
        base_flags = flags & _MANDATORY
        if flags & _IMMEDIATE:
            base_flags |= _AT_ONCE
        if properties.has_headers and properties is not self.checked_properties:
            # Some specifications of the version have more types: a client can read what it sends.
            self.checked_properties = properties
            self.connection.known |= tags_in(properties.raw) & self.connection.profile.echoed
        return Channel.publish(self, base_flags, exchange_name, routing_key, properties, body)

    def passage(self, flags: i32, exchange_name: str, routing_key: str) -> C[Passage | None]:
        """Return the passage of publishes that repeat the last one's method."""
        if flags & _IMMEDIATE:
            return None
        # `publish` notes the types in headers.
        return self._passage(flags & _MANDATORY, exchange_name, routing_key, True)

    def accept(self, message: Message, queues: tuple[Queue, ...], flags: i32) -> i32:
        """Publish a routed message to its queues; if immediate, only to those that can deliver."""
        if not flags & _AT_ONCE:
            return Channel.accept(self, message, queues, flags)
        taking = takers(queues, message)
        if not taking:
            count_return(self, message)
            self.return_message(message, undelivered_code(queues, flags))
        # RETURNED: the base must not count the message as dropped as well.
        return Channel.accept(self, message, taking, RETURNED)

    def check_presented(self, number: int, right: str, place: tuple[int, int]) -> None:
        """Refuse what an access ticket does not allow, if the version has tickets."""
        if self.connection.profile.tickets:
            self.check_ticket(number, right, place)

    def check_ticket(self, number: int, right: str, place: tuple[int, int]) -> None:
        """Refuse what an access ticket does not allow.

        Raises:
            ProtocolError: 530 for the connection when it is another channel's, 403 otherwise.
        """
        if number in _UNCHECKED_TICKETS:
            return
        ticket = self.connection.registry.tickets.find(number)
        if ticket is None:
            # Clients of brokers without realms send any constant; only one that has requested
            # tickets means this number.
            if self.has_requested_ticket:
                raise soft(403, f"there is no ticket {number}", *place)
            return
        if ticket.holder is not self:
            raise hard(530, f"ticket {number} was granted to another channel", *place)
        if right not in ticket.rights:
            text = f"ticket {number} for realm '{ticket.realm}' does not give {right} access"
            raise soft(403, text, *place)

    def close(self) -> None:
        """Close the channel and drop its tickets."""
        super().close()
        if self.has_requested_ticket:
            self.connection.registry.tickets.forget(self)
