"""A channel: publishing, delivering and acknowledging.

This file holds what happens per message. The methods of each AMQP class are in the file of that
class.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from collections.abc import Sequence as Entries
from typing import TYPE_CHECKING

from harebell.auth.authority import Undecided
from harebell.auth.permissions import READ, WRITE
from harebell.base.counters import UNCOUNTED, Counters
from harebell.base.errors import Refusal
from harebell.base.limits import (
    OUTPUT_HIGH_BYTES,
    REMOVED_AT_ONCE,
    REMOVED_CONSUMER_UNITS,
    SETTLED_AT_ONCE,
)
from harebell.base.message import FAMILY_09, Message, Properties, new_message
from harebell.base.sequence import Sequence
from harebell.front.amqp_0_9_1.channel_port import RETURNED, ChannelPort
from harebell.front.amqp_0_9_1.open_channel import (
    ChannelConfirms,
    ChannelPublisher,
    ChannelWork,
)
from harebell.front.amqp_0_9_1.settling import come_back, settle_all
from harebell.front.amqp_0_9_1.special_properties import prepared
from harebell.front.amqp_0_9_1.tx import ChannelTransaction
from harebell.front.common.channel_details import ChannelDetails, details_of
from harebell.front.common.errors import hard, soft
from harebell.front.common.event_exchange import consumer_deleted
from harebell.front.common.firehose_tap import published
from harebell.front.common.interceptors import intercepted
from harebell.front.common.permission import QUEUE, check, check_topic, topic_of
from harebell.front.common.requeue_order import by_consumer
from harebell.front.common.unacked import Unacked
from harebell.front.operations.publish import writable_exchange
from harebell.model.exchange.kind import Exchange
from harebell.model.queue.contract import Queue
from harebell.model.transaction import ACCEPT
from harebell.wire.v09 import methods

if TYPE_CHECKING:
    from harebell.auth.topics import TopicRule
    from harebell.auth.users import User
    from harebell.front.amqp_0_9_1.connection import Connection
    from harebell.front.file_stream.file_stream_channel import ChannelClasses
    from harebell.model.consumer import Consumer
    from harebell.model.queue.reply import ReplyQueue
    from harebell.model.vhost import VHost
    from harebell.model.xa.association import Association
    from harebell.wire.v09.method import Method
    from harebell.wire.v09.property_list import PropertyList

_MANDATORY = 1
_IMMEDIATE = 2
_RETURNED = RETURNED
_PUBLISH = (60, 40)
_NO_ROUTE = 312
_AT_ONCE = SETTLED_AT_ONCE
_OUTPUT_HIGH = OUTPUT_HIGH_BYTES


def _serve(queues: Iterable[Queue]) -> None:
    """Serve the other consumers of queues."""
    for queue in queues:
        if not queue.deleted:
            queue.drain()


class Channel(ChannelPort):
    """A channel of a connection.

    Args:
        connection: the connection it belongs to.
        number: its channel number, from 1.

    Attributes:
        unacked: deliveries not acknowledged yet, by delivery tag.
        counters: of its messages; those of all closed channels when it is closed.
        details: the counters by exchange and by queue; None until something is counted.
        at_exchange: the counters of the exchange that was used last.
        next_tag: the next delivery tag (AMQP 0-9-1 1.1, delivery-tag: from 1, per channel).
        consumers: the consumers started here, by tag; None until there is one.
        cancelled: whether basic.cancel was sent to the client.
        prefetch: what basic.qos set for consumers started from now on.
        prefetch_global: what basic.qos set for the channel as a whole.
        outstanding: unacknowledged deliveries to consumers, without those of basic.get.
        allowed: their limit now: `prefetch_global`, or less while consumers are served in turn.
        waiting: consumers that wait for others of the channel, in order.
        confirms: set by confirm.select.
        transaction: set by tx.select, or for work on a branch of a distributed transaction.
        association: with such branches; None before dtx is used.
        content: the content that is being assembled from single frames.
        router: of its vhost.
        last_queue: the queue declared last, which an empty queue name means.
        topic: the allowed routing keys at the exchange that was used last; None for all.
        reply_queue: where direct replies to this channel arrive; None until one is consumed.
        classes: the state of the classes file and stream; None until one of them is used.
        publisher: the named publisher, whose repeated messages are dropped; None without one.
    """

    def __init__(self, connection: Connection, number: int) -> None:
        super().__init__(number)
        self.connection = connection
        assert connection.vhost is not None, "channels are opened on open connections"
        self.vhost: VHost = connection.vhost
        self.router = self.vhost.router
        self.unacked = Sequence(1)
        self.counters = Counters()
        self.details: ChannelDetails | None = None
        self.at_exchange = UNCOUNTED
        self.next_tag = 1
        self.consumers: dict[str, Consumer] | None = None
        self.cancelled = False
        self.prefetch = 0
        self.prefetch_global = 0
        self.outstanding = 0
        self.allowed = 0
        self.waiting: deque[Consumer] | None = None
        self.confirms: ChannelConfirms | None = None
        self.transaction: ChannelWork | None = None
        self.association: Association | None = None
        self.last_queue = ""
        self.reply_queue: ReplyQueue | None = None
        self.classes: ChannelClasses | None = None
        self._exchange: Exchange | None = None
        self._exchange_epoch = -1
        self.topic: TopicRule | None = None
        self.publisher: ChannelPublisher | None = None

    @property
    def user(self) -> User:
        """Whose permissions count."""
        return self.connection.user

    # --- publishing -----------------------------------------------------------------------------

    def publish(
        self, flags: int, exchange_name: str, routing_key: str, properties: Properties, body: bytes
    ) -> int:
        """Publish a message: check, route, publish to the queues, confirm."""
        connection = self.connection
        if flags & _IMMEDIATE:
            raise hard(540, "immediate=true", *_PUBLISH)
        if len(body) > connection.message_max:
            raise self.too_large(len(body))
        if self.publisher is not None and self.publisher.passes_over(properties):
            return 0
        exchange = self._exchange
        if (
            exchange is None
            or exchange.name != exchange_name
            or self._exchange_epoch != self.router.epoch
        ):
            exchange = self._find_exchange(exchange_name)
        if connection.intercepts:
            properties = intercepted(connection, properties)
        if properties.suspect:
            message, queues = prepared(self, exchange, routing_key, properties, body)
        else:
            if self.topic is not None:
                check_topic(self, WRITE, exchange_name, routing_key)
            # The exchange's own string: a queue sees by identity that its source is the same.
            message = new_message(exchange.name, routing_key, properties, body)
            queues = self.router.route(exchange, message)
        if self.router.origins:
            message.origin = connection.origin
        connection.published = True
        exchange.published += 1
        exchange.routed += len(queues)
        self.counters.publish += 1
        self.at_exchange.publish += 1
        connection.arrivals.count(len(body), len(queues), self.confirms is not None)
        if self.router.tracer is not None:
            published(self, message, properties, queues)
        if self.transaction is not None:
            self.transaction.publish(message, queues, flags)
            return 0
        self.accept(message, queues, flags)
        return 0

    def accept(self, message: Message, queues: tuple[Queue, ...], flags: int) -> int:
        """Publish a routed message to its queues; a return is sent before its confirm.

        Returns the bits that the queues answered, all together.
        """
        result = 0
        if queues:
            for queue in queues:
                result |= queue.publish(message)
        elif flags & _MANDATORY:
            self.count_return(message)
            self.return_message(message)
        elif not flags & _RETURNED:
            self.counters.drop_unroutable += 1
            details_of(self).exchange(message.exchange).drop_unroutable += 1
        if self.publisher is not None:
            self.publisher.taken(result)
        if self.confirms is not None:
            self.confirms.published(result)
        return result

    def count_return(self, message: Message) -> None:
        """Count a message that is returned to its publisher."""
        self.counters.return_unroutable += 1
        details_of(self).exchange(message.exchange).return_unroutable += 1

    def _find_exchange(self, name: str) -> Exchange:
        exchange = writable_exchange(self, name, lambda text: soft(403, text, *_PUBLISH))
        counters = details_of(self).exchange(exchange.name)
        if self.confirms is not None:
            self.confirms.publishes_at(counters)
        self.at_exchange = counters
        self._exchange = exchange
        self._exchange_epoch = self.router.epoch
        self.topic = topic_of(self, exchange)
        return exchange

    def too_large(self, size: int) -> Exception:
        """Make the error for a body over the configured limit."""
        limit = self.connection.message_max
        return soft(
            406, f"message size {size} is larger than configured max size {limit}", *_PUBLISH
        )

    def return_message(self, message: Message) -> None:
        """Send an unroutable mandatory message back (AMQP 0-9-1 1.8.3.7, basic.return)."""
        if message.family != FAMILY_09:
            # Imported here and below, because few channels use the classes file and stream.
            from harebell.front.amqp_0_9_1.other_contents import send_back

            if send_back(self, message, _NO_ROUTE):
                return
        method = methods.BasicReturn(
            reply_code=_NO_ROUTE,
            reply_text="NO_ROUTE",
            exchange=message.exchange,
            routing_key=message.routing_key,
        )
        self.connection.send_content(self.number, method, message)

    # --- acknowledging --------------------------------------------------------------------------

    def ack(self, tag: int, multiple: bool) -> int:
        """basic.ack: acknowledge deliveries (tag 0 with multiple: all of them)."""
        if self.transaction is not None:
            self.transaction.settle(self.take(tag, multiple, 80), ACCEPT)
            return 0
        if not multiple:
            entry = self.unacked.take(tag)
            if entry is None:
                raise self._unknown_tag(tag, 80)
            self.counters.ack += 1
            entry.settle()
            if self.waiting is not None:
                self.take_turns()
            entry.queue.serve(entry.consumer)
            return 0
        last = tag if tag else self.next_tag - 1
        if self.unacked.count > _AT_ONCE and last >= self.unacked.first() + _AT_ONCE:
            settle_all(self, self.last_of(tag, 80), ACCEPT)
            return 0
        entries = self.take(tag, True, 80)
        if self.waiting is not None:
            self.settle(entries)
            return 0
        queue: Queue | None = None
        self.counters.ack += len(entries)
        for entry in entries:
            entry.settle()
            if entry.queue is not queue:
                if queue is not None:
                    queue.drain()
                queue = entry.queue
        if queue is not None:
            queue.drain()
        return 0

    def take(self, tag: int, multiple: bool, method_id: int) -> list[Unacked]:
        """Remove and return the unacknowledged deliveries that a tag selects."""
        entries: list[Unacked] = []
        if not multiple or tag:
            entry = self.unacked.get(tag)
            if entry is None:
                raise self._unknown_tag(tag, method_id)
            if not multiple:
                self.unacked.take(tag)
                entries.append(entry)
                return entries
        last = tag if tag else self.next_tag - 1
        number = self.unacked.first()
        while number <= last:
            entry = self.unacked.take(number)
            if entry is not None:
                entries.append(entry)
            number += 1
        return entries

    def take_some(self, last: int, limit: int) -> list[Unacked]:
        """Remove and return the first deliveries up to a tag, at most so many."""
        entries: list[Unacked] = []
        number = self.unacked.first()
        while number <= last and len(entries) < limit:
            entry = self.unacked.take(number)
            if entry is not None:
                entries.append(entry)
            number += 1
        return entries

    def last_of(self, tag: int, method_id: int) -> int:
        """Return the last of the deliveries that a tag selects with `multiple`."""
        if tag and self.unacked.get(tag) is None:
            raise self._unknown_tag(tag, method_id)
        return tag if tag else self.next_tag - 1

    def take_effect(self, entries: Entries[Unacked], kind: int) -> None:
        """Settle the deliveries of a committed transaction."""
        (self.settle, self.discard, self.requeue, self.give_back)[kind](list(entries))

    def settle(self, entries: list[Unacked]) -> None:
        """Acknowledge messages."""
        self.counters.ack += len(entries)
        for entry in entries:
            entry.settle()
        self.serve_queues(entries)

    def discard(self, entries: list[Unacked]) -> None:
        """Reject messages without requeue."""
        for entry in entries:
            entry.reject()
        self.serve_queues(entries)

    def requeue(self, entries: list[Unacked]) -> None:
        """Requeue deliveries in their positions, and serve the queues."""
        for group in by_consumer(entries):
            for entry in group:
                entry.requeue()
            if self.waiting is None:
                group[0].queue.drain()
        if self.waiting is not None:
            self.serve_queues(entries)

    def give_back(self, entries: list[Unacked]) -> None:
        """Requeue the deliveries of a basic.nack."""
        for group in by_consumer(entries):
            for entry in group:
                entry.give_back()
            if self.waiting is None:
                group[0].queue.drain()
        if self.waiting is not None:
            self.serve_queues(entries)

    def serve_queues(self, entries: list[Unacked]) -> None:
        """Serve the queues of some deliveries, after the waiting consumers."""
        if self.waiting is not None:
            self.take_turns()
        for queue in {entry.queue: None for entry in entries}:
            queue.drain()

    def _unknown_tag(self, tag: int, method_id: int) -> Exception:
        return soft(406, f"unknown delivery tag {tag}", 60, method_id)

    # --- consumers ------------------------------------------------------------------------------

    def limit(self, count: int) -> None:
        """Limit the outstanding deliveries of the channel as a whole; 0 is no limit."""
        self.prefetch_global = self.allowed = count
        self.serve()

    def wait_turn(self, consumer: Consumer) -> int:
        """Let a consumer wait until the channel may have more deliveries."""
        self.waiting = deque() if self.waiting is None else self.waiting
        there = self.consumers or {}
        if len(self.waiting) > 2 * len(there) + 8:
            # Most of the waiting consumers were cancelled.
            self.waiting = deque([each for each in self.waiting if there.get(each.tag) is each])
        self.waiting.append(consumer)
        return 0

    def take_turns(self) -> int:
        """Serve the waiting consumers, a message each, so that they share the prefetch."""
        waiting = self.waiting
        limit = self.prefetch_global
        left = len(waiting) if waiting is not None else 0
        while waiting and left and (not limit or self.outstanding < limit):
            left -= 1
            consumer = waiting.popleft()
            consumer.waits = False
            if consumer.queue.deleted or (self.consumers or {}).get(consumer.tag) is not consumer:
                continue
            before = self.outstanding
            self.allowed = before + 1 if limit else 0
            consumer.queue.drain()
            self.allowed = limit
            if limit and self.outstanding > before:
                left = len(waiting)
        return 0

    def serve(self) -> int:
        """Serve the consumers of the channel; one that gets a message goes last the next time."""
        consumers = self.consumers
        if self.waiting is not None:
            self.take_turns()
        if consumers:
            out = self.connection.out
            for consumer in list(consumers.values()):
                before = out.size
                if before >= _OUTPUT_HIGH:
                    self.connection.starved = True
                    break
                consumer.queue.serve(consumer)
                if out.size > before and consumers.get(consumer.tag) is consumer:
                    consumers[consumer.tag] = consumers.pop(consumer.tag)
        return 0

    def consumer_lost(self, consumer: Consumer) -> None:
        """Forget a consumer whose queue was deleted, and send basic.cancel where supported."""
        if self.consumers is None or self.consumers.get(consumer.tag) is not consumer:
            # The client has used the tag for another consumer meanwhile.
            return
        del self.consumers[consumer.tag]
        consumer_deleted(self, consumer)
        if self.connection.wants("consumer_cancel_notify"):
            cancel = methods.BasicCancel(consumer_tag=consumer.tag, nowait=True)
            self.connection.send(self.number, cancel)
            self.cancelled = True

    def cancel_forbidden(self) -> None:
        """Cancel the consumers of queues that the user may no longer read."""
        for consumer in list((self.consumers or {}).values()):
            try:
                check(self, READ, QUEUE, consumer.queue.name)
            except Undecided:
                # The user is asked about again when it is used.
                continue
            except Refusal:
                self.consumer_lost(consumer)
                self.vhost.remove_consumer(consumer)

    # --- output ---------------------------------------------------------------------------------

    def readable(self, raw: bytes, class_id: int) -> bytes:
        """Return the property list unchanged: clients of 0-9-1 can read all headers."""
        return raw

    def write_frames(self, data: bytes) -> None:
        """Write the frames of a method with content."""
        self.connection.out.raw(data)
        self.connection.touch()

    # --- as FileStreamChannel (front/file_stream/file_stream_channel.py) --------------------------

    def started(self) -> dict[str, Consumer]:
        """The consumers that were started here, by tag."""
        if self.consumers is None:
            self.consumers = {}
        return self.consumers

    def companions(self) -> list[ChannelClasses]:
        """The state of the classes on the channels of this connection."""
        channels = self.connection.channels.values()
        return [each.classes for each in channels if each.classes is not None]

    def find_queue(self, name: str) -> Queue:
        """Resolve a queue name."""
        queue: Queue = self.vhost.queue(name, self.connection)
        return queue

    def check_presented(self, number: int, right: str, place: tuple[int, int]) -> None:
        """Do nothing: only older versions have access tickets."""

    def say(self, method: Method) -> None:
        """Send a method."""
        self.connection.send(self.number, method)

    def send_body(
        self, method: Method, listed: PropertyList, raw: bytes, body: bytes, offset: int = 0
    ) -> None:
        """Send a method with a content."""
        from harebell.front.amqp_0_9_1.other_contents import send_body

        send_body(self, method, listed, raw, body, offset)

    def hand_over(self, message: Message, queues: tuple[Queue, ...], flags: int) -> int:
        """Publish a routed message, at once or in the transaction."""
        if self.transaction is not None:
            self.transaction.publish(message, queues, flags)
            return 0
        return self.accept(message, queues, flags)

    def has_begun(self) -> bool:
        """True if a message is received in part, or publishes wait for their commit."""
        if self.content is not None:
            return True
        return isinstance(self.transaction, ChannelTransaction) and self.transaction.byte_count > 0

    def put_off(self) -> int:
        """Return 0: this version does not report the end of a publish."""
        return 0

    def went_through(self, number: int, result: int) -> None:
        """Ignore the end of a publish: this version does not report it."""

    def stop_publisher(self, stop: bool) -> None:
        """Send channel.flow: stop publishing, or go on (AMQP 0-8)."""
        self.say(methods.ChannelFlow(active=not stop))

    def caught(self, error: Exception, class_id: int, method_id: int, number: int) -> None:
        """Close the channel: a publish that had to wait has failed."""
        self.connection.channel_caught(self, error, class_id, method_id)

    # --- the disk -------------------------------------------------------------------------------

    def hold_until_recorded(self) -> None:
        """Hold output until everything that is declared in the vhost is on disk."""
        self.connection.hold_until(self.vhost.recorder.ticket)

    # --- end ------------------------------------------------------------------------------------

    def overdue(self, entry: Unacked, text: str) -> None:
        """Close the channel and requeue its deliveries: one is unacknowledged for too long."""
        late = self.unacked.take(entry.tag)
        if late is not None:
            late.time_out()
        self.connection.channel_caught(self, soft(406, text, 0, 0), 0, 0)
        entry.queue.drain()

    def stop_consuming(self) -> list[Queue]:
        """Remove every consumer; unacknowledged messages stay outstanding.

        They are not ready from now on. Many of them are removed in slices.

        Returns:
            The remaining queues, whose other consumers may have to be served now.
        """
        consumers, self.consumers = self.consumers, None
        if not consumers:
            return []
        gone = deque(consumers.values())
        queues: dict[Queue, None] = {}
        many = len(gone) > REMOVED_AT_ONCE
        work, events = self.connection.registry.work, self.connection.broker.events
        user = self.connection.user.name

        def step() -> bool:
            events.actor = user
            while gone:
                consumer = gone.popleft()
                queues[consumer.queue] = None
                consumer_deleted(self, consumer)
                self.vhost.remove_consumer(consumer)
                if many and work.charge(REMOVED_CONSUMER_UNITS):
                    return False
            if many:
                _serve(queues)
            return True

        if many:
            self.connection.perform(step)
            return []
        step()
        return [queue for queue in queues if not queue.deleted]

    def close(self) -> None:
        """Close the channel: consumers are removed, unacknowledged messages are requeued."""
        connection = self.connection
        if self.content is not None:
            self.content.drop(connection.registry.work)
            self.content = None
            connection.scanner.pending -= 1
        left = self.stop_consuming()
        if self.confirms is not None:
            # Accepted publishes are confirmed before the close; later the number may be reused.
            self.confirms.close()
            self.confirms = None
        if self.publisher is not None:
            self.publisher.close()
            self.publisher = None
        if self.association is not None:
            self.association.close()
        if self.transaction is not None:
            self.transaction.rollback(self)
            self.transaction = None
        if self.classes is not None:
            self.classes.close()
            self.classes = None
        come_back(self, left)
