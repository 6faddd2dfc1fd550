"""A channel: publishing, delivering and acknowledging.

This file holds what happens per message. The methods of each AMQP class are in the file of that
class.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from collections.abc import Sequence as Entries
from typing import TYPE_CHECKING, Annotated

from harebell.auth.authority import Undecided
from harebell.auth.permissions import READ
from harebell.base.c_types import C, Done, Py, i32, i64, isize, u64
from harebell.base.counters import Counters
from harebell.base.errors import Refusal
from harebell.base.message import FAMILY_09, Message, Properties
from harebell.front.amqp_0_9_1.open_channel import ChannelConfirms, ChannelPublisher
from harebell.front.amqp_0_9_1.settling import requeue_all, settle_all
from harebell.front.amqp_0_9_1.tx import ChannelTransaction
from harebell.front.common.errors import hard, soft
from harebell.front.common.event_exchange import consumer_deleted
from harebell.front.common.firehose_tap import published
from harebell.front.common.interceptors import intercepted
from harebell.front.common.permission import QUEUE, check
from harebell.front.common.recover_order import by_consumer
from harebell.front.common.unacked import Unacked, UnackedDeliveries
from harebell.front.limits import OUTPUT_HIGH_BYTES, REMOVED_CONSUMER_UNITS, SETTLED_AT_ONCE
from harebell.front.operations.publish import is_internal, too_large
from harebell.front.operations.publishing_channel import PublishingChannel
from harebell.front.operations.returns import IMMEDIATE, NO_ROUTE, unroutable
from harebell.front.operations.special_properties import prepared
from harebell.kernels.output import OutputPassage, Passage
from harebell.model.exchange.kind import Exchange
from harebell.model.limits import REMOVED_AT_ONCE
from harebell.model.queue.contract import Queue, unrouted
from harebell.model.transaction import ACCEPT, due_at_commit
from harebell.wire.v09 import methods
from harebell.wire.v09.reply_codes import NAMES

if TYPE_CHECKING:
    from harebell.auth.users import User
    from harebell.front.amqp_0_9_1.connection import Connection
    from harebell.front.file_stream.file_stream_channel import ChannelClasses
    from harebell.model.consumer import Consumer
    from harebell.model.queue.reply import ReplyQueue
    from harebell.model.xa.association import Association
    from harebell.wire.v09.method import Method
    from harebell.wire.v09.property_list import PropertyList

_FAMILY: i32 = FAMILY_09
_IMMEDIATE: i32 = IMMEDIATE
_PUBLISH = (60, 40)
_AT_ONCE: i32 = SETTLED_AT_ONCE
_OUTPUT_HIGH: isize = OUTPUT_HIGH_BYTES


def _serve(queues: Iterable[Queue]) -> None:
    """Serve the other consumers of queues."""
    for queue in queues:
        if not queue.deleted:
            queue.drain()


class Channel(PublishingChannel):
    """A channel of a connection; further attributes are those of `PublishingChannel`.

    Args:
        connection: the connection it belongs to.
        number: its channel number, from 1.

    Attributes:
        unacked: deliveries not acknowledged yet, by delivery tag.
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
        last_queue: the queue declared last, which an empty queue name means.
        reply_queue: where direct replies to this channel arrive; None until one is consumed.
        classes: the state of the classes file and stream; None until one of them is used.
        publisher: the named publisher, whose repeated messages are dropped; None without one.
    """

    def __init__(self, connection: Connection, number: int) -> None:
        assert connection.vhost is not None, "channels are opened on open connections"
        super().__init__(number, connection.vhost)
        self.connection = connection
        self.unacked = UnackedDeliveries()
        self.next_tag: u64 = 1
        self.consumers: dict[str, Consumer] | None = None
        self.cancelled = False
        self.prefetch: i32 = 0
        self.prefetch_global: i32 = 0
        self.outstanding: i32 = 0
        self.allowed: i32 = 0
        self.waiting: deque[Consumer] | None = None
        self.confirms: Annotated[
            ChannelConfirms | None, "harebell.front.amqp_0_9_1.confirm.Confirms"
        ] = None
        self.association: Association | None = None
        self.last_queue = ""
        self.reply_queue: Py[ReplyQueue | None] = None
        self.classes: ChannelClasses | None = None
        self.publisher: ChannelPublisher | None = None

    @property
    def user(self) -> User:
        """The user whose permissions are checked."""
        return self.connection.user

    # --- publishing -----------------------------------------------------------------------------

    def publish(
        self, flags: i32, exchange_name: str, routing_key: str, properties: Properties, body: bytes
    ) -> i32:
        """Publish a message: check, route, publish to the queues, confirm."""
        confirms = self.confirms is not None
        connection = self.connection
        if flags & _IMMEDIATE:
            # RabbitMQ has no `immediate` since 3.0, and closes the connection for it.
            raise hard(540, "immediate=true", *_PUBLISH)
        # RabbitMQ's order: the size is refused before the permission, the exchange or the route.
        if len(body) > connection.message_max:
            raise self.too_large(len(body))
        # Before the route, so that a repeated message is neither counted nor returned twice.
        if self.publisher is not None and self.publisher.passes_over(properties):
            return 0
        return self.route(connection, flags, exchange_name, routing_key, properties, body, confirms)

    def passage(self, flags: i32, exchange_name: str, routing_key: str) -> C[Passage | None]:
        """Return the passage of publishes that repeat the last one's method."""
        return self._passage(flags, exchange_name, routing_key, False)

    def _passage(
        self, flags: i32, exchange_name: str, routing_key: str, plain: bool
    ) -> C[Passage | None]:
        if self.publisher is not None:
            return None
        confirms = self.confirms is not None
        connection = self.connection
        return self.repeated(
            connection, flags, exchange_name, routing_key, _FAMILY, confirms, plain
        )

    def passed(self, passage: OutputPassage) -> Done:
        """Confirm and count the messages that have gone into the output of a consumer."""
        if self.confirms is not None:
            self.confirms.passed(passage.count)
        return self.count_output(self.connection, passage)

    def publish_failed(self, error: Exception) -> None:
        """Close the channel, or the connection: a publish of a passage was refused."""
        self.connection.channel_caught(self, error, *_PUBLISH)

    def routed(
        self, message: Message, queues: tuple[Queue, ...], flags: i32, properties: Properties
    ) -> Done:
        """Publish a routed message, at once or in the transaction."""
        if self.router.tracer is not None:
            published(self, message, properties, queues)
        self.forward(message, queues, flags)
        return 0

    def accept(self, message: Message, queues: tuple[Queue, ...], flags: i32) -> i32:
        """Publish a routed message to its queues; a return is sent before its confirm.

        Returns the bits that the queues answered, all together.
        """
        result: i32 = 0
        if queues:
            queue: Queue
            for queue in queues:
                result |= queue.publish(message)
        else:
            # A duplicate without queues still waits for the commit of the message it repeats.
            result = unrouted(message)
            unroutable(self, message, flags)
        if self.publisher is not None:
            self.publisher.taken(result)
        # Last: a client forgets a message at its confirm, and would not know its return.
        if self.confirms is not None:
            self.confirms.published(result)
        return result

    def counts_at(self, counters: Counters) -> None:
        """Count confirms of later publishes for their exchange."""
        if self.confirms is not None:
            self.confirms.publishes_at(counters)

    def intercepted(self, properties: Properties) -> Properties:
        """Add the configured headers and properties to a published message."""
        return intercepted(self.connection, properties)

    def prepared(
        self, exchange: Exchange, routing_key: str, properties: Properties, body: bytes
    ) -> tuple[Message, tuple[Queue, ...]]:
        """Check and route a message with properties that the broker processes."""
        return prepared(self, exchange, routing_key, properties, body)

    def internal_exchange(self, text: str) -> Exception:
        """Make the error for an internal exchange."""
        return is_internal(text)

    def reply_name(self) -> str:
        """Return the secret name at which this channel consumes replies; "" without any."""
        queue = self.reply_queue
        return "" if queue is None or queue.deleted else queue.name

    def due_at(self, ttl_ms: int) -> int:
        """Return when a message that is published now expires."""
        if self.transaction is not None:
            # The message enters its queues at the commit: a long transaction must not expire it.
            return due_at_commit(ttl_ms)
        return self.connection.broker.clock.steady + ttl_ms

    def too_large(self, size: int) -> Exception:
        """Make the error for a body over the configured limit."""
        return too_large(size, self.connection.message_max)

    def return_message(self, message: Message, code: int = NO_ROUTE) -> None:
        """Send an undeliverable message back with a reply code (AMQP 0-9-1 1.8.3.8, return)."""
        if message.family != FAMILY_09:
            # Imported here and below, because few channels use the classes file and stream.
            from harebell.front.amqp_0_9_1.other_contents import send_back

            if send_back(self, message, code):
                return
        method = methods.BasicReturn(
            reply_code=code,
            reply_text=NAMES[code],
            exchange=message.exchange,
            routing_key=message.routing_key,
        )
        self.connection.send_content(self.number, method, message)

    # --- acknowledging --------------------------------------------------------------------------

    def ack(self, tag: u64, multiple: bool) -> Done:
        """basic.ack: acknowledge deliveries (tag 0 with multiple: all of them)."""
        if self.transaction is not None:
            # An unknown tag is refused now and not at the commit (AMQP 0-9-1 1.8.3.13).
            self.transaction.settle(self.take(tag, multiple, 80), ACCEPT)
            return 0
        # The fast path: no list, and one queue with the consumer that has credit again.
        if not multiple:
            member: Unacked | None = self.unacked.take_member(tag)
            if member is None:
                raise self._unknown_tag(tag, 80)
            self.counters.ack += 1
            member.settle_some(tag, 1)
            if self.waiting is not None:
                # Consumers that waited for the channel's prefetch come before the one of the ack.
                self.share_prefetch()
            member.queue.serve(member.consumer)
            return 0
        last: u64 = tag if tag else self.next_tag - 1
        # The second condition: a low tag may select few of very many deliveries.
        if self.unacked.count > _AT_ONCE and last >= self.unacked.first() + _AT_ONCE:
            settle_all(self, self.last_of(tag, 80), ACCEPT)
            return 0
        if self.waiting is not None:
            self.settle(self.take(tag, True, 80))
            return 0
        if tag and self.unacked.member(tag) is None:
            raise self._unknown_tag(tag, 80)
        self._settle_up_to(last)
        return 0

    def _settle_up_to(self, last: u64) -> Done:
        """Acknowledge the deliveries up to a tag, run by run, and serve their queues."""
        unacked = self.unacked
        number: u64 = unacked.first()
        queue: Queue | None = None
        consumer: Consumer | None = None
        while number <= last and unacked.count:
            member: Unacked | None = unacked.member(number)
            if member is None:
                number = unacked.next_from(number)
                continue
            count: i64 = unacked.take_run(number, last)
            self.counters.ack += count
            member.settle_some(number, count)
            number += count
            # Deliveries of one queue mostly follow each other: it is served once for all of them.
            if member.queue is not queue:
                if queue is not None:
                    queue.drain()
                queue, consumer = member.queue, member.consumer
            elif member.consumer is not consumer:
                consumer = None
        if consumer is not None:
            consumer.queue.serve(consumer)
        elif queue is not None:
            queue.drain()
        return 0

    def take(self, tag: u64, multiple: bool, method_id: i32) -> C[list[Unacked]]:
        """Remove and return the unacknowledged deliveries that a tag selects."""
        entries: list[Unacked] = []
        # Only with multiple is tag 0 no number, and then also right without any delivery.
        if not multiple or tag:
            entry: Unacked | None = self.unacked.get(tag)
            if entry is None:
                raise self._unknown_tag(tag, method_id)
            if not multiple:
                self.unacked.take(tag)
                entries.append(entry)
                return entries
        last: u64 = tag if tag else self.next_tag - 1
        return self.take_some(last, self.unacked.count)

    def take_some(self, last: u64, limit: i32) -> C[list[Unacked]]:
        """Remove and return the first deliveries up to a tag, at most so many."""
        entries: list[Unacked] = []
        unacked = self.unacked
        number: u64 = unacked.first()
        while number <= last and len(entries) < limit and unacked.count:
            entry: Unacked | None = unacked.take(number)
            if entry is None:
                # Tags are never reused. A gap is a delivery that was settled by itself, or any
                # number of them that needed no acknowledgement.
                number = unacked.next_from(number)
            else:
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
        # In the order of the constants ACCEPT, REJECT, REQUEUE and REQUEUE_RETURNED.
        (self.settle, self.discard, self.requeue, self.requeue_returned)[kind](list(entries))

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
            # Per group, as RabbitMQ does: the first consumer's messages go out again before the
            # second one's are back. With a shared prefetch the waiting consumers come first.
            if self.waiting is None:
                group[0].queue.drain()
        if self.waiting is not None:
            self.serve_queues(entries)

    def requeue_returned(self, entries: list[Unacked]) -> None:
        """Requeue the deliveries of a basic.nack."""
        for group in by_consumer(entries):
            for entry in group:
                entry.requeue_returned()
            if self.waiting is None:
                group[0].queue.drain()
        if self.waiting is not None:
            self.serve_queues(entries)

    def serve_queues(self, entries: list[Unacked]) -> None:
        """Serve the queues of some deliveries, after the waiting consumers."""
        if self.waiting is not None:
            self.share_prefetch()
        # A dict and not a set: the order of the deliveries decides which queue is served first.
        for queue in {entry.queue: None for entry in entries}:
            queue.drain()

    def _unknown_tag(self, tag: int, method_id: int) -> Exception:
        return soft(406, f"unknown delivery tag {tag}", 60, method_id)

    # --- consumers ------------------------------------------------------------------------------

    def limit(self, count: int) -> None:
        """Limit the outstanding deliveries of the channel as a whole; 0 is no limit."""
        self.prefetch_global = self.allowed = count
        # A higher limit, or none, is room that no acknowledgement would announce.
        self.serve()

    def await_prefetch(self, consumer: Consumer) -> Done:
        """Let a consumer wait until the channel may have more deliveries."""
        self.waiting = deque() if self.waiting is None else self.waiting
        consumers = self.consumers or {}
        if len(self.waiting) > 2 * len(consumers) + 8:
            # Most of the waiting consumers were cancelled; removing them only now costs each
            # consumer little, however often a client starts and cancels some.
            self.waiting = deque([one for one in self.waiting if consumers.get(one.tag) is one])
        self.waiting.append(consumer)
        return 0

    def share_prefetch(self) -> Done:
        """Serve the waiting consumers, a message each, so that they share the prefetch."""
        waiting = self.waiting
        limit: i32 = self.prefetch_global
        turns: isize = len(waiting) if waiting is not None else 0
        while waiting and turns and (not limit or self.outstanding < limit):
            turns -= 1
            consumer: Consumer = waiting.popleft()
            consumer.waits = False
            if consumer.queue.deleted or (self.consumers or {}).get(consumer.tag) is not consumer:
                continue
            before: i32 = self.outstanding
            # Room for one message: a consumer that wants more waits again, behind the others.
            self.allowed = before + 1 if limit else 0
            consumer.queue.drain()
            self.allowed = limit
            if limit and self.outstanding > before:
                # After a delivery each may be served again; without any delivery this ends.
                turns = len(waiting)
        return 0

    def serve(self) -> Done:
        """Serve the consumers of the channel; one that gets a message goes last the next time."""
        consumers = self.consumers
        if self.waiting is not None:
            self.share_prefetch()
        if consumers:
            out = self.connection.out
            for consumer in list(consumers.values()):
                before = out.size
                if before >= _OUTPUT_HIGH:
                    # `relieved` continues when the socket has taken the output.
                    self.connection.starved = True
                    break
                consumer.queue.serve(consumer)
                # The end of the dict is the end of the order; a delivery may have ended it.
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
            # nowait: RabbitMQ asks for no reply, and many clients send none.
            cancel = methods.BasicCancel(consumer_tag=consumer.tag, nowait=True)
            self.connection.send(self.number, cancel)
            # Some clients reply nevertheless: from now on cancel-ok is no error here.
            self.cancelled = True

    def cancel_forbidden(self) -> None:
        """Cancel the consumers of queues that the user may no longer read."""
        for consumer in list((self.consumers or {}).values()):
            try:
                check(self, READ, QUEUE, consumer.queue.name)
            except Undecided:
                # The backend is asked when the consumer's user does something next.
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
        # By itself, before the close requeues the others: only this one counts as timed out.
        late = self.unacked.take(entry.tag)
        if late is not None:
            late.time_out()
        self.connection.channel_caught(self, soft(406, text, 0, 0), 0, 0)
        entry.queue.drain()

    def stop_consuming(self, many: bool = False) -> list[Queue]:
        """Remove every consumer; unacknowledged messages stay outstanding.

        They are not ready from now on. Many of them are removed in slices.

        Args:
            many: whether the channels of the connection have many of them together.

        Returns:
            The remaining queues, whose other consumers may have to be served now.
        """
        consumers, self.consumers = self.consumers, None
        if not consumers:
            return []
        stopped = deque(consumers.values())
        queues: dict[Queue, None] = {}
        many = many or len(stopped) > REMOVED_AT_ONCE
        work, events = self.connection.registry.work, self.connection.broker.events
        user = self.connection.user.name

        def step() -> bool:
            # In a later slice another connection's user is the actor of its own events.
            events.actor = user
            while stopped:
                consumer = stopped.popleft()
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
            # While it counts contents the scanner passes on single frames only.
            connection.scanner.pending -= 1
        # First: otherwise the requeued messages would be delivered on this channel again.
        consumed = self.stop_consuming()
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
            # Before the requeue: its acknowledged deliveries are outstanding again.
            self.transaction.rollback(self)
            self.transaction = None
        if self.classes is not None:
            self.classes.close()
            self.classes = None
        if consumed or self.unacked.count:
            requeue_all(self, consumed)
