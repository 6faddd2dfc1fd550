"""Publish: find the exchange of a message, and the queues that can deliver it at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harebell.auth.permissions import WRITE
from harebell.base.message import Message
from harebell.front.common.channel_like import Principal
from harebell.front.common.permission import EXCHANGE, check
from harebell.model.exchange.kind import Exchange
from harebell.model.queue.contract import Queue
from harebell.model.resource import rendered

NO_ROUTE = 312
"""The reply code of basic.return, and of the refusal of work that is one for all messages."""
_SHOWN_ROUTES = 3


def writable_exchange(
    principal: Principal, name: str, internal: Callable[[str], Exception]
) -> Exchange:
    """Find an exchange to publish to.

    Args:
        principal: the publisher.
        name: of the exchange.
        internal: makes the version's error for an exchange that is internal.

    Raises:
        Refusal: the user may not write to it, or it does not exist.
    """
    check(principal, WRITE, EXCHANGE, name)
    exchange = principal.vhost.exchange(name)
    if exchange.internal:
        thing = rendered(EXCHANGE, name, principal.vhost.name)
        raise internal(f"cannot publish to internal {thing}")
    return exchange


def takers(queues: tuple[Queue, ...], message: Message) -> tuple[Queue, ...]:
    """Return the queues that can deliver a message at once, for the flag `immediate`.

    AMQP before 0-9-1 has this flag. A queue can deliver at once if no message waits in it and one
    of its consumers is ready. Other queues do not get the message, and if none can, it is returned
    to its publisher.
    """
    return tuple(queue for queue in queues if _delivers_at_once(queue, message))


def _delivers_at_once(queue: Queue, message: Message) -> bool:
    if queue.ready_count():
        return False
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
