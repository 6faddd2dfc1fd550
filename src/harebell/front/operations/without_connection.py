"""Publish and get without a connection: what a request over HTTP does is what a channel does.

The rights, checks, limits, interceptors, counters and traces are those of basic.publish and
basic.get; the messages count as those of a channel of 0-9-1 that was opened for the request.
"""

from __future__ import annotations

from concurrent.futures import Future
from typing import TYPE_CHECKING, NamedTuple

from harebell.auth.permissions import WRITE
from harebell.base.message import Message, Properties, new_message
from harebell.base.slices import Slices
from harebell.front.common.firehose_tap import delivered_to, published_by
from harebell.front.common.interceptors import intercepted, stamped_as_sent
from harebell.front.common.permission import check_topic, topic_of
from harebell.front.limits import HEADERS_SHORT_BYTES
from harebell.front.operations.get import count_taken, readable_queue
from harebell.front.operations.long_headers import check_long_headers
from harebell.front.operations.publish import is_internal, too_large, writable_exchange
from harebell.front.operations.special_properties import prepared
from harebell.model.firehose import Actor
from harebell.model.queue.contract import PENDING, REJECTED, unrouted
from harebell.model.transaction import ACCEPT, REJECT, REQUEUE, REQUEUE_RETURNED

if TYPE_CHECKING:
    from collections.abc import Callable

    from harebell.auth.topics import TopicRule
    from harebell.auth.users import User
    from harebell.base.arrivals import Arrivals
    from harebell.base.counters import Counters
    from harebell.front.common.connection_registry import ConnectionRegistry
    from harebell.front.common.settings import Settings
    from harebell.front.operations.caller import Caller
    from harebell.model.broker import Broker
    from harebell.model.queue.contract import Queue
    from harebell.model.vhost import VHost

_VERSION = "0-9-1"
_CONNECTION = "management"
"""The name of the connection in traces."""
_CHANNEL = 1


class Door:
    """Stands for the connection of requests.

    Args:
        settings: what connections are configured with.
        broker: where messages are published and got.
        registry: its connections, and their counters.
    """

    def __init__(self, settings: Settings, broker: Broker, registry: ConnectionRegistry) -> None:
        self.settings = settings
        self.broker = broker
        self.registry = registry

    @property
    def intercepts(self) -> bool:
        """Whether published messages get headers or properties."""
        settings = self.settings
        return settings.stamp_time is not None or settings.stamp_node is not None

    def counters(self, vhost: VHost) -> Counters:
        """Return the counters of the channels that were closed."""
        return self.registry.totals.ended(vhost.name, _VERSION)

    @property
    def arrivals(self) -> Arrivals:
        """The counters of messages that arrive."""
        return self.registry.arrivals_of(_VERSION)


class _Publisher:
    """A `Publisher` without a channel.

    Args:
        caller: the user and vhost.
        broker: its clock tells when messages expire.
        topic: the allowed routing keys; None for all.
    """

    def __init__(self, caller: Caller, broker: Broker, topic: TopicRule | None) -> None:
        self.vhost: VHost = caller.vhost
        self.user: User = caller.user
        self.topic = topic
        self._broker = broker

    def reply_name(self) -> str:
        """Return "": there is no consumer that a reply could be sent to."""
        return ""

    def due_at(self, ttl_ms: int) -> int:
        """Return when a message that is published now expires."""
        return self._broker.clock.steady + ttl_ms


