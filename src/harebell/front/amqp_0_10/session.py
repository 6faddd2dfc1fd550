"""A session: its deliveries, its subscriptions and its transaction.

This file holds what happens per message. The commands of each class are in the file of that class;
the session layer, which numbers and completes them, is below it.
"""

from __future__ import annotations

from collections.abc import Sequence as Several
from typing import TYPE_CHECKING, Any, Protocol

from harebell.auth.authority import Undecided
from harebell.auth.permissions import READ
from harebell.base.c_types import C, Done, i32
from harebell.base.counters import Counters
from harebell.base.errors import ErrorKind, Refusal
from harebell.base.message import Message, Properties
from harebell.base.sequence import Sequence
from harebell.base.slices import Slices, at_once, stepped
from harebell.front.amqp_0_10.delivery import Delivery
from harebell.front.amqp_0_10.errors import (
    NOT_ALLOWED,
    RESOURCE_DELETED,
    RESOURCE_LIMIT_EXCEEDED,
    ExecutionError,
)
from harebell.front.amqp_0_10.number_ranges import numbers_in
from harebell.front.amqp_0_10.publishing import (
    NOT_TAKEN,
    UNROUTABLE,
    intercepted,
    prepared,
    takes_at_once,
    trace_publish,
)
from harebell.front.amqp_0_10.session_layer import SessionLayer
from harebell.front.common.event_exchange import consumer_deleted
from harebell.front.common.firehose_tap import delivered
from harebell.front.common.permission import QUEUE, check
from harebell.front.limits import (
    HEADERS_BYTES_PER_UNIT,
    HEADERS_SHORT_BYTES,
    RANGES_MAX,
    REMOVED_CONSUMER_UNITS,
)
from harebell.front.operations.long_headers import check_long_headers
from harebell.kernels.segments import ACCEPT_EXPLICIT, DISCARD_UNROUTABLE, IMMEDIATE
from harebell.model.exchange.kind import Exchange
from harebell.model.limits import REMOVED_AT_ONCE
from harebell.model.queue.contract import PENDING, REJECTED, Queue, unrouted
from harebell.model.resource import rendered
from harebell.model.transaction import ACCEPT, Transaction
from harebell.wire.v010.commands import MessageAccept, MessageReject
from harebell.wire.v010.ranges import wrapped

if TYPE_CHECKING:
    from harebell.front.amqp_0_10.connection import Connection
    from harebell.front.amqp_0_10.subscription import Subscription
    from harebell.front.common.unacked import Unacked
    from harebell.front.file_stream.file_stream_channel import ChannelClasses
    from harebell.model.consumer import Consumer
    from harebell.model.xa.association import Association

_EXPLICIT: i32 = ACCEPT_EXPLICIT
_DISCARD: i32 = DISCARD_UNROUTABLE
_IMMEDIATE: i32 = IMMEDIATE
_SHORT: i32 = HEADERS_SHORT_BYTES
_BYTES_PER_UNIT: i32 = HEADERS_BYTES_PER_UNIT
_PENDING: i32 = PENDING
_REJECTED: i32 = REJECTED
_NOWHERE: C[tuple[Queue, ...]] = ()
_QUEUE_DELETE = (8, 2)


class SessionFiles(Protocol):
    """The state of the classes file and stream for a session; see `FileStreamAdapter`."""

    @property
    def classes(self) -> ChannelClasses:
        """Staging, windows and rates."""

    def keep(self, entry: Unacked) -> None:
        """Restore a delivery: it is unacknowledged as before."""

    def moved(self) -> None:
        """Note that the session moved to another channel."""

    def close(self) -> list[Queue]:
        """Close the session; returns the queues to serve afterwards."""


