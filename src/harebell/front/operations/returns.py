"""Messages that no queue takes: `mandatory` and `immediate` return them, others are dropped.

    queues   one can deliver now   mandatory   immediate   outcome
    none     -                     no          no          dropped, and counted as that
    none     -                     yes         yes or no   312 NO_ROUTE
    none     -                     no          yes         313 NO_CONSUMERS
    some     no                    yes or no   yes         313 NO_CONSUMERS
    some     yes                   yes or no   yes         published to the queues that can

A return is sent before the confirm of its message. What a return is depends on the version: the
message itself (`return_message`; file.return and stream.return in `other_contents`), or a reject
of the number of its command in both versions 0-10. 0-9-1 of RabbitMQ has no `immediate`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from harebell.base.c_types import Done, i32
from harebell.base.message import Message
from harebell.front.common.channel_details import Detailed, details_of
from harebell.model.queue.contract import Queue

if TYPE_CHECKING:
    from harebell.base.counters import Counters

MANDATORY = 1
IMMEDIATE = 2
"""The flag as a peer sends it, which the channel of 0-9-1 refuses."""
AT_ONCE = 4
"""The flag `immediate` of an older version, within the broker: `LegacyChannel` moves it here."""
RETURNED = 8
"""The flag of an unroutable publish that was returned to its publisher already."""
NO_ROUTE = 312
NO_CONSUMERS = 313
_SHOWN_ROUTES = 3


class Returning(Detailed, Protocol):
    """A channel or a session whose publishes may be unroutable."""

    @property
    def counters(self) -> Counters:
        """The counters of its messages."""


class ReturningChannel(Returning, Protocol):
    """A channel that sends messages back to their publisher."""

    def return_message(self, message: Message, code: int = NO_ROUTE) -> None:
        """Send an undeliverable message back with a reply code."""


def unroutable(channel: ReturningChannel, message: Message, flags: i32) -> i32:
    """Return a message without queues to its publisher if it is mandatory, and drop it if not."""
    if flags & MANDATORY:
        count_return(channel, message)
        channel.return_message(message)
    elif not flags & RETURNED:
        count_drop(channel, message)
    return 0


def undelivered_code(queues: tuple[Queue, ...], flags: int) -> int:
    """Return the reply code for an immediate message that none of its queues can deliver now."""
    # Without any queue the mandatory bit decides: 312 is the more exact reason.
    return NO_ROUTE if not queues and flags & MANDATORY else NO_CONSUMERS


def count_return(channel: Returning, message: Message) -> Done:
    """Count a message that is returned to its publisher."""
    counters: Counters = channel.counters
    counters.return_unroutable += 1
    counters = details_of(channel).exchange(message.exchange)
    counters.return_unroutable += 1
    return 0


def count_drop(channel: Returning, message: Message) -> Done:
    """Count a message that is dropped because no queue takes it."""
    counters: Counters = channel.counters
    counters.drop_unroutable += 1
    counters = details_of(channel).exchange(message.exchange)
    counters.drop_unroutable += 1
    return 0


def takers(queues: tuple[Queue, ...], message: Message) -> tuple[Queue, ...]:
    """Return the queues that can deliver a message at once, for the flag `immediate`.

    AMQP before 0-9-1 has this flag. A queue can deliver at once if no message waits in it and one
    of its consumers is ready. Other queues do not get the message, and if none can, it is returned
    to its publisher.
    """
    return tuple(queue for queue in queues if _delivers_at_once(queue, message))


def _delivers_at_once(queue: Queue, message: Message) -> bool:
    # Messages that wait are delivered first, and may take the credit of every consumer.
    if queue.ready_count():
        return False
    # Consumers with no-local are not ready for messages of their own connection.
    return any(
        consumer.ready()
        for consumer in queue.consumers
        if not consumer.excluded or consumer.excluded != message.origin
    )


def routes_of(unroutable: Sequence[Message]) -> str:
    """Return the first routing keys and exchanges of unroutable messages, for an error."""
    routes = dict.fromkeys((message.exchange, message.routing_key) for message in unroutable)
    shown = ", ".join(
        f"'{key}' at exchange '{exchange}'" for exchange, key in list(routes)[:_SHOWN_ROUTES]
    )
    more = len(routes) - _SHOWN_ROUTES
    return shown + (f" and {more} more" if more > 0 else "")
