"""From an exchange and a message to the queues that get it, each once.

The walk follows exchange-to-exchange bindings, through cycles too, and an exchange's alternate when
nothing of its own matches. Where only the routing key counts the outcome is remembered, until the
topology changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from harebell.base.limits import ROUTE_CACHE_ENTRIES
from harebell.base.message import Message
from harebell.base.work import Work
from harebell.model.exchange.kind import Exchange
from harebell.model.queue.contract import Queue
from harebell.model.queue.reply import REPLY_PREFIX, ReplyQueue

if TYPE_CHECKING:
    from harebell.model.firehose import Firehose

_CACHE_ENTRIES = ROUTE_CACHE_ENTRIES
NOWHERE: tuple[Queue, ...] = ()
NO_HEADERS: dict[str, Any] = {}


class Router:
    """Routes the messages of one vhost.

    Args:
        headers_of: decodes a message's headers, for the kinds that look at them.

    Attributes:
        exchanges: the vhost's exchanges by name.
        queues: the vhost's queues by name.
        replies: who waits for direct replies, by the routing key that reaches them.
        epoch: grows whenever a remembered route may have become wrong.
        tracer: the firehose while it is on.
        origins: whether messages shall say which connection published them.
        work: is charged for every queue beyond the first that gets a message.
    """

    def __init__(self, headers_of: Callable[[Message], Mapping[str, Any]]) -> None:
        self.exchanges: dict[str, Exchange] = {}
        self.queues: dict[str, Queue] = {}
        self.replies: dict[str, ReplyQueue] = {}
        self._nobody = ReplyQueue(REPLY_PREFIX, "", {})
        self.epoch = 0
        self._headers_of = headers_of
        self.tracer: Firehose | None = None
        self.origins = False
        self.work = Work()

    def changed(self) -> None:
        """The topology changed: forget what was remembered."""
        self.epoch += 1

    def route(self, exchange: Exchange, message: Message) -> tuple[Queue, ...]:
        """The queues that a message published to this exchange goes to."""
        if exchange.default:
            queue = self.queues.get(message.routing_key)
            return self._reply(message.routing_key) if queue is None else queue.itself
        if exchange.routes_epoch == self.epoch:
            found = exchange.routes.get(message.routing_key)
            if found is not None:
                if len(found) > 1:
                    self.work.charge(len(found))
                return found
        return self._walk(exchange, (message,))

    def route_all(self, exchange: Exchange, messages: tuple[Message, ...]) -> tuple[Queue, ...]:
        """The queues of one message with several routing keys: a copy of it for each key.

        An alternate exchange gets what none of the keys found a way for.
        """
        return self._walk(exchange, messages)

    def _reply(self, key: str) -> tuple[Queue, ...]:
        """Where a direct reply goes; one that nobody waits for any more counts as routed, too."""
        if not key.startswith(REPLY_PREFIX):
            return NOWHERE
        return self.replies.get(key, self._nobody).itself

    def _walk(self, start: Exchange, messages: tuple[Message, ...]) -> tuple[Queue, ...]:
        queues: dict[Queue, None] = {}
        seen = {start}
        todo = [start]
        last: set[Exchange] = set()
        by_key = len(messages) == 1
        while todo:
            exchange = todo.pop()
            # Queues come and go from the default exchange without a change of topology.
            by_key = by_key and exchange.by_key and not exchange.default
            for destination in self._matches(exchange, messages, last):
                if isinstance(destination, Queue):
                    queues[destination] = None
                elif destination not in seen:
                    seen.add(destination)
                    todo.append(destination)
        found = tuple(queues)
        self.work.charge(len(found) + len(seen))
        if by_key:
            self._remember(start, messages[0].routing_key, found)
        return found

    def _matches(
        self, exchange: Exchange, messages: tuple[Message, ...], last: set[Exchange]
    ) -> list[Exchange | Queue]:
        """What an exchange's own bindings match; its alternate when they match nothing.

        Args:
            exchange: where the messages are.
            messages: one message with its routing keys.
            last: alternates that are the last resort: what they do not match is dropped.
        """
        if exchange.default:
            return [queue for each in messages for queue in self.route(exchange, each)]
        message = messages[0]
        headers: Mapping[str, Any] = NO_HEADERS
        if exchange.needs_headers and message.has_headers:
            headers = self._headers_of(message)
        # Kinds that do not go by the key alone see, and choose for, the message just once.
        looked_at = messages if exchange.each_key else messages[:1]
        matched = [found for each in looked_at for found in exchange.match(each, headers)]
        if not matched and exchange.alternate is not None and exchange not in last:
            alternate = self.exchanges.get(exchange.alternate)
            if alternate is not None:
                if exchange.alternate_once:
                    last.add(alternate)
                return [alternate]
        return matched

    def _remember(self, exchange: Exchange, key: str, found: tuple[Queue, ...]) -> None:
        if exchange.routes_epoch != self.epoch or len(exchange.routes) >= _CACHE_ENTRIES:
            exchange.routes.clear()
            exchange.routes_epoch = self.epoch
        exchange.routes[key] = found
