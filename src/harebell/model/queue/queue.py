"""The life of a message in a queue, from its publication to its end.

    publish --+-- a consumer is ready ------------------> delivered --+-- settle
              |                                              ^        +-- reject --> dead letter
              +-- kept by the order -- ready -- drain, get --+        +-- requeue -> ready again
                                         |
                                         +-- expired, over a limit --> dead letter

One class serves all queues that deliver each message to one consumer. Queue types differ in their
message order (`order`). Optional features are parts (`features`), None in queues without them.
`factory` chooses both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from harebell.base.c_types import C, Cdef, Done, Py, i32, i64, isize
from harebell.base.histogram import Histogram
from harebell.base.message import FAMILY_FILE, FAMILY_STREAM, PERSISTENT, Message
from harebell.base.ports import Commit
from harebell.kernels.output import OutputPassage
from harebell.kernels.rows import Rows
from harebell.model.consumer import Consumer
from harebell.model.dead_letter import EXPIRED, REJECTED
from harebell.model.limits import RUN_CONSUMERS
from harebell.model.queue.arguments import DEDUPLICATION, GROUP_KEY
from harebell.model.queue.contract import ACCEPTED, PENDING, Queue
from harebell.model.queue.contract import REJECTED as FULL
from harebell.model.queue.features.alternate_exchange import ALTERNATE, AlternateExchange
from harebell.model.queue.features.browse import Browsing, ready_messages
from harebell.model.queue.features.consumers import Consumers, dismiss
from harebell.model.queue.features.deduplication import QueueDeduplication
from harebell.model.queue.features.delivery_runs import DeliveryRuns
from harebell.model.queue.features.expiry import FOR_EVER, Expiry
from harebell.model.queue.features.failure_counts import FailureCounts, with_failures
from harebell.model.queue.features.head_expiry import check_head, expire_heads, kept_until
from harebell.model.queue.features.key_dispatch import KeyDispatch
from harebell.model.queue.features.last_values import after_replacing
from harebell.model.queue.features.lease import Claims
from harebell.model.queue.features.limit_enforcement import (
    change_limits,
    check_limits,
    refuse_if_full,
)
from harebell.model.queue.features.no_local import NoLocal
from harebell.model.queue.features.queue_expiry import QueueExpiry
from harebell.model.queue.features.queue_internals import QueueInternals
from harebell.model.queue.features.quorum import Quorum
from harebell.model.queue.features.ready_bytes import add_ready_bytes_at, subtract_ready_bytes
from harebell.model.queue.features.retry_delays import Retry, Rules
from harebell.model.queue.features.selecting import Selecting
from harebell.model.queue.features.sequence import sequence_of
from harebell.model.queue.features.staging import OpenBatch
from harebell.model.queue.features.stored_anew import HIDDEN, stored_anew
from harebell.model.queue.order.contract import MessageOrder
from harebell.model.remark import Remark
from harebell.model.resource import precondition, refused, rendered

if TYPE_CHECKING:
    from harebell.model.queue.browse import BrowseCursor, Start
    from harebell.model.queue_context import QueueContext

NO_POSITION = -1
LINGER = "qpid.auto_delete_timeout"
"""Argument of AMQP 0-10: seconds until an unused auto-delete queue is deleted."""
_NO_POSITION: i64 = NO_POSITION
_ACCEPTED: i32 = ACCEPTED
_PENDING: i32 = PENDING
_FULL: i32 = FULL
_PERSISTENT: i32 = PERSISTENT
_FILE: i32 = FAMILY_FILE
_STREAM: i32 = FAMILY_STREAM
_RUN_CONSUMERS: isize = RUN_CONSUMERS
_MS = 1000


class MessageQueue(QueueInternals):
    """A queue that delivers each message to one consumer.

    Args:
        kind: the name of its type.
        name: unique in its vhost.
        vhost: the name of its vhost.
        order: the message order; messages in it are ready.
        commit: the group commit of the store for a quorum queue, else None.
        **options: as for `Queue`.
    """

    def __init__(
        self,
        kind: str,
        name: str,
        vhost: str,
        order: MessageOrder,
        commit: Commit | None = None,
        **options: Any,
    ) -> None:
        super().__init__(name, vhost, order, **options)
        self.step = 1 << order.level_bits
        self.kind = kind
        self.quorum: Quorum | None = None if commit is None else Quorum(self, commit)
        self.ticks = commit is not None or (self.values is not None and self.durable)
        # Whether all messages of a durable queue are stored, or persistent ones only.
        self._keeps_all = commit is not None
        self.failures = self.counted = None if commit is None else FailureCounts(order)
        # In a quorum queue a consumer of higher priority takes over from the single active one.
        self.consumers = Consumers(self.single, commit is not None)
        self._runs: DeliveryRuns | None = None
        self._dispatch = None if self.keyed is None else KeyDispatch(self, self.keyed)
        self._browsing: Browsing | None = None
        self._batch: OpenBatch | None = None
        self._claims: Py[Claims | None] = None
        self._expires: QueueExpiry | None = None
        self._linger: QueueExpiry | None = None
        alternate = self.arguments.get(ALTERNATE)
        self._alternate: AlternateExchange | None = None
        if isinstance(alternate, str) and alternate:
            self._alternate = AlternateExchange(self, alternate)
        # Whether each message gets a position: it may replace another, or is numbered by it.
        self._keeps_each = self.values is not None
        self._fetching = False
        # The consumer that is served first in this drain, because it got credit.
        self._credited: Consumer | None = None
        self._restored = order.count > 0
        # Files and packets may be among restored messages, which are not read here.
        self.spares = self._restored
        if self._restored:
            # Which of them expire shows at the head: to read all of them now would take long.
            self.with_expiry().active = True

    # --- settings -------------------------------------------------------------------------------

    def join(self, context: QueueContext) -> None:
        """Use the clock, the timers and the editor of the vhost."""
        self.context = context
        self.clock = context.clock
        self.work = context.timers.work
        if self.keyed is not None:
            self.keyed.use_editor(context.editor)
        if self.values is not None:
            self.values.use_editor(context.editor)
        self.sequence = sequence_of(self.arguments, self.order, context.editor)
        if self.sequence is not None:
            self._keeps_each = True
        if self.arguments.get(DEDUPLICATION) is True:
            # The values are not stored, so all ready messages are read once after a restart.
            self.deduplication = QueueDeduplication(
                context.editor, self.order, ready_messages(self.order)
            )

    def configure(self, settings: Mapping[str, Any]) -> None:
        """Set limits, expiry and dead-lettering."""
        ttl = settings.get("message-ttl", FOR_EVER)
        if self.expiry is not None or ttl != FOR_EVER:
            self.with_expiry().ttl = ttl
        context = self.context
        if context is not None:
            self.dead_letters = context.dead_letters_of(self, settings)
            self._configure_retry(Rules(self.arguments, settings))
            if self._expires is None and "expires" in settings:
                self._expires = QueueExpiry(self, context.timers, context.drop_queue)
            if self._expires is not None:
                self._expires.limit(settings.get("expires", 0))
            if self.expiry is not None and self.expiry.active:
                # Not now: the dead-letter exchange may not be restored yet.
                self.expiry.wake_at(self.clock.steady)
        change_limits(self, settings)
        if self.values is not None:
            self.values.reads = self.limits is not None
        if self.quorum is not None:
            self.quorum.configure(settings)

    def _configure_retry(self, rules: Rules) -> None:
        context = self.context
        if self.retry is None and rules and context is not None:
            self.retry = Retry(self, context.timers)
            self.failures = self.counted = self.failures or FailureCounts(self.order)
        if self.retry is not None:
            self.retry.rules = rules
            if self._restored:
                # Only after a restart: later, a counted message may be ready again already.
                self.retry.restore()
        if self._restored and self.counted is None and self.order.counted_positions():
            self.counted = FailureCounts(self.order)
        self._restored = False

    def with_expiry(self) -> C[Expiry]:
        """Return the part that expires messages, made on first use."""
        if self.expiry is None:
            self.expiry = Expiry(self)
        return self.expiry

    # --- publish --------------------------------------------------------------------------------

    def publish(self, message: Message) -> i32:
        """Deliver a message to a ready consumer, or append it to the ready messages."""
        if message.once is not None:
            return self.publish_once(message)
        if self.deduplication is not None and self.deduplication.holds(message):
            # A row of an open batch may be rolled back: then this message would be lost. And the
            # message in the queue may not be on disk yet.
            return _FULL if self.staging else self.outcome(message)
        batch = self._batch
        if batch is not None:
            return batch.publish(message)
        limits = self.limits
        order = self.order
        # As in RabbitMQ, a full queue refuses also what a ready consumer would take.
        if limits is not None and refuse_if_full(self, message, order.count, len(message.body)):
            return _FULL
        # Mostly the same object: `is` saves a comparison, and `arrives_from` compares the names.
        if message.exchange is not self.source:
            self.arrives_from(message.exchange)
        self.counters.publish += 1
        expiry = self.expiry
        if expiry is not None and expiry.ttl >= 0:
            message = expiry.dated(message, self.clock.steady)
        if self.sequence is not None:
            message = self.sequence.numbered(message)
        if self.no_local is not None and message.origin and self.no_local.concerns(message.origin):
            return self._publish_local(message)
        # Behind ready messages it has to wait (AMQP 0-9-1 4.7). With ordering keys `deal` chooses
        # the consumer: another one may hold the key.
        consumers = self.consumers
        direct: bool = self.keyed is None and self.selecting is None
        if order.count == 0 and consumers.count and direct:
            run: i32 = 1
            if consumers.count >= _RUN_CONSUMERS:
                if self._runs is None:
                    self._runs = DeliveryRuns(self.counters)
                run = self._runs.next(self.clock.steady, consumers.count)
            consumer: Consumer | None = consumers.pick(run)
            if consumer is not None:
                if consumer.no_ack and not self._keeps_each:
                    # The delivery settles it, so it is never written, and is confirmed at once.
                    self.count_delivery(consumer, False)
                    consumer.deliver(message, _NO_POSITION, False)
                    return _ACCEPTED
                self.note_kept(message)
                position: i64 = order.deliver_direct(message)
                self.unacked += 1
                if message.due:
                    # The delivery may be requeued, and expire then.
                    self.with_expiry().active = True
                self.count_delivery(consumer, False)
                if consumer.no_ack:
                    self.unacked -= 1
                    consumer.deliver(message, _NO_POSITION, False)
                    order.settle(position)
                    return _ACCEPTED
                consumer.deliver(message, position, False)
                return self.outcome(message)
        self.note_kept(message)
        order.keep(message)
        if self.values is not None and self.values.displaced >= 0:
            after_replacing(self, self.values)
        if consumers.count:
            self.work.ahead = self
        if limits is not None:
            self.spares = self.spares or _FILE <= message.family <= _STREAM
            limits.byte_count += len(message.body)
        if self.selecting is not None:
            # Before the limits drop another one: this message may not stay.
            self.selecting.arrived()
        if limits is not None:
            # With x-max-length 0 this drops the message itself, as in RabbitMQ.
            check_limits(self)
        if message.due:
            kept_until(self, message.due)
        if self._dispatch is not None and self.consumers.count and self.selecting is None:
            self._dispatch.deal()
        if self._browsing is not None:
            self._browsing.show_all()
        return self.outcome(message)

    def passage(self, exchange: str, routing_key: str, family: i32) -> C[OutputPassage | None]:
        """Return the passage to the sole consumer, if `publish` would only deliver the messages."""
        expiry = self.expiry
        looks: bool = (
            self.order.count > 0
            or self._keeps_each
            or self._batch is not None
            or self.limits is not None
            or self.deduplication is not None
            or self.no_local is not None
            or self.keyed is not None
            or self.selecting is not None
            or exchange is not self.source
        )
        if looks or (expiry is not None and expiry.ttl >= 0):
            return None
        consumer: Consumer | None = self.consumers.ready_alone()
        return None if consumer is None else consumer.passage(exchange, routing_key, family)

    def knows(self, message: Message) -> bool:
        """True if a message would be dropped as a duplicate."""
        return self.deduplication is not None and bool(self.deduplication.holds(message))

    def hidden(self) -> tuple[int, int]:
        """Return how many messages an open batch hides, and the bytes of their bodies."""
        batch = self._batch
        if batch is None:
            return 0, 0
        return batch.count, batch.byte_count

    def note_kept(self, message: Message) -> Done:
        """Note a message that the order appends next: deduplication stores its position."""
        if self.deduplication is not None:
            self.deduplication.keeps(message)
        return 0

    def outcome(self, message: Message) -> i32:
        """Return PENDING if a kept message has to be on disk first, else ACCEPTED."""
        if self.durable and (message.delivery_mode == _PERSISTENT or self._keeps_all):
            return _PENDING
        return _ACCEPTED

    def _publish_local(self, message: Message) -> i32:
        """Publish a message that a no-local consumer of the same connection must not get."""
        local = self.no_local
        if local is None or local.lost(message.origin):
            return _ACCEPTED
        local.note(self.order.next_position(message), message.origin)
        self.note_kept(message)
        self.order.keep(message)
        if self.values is not None and self.values.displaced >= 0:
            after_replacing(self, self.values)
        if self.limits is not None:
            self.limits.byte_count += len(message.body)
        if message.due:
            kept_until(self, message.due)
        if self.selecting is not None:
            self.selecting.arrived()
        self.drain()
        return self.outcome(message)

    def take_over(self, message: Message) -> int:
        """Take a dead letter, also if a quorum queue is full: it would be lost otherwise."""
        return self.publish(message) if self.quorum is None else self.admit(message)

    # --- a staged batch -------------------------------------------------------------------------

    def begin_batch(self) -> Done:
        """Hide new messages until the batch ends."""
        self.staging = True
        self._batch = OpenBatch(self)
        return 0

    def stage(self, message: Message) -> i32:
        """Append a row of the batch, even to a full queue: the caller has checked `has_room`."""
        batch = self._batch
        assert batch is not None, "rows are staged while a batch is open"
        return batch.stage(message)

    def stage_rows(self, rows: Rows, first: isize, end: isize, like: Message) -> i32:
        """Append rows of the batch that differ in their bodies only."""
        batch = self._batch
        if batch is None or batch.rows_differ(like):
            return self._stage_each(rows, first, end, like)
        return batch.stage_rows(rows, first, end, like)

    def commit_batch(self) -> Done:
        """Make the hidden messages ready."""
        return self._end_batch(False)

    def roll_back_batch(self) -> Done:
        """Settle the rows of the batch, and make the other hidden messages ready."""
        return self._end_batch(True)

    def _end_batch(self, roll_back: bool) -> Done:
        batch = self._batch
        if batch is None or self.deleted:
            return 0
        self.staging = False
        self._batch = None
        batch.end(roll_back)
        return 0 if self.selecting is None else self.selecting.arrived()

    # --- deliver --------------------------------------------------------------------------------

    def drain(self) -> Done:
        """Deliver ready messages to ready consumers, then show them to browsers."""
        if self.selecting is not None:
            self.selecting.deliver()
        elif self._dispatch is not None:
            self._dispatch.drain()
        else:
            self._deliver_ready()
        if self.limits is not None:
            check_limits(self)
        if self.expiry is not None:
            check_head(self)
        if self._browsing is not None:
            self._browsing.show_all()
        return 0

    def serve(self, consumer: Consumer | None) -> Done:
        """Deliver ready messages to a consumer that got credit, then to others."""
        # Only this consumer became ready. It is served up to its prefetch, and then the others are
        # asked once, not before each of its messages: there may be thousands of them.
        if (
            consumer is not None
            and self.selecting is None
            and not self.put_off
            and self.consumers.may_begin_with(consumer)
        ):
            self._credited = consumer
        try:
            self.drain()
        finally:
            self._credited = None
        return 0

    def _deliver_ready(self) -> Done:
        order = self.order
        while True:
            if self.no_local is not None:
                self.no_local.release_one()
            if order.count <= 0:
                break
            if self._fetching or order.spilled_head() >= 0:
                # Reading it at once would stop the broker; the messages behind it have to wait.
                self._fetch_next()
                break
            consumer: Consumer | None = self._credited
            if consumer is None or not consumer.ready():
                self._credited = None
                consumer = self.consumers.pick(1)
            if consumer is None:
                break
            self._deliver_next(consumer)
            self.work.spent += 1
            if self.work.spent >= self.work.check_at and self.work.check():
                self.drain_later()
                break
        return 0

    def deliver_to(self, consumer: Consumer) -> Cdef[bool]:
        """Deliver the next message to a ready consumer; False if it is being read."""
        if self._fetching or self.order.spilled_head() >= 0:
            self._fetch_next()
            return False
        self._deliver_next(consumer)
        return True

    def deal_keys(self) -> Cdef[Done]:
        """Deliver to the consumers of a queue with ordering keys that are not selective."""
        assert self._dispatch is not None, "it has ordering keys"
        self._dispatch.drain()
        return 0

    def looks_for(self, consumer: Consumer) -> bool:
        """True if messages that are ready were not yet looked at for a selective consumer."""
        return consumer.group is not None and not consumer.group.ended and self.order.count > 0

    def unselected(self) -> tuple[int, int]:
        """Return how many ready messages no consumer wants, and the age of the oldest in ms."""
        selecting: Selecting | None = self.selecting
        return (0, 0) if selecting is None or self.deleted else selecting.unselected()

    def _fetch_next(self) -> Done:
        """Start to read a large message in slices if a consumer is ready; then call `drain`."""
        if not self._fetching and self.consumers.any_ready():
            self._fetching = True
            self.order.load_spilled(self._fetched)
        return 0

    def _fetched(self) -> None:
        """Continue: the large message at the head is in memory now."""
        self._fetching = False
        if not self.deleted:
            self.drain()

    def _deliver_next(self, consumer: Consumer) -> Done:
        """Deliver the next ready message to the next ready consumer."""
        order = self.order
        message: Message | None = order.take()
        if message is None:
            return 0
        if self.limits is not None:
            subtract_ready_bytes(self, message)
        position: i64 = order.position
        redelivered: bool = order.redelivered
        # The timer may be late, but an expired message is never delivered.
        if message.due and message.due <= self.clock.steady:
            self.dead_letter(position, EXPIRED)
            return 0
        if redelivered and self.counted is not None:
            message = self.counted.shown(message)
        if self.no_local is not None:
            taker = self.no_local.taker(consumer, position)
            if taker is None:
                self.no_local.put_aside(position, redelivered)
                return 0
            consumer = taker
            redelivered = self.no_local.redelivered(position, redelivered)
        self.count_delivery(consumer, redelivered)
        if consumer.no_ack:
            consumer.deliver(message, _NO_POSITION, redelivered)
            order.settle(position)
        else:
            self.unacked += 1
            consumer.deliver(message, position, redelivered)
        return 0

    def prepare_take(self) -> Done:
        """Remove expired messages before the next message is read."""
        if self._expires is not None:
            # basic.get and a claim are a use of the queue, as in RabbitMQ.
            self._expires.used()
        if self.no_local is not None:
            # They are no consumers, so they may have the messages of any connection.
            self.no_local.release_all()
        if self.expiry is not None and self.expiry.active:
            self.expire()
        return 0

    def fetch_next(self, done: Callable[[], object]) -> bool:
        """Begin to read the next message in slices if it is large and on disk."""
        if self.order.count <= 0 or self.order.spilled_head() < 0:
            return False
        self.order.load_spilled(done)
        return True

    def get(self) -> tuple[Message, int, bool] | None:
        """Return the next message, to be settled or requeued later."""
        if self.quorum is not None:
            self.quorum.check_get()
        self.prepare_take()
        order = self.order
        message = order.take() if self._dispatch is None else self._dispatch.take_free()
        if message is None:
            return None
        if self._dispatch is None:
            message = self.with_count(message)
        position, redelivered = order.position, order.redelivered
        self.unacked += 1
        subtract_ready_bytes(self, message)
        if self.no_local is not None:
            redelivered = self.no_local.redelivered(position, redelivered)
        if self.expiry is not None:
            check_head(self)
        return message, position, redelivered

    def acquire(self, position: int, consumer: Consumer) -> bool:
        """Take a message that a browser was shown; False if it is no longer ready."""
        if self.deleted or not self.order.acquire(position, consumer):
            return False
        message = self.order.read(position)
        if message is None:
            return False
        # `subtract_ready_bytes` reads it.
        self.order.position = position
        subtract_ready_bytes(self, message)
        if message.due and message.due <= self.clock.steady:
            self.dead_letter(position, EXPIRED)
            return False
        self.unacked += 1
        if message.due:
            # The delivery may be requeued, and expire then.
            self.with_expiry().active = True
        return True

    def ready_count(self) -> i64:
        """Return how many messages are ready, those put aside by no-local included."""
        count = self.order.count
        return count if self.no_local is None else count + len(self.no_local)

    # --- settle, requeue, reject ----------------------------------------------------------------

    def settle(self, position: i64) -> Done:
        """Remove a delivered message for good."""
        if not self.deleted:
            if self.keyed is not None:
                self.keyed.keys.release(position)
            if self.failures is not None:
                self.failures.end(position)
            self.unacked -= 1
            self.order.settle(position)
        return 0

    def settle_some(self, position: i64, count: i64) -> Done:
        """Remove delivered messages for good, whose positions are `step` apart."""
        if self.keyed is not None or self.failures is not None or self.step > 1:
            return Queue.settle_some(self, position, count)
        if not self.deleted:
            self.unacked -= count
            self.order.settle_range(position, position + count)
        return 0

    def delivery_counts(self) -> Histogram | None:
        """Return the failed deliveries of messages that have left; None if they are not counted."""
        return None if self.failures is None else self.failures.histogram()

    def requeue(self, position: i64) -> Done:
        """Requeue a message whose delivery failed; the caller drains afterwards."""
        return self._requeue(position, True)

    def requeue_returned(self, position: i64) -> Done:
        """Requeue a message that the client returned; the caller drains afterwards."""
        return self._requeue(position, False)

    def _requeue(self, position: i64, failed: bool) -> Done:
        if self.deleted:
            return 0
        quorum: Quorum | None = self.quorum
        if quorum is None:
            return self.requeue_uncounted(position, True)
        self.unacked -= 1
        return quorum.requeue(position, failed)

    def requeue_failed(self, position: i64) -> Done:
        """Count a failed delivery, and requeue its message; the caller drains afterwards."""
        if self.quorum is not None or self.deleted:
            return self._requeue(position, True)
        if self.counted is None:
            self.counted = FailureCounts(self.order)
        self.counted.add(position)
        return self.requeue_uncounted(position, True)

    def requeue_changed(self, position: int, remark: Remark, *, failed: bool) -> None:
        """Requeue a message with other headers; the caller drains afterwards."""
        if self.deleted:
            return
        position = stored_anew(self, position, remark.headers)
        if position == HIDDEN:
            self.unacked -= 1
        elif failed:
            self.requeue_failed(position)
        else:
            self.requeue_uncounted(position, True)

    def requeue_uncounted(self, position: i64, redelivered: bool) -> Done:
        """Requeue a message without counting a failed delivery; the caller drains afterwards.

        Args:
            position: the position of the message.
            redelivered: whether it counts as delivered before.
        """
        if self.deleted:
            return 0
        self.unacked -= 1
        self.restore(position, redelivered)
        # Limits do not count deliveries, so the queue may be over them now.
        return check_limits(self)

    def restore(self, position: i64, redelivered: bool) -> Done:
        """Make a message ready again in its place: requeued, after its retry delay, or put aside.

        RabbitMQ returns a message to its place, too. AMQP 0-9-1 4.7 allows that later messages were
        delivered meanwhile only if it is marked as redelivered.

        Args:
            position: the position of the message, which is not unacknowledged any more.
            redelivered: whether it counts as delivered before.
        """
        if not self.deleted:
            self.order.restore(position, redelivered)
            add_ready_bytes_at(self, position)
            if self.selecting is not None:
                self.selecting.came_back(position)
        return 0

    def reject(self, position: i64) -> Done:
        """Retry a rejected message later, or send it to its alternate or dead-letter exchange."""
        return self._reject(position, None)

    def reject_because(self, position: int, remark: Remark) -> None:
        """Reject a message; its dead letter has what the consumer says of it."""
        self._reject(position, remark)

    def _reject(self, position: i64, remark: Remark | None) -> Done:
        if self.deleted:
            return 0
        retry = self.retry
        # A message that waits for its retry keeps its key: the next of that key must not overtake.
        if self.keyed is not None and (retry is None or not retry.takes(position)):
            self.keyed.keys.release(position)
        self.unacked -= 1
        if self._alternate is not None:
            # AMQP 0-10 message.reject: the alternate exchange gets it, unchanged.
            message = self.order.read(position)
            if message is not None:
                self._alternate.send(message)
            self.order.settle(position)
        elif retry is None or not retry.rejected(position):
            if self.failures is not None:
                self.failures.end(position)
            self.dead_letter(position, REJECTED, remark)
        return 0

    def time_out(self, position: i64) -> Done:
        """Take back a message that was not acknowledged in time: retry it later, or requeue it."""
        # A consumer that hangs may have failed on this message: the delays apply.
        if self.retry is not None and self.retry.rules.delays:
            return self.reject(position)
        return self.requeue(position)

    def pause(self, position: i64) -> Done:
        """Block the ordering key of a message that waits for its retry."""
        if self.keyed is not None:
            self.keyed.keys.pause(position)
        return 0

    def replaced_count(self) -> int:
        """Return how many messages newer ones of their keys have replaced since the start."""
        return 0 if self.values is None else self.values.replaced

    def delayed_count(self) -> int:
        """Return how many messages wait for their retry."""
        return len(self.retry) if self.retry is not None else 0

    def retry_now(self) -> int:
        """Deliver messages that wait for their retry now; return how many."""
        return self.retry.release_all() if self.retry is not None else 0

    def sync_soon(self) -> i32:
        """Add what was settled to the next commit."""
        if not self.durable or self.deleted:
            return _ACCEPTED
        self.order.sync_soon()
        return _PENDING

    # --- expire, dead-letter --------------------------------------------------------------------

    def expire(self) -> None:
        """Remove expired messages at the head, and set the timer for the new head."""
        expire_heads(self)

    def dead_letter(self, position: i64, reason: str, remark: Remark | None = None) -> Done:
        """Remove a message for a reason that dead-lettering knows."""
        quorum: Quorum | None = self.quorum
        if quorum is not None:
            return quorum.dead_letter(position, reason, remark)
        if self.dead_letters is not None:
            message: Message | None = self.order.read(position)
            if message is not None:
                message = with_failures(message, self.order, position)
                self.dead_letters.send(message, reason, None, remark)
        self.order.settle(position)
        return 0

    # --- distributed transactions ---------------------------------------------------------------

    def admit(self, message: Message) -> i32:
        """Publish a message of a prepared transaction, even if the queue is full."""
        limits = self.limits
        if limits is None:
            return self.publish(message)
        # The room was reserved when the branch was prepared: a commit must not fail any more.
        limits.reserved = True
        try:
            return self.publish(message)
        finally:
            limits.reserved = False

    def withhold(self, position: i64) -> C[bool]:
        """After a restart, withhold a message that a prepared transaction acknowledged."""
        if self.order.read(position) is None or not self.order.hold(position):
            return False
        self.unacked += 1
        return True

    # --- leases ---------------------------------------------------------------------------------

    def check_lease(self) -> None:
        """Refuse leases on a queue with a single active consumer."""
        if self.single:
            resource = rendered("queue", self.name, self.vhost)
            raise precondition(
                f"no lease is possible on {resource}: it has a single active consumer, and a lease "
                "would be a second one"
            )
        if self.values is not None:
            resource = rendered("queue", self.name, self.vhost)
            raise precondition(
                f"no lease is possible on {resource}: it keeps last values, and a newer message "
                "would replace what is claimed; read it by position instead"
            )

    def claims(self) -> Claims:
        """Return the lease part, made on first use."""
        if self._claims is None:
            self._claims = Claims(self)
        return self._claims

    # --- browse and remove by position ----------------------------------------------------------

    def browse(self, start: Start, *, ready_only: bool = True) -> BrowseCursor:
        """Return a cursor that goes through the messages and takes none."""
        # Imported here: most brokers never browse.
        from harebell.model.queue.browse_cursor import QueueCursor

        return QueueCursor(
            rendered("queue", self.name, self.vhost), self.order, start, ready_only=ready_only
        )

    def check_withdraw(self) -> None:
        """Allow to remove single messages."""

    def withdraw(self, position: int, message: Message) -> bool:
        """Remove a ready message out of its order, for good; False if it is no longer ready."""
        if self.deleted or not self.order.discard(position):
            return False
        self.order.position = position
        subtract_ready_bytes(self, message)
        check_head(self)
        return True

    # --- purge, delete --------------------------------------------------------------------------

    def purge(self) -> int:
        """Remove all messages that are not delivered; return how many."""
        if self.no_local is not None:
            # Before the count: messages that were put aside are ready for other consumers.
            self.no_local.purge()
        count = self.order.count
        self.order.purge()
        if self.retry is not None:
            waiting = self.retry.take_all()
            for position in waiting:
                self.order.settle(position)
            count += len(waiting)
        if self.limits is not None:
            self.limits.clear()
        if self.keyed is not None:
            self.keyed.keys.release_paused()
        return count

    def delete(self) -> int:
        """Cancel consumers and browsers, delete all messages; return how many were ready.

        Messages that are not settled are routed to the alternate exchange first, if there is one:
        deliveries cannot be requeued in a deleted queue.
        """
        count = self.ready_count()
        counts, context = self.delivery_counts(), self.context
        if counts is not None and context is not None:
            # A counter of the metrics must not go down when a queue is deleted.
            context.delivery_counts.add(counts)
        if self._alternate is not None:
            if self.values is not None:
                self.values.settle_all_replaced()
            self._alternate.send_all()
        browsers, self.browsers = self.browsers, ()
        self._browsing = None
        self.no_local = None
        self.selecting = None
        self.deleted = True
        if self.expiry is not None:
            self.expiry.stop()
        if self._expires is not None:
            self._expires.stop()
        if self._linger is not None:
            self._linger.stop()
        # Timers and ticks that come later would use positions of a deleted log.
        if self.retry is not None:
            self.retry.clear()
        if self.quorum is not None:
            self.quorum.clear()
        dismiss(self.consumers.take_all(), self.work)
        self.order.delete()
        self.unacked = 0
        self.itself = ()
        for consumer in browsers:
            consumer.queue_deleted()
        return count

    def abandon(self, drop: Callable[[Queue], object]) -> None:
        """Delete an unused auto-delete queue, now or after its `LINGER` time."""
        seconds = self.arguments.get(LINGER)
        context = self.context
        if context is None or type(seconds) is not int or seconds <= 0:
            drop(self)
            return
        if self._linger is None:
            self._linger = QueueExpiry(
                self, context.timers, lambda queue: queue.owner is None and drop(queue)
            )
            self._linger.limit(seconds * _MS)
        self._linger.used()

    def declared(self) -> None:
        """Restart the time of `x-expires`; not in a quorum queue, as in RabbitMQ."""
        if self._expires is not None and self.quorum is None:
            self._expires.used()

    def tick(self) -> None:
        """Settle dead letters and replaced messages, as far as others are stored instead."""
        if self.quorum is not None:
            self.quorum.tick()
        if self.values is not None and not self.deleted:
            self.values.settle_replaced()

    # --- consumers ------------------------------------------------------------------------------

    def check_consumer(
        self,
        tag: str,
        arguments: Mapping[str, Any],
        *,
        no_ack: bool,
        exclusive: bool,
        prefetch: int,
    ) -> bool:
        """Refuse exclusive with single active consumer, and no-ack with ordering keys.

        A quorum queue ignores the exclusive flag, as in RabbitMQ.
        """
        resource = rendered("queue", self.name, self.vhost)
        # A key is held by unacknowledged deliveries: without them there would be no order.
        if no_ack and self.keyed is not None:
            raise precondition(
                f"automatic acknowledgement is not possible for {resource} with '{GROUP_KEY}'"
            )
        if self.quorum is not None:
            return False
        if exclusive and self.single:
            raise refused(f"{resource} in exclusive use")
        return exclusive

    def check_prefetch_global(self) -> None:
        """Refuse one prefetch limit for a whole channel in a quorum queue."""
        if self.quorum is not None:
            self.quorum.check_prefetch_global()

    def check_delete(self, *, if_unused: bool, if_empty: bool) -> None:
        """Refuse the conditions of queue.delete in a quorum queue."""
        if self.quorum is not None:
            self.quorum.check_delete(if_unused=if_unused, if_empty=if_empty)

    def add_consumer(self, consumer: Consumer) -> None:
        """Add a consumer, and drain."""
        if consumer.excluded and self.no_local is None:
            self.no_local = NoLocal(self)
        if consumer.selector is not None and self.selecting is None:
            self.selecting = Selecting(self)
        if self.selecting is not None:
            self.selecting.add(consumer)
        self.consumers.add(consumer)
        self.had_consumers = True
        self.drain()

    def add_browser(self, consumer: Consumer) -> None:
        """Add a browser: show it what is ready and what is published later, without taking it."""
        if self._browsing is None:
            self._browsing = Browsing(self)
        self.browsers = [*self.browsers, consumer]
        self.had_consumers = True
        self._browsing.add(consumer)

    def remove_consumer(self, consumer: Consumer) -> None:
        """Remove a consumer or a browser."""
        if self._browsing is not None and consumer in self.browsers:
            self.browsers = [each for each in self.browsers if each is not consumer]
            if not self._browsing.remove(consumer):
                self._browsing = None
            if self._expires is not None:
                self._expires.used()
            return
        removed = self.consumers.remove(consumer)
        if removed and self.selecting is not None and not self.selecting.remove(consumer):
            self.selecting.end()
            self.selecting = None
        if self.no_local is not None and not any(each.excluded for each in self.consumers):
            self.no_local.release_all()
            # It still knows which ready messages were never delivered, only put aside.
            if self.no_local.idle:
                self.no_local = None
        if removed and self._expires is not None and not self.consumers:
            self._expires.used()
