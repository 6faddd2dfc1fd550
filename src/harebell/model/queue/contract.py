"""The contract of a queue: what the other parts of the broker use of any queue type.

A queue is a log and positions in it. It decides the order of its messages and delivers
them to consumers that are ready. It knows neither protocol nor connection.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from harebell.base.c_types import C, Cdef, Done, Py, i32, i64, isize
from harebell.base.counters import Counters
from harebell.base.histogram import Histogram
from harebell.base.message import Message
from harebell.base.ports import Log
from harebell.base.work import Work
from harebell.kernels.batches import BatchBuilder
from harebell.kernels.output import OutputPassage
from harebell.kernels.rows import Rows
from harebell.model.consumer import Consumer
from harebell.model.feedback import feedback_of, set_feedback
from harebell.model.limits import STATISTICS_QUEUE_SOURCES
from harebell.model.queue.features.consumers import Consumers
from harebell.model.queue.position_range import MessageRange, cannot_be_spanned
from harebell.model.remark import Remark
from harebell.model.resource import precondition, rendered

if TYPE_CHECKING:
    from harebell.model.queue.browse import BrowseCursor, Start
    from harebell.model.queue.features.limits import Incoming

_NO_WORK = Work()

ACCEPTED = 0
"""The queue took the message."""
REJECTED = 1
"""The queue is full and refused the message: the publisher gets a nack."""
PENDING = 2
"""The queue took the message, which is on disk after the gathering commit."""


def unrouted(message: Message) -> int:
    """Publish a message without queues: tell the exchanges that keep it or its value.

    Returns:
        The outcome for its publisher. It is PENDING for a duplicate, since the message that was
        kept in its place may not be on disk yet.
    """
    outcome = ACCEPTED
    for feedback in feedback_of(message):
        outcome |= feedback.unrouted(message)
    return outcome


class Queue:
    """A queue of any type.

    Args:
        name: unique in its vhost.
        vhost: the name of its vhost.
        durable: whether it survives a restart.
        auto_delete: whether it is deleted with its last consumer.
        owner: the connection of an exclusive queue, or None.
        arguments: as declared.

    Attributes:
        identity: the identity of its log; the factory sets it.
        bound: the bindings whose destination it is; None until there is one.
        itself: a tuple of this queue, the most common route.
        consumers: its consumers and their round robin.
        browsers: consumers that see messages and do not take them.
        had_consumers: whether there ever was a consumer (auto-delete waits for the first).
        step: by how much the positions of messages that are delivered one behind the other differ.
        unacked: messages that are delivered and not settled.
        leased: messages that lease groups have claimed, see `harebell.model.lease.leases`.
        leases: the lease groups; None while there is none.
        counters: of its messages.
        stays: whether an auto-delete queue is deleted with its owner, not with its last
            consumer.
        deleted: whether the queue was deleted.
        staging: whether new messages are hidden until a batch is committed.
        source: the exchange of the message that arrived last; None before the first.
        kind: the name of its type, as in the definitions.
        ticks: whether `tick` has work to do.
        work: the work of a turn; without a limit before the queue joins its vhost.
        put_off: whether `drain` goes on in a later turn.
    """

    def __init__(
        self,
        name: str,
        vhost: str,
        *,
        durable: bool = False,
        auto_delete: bool = False,
        owner: object = None,
        arguments: Mapping[str, Any] | None = None,
    ) -> None:
        self.name = name
        self.vhost = vhost
        self.identity = ""
        self.durable = durable
        self.auto_delete = auto_delete
        self.owner = owner
        self.arguments = arguments or {}
        # Type of the elements: `Binding`, which imports this module.
        self.bound: Py[dict[Any, Any] | None] = None
        self.itself: tuple[Queue, ...] = (self,)
        self.consumers = Consumers()
        self.browsers: Sequence[Consumer] = ()
        self.had_consumers = False
        self.step: i64 = 1
        self.unacked: i64 = 0
        self.leased: i64 = 0
        self.leases: Any = None
        self.counters = Counters()
        # What `counters.publish` was when messages began to arrive from `source`.
        self.source: str | None = None
        self._since: i64 = 0
        self._sources: dict[str, int] | None = None
        self.stays = False
        self.deleted = False
        self.staging = False
        self.kind = ""
        self.ticks = False
        self.work: Work = _NO_WORK
        self.put_off = False

    def publish(self, message: Message) -> i32:
        """Deliver a message to a ready consumer, or append it to the log.

        Returns ACCEPTED or REJECTED, or PENDING if the confirm has to wait for the disk.
        """
        raise NotImplementedError

    def publish_once(self, message: Message) -> Cdef[i32]:
        """Publish a message, and tell the exchanges that keep it or its value."""
        carried = feedback_of(message)
        # Otherwise `publish` would call this method again.
        message.once = None
        for feedback in carried:
            feedback.prepare()
        outcome = self.publish(message)
        for feedback in carried:
            outcome |= feedback.answered(message, outcome)
        set_feedback(message, carried)
        return outcome

    def count_delivery(self, consumer: Consumer, redelivered: bool) -> Done:
        """Count a delivery: for the queue, for the channel, and for both together."""
        mine: Counters
        theirs: Counters
        both: Counters
        mine, theirs, both = self.counters, consumer.counters, consumer.details
        if consumer.no_ack:
            mine.deliver_no_ack += 1
            theirs.deliver_no_ack += 1
            both.deliver_no_ack += 1
        else:
            mine.deliver += 1
            theirs.deliver += 1
            both.deliver += 1
        if redelivered:
            mine.redeliver += 1
            theirs.redeliver += 1
            both.redeliver += 1
        return 0

    def passage(self, exchange: str, routing_key: str, family: i32) -> C[OutputPassage | None]:
        """Return how messages of a route get to their consumer, if nothing of them stays here.

        None if the queue has to see each of them.
        """
        return None

    def passed(self, consumer: Consumer, count: i64) -> Done:
        """Count messages that have got to a consumer without acknowledgements by a passage."""
        mine: Counters
        theirs: Counters
        both: Counters
        mine, theirs, both = self.counters, consumer.counters, consumer.details
        mine.publish += count
        mine.deliver_no_ack += count
        theirs.deliver_no_ack += count
        both.deliver_no_ack += count
        return 0

    def arrives_from(self, exchange: str) -> Done:
        """Count the messages that arrive from now on for another exchange.

        What came from the exchange before is the difference of `counters.publish`, so a message
        that comes from the same exchange as the one before costs a comparison.
        """
        before = self.source
        if before is not None and before != exchange:
            sources = self._sources
            if sources is None:
                sources = self._sources = {}
            elif before not in sources and len(sources) >= STATISTICS_QUEUE_SOURCES:
                # Peers choose the exchanges: statistics must not grow without limit.
                del sources[next(iter(sources))]
            arrived = self.counters.publish - self._since
            sources[before] = sources.get(before, 0) + arrived
            self._since = self.counters.publish
        self.source = exchange
        return 0

    @property
    def has_sources(self) -> bool:
        """Whether messages arrived from more than one exchange."""
        return self._sources is not None

    def arrivals(self) -> dict[str, int]:
        """Return how many messages arrived from each exchange.

        Of more than STATISTICS_QUEUE_SOURCES exchanges the oldest are forgotten.
        """
        arrivals = dict(self._sources or ())
        if self.source is not None:
            arrived = self.counters.publish - self._since
            arrivals[self.source] = arrivals.get(self.source, 0) + arrived
        return arrivals

    def begin_batch(self) -> Done:
        """Hide new messages until `commit_batch` or `roll_back_batch`."""
        raise NotImplementedError

    def stage(self, message: Message) -> i32:
        """Append a row of the batch."""
        raise NotImplementedError

    def stage_rows(self, rows: Rows, first: isize, end: isize, like: Message) -> i32:
        """Append rows of the batch that differ in their bodies only.

        Args:
            rows: the loaded rows.
            first: the first row.
            end: the row behind the last.
            like: the message of the first row.
        """
        return self._stage_each(rows, first, end, like)

    def _stage_each(self, rows: Rows, first: isize, end: isize, like: Message) -> Done:
        self.stage(like)
        for row in range(first + 1, end):
            self.stage(rows.message(row))
        return 0

    def commit_batch(self) -> Done:
        """Make the hidden messages ready."""
        raise NotImplementedError

    def roll_back_batch(self) -> Done:
        """Remove the rows of the batch, and make the other hidden messages ready."""
        raise NotImplementedError

    def may_refuse(self) -> bool:
        """True if the queue may refuse messages."""
        return False

    def has_room(self, incoming: Incoming) -> bool:
        """True if the queue would take all of these messages."""
        return True

    def knows(self, message: Message) -> bool:
        """True if a message would be dropped as a duplicate of one in the queue."""
        return False

    @property
    def refuses(self) -> bool:
        """Whether it refuses messages when it is full."""
        return False

    @property
    def letters_refused(self) -> bool:
        """Whether it dead-letters the messages that it refuses."""
        return False

    def takes(self, byte_count: int) -> bool:
        """True if a message of that size would be taken without dropping another one."""
        return True

    def join(self, context: Any) -> None:
        """Add the queue to a vhost, and use the parts of the vhost that it needs.

        Args:
            context: a `QueueContext`, which imports this module.
        """

    def configure(self, settings: Mapping[str, Any]) -> None:
        """Apply settings, to the messages in the queue too.

        Called when the queue is declared or restored, after `join`, and whenever a policy changes.

        Args:
            settings: arguments and policies merged, by their policy keys.
        """

    def span(self, moment: int) -> MessageRange:
        """Return the range of its messages, and the first position at a time or later.

        Args:
            moment: milliseconds since 1970; 0 for no time.

        Raises:
            Refusal: it keeps no messages.
        """
        raise cannot_be_spanned(self.name, self.vhost)

    def append_to(self, first: int, end: int, into: BatchBuilder) -> int:
        """Make rows of the messages from a position up to another, until the builder is full.

        Messages are neither taken nor marked. Return the position to continue from. If it is before
        `end` and the builder has room left, the queue ends there.

        Raises:
            Refusal: positions are lost, and the builder may not skip them.
        """
        raise cannot_be_spanned(self.name, self.vhost)

    def browse(self, start: Start, *, ready_only: bool = True) -> BrowseCursor:
        """Return a cursor that goes through its messages and takes none.

        Args:
            start: where to begin.
            ready_only: leave out what is delivered, leased, or waits for a retry.

        Raises:
            Refusal: it keeps no messages, or has no such start.
        """
        raise cannot_be_spanned(self.name, self.vhost)

    def withdraw(self, position: int, message: Message) -> bool:
        """Remove a ready message out of its order, for good; False if it is no longer ready.

        Args:
            position: where it is in the queue.
            message: the message at that position.
        """
        return False

    def check_withdraw(self) -> None:
        """Refuse to remove single messages, unless the queue type allows it."""
        resource = rendered("queue", self.name, self.vhost)
        raise precondition(
            f"messages cannot be removed from {resource}: only its retention removes them"
        )

    def declared(self) -> None:
        """Note that the queue was declared again, or passively."""

    def abandon(self, drop: Callable[[Queue], object]) -> None:
        """Delete an auto-delete queue that is no longer used.

        Args:
            drop: deletes it.
        """
        drop(self)

    def tick(self) -> None:
        """Do periodic work, about twice a second, if `ticks`."""

    def committed(self) -> None:
        """Continue after a commit that the queue waited for."""

    def admit(self, message: Message) -> i32:
        """Take a message for which room is reserved; as `publish`, but never REJECTED."""
        return self.publish(message)

    def take_over(self, message: Message) -> int:
        """Take a message that would be lost if it were refused; as `publish`."""
        return self.publish(message)

    def withhold(self, position: i64) -> C[bool]:
        """After a restart, take a message out of what is ready; False if it is not there.

        Called before `configure`, for acknowledgements of a prepared distributed transaction; the
        position is settled or comes back later like that of a delivery.
        """
        return False

    def ready_count(self) -> i64:
        """Return how many messages are ready."""
        raise NotImplementedError

    def byte_count(self) -> int:
        """Return the bytes of its log, settled records of its segments included."""
        return 0

    def fetch_next(self, done: Callable[[], object]) -> bool:
        """Begin to read the next message in slices if it is large and on disk.

        Args:
            done: called when `get` is quick.

        Returns:
            False if it is quick already; `done` is not called then.
        """
        return False

    def get(self) -> tuple[Message, int, bool] | None:
        """Return the next message as (message, position, redelivered), or None."""
        raise NotImplementedError

    def head(self) -> Message | None:
        """Return the next message, which stays ready; None if there is none or it is unknown."""
        return None

    def heads_by_log(self) -> list[tuple[Log, int]]:
        """Return each log that has ready messages, with the position of the oldest of them."""
        return []

    def time_of(self, position: int) -> int:
        """Return when a message was appended, in milliseconds since 1970; 0 if it is unknown."""
        return 0

    def delivered(self, position: int) -> Message | None:
        """Return a delivered message that is not settled; None if it cannot be read again."""
        return None

    def settle(self, position: i64) -> Done:
        """Remove a delivered message for good."""
        raise NotImplementedError

    def settle_some(self, position: i64, count: i64) -> Done:
        """Remove delivered messages for good, whose positions are `step` apart.

        Args:
            position: the position of the first.
            count: how many.
        """
        index: i64
        for index in range(count):
            self.settle(position + index * self.step)
        return 0

    def requeue(self, position: i64) -> Done:
        """Make a delivered message ready again, as redelivered."""
        raise NotImplementedError

    def requeue_returned(self, position: i64) -> Done:
        """Requeue a message that the client returned (basic.nack, basic.reject with requeue)."""
        return self.requeue(position)

    def requeue_uncounted(self, position: int, redelivered: bool) -> int:
        """Requeue a message without counting a failed delivery.

        Args:
            position: the position of the message.
            redelivered: whether it counts as delivered before, if the queue type records that.
        """
        return self.requeue(position)

    def requeue_failed(self, position: i64) -> Done:
        """Requeue a message whose delivery has failed, and count that in any type of queue."""
        return self.requeue(position)

    def requeue_changed(self, position: int, remark: Remark, *, failed: bool) -> None:
        """Requeue a message with other headers, if the queue type can change them.

        Args:
            position: the position of the message.
            remark: what its consumer says of it.
            failed: whether the delivery counts as failed.
        """
        if failed:
            self.requeue_failed(position)
        else:
            self.requeue_uncounted(position, True)

    def time_out(self, position: i64) -> Done:
        """Requeue a delivered message that was not acknowledged in time."""
        return self.requeue(position)

    def delivery_counts(self) -> Histogram | None:
        """Return the failed deliveries of messages that have left; None if they are not counted."""
        return None

    def replaced_count(self) -> int:
        """Return how many messages newer ones of their keys have replaced since the start."""
        return 0

    def delayed_count(self) -> int:
        """Return how many messages wait for their retry."""
        return 0

    def retry_now(self) -> int:
        """Deliver messages that wait for their retry now; return how many."""
        return 0

    def reject(self, position: i64) -> Done:
        """Dead-letter or remove a delivered message that the consumer rejected."""
        raise NotImplementedError

    def reject_because(self, position: int, remark: Remark) -> None:
        """Reject a message; its dead letter has what the consumer says of it."""
        self.reject(position)

    def drain(self) -> Done:
        """Deliver ready messages to ready consumers until either is used up."""
        raise NotImplementedError

    def drain_later(self) -> Done:
        """Drain in the next turn: the work budget of this one is used up."""
        if not self.put_off:
            self.put_off = True
            self.work.later(self._drain_again)
        return 0

    def _drain_again(self) -> bool:
        self.put_off = False
        if not self.deleted:
            self.drain()
        return True

    def looks_for(self, consumer: Consumer) -> bool:
        """True if messages that are ready were not yet looked at for a selective consumer.

        Then a drain of its credit is not over: what it wants may still come in a later turn.
        """
        return False

    def unselected(self) -> tuple[int, int]:
        """Return how many ready messages no consumer wants, and the age of the oldest in ms.

        The age is 0 if there is none or it is unknown. With a consumer that has no selector there
        is no such message.
        """
        return 0, 0

    def serve(self, consumer: Consumer | None) -> Done:
        """Deliver to consumers, after one of them got credit.

        Args:
            consumer: the consumer; None without consumers.
        """
        return self.drain()

    def sync_soon(self) -> i32:
        """Add what was settled to the next commit.

        Return PENDING if the caller has to wait for it, ACCEPTED if nothing is durable.
        """
        return ACCEPTED

    def purge(self) -> int:
        """Remove all ready messages; return how many."""
        raise NotImplementedError

    def check_consumer(
        self,
        tag: str,
        arguments: Mapping[str, Any],
        *,
        no_ack: bool,
        exclusive: bool,
        prefetch: int,
    ) -> bool:
        """Refuse a consumer that this queue cannot serve.

        Args:
            tag: the consumer tag, "" if the broker chooses it.
            arguments: the arguments of the consumer.
            no_ack: whether it acknowledges nothing.
            exclusive: whether it must be the only consumer.
            prefetch: most unacknowledged deliveries; 0 is no limit.

        Returns:
            Whether the consumer is exclusive, if the queue type has exclusive consumers.
        """
        return exclusive

    def check_prefetch_global(self) -> None:
        """Refuse consumers of a channel with one prefetch limit for all of them (global)."""

    def check_lease(self) -> None:
        """Refuse leases, unless the queue type has them."""
        resource = rendered("queue", self.name, self.vhost)
        raise precondition(
            f"no lease is possible on {resource}: its messages stay when they are read, so its "
            "readers keep positions of their own"
        )

    def check_delete(self, *, if_unused: bool, if_empty: bool) -> None:
        """Refuse the conditions of queue.delete that the queue type does not know."""

    def add_consumer(self, consumer: Consumer) -> None:
        """Add a consumer."""
        raise NotImplementedError

    def remove_consumer(self, consumer: Consumer) -> None:
        """Remove a consumer; its unacknowledged deliveries stay unacknowledged."""
        raise NotImplementedError

    def first(self) -> Message | None:
        """Return the message that is delivered next, if the queue type can tell."""
        return None

    def add_browser(self, consumer: Consumer) -> None:
        """Add a browser: show it what is ready and what is published later, without taking it.

        `remove_consumer` removes it.
        """
        raise NotImplementedError

    def acquire(self, position: int, consumer: Consumer) -> bool:
        """Take a message that a browser was shown; False if it is no longer ready."""
        return False

    def unstore(self) -> None:
        """Remove the rows that the queue itself has stored, before it is deleted."""

    def delete(self) -> int:
        """Cancel the consumers and delete all messages; return how many were ready."""
        raise NotImplementedError
