"""A channel of 0-8 or 0-9, with the features that RabbitMQ does not have.

    immediate        a message that no consumer gets at once is returned (313)
    channel.flow     deliveries stop and resume
    prefetch-size    limit of unacknowledged bytes, beside their number
    tickets          the actions that a client has announced, checked if it presents a ticket

The immediate bit is moved internally, because the base channel refuses it in its usual position.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.base.message import FAMILY_09, Message, Properties
from harebell.front.amqp_0_9_1.channel import Channel
from harebell.front.amqp_0_9_1.channel_port import RETURNED
from harebell.front.amqp_0_9_1.other_contents import send_back
from harebell.front.amqp_0_9_1.prefetch_window import Window
from harebell.front.common.access_tickets import WRITE
from harebell.front.common.errors import hard, soft
from harebell.front.convert.plain import tags_in
from harebell.front.operations.publish import takers
from harebell.model.queue.contract import Queue
from harebell.wire.v09 import methods

if TYPE_CHECKING:
    from harebell.front.amqp_0_9_1.connection import Connection

_MANDATORY = 1
_IMMEDIATE = 2
_AT_ONCE = 4
_TICKET_SHIFT = 8
_PUBLISH = (60, 40)
_UNCHECKED_TICKETS = (0, 1)
"""0 is the ticket of clients that ask for none, and 1 is what RabbitMQ gives to all of them."""
_NO_ROUTE = (312, "NO_ROUTE")
_NO_CONSUMERS = (313, "NO_CONSUMERS")


class WindowedChannel(Channel):
    """A channel of a connection that speaks 0-8 or 0-9.

    Args:
        connection: the connection it belongs to.
        number: its channel number, from 1.

    Attributes:
        stopped: whether the client has stopped deliveries.
        window: the limit of unacknowledged bytes.
        windowed: whether there is such a limit.
        asked: whether the client has requested a ticket on this channel.
        looked_at: the headers whose types were checked last.
        good_ticket: the ticket that was last accepted for a publish.
    """

    def __init__(self, connection: Connection, number: int) -> None:
        super().__init__(connection, number)
        self.stopped = False
        self.window = Window()
        self.windowed = False
        self.asked = False
        self.good_ticket = 0
        self.looked_at: Properties | None = None

    def may_deliver(self) -> bool:
        """True if the client has flow switched on."""
        return not self.stopped

    def publish(
        self, flags: int, exchange_name: str, routing_key: str, properties: Properties, body: bytes
    ) -> int:
        """Publish a message, after a check of its ticket."""
        if flags >> _TICKET_SHIFT != self.good_ticket:
            self.check_ticket(flags >> _TICKET_SHIFT, WRITE, _PUBLISH)
            self.good_ticket = flags >> _TICKET_SHIFT
        kept = flags & _MANDATORY
        if flags & _IMMEDIATE:
            kept |= _AT_ONCE
        if properties.has_headers and properties is not self.looked_at:
            # Some specifications of the version have more types: a client can read what it sends.
            self.looked_at = properties
            self.connection.known |= tags_in(properties.raw) & self.connection.profile.echoed
        return Channel.publish(self, kept, exchange_name, routing_key, properties, body)

    def accept(self, message: Message, queues: tuple[Queue, ...], flags: int) -> int:
        """Publish a routed message to its queues; if immediate, only to those that can deliver."""
        if not flags & _AT_ONCE:
            return Channel.accept(self, message, queues, flags)
        taking = takers(queues, message)
        if not taking:
            missing = not queues and flags & _MANDATORY
            self.count_return(message)
            self.give_back_to_publisher(message, *(_NO_ROUTE if missing else _NO_CONSUMERS))
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
            if self.asked:
                raise soft(403, f"there is no ticket {number}", *place)
            return
        if ticket.holder is not self:
            raise hard(530, f"ticket {number} was granted to another channel", *place)
        if right not in ticket.rights:
            text = f"ticket {number} for realm '{ticket.realm}' does not give {right} access"
            raise soft(403, text, *place)

    def give_back_to_publisher(self, message: Message, code: int, text: str) -> None:
        """Send basic.return of an unroutable message, or the return of its class."""
        if message.family != FAMILY_09 and send_back(self, message, code):
            return
        method = methods.BasicReturn(
            reply_code=code,
            reply_text=text,
            exchange=message.exchange,
            routing_key=message.routing_key,
        )
        self.connection.send_content(self.number, method, message)

    def close(self) -> None:
        """Close the channel and drop its tickets."""
        super().close()
        if self.asked:
            self.connection.registry.tickets.forget(self)
