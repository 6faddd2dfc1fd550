"""What the parts of a queue see of it: its state, what can be read of it, and the acts they share.

`MessageQueue` is the only implementation. Its parts import this module instead of the one that
imports them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harebell.base.c_types import C, Cdef, Done, i32, i64
from harebell.base.clock import Clock
from harebell.base.message import Message
from harebell.base.ports import Log
from harebell.kernels.batches import BatchBuilder
from harebell.model.consumer import Consumer
from harebell.model.queue.arguments import SINGLE_ACTIVE
from harebell.model.queue.contract import Queue
from harebell.model.queue.order.contract import MessageOrder
from harebell.model.queue.order.keyed import KeyedOrder
from harebell.model.queue.order.last_value import LastValueOrder
from harebell.model.queue.position_range import MessageRange

if TYPE_CHECKING:
    from harebell.model.dead_letter import DeadLetters
    from harebell.model.queue.features.deduplication import QueueDeduplication
    from harebell.model.queue.features.expiry import Expiry
    from harebell.model.queue.features.failure_counts import FailureCounts
    from harebell.model.queue.features.limits import Incoming, Limits
    from harebell.model.queue.features.sequence import QueueSequence
    from harebell.model.queue_context import QueueContext
    from harebell.model.remark import Remark

_NO_CLOCK = Clock()


class QueueInternals(Queue):
    """A queue as its parts see it.

    Args:
        name: unique in its vhost.
        vhost: the name of its vhost.
        order: the message order; messages in it are ready.
        **options: as for `Queue`.

    Attributes:
        order: as given.
        keyed: the order if it has ordering keys, else None.
        values: the order if it keeps last values only, else None.
        single: whether the queue serves a single active consumer.
        clock: the clock of the broker.
        context: the parts of the vhost that the queue uses; None before `join`.
        dead_letters: dead-letter settings; None if dead messages are dropped.
        limits: length limits; None without a limit.
        expiry: message expiry; None if no message can expire.
        quorum: the part of a quorum queue, else None.
        no_local: the part for no-local consumers; None without such consumers.
        selecting: the part for selective consumers; None without such consumers.
        retry: the part for delayed retries; None without retry delays.
        deduplication: the part that drops duplicates; None in queues that take them.
        sequence: the part that numbers messages; None in queues that do not.
        failures: the part that counts failed deliveries of all messages that leave; None in queues
            that do not.
        counted: the part that shows failed deliveries; None while there were none to show.
        spares: whether there may be messages that a full queue must not drop, see `spared_files`.
    """

    def __init__(self, name: str, vhost: str, order: MessageOrder, **options: Any) -> None:
        super().__init__(name, vhost, **options)
        self.order = order
        self.keyed: KeyedOrder | None = order if isinstance(order, KeyedOrder) else None
        self.values: LastValueOrder | None = order if isinstance(order, LastValueOrder) else None
        self.single = self.arguments.get(SINGLE_ACTIVE) is True
        self.clock: Clock = _NO_CLOCK
        self.context: QueueContext | None = None
        self.dead_letters: DeadLetters | None = None
        self.limits: Limits | None = None
        self.expiry: Expiry | None = None
        # These parts use this class, and it would be a circle of files to name their types here.
        self.quorum: Any = None
        self.no_local: Any = None
        self.selecting: Any = None
        self.retry: Any = None
        self.deduplication: QueueDeduplication | None = None
        self.sequence: QueueSequence | None = None
        self.failures: FailureCounts | None = None
        self.counted: FailureCounts | None = None
        self.spares = False

    # --- a message that arrives -----------------------------------------------------------------

    def note_kept(self, message: Message) -> Cdef[Done]:
        """Note a message that the order appends next."""
        raise NotImplementedError

    def outcome(self, message: Message) -> Cdef[i32]:
        """Return PENDING if a kept message has to be on disk first, else ACCEPTED."""
        raise NotImplementedError

    def with_expiry(self) -> Cdef[Expiry]:
        """Return the part that expires messages, made on first use."""
        raise NotImplementedError

    # --- limits ---------------------------------------------------------------------------------

    @property
    def counts_bytes(self) -> bool:
        """Whether the bytes of ready messages are counted."""
        return self.limits is not None and self.limits.counts

    @property
    def letters_refused(self) -> bool:
        """Whether the messages that it refuses are dead-lettered."""
        limits = self.limits
        return limits is not None and limits.letters and self.dead_letters is not None

    @property
    def refuses(self) -> bool:
        """Whether messages are refused when the queue is full."""
        return self.limits is not None and not self.limits.drops

    def may_refuse(self) -> bool:
        """True if the queue may refuse messages."""
        return self.refuses

    def takes(self, byte_count: int) -> bool:
        """True if a message of that size would be taken without dropping another one."""
        limits = self.limits
        if limits is None or not (limits.refusing or limits.full(self.order.count, byte_count)):
            return True
        return not self.order.count and any(consumer.ready() for consumer in self.consumers)

    def has_room(self, incoming: Incoming) -> bool:
        """True if all these messages would be taken if no consumer were ready."""
        limits = self.limits
        return limits is None or limits.drops or limits.has_room(self.order.count, incoming)

    # --- deliver --------------------------------------------------------------------------------

    def deliver_to(self, consumer: Consumer) -> Cdef[bool]:
        """Deliver the next message to a ready consumer; False if it is being read."""
        raise NotImplementedError

    def deal_keys(self) -> Cdef[Done]:
        """Deliver to the consumers of a queue with ordering keys that are not selective."""
        raise NotImplementedError

    # --- a message that is taken, or ready again ------------------------------------------------

    def prepare_take(self) -> Done:
        """Remove expired messages before the next message is read."""
        raise NotImplementedError

    def with_count(self, message: Message) -> C[Message]:
        """Return the message that was just taken with its delivery count, if it is counted."""
        return message if self.counted is None else self.counted.shown(message)

    def restore(self, position: i64, redelivered: bool) -> Done:
        """Make a message ready again in its place: requeued, after its retry delay, or put aside.

        Args:
            position: the position of the message, which is not unacknowledged any more.
            redelivered: whether it counts as delivered before.
        """
        raise NotImplementedError

    def pause(self, position: i64) -> Done:
        """Block the ordering key of a message that waits for its retry."""
        raise NotImplementedError

    # --- messages that are only read --------------------------------------------------------------

    def head(self) -> Message | None:
        """Return the next ready message, which stays ready."""
        return self.order.peek() if self.order.count > 0 else None

    def first(self) -> Message | None:
        """Return the message that is delivered next; it stays ready."""
        return self.order.peek()

    def heads_by_log(self) -> list[tuple[Log, int]]:
        """Return each log that has ready messages, with the position of the oldest of them."""
        return [] if self.deleted else self.order.heads_by_log()

    def time_of(self, position: int) -> int:
        """Return when a message was appended, in milliseconds since 1970; 0 if it is unknown."""
        return 0 if self.deleted else self.order.time_of(position)

    def delivered(self, position: int) -> Message | None:
        """Return a delivered message that is not settled."""
        return None if self.deleted else self.order.read(position)

    def span(self, moment: int) -> MessageRange:
        """Return the range of the messages."""
        return self.order.span(moment)

    def append_to(self, first: int, end: int, into: BatchBuilder) -> int:
        """Make rows of messages, delivered or not."""
        return self.order.append_to(first, end, into)

    def byte_count(self) -> int:
        """Return the bytes of its logs, or of its ready messages where they are counted."""
        # The count leaves out deliveries, so it is the whole queue only while there are none.
        if self.limits is not None and self.limits.counts and not self.unacked:
            return self.limits.byte_count
        logs = [order.log for _, order in self.order.levels()]
        return sum([log.byte_count() for log in logs if log is not None])

    # --- expiry ---------------------------------------------------------------------------------

    @property
    def may_expire(self) -> bool:
        """Whether messages with an expiry may be ready, delivered or leased."""
        return self.expiry is not None and self.expiry.active

    def expired(self, message: Message) -> C[bool]:
        """True if a message with an expiry has expired."""
        return message.due <= self.clock.steady

    def expire(self) -> None:
        """Remove expired messages at the head, and set the timer for the new head."""
        raise NotImplementedError

    def dead_letter(self, position: i64, reason: str, remark: Remark | None = None) -> Done:
        """Remove a message for a reason that dead-lettering knows.

        Args:
            position: the position of the message.
            reason: why it is removed.
            remark: what the consumer says that has rejected it.
        """
        raise NotImplementedError
