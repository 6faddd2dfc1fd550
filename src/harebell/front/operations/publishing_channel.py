"""The rule of a publish, for channels and sessions: permission, route, counters.

`route` does what every version does for every message, and calls `routed` of the version. It is
compiled: both are method calls in C.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harebell.auth.permissions import WRITE
from harebell.base.c_types import C, Done, i32, i64, isize, u64
from harebell.base.counters import UNCOUNTED, Counters
from harebell.base.message import Message, Properties, new_message
from harebell.front.common.base_connection import BaseConnection
from harebell.front.common.channel_details import ChannelDetails, details_of
from harebell.front.common.permission import check_topic, topic_of
from harebell.front.limits import HEADERS_SHORT_BYTES
from harebell.front.operations.publish import writable_exchange
from harebell.kernels.output import OutputPassage, Passage
from harebell.model.consumer import Consumer
from harebell.model.exchange.kind import Exchange
from harebell.model.queue.contract import Queue
from harebell.model.router import Router

if TYPE_CHECKING:
    from harebell.auth.topics import TopicRule
    from harebell.auth.users import User
    from harebell.model.vhost import VHost

_SHORT: isize = HEADERS_SHORT_BYTES


class PublishingChannel:
    """A channel or a session that publishes: the base of both, as their connections know it.

    It is apart from them so that connection and channel, which need each other, can both be
    compiled: both import this module, and the connection does not import the channel.

    Args:
        number: the channel's number.
        vhost: the vhost of its queues and exchanges.

    Attributes:
        content: the content being assembled from single frames, or None.
        router: of its vhost.
        counters: of its messages; those of all closed channels when it is closed.
        details: the counters by exchange and by queue; None until something is counted.
        at_exchange: the counters of the exchange that was used last.
        topic: the allowed routing keys at the exchange that was used last; None for all.
        transaction: the work that a commit does; None outside of a transaction.
    """

    def __init__(self, number: i32, vhost: VHost) -> None:
        self.number = number
        self.content: Any = None
        self.vhost = vhost
        self.router: Router = vhost.router
        self.counters = Counters()
        self.details: ChannelDetails | None = None
        self.at_exchange: Counters = UNCOUNTED
        self.topic: TopicRule | None = None
        self.transaction: Any = None
        self._exchange: Exchange | None = None
        self._exchange_epoch: i64 = -1

    # --- implemented by each version ------------------------------------------------------------

    @property
    def user(self) -> User:
        """The user whose permissions are checked."""
        raise NotImplementedError

    def publish(
        self, flags: i32, exchange_name: str, routing_key: str, properties: Properties, body: bytes
    ) -> i32:
        """Take a published message: the version's own checks, then `route`."""
        raise NotImplementedError

    def ack(self, tag: u64, multiple: bool) -> Done:
        """Take an acknowledgement of the 0-9-1 family."""
        raise NotImplementedError

    def transfer(
        self, flags: i32, destination: str, routing_key: str, properties: Properties, body: bytes
    ) -> Done:
        """Take a message.transfer of 0-10; `flags` as for `SegmentSink.transfer`."""
        raise NotImplementedError

    def too_large(self, size: int) -> Exception:
        """Make the error for a body over the configured limit."""
        raise NotImplementedError

    def close(self) -> None:
        """End: consumers are removed, unacknowledged messages are requeued."""
        raise NotImplementedError

    def routed(
        self, message: Message, queues: tuple[Queue, ...], flags: i32, properties: Properties
    ) -> Done:
        """Take a message that was routed and counted; `properties` are those of the publisher."""
        raise NotImplementedError

    def accept(self, message: Message, queues: tuple[Queue, ...], flags: i32) -> i32:
        """Publish a routed message to its queues; return their result bits."""
        raise NotImplementedError

    def intercepted(self, properties: Properties) -> Properties:
        """Add the configured headers and properties to a published message."""
        raise NotImplementedError

    def prepared(
        self, exchange: Exchange, routing_key: str, properties: Properties, body: bytes
    ) -> tuple[Message, tuple[Queue, ...]]:
        """Check and route a message with properties that the broker processes."""
        raise NotImplementedError

    def internal_exchange(self, text: str) -> Exception:
        """Make the error for an internal exchange."""
        raise NotImplementedError

    def passage(self, flags: i32, exchange_name: str, routing_key: str) -> C[Passage | None]:
        """Return the passage of publishes that repeat the last one's method; see `repeated`."""
        return None

    def passed(self, passage: OutputPassage) -> Done:
        """Note the messages that have gone into the output of a consumer."""
        raise NotImplementedError

    def publish_failed(self, error: Exception) -> None:
        """Close the channel, or the connection: a publish of a passage was refused."""
        raise NotImplementedError

    def counts_at(self, counters: Counters) -> None:
        """Note that later publishes count for another exchange."""

    # --- the rule -------------------------------------------------------------------------------

    def route(
        self,
        connection: BaseConnection,
        flags: i32,
        exchange_name: str,
        routing_key: str,
        properties: Properties,
        body: bytes,
        answered: bool,
    ) -> Done:
        """Check, route and count a message, and pass it to `routed`.

        Args:
            connection: the connection it belongs to.
            flags: of the version, for `routed`.
            exchange_name: of the exchange.
            routing_key: of the message.
            properties: of the message, as the publisher sent them.
            body: of the message.
            answered: whether the publisher gets a confirm or an accept.

        Raises:
            Refusal: the user may not write to the exchange, or it does not exist.
            Undecided: the backend of the user has to be asked first.
        """
        # A publisher mostly repeats its exchange: permission, counters and topic rule are those of
        # the last publish until something in the router or the permissions changes its epoch.
        exchange: Exchange | None = self._exchange
        if (
            exchange is None
            or exchange.name != exchange_name
            or self._exchange_epoch != self.router.epoch
        ):
            exchange = self._find_exchange(exchange_name)
        if connection.intercepts:
            properties = self.intercepted(properties)
        # Suspect: expiration, user-id, or bytes that may be CC, BCC or a direct reply-to.
        if properties.suspect:
            message: Message
            queues: tuple[Queue, ...]
            message, queues = self.prepared(exchange, routing_key, properties, body)
        else:
            if self.topic is not None:
                check_topic(self, WRITE, exchange_name, routing_key)
            # The exchange's own string: a queue sees by identity that its source is the same.
            message = new_message(exchange.name, routing_key, properties, body)
            queues = self.router.route(exchange, message)
        if self.router.origins:
            # Some consumer of the vhost was started with no-local.
            message.origin = connection.origin
        self.count_publish(connection, exchange, self.at_exchange, len(body), len(queues), answered)
        return self.routed(message, queues, flags, properties)

    def repeated(
        self,
        connection: BaseConnection,
        flags: i32,
        exchange_name: str,
        routing_key: str,
        family: i32,
        answered: bool,
        plain: bool,
    ) -> C[Passage | None]:
        """Return the passage of publishes that repeat the last one's method.

        They are checked and routed as that one was. None if something has to see each of them.

        Args:
            connection: the connection of the channel.
            flags: of the publishes, for `accept`.
            exchange_name: of the exchange.
            routing_key: of the publishes.
            family: of their messages.
            answered: whether the publisher gets confirms.
            plain: whether those with headers have to be looked at.
        """
        exchange: Exchange | None = self._exchange
        router = self.router
        if (
            exchange is None
            or exchange.name != exchange_name
            or self._exchange_epoch != router.epoch
            or self.topic is not None
            or self.transaction is not None
            or connection.intercepts
            or router.origins
            or router.tracer is not None
            or not router.same_for(exchange, routing_key)
        ):
            return None
        queues: tuple[Queue, ...] = router.known(exchange, routing_key)
        if len(queues) == 1:
            queue: Queue = queues[0]
            passage: OutputPassage | None = queue.passage(exchange.name, routing_key, family)
            if passage is not None:
                limit = connection.message_max
                passage.open_to(self, connection.arrivals, answered, limit, plain)
                return passage
        route = (exchange.name, routing_key, queues)
        return RoutedPassage(self, connection, *route, flags, answered, plain)

    def count_passed(self, connection: BaseConnection, copies: i64, count: i64) -> Done:
        """Count the messages of a passage, each as `count_publish` does without its size."""
        exchange: Exchange | None = self._exchange
        connection.published = True
        if exchange is not None:
            exchange.published += count
            exchange.routed += copies
        self.counters.publish += count
        self.at_exchange.publish += count
        return 0

    def count_output(self, connection: BaseConnection, passage: OutputPassage) -> Done:
        """Count the messages that have gone into the output of a consumer."""
        count: i64 = passage.count
        self.count_passed(connection, count, count)
        consumer: Consumer = passage.consumer
        queue: Queue = consumer.queue
        queue.passed(consumer, count)
        return consumer.passed(count)

    def count_publish(
        self,
        connection: BaseConnection,
        exchange: Exchange,
        at_exchange: Counters,
        size: isize,
        queue_count: isize,
        answered: bool,
    ) -> Done:
        """Count a routed message for its connection, exchange, channel and version.

        Args:
            connection: the connection of the channel.
            exchange: the exchange that routed the message.
            at_exchange: the counters of the channel for this exchange.
            size: of the body, in bytes.
            queue_count: how many queues the message was routed to.
            answered: whether the publisher gets a confirm or an accept.
        """
        # At the end of the turn the connection is checked for short memory or disk.
        connection.published = True
        exchange.published += 1
        exchange.routed += queue_count
        self.counters.publish += 1
        at_exchange.publish += 1
        connection.arrivals.count(size, queue_count, answered)
        return 0

    def _find_exchange(self, name: str) -> Exchange:
        """Find the exchange of a publish; it is checked again when the router's epoch changes."""
        exchange = writable_exchange(self, name, self.internal_exchange)
        self.at_exchange = details_of(self).exchange(exchange.name)
        self.counts_at(self.at_exchange)
        self._exchange = exchange
        self._exchange_epoch = self.router.epoch
        self.topic = topic_of(self, exchange)
        return exchange

    def forward(self, message: Message, queues: tuple[Queue, ...], flags: i32) -> i32:
        """Publish a routed message, at once or in the transaction; return the result bits."""
        if self.transaction is not None:
            self.transaction.publish(message, queues, flags)
            return 0
        return self.accept(message, queues, flags)


