"""Find the queues that dead letters of a queue may go to, before any message is dead-lettered.

With a dead-letter routing key these are the queues that the exchange routes it to. Without one, and
with an exchange that matches more than the routing key, these are all queues that are bound to it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from harebell.base.message import Message, Properties
from harebell.model.exchange.kind import Exchange
from harebell.model.queue.contract import Queue
from harebell.model.resource import precondition, rendered

if TYPE_CHECKING:
    from harebell.model.vhost import VHost

_BY_KEY = ("direct", "fanout", "topic")
_NO_PROPERTIES = Properties(b"\0\0")


def dead_letter_queues(vhost: VHost, queue: Queue) -> list[Queue]:
    """Return the queues that dead letters of a queue may go to, at least one.

    Raises:
        Refusal: there are none; the text says what is missing.
    """
    resource = rendered("queue", queue.name, queue.vhost)
    letters = getattr(queue, "dead_letters", None)
    if letters is None:
        raise precondition(
            f"{resource} has no dead-letter exchange: declare it with x-dead-letter-exchange, or "
            "set the policy key dead-letter-exchange"
        )
    exchange = vhost.router.exchanges.get(letters.exchange)
    if exchange is None:
        raise precondition(
            f"the dead-letter exchange '{letters.exchange}' of {resource} is missing"
        )
    key = letters.routing_key
    if exchange.default and key is None:
        raise precondition(
            f"dead letters of {resource} go to the queues that their own routing keys name: it has "
            "the default exchange as dead-letter exchange, and no dead-letter routing key"
        )
    # These types look at the routing key only, so a message without anything else will do; not for
    # one that numbers messages, or has bindings with a selector.
    by_key = exchange.KIND in _BY_KEY and not exchange.special
    if key is not None and (exchange.default or by_key):
        letter_queues = list(
            vhost.router.route(exchange, Message(exchange.name, key, _NO_PROPERTIES, b""))
        )
    else:
        letter_queues = list(_bound(vhost, exchange))
    if not letter_queues:
        raise precondition(
            f"no queue gets dead letters of {resource}: bind one to exchange '{letters.exchange}'"
        )
    return letter_queues


def _bound(vhost: VHost, start: Exchange) -> Iterable[Queue]:
    """Return the queues behind an exchange, over all of its bindings."""
    queues: dict[Queue, None] = {}
    seen = {start}
    todo = [start]
    while todo:
        exchange = todo.pop()
        vhost.router.work.charge(1 + len(exchange.bindings))
        for binding in exchange.bindings.values():
            end = binding.destination
            if isinstance(end, Queue):
                queues[end] = None
            elif end not in seen:
                seen.add(end)
                todo.append(end)
    return queues