def publish(
    door: Door, caller: Caller, name: str, key: str, properties: Properties, body: bytes
) -> bool:
    """Publish a message with `mandatory`, and ask for a commit if its confirm waits for one.

    Args:
        door: stands for the connection.
        caller: the publisher.
        name: of the exchange.
        key: the routing key.
        properties: those of class basic.
        body: the bytes after the properties.

    Returns:
        Whether there are queues for the message, and none of them refused it.

    Raises:
        Refusal, ProtocolError: as basic.publish is refused.
    """
    if len(body) > door.settings.message_max:
        raise too_large(len(body), door.settings.message_max)
    if len(properties.raw) > HEADERS_SHORT_BYTES:
        check_long_headers(properties)
    exchange = writable_exchange(caller, name, is_internal)
    topic = topic_of(caller, exchange)
    if door.intercepts:
        properties = intercepted(door, properties)
    router = caller.vhost.router
    if properties.suspect:
        publisher = _Publisher(caller, door.broker, topic)
        message, queues = prepared(publisher, exchange, key, properties, body)
    else:
        if topic is not None:
            check_topic(caller, WRITE, name, key)
        message = new_message(exchange.name, key, properties, body)
        queues = router.route(exchange, message)
    exchange.published += 1
    exchange.routed += len(queues)
    counters = door.counters(caller.vhost)
    counters.publish += 1
    door.arrivals.count(len(body), len(queues), True)
    if router.tracer is not None:
        published_by(_actor(caller), router, message, properties, queues)
    # All, also after a refusal: the other queues keep the message, as with basic.publish.
    results = [queue.publish(message) for queue in queues]
    if not queues:
        counters.return_unroutable += 1
        results.append(unrouted(message))
    if any(result & PENDING for result in results):
        door.broker.commit.urgent = True
    if any(result & REJECTED for result in results):
        # A channel gets basic.nack, also if other queues took the message.
        return False
    counters.confirm += 1
    return bool(queues)


def _actor(caller: Caller) -> Actor:
    return Actor(_CONNECTION, _CHANNEL, caller.user.name)


class GotMessage(NamedTuple):
    """A message that was taken from a queue, and waits for its settlement.

    Args:
        message: as it is delivered.
        position: its position in the queue.
        redelivered: whether it was delivered before.
        left: how many messages are ready behind it.
    """

    message: Message
    position: int
    redelivered: bool
    left: int


class Getting:
    """Takes messages of one queue, for one request.

    Args:
        door: stands for the connection.
        caller: who gets them.
        name: of the queue.

    Raises:
        Refusal: as basic.get is refused.
    """

    def __init__(self, door: Door, caller: Caller, name: str) -> None:
        self.queue: Queue = readable_queue(caller, name)
        self._door = door
        self._caller = caller
        self._counters = door.counters(caller.vhost)

    def fetched(self) -> Slices[None]:
        """Read the next message, if it is large and on disk."""
        arrived: Future[None] = Future()
        if self.queue.fetch_next(lambda: arrived.set_result(None)):
            yield arrived

    def take(self) -> GotMessage | None:
        """Take the next message; None if there is none."""
        queue, router = self.queue, self._caller.vhost.router
        got = queue.get()
        if got is None:
            for counters in (self._counters, queue.counters):
                counters.get_empty += 1
            return None
        message, position, redelivered = got
        count_taken((self._counters, queue.counters), no_ack=False, redelivered=redelivered)
        if self._door.settings.stamp_sent:
            message = stamped_as_sent(self._door, message)
        if router.tracer is not None:
            delivered_to(_actor(self._caller), router, message, queue.name, redelivered)
        return GotMessage(message, position, redelivered, queue.ready_count())

    def settle(self, position: int, kind: int) -> None:
        """Settle a message.

        Args:
            position: where it is in the log of the queue.
            kind: ACCEPT, REJECT, REQUEUE or REQUEUE_RETURNED.
        """
        queue = self.queue
        if kind == ACCEPT:
            self._counters.ack += 1
            queue.counters.ack += 1
        ways: dict[int, Callable[[int], int]] = {
            ACCEPT: queue.settle,
            REJECT: queue.reject,
            REQUEUE: queue.requeue,
            REQUEUE_RETURNED: queue.requeue_returned,
        }
        ways[kind](position)

    def end(self) -> None:
        """Serve the consumers of the queue: all messages are settled."""
        if not self.queue.deleted:
            self.queue.sync_soon()
            self.queue.drain()
