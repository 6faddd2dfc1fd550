"""What the parts of a queue see of it: its state, and the acts that they share.

`MessageQueue` is the only implementation. Its parts import this module instead of the one that
imports them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harebell.base.clock import Clock
from harebell.base.message import Message
from harebell.model.queue.arguments import SINGLE_ACTIVE
from harebell.model.queue.contract import Queue
from harebell.model.queue.order.contract import MessageOrder
from harebell.model.queue.order.keyed import KeyedOrder

if TYPE_CHECKING:
    from harebell.model.dead_letter import DeadLetters
    from harebell.model.queue.features.deduplication import QueueDeduplication
    from harebell.model.queue.features.expiry import Expiry
    from harebell.model.queue.features.limits import Limits
    from harebell.model.queue_context import QueueContext

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
        single: whether the queue serves a single active consumer.
        clock: the clock of the broker.
        context: the parts of the vhost that the queue uses; None before `join`.
        dead_letters: dead-letter settings; None if dead messages are dropped.
        limits: length limits; None without a limit.
        expiry: message expiry; None if no message can expire.
        quorum: the part of a quorum queue, else None.
        no_local: the part for no-local consumers; None without such consumers.
        retry: the part for delayed retries; None without retry delays.
        deduplication: the part that drops duplicates; None in queues that take them.
        spares: whether there may be messages that a full queue must not drop, see `drop_policy`.
    """

    def __init__(self, name: str, vhost: str, order: MessageOrder, **options: Any) -> None:
        super().__init__(name, vhost, **options)
        self.order = order
        self.keyed = order if isinstance(order, KeyedOrder) else None
        self.single = self.arguments.get(SINGLE_ACTIVE) is True
        self.clock = _NO_CLOCK
        self.context: QueueContext | None = None
        self.dead_letters: DeadLetters | None = None
        self.limits: Limits | None = None
        self.expiry: Expiry | None = None
        # These parts use this class, and it would be a circle of files to name their types here.
        self.quorum: Any = None
        self.no_local: Any = None
        self.retry: Any = None
        self.deduplication: QueueDeduplication | None = None
        self.spares = False

    # --- a message that arrives -----------------------------------------------------------------

    def refuse_if_full(self, message: Message, ready: int, byte_count: int) -> bool:
        """True if a message is refused, which may dead-letter it.

        Args:
            message: the one that was published.
            ready: how many are ready, or hidden by an open batch.
            byte_count: bytes of its body, and of those that an open batch hides.
        """
        raise NotImplementedError

    def note_kept(self, message: Message) -> int:
        """Note a message that the order appends next."""
        raise NotImplementedError

    def outcome(self, message: Message) -> int:
        """Return PENDING if a kept message has to be on disk first, else ACCEPTED."""
        raise NotImplementedError

    def with_expiry(self) -> Expiry:
        """Return the part that expires messages, made on first use."""
        raise NotImplementedError

    # --- limits ---------------------------------------------------------------------------------

    @property
    def counts_bytes(self) -> bool:
        """Whether the bytes of ready messages are counted."""
        return self.limits is not None and self.limits.counts

    def check_limits(self) -> int:
        """Drop the oldest messages above the limits, or refuse new ones."""
        raise NotImplementedError

    def begin_count(self) -> int:
        """Count the bytes of the ready messages, in several turns if they are many."""
        raise NotImplementedError

    def subtract_ready_bytes(self, message: Message) -> int:
        """Subtract the message at `order.position`, which was just taken, from the ready bytes."""
        raise NotImplementedError

    def add_ready_bytes(self, position: int, message: Message) -> int:
        """Add a message that is ready again, unless the count of a backlog will still reach it."""
        raise NotImplementedError

    def add_ready_bytes_at(self, position: int) -> int:
        """Add the bytes of the message at a position that is ready again, if bytes are counted."""
        raise NotImplementedError

    # --- a message that is taken, or ready again ------------------------------------------------

    def prepare_take(self) -> int:
        """Remove expired messages before the next message is read."""
        raise NotImplementedError

    def with_count(self, message: Message) -> Message:
        """Return the message that was just taken with its delivery count."""
        raise NotImplementedError

    def restore(self, position: int, redelivered: bool) -> int:
        """Make a message ready again in its place: requeued, after its retry delay, or put aside.

        Args:
            position: the position of the message, which is not unacknowledged any more.
            redelivered: whether it counts as delivered before.
        """
        raise NotImplementedError

    def pause(self, position: int) -> int:
        """Block the ordering key of a message that waits for its retry."""
        raise NotImplementedError

    def count_end(self, position: int) -> int:
        """Count the failed deliveries of a message that leaves the queue."""
        raise NotImplementedError

    # --- expiry ---------------------------------------------------------------------------------

    @property
    def may_expire(self) -> bool:
        """Whether messages with an expiry may be ready, delivered or leased."""
        return self.expiry is not None and self.expiry.active

    def expired(self, message: Message) -> bool:
        """True if a message with an expiry has expired."""
        return message.due <= self.clock.steady

    def expire(self) -> None:
        """Remove expired messages at the head, and set the timer for the new head."""
        raise NotImplementedError

    def check_head(self) -> int:
        """Check the expiry of a new head, if messages may expire."""
        raise NotImplementedError

    def dead_letter(self, position: int, reason: str) -> int:
        """Remove a message for a reason that dead-lettering knows."""
        raise NotImplementedError