class RoutedPassage(Passage):
    """The way of publishes to the queues of a route.

    Args:
        channel: the channel of the publisher.
        connection: the connection of the channel.
        exchange: the name of the exchange.
        routing_key: of the publishes.
        queues: of the route; a tuple without any for what is not routed.
        flags: of the publishes, for `PublishingChannel.accept`.
        answered: whether the publisher gets confirms.
        plain: whether only messages without headers pass.
    """

    def __init__(
        self,
        channel: PublishingChannel,
        connection: BaseConnection,
        exchange: str,
        routing_key: str,
        queues: tuple[Queue, ...],
        flags: i32,
        answered: bool,
        plain: bool,
    ) -> None:
        super().__init__()
        self._channel = channel
        self._connection = connection
        self._exchange = exchange
        self._routing_key = routing_key
        self._queues = queues
        # The epoch does not say when the queue that the default exchange means is deleted.
        self._only: Queue | None = queues[0] if len(queues) == 1 else None
        self._flags = flags
        self._answered = answered
        self._plain = plain
        self._epoch: i64 = channel.router.epoch
        self._broken = False
        self._counted: i64 = 0

    def put(self, properties: Properties, body: bytes) -> C[bool]:
        """Publish a message; False if it has to be checked and routed again."""
        connection = self._connection
        router = self._channel.router
        only: Queue | None = self._only
        changed: bool = self._broken or router.epoch != self._epoch
        size: isize = len(properties.raw) + len(body)
        if changed or (only is not None and only.deleted) or size > connection.message_max:
            return False
        if len(properties.raw) > _SHORT:
            return False
        if self._plain and properties.has_headers:
            return False
        copies: isize = len(self._queues)
        self.count += 1
        if copies > 1:
            # As for each route: every queue after the first gets another copy.
            router.work.charge(copies)
        connection.arrivals.count(len(body), copies, self._answered)
        message: Message = new_message(self._exchange, self._routing_key, properties, body)
        try:
            self._channel.accept(message, self._queues, self._flags)
        except Exception as error:
            self._broken = True
            # Before the channel ends: from then on it counts for another one.
            self.end()
            self._channel.publish_failed(error)
        return True

    def end(self) -> Done:
        """Count what has gone this way since the last time."""
        count: i64 = self.count - self._counted
        self._counted = self.count
        if count == 0:
            return 0
        return self._channel.count_passed(self._connection, count * len(self._queues), count)