class Session(SessionLayer):
    """A session.

    Args:
        connection, number, name: as for `SessionLayer`.

    Attributes:
        consumers: its subscriptions, by destination, and consumers of files and packets, by tag.
        unacked: deliveries that are not settled, by the numbers of their transfers.
        shown: the same for messages that browsers got and have not acquired.
        windowed: deliveries whose credit is given back, by the same: the subscription, and the
            bytes where those are counted.
        transaction: the work since tx.select or dtx.start; None outside.
        association: with branches of distributed transactions; None before dtx is used.
        selected: which of the classes tx and dtx was selected; "" for none.
        ending: subscriptions whose queue the session itself has deleted, until they are notified.
        last_queue: the queue that it declared last; "" for none.
        extras: the state of the classes file and stream; None until one of them is used.
    """

    def __init__(self, connection: Connection, number: int, name: bytes) -> None:
        super().__init__(connection, number, name)
        self.consumers: dict[str, Any] = {}
        self.unacked = Sequence(0)
        self.shown = Sequence(0)
        self.windowed = Sequence(0)
        self.association: Association | None = None
        self.selected = ""
        self.ending: set[Any] = set()
        self.last_queue = ""
        self.extras: SessionFiles | None = None
        # (first, last, counters of the exchange) of transfers that are to be accepted.
        self._accepting: list[tuple[int, int, Counters]] = []

    # --- publishing -----------------------------------------------------------------------------

    def publish(
        self, flags: i32, destination: str, routing_key: str, properties: Properties, body: bytes
    ) -> i32:
        """Execute a message.transfer: check, route, publish to the queues."""
        connection = self.connection
        if len(body) > connection.message_max:
            raise self.too_large(len(body))
        if len(properties.raw) > _SHORT:
            connection.registry.work.charge(len(properties.raw) // _BYTES_PER_UNIT)
            check_long_headers(properties)
        explicit = bool(flags & _EXPLICIT)
        return self.route(connection, flags, destination, routing_key, properties, body, explicit)

    def routed(
        self, message: Message, queues: tuple[Queue, ...], flags: i32, properties: Properties
    ) -> Done:
        """Publish a routed message, at once or in the transaction."""
        if not queues:
            self._unrouted(flags)
        if self.router.tracer is not None:
            trace_publish(self, message, queues)
        # Other transfers, which are most, get no answer but their completion.
        if flags & (_EXPLICIT | _IMMEDIATE):
            queues = self._answered(queues, flags)
        self.forward(message, queues, flags)
        return 0

    def accept(self, message: Message, queues: tuple[Queue, ...], flags: i32) -> i32:
        """Publish a routed message to its queues; return their result bits."""
        result: i32 = 0 if queues else unrouted(message)
        queue: Queue
        for queue in queues:
            answer: i32 = queue.publish(message)
            if answer & _REJECTED:
                # 0-10 has no negative confirm: the session ends with the reason.
                raise self._full(queue)
            result |= answer
        if result & _PENDING:
            self.wait_for(self.connection.commit.ticket)
        return result

    def _answered(self, queues: tuple[Queue, ...], flags: int) -> tuple[Queue, ...]:
        """Answer a transfer by accept or reject; returns its queues.

        They are none for an immediate transfer that would have to wait in one of them.
        """
        code = UNROUTABLE
        if flags & _IMMEDIATE and queues and not takes_at_once(queues):
            queues = _NOWHERE
            code = NOT_TAKEN
        if not flags & _EXPLICIT:
            return queues
        if queues or flags & _DISCARD:
            self._owe_accept()
        else:
            # At once: no commit has to be waited for, as the message is stored nowhere.
            number = wrapped(self.current)
            text = "no queue can take it now" if code != UNROUTABLE else "no queue is bound"
            self.send(MessageReject(((number, number),), code, text))
        return queues

    def _unrouted(self, flags: int) -> None:
        """Count an unroutable message: it is rejected in explicit mode, and dropped otherwise."""
        if flags & _EXPLICIT and not flags & _DISCARD:
            self.counters.return_unroutable += 1
            self.at_exchange.return_unroutable += 1
        else:
            self.counters.drop_unroutable += 1
            self.at_exchange.drop_unroutable += 1

    def _owe_accept(self) -> None:
        """Send message.accept for the current transfer when it is complete."""
        number = self.current
        # Consecutive transfers to one exchange are one range, and one message.accept.
        if self._accepting and self._accepting[-1][1:] == (number - 1, self.at_exchange):
            self._accepting[-1] = (self._accepting[-1][0], number, self.at_exchange)
        else:
            self._accepting.append((number, number, self.at_exchange))

    def send_completed(self) -> Done:
        """Send completions, after message.accept for transfers in explicit mode."""
        if self._accepting:
            self._send_accepted()
        return SessionLayer.send_completed(self)

    def _send_accepted(self) -> None:
        ranges: list[tuple[int, int]] = []
        # Only completed transfers: accept says that the message is stored.
        while self._accepting and self._accepting[0][0] < self.done:
            first, last, details = self._accepting.pop(0)
            if last >= self.done:
                # The rest of the range waits for a later commit.
                self._accepting.insert(0, (self.done, last, details))
                last = self.done - 1
            self.counters.confirm += last - first + 1
            details.confirm += last - first + 1
            ranges.append((wrapped(first), wrapped(last)))
        for at in range(0, len(ranges), RANGES_MAX):
            self.send(MessageAccept(tuple(ranges[at : at + RANGES_MAX])))

    def intercepted(self, properties: Properties) -> Properties:
        """Add the configured headers and properties to a published message."""
        return intercepted(self, properties)

    def prepared(
        self, exchange: Exchange, routing_key: str, properties: Properties, body: bytes
    ) -> tuple[Message, tuple[Queue, ...]]:
        """Check and route a message with fields that the broker processes."""
        return prepared(self, exchange, routing_key, properties, body)

    def internal_exchange(self, text: str) -> Exception:
        """Make the error for an internal exchange."""
        return ExecutionError(NOT_ALLOWED, text, 0)

    def too_large(self, size: int) -> ExecutionError:
        """Make the error for a body over the configured limit."""
        limit = self.connection.message_max
        text = f"message size {size} is larger than configured max size {limit}"
        return ExecutionError(RESOURCE_LIMIT_EXCEEDED, text)

    def _full(self, queue: Queue) -> ExecutionError:
        resource = rendered("queue", queue.name, self.vhost.name)
        return ExecutionError(RESOURCE_LIMIT_EXCEEDED, f"{resource} is full")

    def has_uncommitted(self) -> bool:
        """True if publishes wait for the commit of a transaction."""
        return isinstance(self.transaction, Transaction) and self.transaction.byte_count > 0

    # --- deliveries -----------------------------------------------------------------------------

    def keep(self, entries: Several[Delivery | Unacked]) -> None:
        """Restore the deliveries of a rollback: they are unacknowledged as before."""
        for entry in entries:
            if isinstance(entry, Delivery):
                self.unacked.put(entry.number, entry)
            else:
                assert self.extras is not None, "the delivery came from there"
                self.extras.keep(entry)

    def settle(self, entries: Several[Delivery | Unacked]) -> None:
        """Acknowledge messages; the command completes when that is on disk."""
        result = 0
        self.counters.ack += len(entries)
        for entry in entries:
            entry.settle()
        # Completion means durable: unlike basic.ack, an accept has an answer that waits.
        for queue in {entry.queue: None for entry in entries}:
            result |= queue.sync_soon()
            queue.drain()
        if result & _PENDING:
            self.wait_for(self.connection.commit.ticket)

    def take_effect(self, entries: Several[Delivery | Unacked], kind: int) -> None:
        """Settle deliveries of a transaction that is committed."""
        assert kind == ACCEPT, "only accepting is transactional in 0-10"
        self.settle(entries)

    def delivered(self, first: int, last: int) -> None:
        """Give back the credit of transfers that the peer has completed."""
        if self.windowed.count == 0:
            return
        served: dict[Queue, None] = {}
        for number in numbers_in(self.windowed, [(first, last)]):
            credit = self.windowed.take(number)
            # Without credit in bytes there is no tuple: most subscriptions count messages only.
            consumer, byte_count = credit if isinstance(credit, tuple) else (credit, 0)
            consumer.restore_credit(byte_count)
            served[consumer.queue] = None
        for queue in served:
            if not queue.deleted:
                queue.drain()

    def trace_delivery(self, message: Message, queue: str, redelivered: bool) -> None:
        """Send a copy of a delivery to the firehose."""
        delivered(self, message, queue, redelivered)

    # --- subscriptions --------------------------------------------------------------------------

    def serve(self) -> Done:
        """Serve the subscriptions of the session."""
        consumers, out = self.consumers, self.connection.out
        for tag, consumer in list(consumers.items()):
            if not consumer.queue.deleted:
                before = out.size
                consumer.queue.drain()
                if out.size > before and consumers.get(tag) is consumer:
                    # A consumer that got a message goes last the next time.
                    consumers[tag] = consumers.pop(tag)
        if self.extras is not None:
            self.extras.classes.go_on()
        return 0

    def return_to(self, connection: Connection, number: int) -> None:
        """Resume on a channel, perhaps of another connection."""
        super().return_to(connection, number)
        if self.extras is not None:
            self.extras.moved()

    def queue_lost(self, consumer: Consumer) -> None:
        """End the session because a subscription's queue was deleted, unless it did that itself.

        In that case it may still cancel the subscription.
        """
        if consumer in self.ending:
            self.ending.discard(consumer)
            return
        if self.consumers.pop(consumer.tag, None) is None:
            return
        consumer_deleted(self, consumer)
        queue = consumer.queue
        if not self.ended:
            text = f"{rendered('queue', queue.name, self.vhost.name)} was deleted"
            self.caught(ExecutionError(RESOURCE_DELETED, text), *_QUEUE_DELETE)

    def cancel_forbidden(self) -> None:
        """End the session when the user may not read one of its queues any more."""
        for consumer in list(self.consumers.values()):
            try:
                check(self, READ, QUEUE, consumer.queue.name)
            except Undecided:
                # The backend is asked when the session's user does something next.
                continue
            except Refusal as refusal:
                # 0-10 has no basic.cancel: a subscription cannot end without its session.
                self.caught(refusal, 4, 7)
                return

    def end_window(self, consumer: Subscription) -> None:
        """Stop a subscription: its credit is zero, and earlier deliveries give none back."""
        consumer.stop()
        # Otherwise a late completion would add credit after message.stop, and start deliveries.
        if consumer.window and self.windowed.count:
            for number in self.windowed.numbers():
                credit = self.windowed.get(number)
                if (credit[0] if isinstance(credit, tuple) else credit) is consumer:
                    self.windowed.take(number)

    # --- for listings and limits ----------------------------------------------------------------

    @property
    def next_tag(self) -> int:
        """The number that the next delivery gets."""
        return int(self.sent)

    @property
    def confirms(self) -> None:
        """None: 0-10 has completion instead of confirms."""
        return

    @property
    def prefetch(self) -> int:
        """0: 0-10 has credit instead."""
        return 0

    @property
    def prefetch_global(self) -> int:
        """0: 0-10 has credit instead."""
        return 0

    # --- end ------------------------------------------------------------------------------------

    def overdue(self, entry: Delivery, text: str) -> None:
        """End the session: a delivery is unacknowledged for too long."""
        # By itself, before the end requeues the others: only this one counts as timed out.
        self.unacked.take(entry.number)
        entry.time_out()
        self.end_overdue(entry.queue, text)

    def end_overdue(self, queue: Queue, text: str) -> None:
        """End the session because of a delivery of this queue."""
        self.caught(Refusal(ErrorKind.PRECONDITION_FAILED, text), 0, 0)
        if not queue.deleted:
            queue.drain()

    def close(self) -> None:
        """End: requeue unsettled deliveries, and release exclusive queues.

        It is not attached, so none of its subscriptions is ready. Large numbers are processed in
        slices.
        """
        self.connection.registry.totals.channel_closed(self)
        if self.association is not None:
            self.association.close()
        if self.transaction is not None:
            # Before the requeue: accepted deliveries of the transaction are requeued with the rest.
            for entries in self.transaction.forget():
                self.keep(entries)
            self.transaction = None
        if self.unacked.count + len(self.consumers) <= REMOVED_AT_ONCE:
            at_once(self._closing())
            return
        connection = self.connection
        events, user = connection.broker.events, self.user.name
        step = stepped(self._closing(), connection.registry.work, REMOVED_CONSUMER_UNITS, bool)

        def slice_() -> bool:
            events.actor = user
            return step()

        connection.perform(slice_)

    def _closing(self) -> Slices[None]:
        """Requeue unsettled deliveries, remove the subscriptions, then serve the queues.

        The order matters: deliveries of an auto-delete queue are requeued before it is deleted.
        """
        consumers, self.consumers = self.consumers, {}
        queues: dict[Queue, None] = {consumer.queue: None for consumer in consumers.values()}
        while self.unacked.count:
            entry = self.unacked.take(self.unacked.first())
            entry.requeue()
            queues[entry.queue] = None
            yield
        if self.extras is not None:
            queues.update(dict.fromkeys(self.extras.close()))
            self.extras = None
        for consumer in consumers.values():
            consumer_deleted(self, consumer)
            self.vhost.remove_consumer(consumer)
            yield
        # A session's exclusive queue that is not auto-delete stays, and others may use it.
        for queue in self.vhost.owned_by(self):
            self.vhost.give(queue, None)
            queue.stays = False
            if queue.auto_delete:
                queue.abandon(self.vhost.retire)
        for queue in queues:
            if not queue.deleted:
                queue.drain()
        self.closed()
