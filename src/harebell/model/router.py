"""Route a message from an exchange to queues, each at most once.

Routing follows exchange-to-exchange bindings, cycles included, and the alternate exchange if no
binding matches. If only the routing key decides, the result is cached until the topology changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from harebell.base.c_types import C, i64, isize
from harebell.base.message import Message, copy_message
from harebell.base.work import Work
from harebell.model.exchange.gate import opened
from harebell.model.exchange.kind import Exchange
from harebell.model.limits import ROUTE_CACHE_ENTRIES
from harebell.model.queue.contract import Queue, unrouted
from harebell.model.queue.reply import REPLY_PREFIX, ReplyQueue

if TYPE_CHECKING:
    from harebell.model.firehose import Firehose

_CACHE_ENTRIES: isize = ROUTE_CACHE_ENTRIES // 2
NOWHERE: C[tuple[Queue, ...]] = ()
NO_HEADERS: dict[str, Any] = {}


class Router:
    """Routes the messages of one vhost.

    Args:
        headers_of: decodes the headers of a message, for exchange types that match them.

    Attributes:
        exchanges: the vhost's exchanges by name.
        queues: the vhost's queues by name.
        replies: consumers of direct replies, by their routing key.
        epoch: incremented when cached routes become invalid.
        tracer: the firehose; None while it is off.
        origins: whether messages record the connection that published them.
        work: the work budget, charged for every queue of a message after the first.
    """

    def __init__(self, headers_of: Callable[[Message], Mapping[str, Any]]) -> None:
        self.exchanges: dict[str, Exchange] = {}
        self.queues: dict[str, Queue] = {}
        self.replies: dict[str, ReplyQueue] = {}
        self._no_reply: Queue = ReplyQueue(REPLY_PREFIX, "", {})
        self.epoch: i64 = 0
        self._headers_of = headers_of
        self.tracer: Firehose | None = None
        self.origins = False
        self.work = Work()

    def changed(self) -> None:
        """Invalidate cached routes: the topology has changed."""
        self.epoch += 1

    def route(self, exchange: Exchange, message: Message) -> C[tuple[Queue, ...]]:
        """Return the queues that get a message published to this exchange."""
        if exchange.default:
            # `itself` is a tuple that the queue keeps: nothing is made for each message.
            queue: Queue | None = self.queues.get(message.routing_key)
            return self._reply(message.routing_key) if queue is None else queue.itself
        if exchange.routes_epoch == self.epoch:
            queues: tuple[Queue, ...] | None = exchange.routes.get(message.routing_key)
            if queues is not None:
                if len(queues) > 1:
                    # Each queue after the first is another copy; the first is part of the publish.
                    self.work.charge(len(queues))
                return queues
        return self._match_key(exchange, message)

    def same_for(self, exchange: Exchange, routing_key: str) -> C[bool]:
        """True if all messages with a routing key that was just routed get to the same queues."""
        return exchange.default or (
            exchange.routes_epoch == self.epoch and routing_key in exchange.routes
        )

    def known(self, exchange: Exchange, routing_key: str) -> C[tuple[Queue, ...]]:
        """Return the queues of a routing key for which `same_for` is true."""
        if exchange.default:
            queue: Queue | None = self.queues.get(routing_key)
            return self._reply(routing_key) if queue is None else queue.itself
        return exchange.routes[routing_key]

    def route_keys(
        self, exchange: Exchange, message: Message, further_keys: Sequence[str]
    ) -> tuple[Queue, ...]:
        """Return the queues of a message with its routing key and further ones, each queue once.

        The alternate exchange gets the message if no key matches.
        """
        if not further_keys:
            return self.route(exchange, message)
        return self.walk(exchange, message, further_keys)

    def walk(
        self, exchange: Exchange, message: Message, further_keys: Sequence[str]
    ) -> tuple[Queue, ...]:
        """Return what `route_keys` does, without a look at routes that are cached."""
        copies = [copy_message(message, message.exchange, key) for key in further_keys]
        return self._walk(exchange, (message, *copies))

    def send(self, exchange: Exchange, message: Message) -> None:
        """Route and publish a message of the broker itself, which gets no confirm or return."""
        queues = self.route(exchange, message)
        for queue in queues:
            queue.publish(message)
        if not queues:
            unrouted(message)

    def _reply(self, key: str) -> tuple[Queue, ...]:
        """Return the route of a direct reply; one whose consumer is gone counts as routed."""
        if not key.startswith(REPLY_PREFIX):
            return NOWHERE
        # RabbitMQ does not return such a message since 4.2, mandatory or not.
        return self.replies.get(key, self._no_reply).itself

    def _match_key(self, exchange: Exchange, message: Message) -> C[tuple[Queue, ...]]:
        """Return the queues of a routing key that is not cached.

        Most exchanges lead to queues only: these need none of what exchanges behind exchanges do.
        """
        if exchange.routes_epoch == self.epoch:
            known: tuple[Queue, ...] | None = exchange.older_routes.get(message.routing_key)
            if known is not None:
                self.work.charge(len(known) + 1)
                self._remember(exchange, message.routing_key, known)
                return known
        if not exchange.by_key or exchange.tap is not None:
            return self._walk(exchange, (message,))
        matched = exchange.match(message, NO_HEADERS)
        queues: dict[Queue, None] = {}
        for destination in matched:
            if not isinstance(destination, Queue):
                return self._walk(exchange, (message,))
            queue: Queue = destination
            queues[queue] = None
        if not queues and exchange.alternate is not None:
            return self._walk(exchange, (message,))
        # The tuple that the queue keeps, so that a cached route is no object of its own.
        route: tuple[Queue, ...] = queue.itself if len(queues) == 1 else tuple(queues)
        self.work.charge(len(route) + 1)
        self._remember(exchange, message.routing_key, route)
        return route

    def _walk(self, start: Exchange, messages: tuple[Message, ...]) -> C[tuple[Queue, ...]]:
        queues: dict[Queue, None] = {}
        # Each exchange is visited once: bindings between exchanges may form cycles.
        seen = {start}
        todo = [start]
        last: set[Exchange] = set()
        by_key = len(messages) == 1
        while todo:
            exchange = todo.pop()
            # Queues are added to and removed from the default exchange without a new epoch.
            by_key = by_key and exchange.by_key and not (exchange.default or exchange.special)
            for destination in self._matches(exchange, messages, last):
                if isinstance(destination, Queue):
                    queues[destination] = None
                elif destination not in seen:
                    seen.add(destination)
                    todo.append(destination)
        route = tuple(queues)
        self.work.charge(len(route) + len(seen))
        if by_key:
            self._remember(start, messages[0].routing_key, route)
        return route

    def _matches(
        self, exchange: Exchange, messages: tuple[Message, ...], last: set[Exchange]
    ) -> list[Exchange | Queue]:
        """Return the destinations that match; those of the alternate exchange if none does.

        Args:
            exchange: an exchange that the messages have come to.
            messages: one message with its routing keys.
            last: alternate exchanges of last resort: messages that they do not match are dropped.
        """
        if exchange.default:
            return [queue for each in messages for queue in self.route(exchange, each)]
        message = messages[0]
        special = exchange.special
        if special and exchange.tap is not None:
            exchange.tap.passed(message)
        headers: Mapping[str, Any] = NO_HEADERS
        if exchange.needs_headers and message.has_headers:
            headers = self._headers_of(message)
        # Types that match more than the routing key see the message once and choose once.
        examined = messages if exchange.each_key else messages[:1]
        if special:
            matched = [
                end for each in examined for end in opened(exchange.match(each, headers), each)
            ]
        else:
            matched = [end for each in examined for end in exchange.match(each, headers)]
        # As in RabbitMQ: only if nothing matches, and the alternate exchange may have one, too.
        if not matched and exchange.alternate is not None and exchange not in last:
            alternate = self.exchanges.get(exchange.alternate)
            if alternate is not None:
                if exchange.alternate_once:
                    last.add(alternate)
                return [alternate]
        return matched

    def _remember(self, exchange: Exchange, key: str, route: tuple[Queue, ...]) -> C[None]:
        if exchange.routes_epoch != self.epoch:
            exchange.routes.clear()
            exchange.older_routes.clear()
            exchange.routes_epoch = self.epoch
        elif len(exchange.routes) >= _CACHE_ENTRIES:
            # Keys that are in use come back from the older half: somebody who publishes with a new
            # key each time does not evict those of others. Keeping the order of use would do the
            # same, and cost something for every message.
            exchange.older_routes = exchange.routes
            exchange.routes = {}
        exchange.routes[key] = route
