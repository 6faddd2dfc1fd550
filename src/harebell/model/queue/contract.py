"""The contract of a queue: what the rest of the broker asks of any kind.

A queue is a log and positions in it. It decides in which order messages become ready, and delivers
them to consumers that are ready too. It knows neither protocol nor connection.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from harebell.base.message import Message
from harebell.kernels.batches import BatchBuilder
from harebell.model.consumer import Consumer
from harebell.model.queue.features.consumers import Consumers
from harebell.model.queue.position_range import Span, cannot_be_spanned
from harebell.model.resource import precondition, rendered

if TYPE_CHECKING:
    from harebell.model.queue.features.limits import Incoming

ACCEPTED = 0
"""The queue took the message."""
REJECTED = 1
"""The queue is full and says so: the publisher's confirm becomes a nack."""
PENDING = 2
"""The queue took the message, and it is safe only after the commit that gathers now."""


class Queue:
    """A queue of any kind.

    Args:
        name: its name.
        vhost: the name of its vhost.
        durable: whether it survives a restart.
        auto_delete: whether it is deleted with its last consumer.
        owner: the connection of an exclusive queue, or None.
        arguments: as declared.

    Attributes:
        identity: of its log; the factory sets it.
        bound: the bindings that lead here; None until there is one.
        itself: a tuple of this queue, the most common route.
        consumers: its consumers, and whose turn it is.
        browsers: consumers that take nothing.
        had_consumers: whether there ever was a consumer (auto-delete waits for the first).
        unacked: how many messages are delivered and not settled.
        leased: how many messages lease groups have claimed, see `harebell.model.lease`.
        leases: these groups; None while there is none.
        stays: whether an auto-delete queue is deleted with its owner, not with its last
            consumer.
        deleted: whether the queue was deleted.
        staging: whether what comes is hidden until a batch is committed.
        kind: the name of its kind, as in the definitions.
        ticks: whether `tick` has something to do.
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
        # Of `Binding`, which knows queues.
        self.bound: dict[Hashable, Any] | None = None
        self.itself: tuple[Queue, ...] = (self,)
        self.consumers = Consumers()
        self.browsers: Sequence[Consumer] = ()
        self.had_consumers = False
        self.unacked = 0
        self.leased = 0
        self.leases: Any = None
        self.published = 0
        self.stays = False
        self.deleted = False
        self.staging = False
        self.kind = ""
        self.ticks = False

    def publish(self, message: Message) -> int:
        """Deliver a message to a ready consumer, or append it to the log.

        Returns ACCEPTED or REJECTED, or PENDING if the confirm has to wait for the disk.
        """
        raise NotImplementedError

    def begin_batch(self) -> int:
        """Hide what comes from now on, until `commit_batch` or `roll_back_batch`."""
        raise NotImplementedError

    def stage(self, message: Message) -> int:
        """Take a row of the batch."""
        raise NotImplementedError

    def commit_batch(self) -> int:
        """Make what was hidden ready."""
        raise NotImplementedError

    def roll_back_batch(self) -> int:
        """Remove the rows of the batch, and make what else was hidden ready."""
        raise NotImplementedError

    def may_refuse(self) -> bool:
        """Return whether there are messages that it would refuse."""
        return False

    def has_room(self, incoming: Incoming) -> bool:
        """Return whether it would take all of these messages."""
        return True

    @property
    def refuses(self) -> bool:
        """Whether it refuses messages when it is full."""
        return False

    def takes(self, octets: int) -> bool:
        """Return whether a message of that size is neither refused nor has another one dropped."""
        return True

    def join(self, context: Any) -> None:
        """Become part of a vhost, and use what it has.

        Args:
            context: a `QueueContext`, which knows queues; this module must not know it.
        """

    def configure(self, settings: Mapping[str, Any]) -> None:
        """Apply settings, to the messages in the queue too.

        Called when the queue is declared or restored, after `join`, and whenever a policy changes.

        Args:
            settings: arguments and policies merged, by their policy keys.
        """

    def span(self, moment: int) -> Span:
        """Return where its messages are, and the first position of a time or later.

        Args:
            moment: milliseconds since 1970; 0 asks for none.

        Raises:
            Refusal: it keeps no messages.
        """
        raise cannot_be_spanned(self.name, self.vhost)

    def pour(self, first: int, end: int, into: BatchBuilder) -> int:
        """Make rows of the messages from a position up to another, until the builder is full.

        Nothing is taken or marked. Returns the position to go on from; one before `end` with
        room left in the builder means that the queue ends there.

        Raises:
            Refusal: positions are lost, and may not be skipped.
        """
        raise cannot_be_spanned(self.name, self.vhost)

    def declared(self) -> None:
        """The queue was declared again, or passively."""

    def abandon(self, drop: Callable[[Queue], object]) -> None:
        """Delete an auto-delete queue that is not used any more.

        Args:
            drop: deletes it.
        """
        drop(self)

    def tick(self) -> None:
        """Do what is due about twice a second, if `ticks`."""

    def committed(self) -> None:
        """A commit that this queue waited for is on disk."""

    def admit(self, message: Message) -> int:
        """Take a message for which room was reserved; as `publish`, but never REJECTED."""
        return self.publish(message)

    def take_over(self, message: Message) -> int:
        """Take a message that its sender loses if it is refused; as `publish`."""
        return self.publish(message)

    def withhold(self, position: int) -> bool:
        """After a restart, take a message out of what is ready; False if it is not there.

        Called before `configure`, for acknowledgements of a prepared distributed transaction; the
        position is settled or comes back later like that of a delivery.
        """
        return False

    def ready_count(self) -> int:
        """Return how many messages are ready."""
        raise NotImplementedError

    def get(self) -> tuple[Message, int, bool] | None:
        """Take the next message: (message, position, redelivered), or None."""
        raise NotImplementedError

    def head(self) -> Message | None:
        """Return the next message, which stays ready; None if there is none, or it is not known."""
        return None

    def delivered(self, position: int) -> Message | None:
        """Return a delivered message that is not settled; None if it cannot be read again."""
        return None

    def settle(self, position: int) -> int:
        """Remove a delivered message for good."""
        raise NotImplementedError

    def requeue(self, position: int) -> int:
        """Make a delivered message ready again, as redelivered."""
        raise NotImplementedError

    def give_back(self, position: int) -> int:
        """Make a delivered message ready again that the client returned: basic.nack."""
        return self.requeue(position)

    def let_go(self, position: int, redelivered: bool) -> int:
        """Make a delivered message ready again without counting a failure.

        Args:
            position: of the message.
            redelivered: whether it counts as delivered before, where the kind knows.
        """
        return self.requeue(position)

    def time_out(self, position: int) -> int:
        """Take back a delivered message that was not acknowledged in time."""
        return self.requeue(position)

    def delayed_count(self) -> int:
        """Return how many messages wait for their retry."""
        return 0

    def retry_now(self) -> int:
        """Deliver at once what waits for its retry; return how many messages."""
        return 0

    def reject(self, position: int) -> int:
        """Dead-letter or remove a delivered message that the consumer rejected."""
        raise NotImplementedError

    def drain(self) -> int:
        """Serve ready consumers as long as there is a message and one of them."""
        raise NotImplementedError

    def serve(self, consumer: Consumer | None) -> int:
        """Serve consumers, after one of them got credit.

        Args:
            consumer: that one; None without consumers.
        """
        return self.drain()

    def sync_soon(self) -> int:
        """Make what was settled part of the next commit.

        Returns PENDING if there is something to wait for, ACCEPTED if nothing here is durable.
        """
        return ACCEPTED

    def purge(self) -> int:
        """Drop every ready message; return how many."""
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
            tag: the consumer tag, "" if the broker makes it up.
            arguments: of the consumer.
            no_ack: whether it acknowledges nothing.
            exclusive: whether it asks to be the only one.
            prefetch: how many deliveries at a time; 0 is no limit.

        Returns:
            Whether the consumer is exclusive, where the kind knows such consumers.
        """
        return exclusive

    def check_prefetch_global(self) -> None:
        """Refuse consumers of a channel with one prefetch limit for all of them."""

    def check_lease(self) -> None:
        """Refuse leases, unless the kind has them."""
        thing = rendered("queue", self.name, self.vhost)
        raise precondition(
            f"no lease is possible on {thing}: its messages stay when they are read, so its "
            "readers keep positions of their own"
        )

    def check_delete(self, *, if_unused: bool, if_empty: bool) -> None:
        """Refuse conditions of queue.delete that the kind does not know."""

    def add_consumer(self, consumer: Consumer) -> None:
        """Serve a new consumer from now on."""
        raise NotImplementedError

    def remove_consumer(self, consumer: Consumer) -> None:
        """Serve a consumer no longer; its unacknowledged deliveries stay unacknowledged."""
        raise NotImplementedError

    def first(self) -> Message | None:
        """Return the message that would be delivered next, where the kind knows."""
        return None

    def add_browser(self, consumer: Consumer) -> None:
        """Show what is ready, and what comes from now on, to a consumer that takes nothing.

        `remove_consumer` ends that.
        """
        raise NotImplementedError

    def acquire(self, position: int, consumer: Consumer) -> bool:
        """Take a message that a browser was shown; False if it is not ready any more."""
        return False

    def delete(self) -> int:
        """Cancel the consumers, and delete all messages; return how many were ready."""
        raise NotImplementedError
