"""The contract of a queue kind.

A kind is a log and something that remembers positions in it. It decides in which order messages
become ready and hands them to consumers that are ready too; it knows neither protocol nor
connection.
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
    from harebell.model.binding import Binding
    from harebell.model.queue.features.limits import Incoming
    from harebell.model.queue_context import QueueContext

ACCEPTED = 0
"""The queue took the message."""
REJECTED = 1
"""The queue is full and says so: the publisher's confirm becomes a nack."""
PENDING = 2
"""The queue took the message, and it is safe only with the commit that gathers now."""


class Queue:
    """A queue of any kind.

    Args:
        name: its name.
        vhost: the name of its vhost.
        durable: whether it survives a restart.
        auto_delete: whether it goes with its last consumer.
        owner: the connection it belongs to alone, or None.
        arguments: as declared.

    Attributes:
        identity: of its log; the factory sets it.
        bound: the bindings that lead here; None until there is one.
        itself: a tuple of just this queue, the commonest route of all.
        consumers: those who consume, and whose turn it is.
        browsers: those who look without taking.
        had_consumers: whether there ever was a consumer (auto-delete waits for the first).
        unacked: messages delivered and not settled.
        leased: messages that are claimed by groups, see `harebell.model.lease`.
        leases: those groups; None while there is none.
        stays: whether an auto-delete queue waits for the end of its owner, not for that of its
            last consumer.
        deleted: True once the queue is gone.
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
        self.bound: dict[Hashable, Binding] | None = None
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
        """Take a message: to a ready consumer at once, or into the log.

        Returns ACCEPTED or REJECTED, and PENDING with it when a confirm has to wait for the disk.
        """
        raise NotImplementedError

    def begin_batch(self) -> int:
        """What comes from now on is shown to nobody until `commit_batch` or `roll_back_batch`."""
        raise NotImplementedError

    def stage(self, message: Message) -> int:
        """Take a row of the batch for which the others are kept back."""
        raise NotImplementedError

    def commit_batch(self) -> int:
        """The batch is committed: what was kept back can be seen."""
        raise NotImplementedError

    def roll_back_batch(self) -> int:
        """The batch is refused: its rows go, and what else was kept back can be seen."""
        raise NotImplementedError

    def may_refuse(self) -> bool:
        """Whether there are messages that it would not take: if not, there is always room."""
        return False

    def has_room(self, incoming: Incoming) -> bool:
        """Whether it would take messages that are to come together."""
        return True

    @property
    def refuses(self) -> bool:
        """Whether it refuses messages when it is full."""
        return False

    def takes(self, octets: int) -> bool:
        """Whether one more message of that size would neither be refused nor push one out."""
        return True

    def join(self, context: QueueContext) -> None:
        """The queue is part of a vhost now, and may use what it finds there."""

    def configure(self, settings: Mapping[str, Any]) -> None:
        """Act by these settings from now on, on what is in the queue already too.

        Called when the queue is declared or restored, after `join`, and whenever a policy changes.

        Args:
            settings: those in effect, by their policy keys: arguments and policies merged.
        """

    def span(self, moment: int) -> Span:
        """Where its messages stand, and the first position of a time or later.

        Args:
            moment: milliseconds since 1970; 0 asks for none.

        Raises:
            Refusal: they stand nowhere.
        """
        raise cannot_be_spanned(self.name, self.vhost)

    def pour(self, first: int, end: int, into: BatchBuilder) -> int:
        """Make rows of the messages from a position up to another, until there are enough.

        Nothing is taken or marked. Returns the position to go on from; one before `end` with
        nothing left says that the queue ends there.

        Raises:
            Refusal: positions are gone, and may not be passed over.
        """
        raise cannot_be_spanned(self.name, self.vhost)

    def declared(self) -> None:
        """Somebody declared the queue again, or asked about it by a passive declaration."""

    def abandon(self, drop: Callable[[Queue], object]) -> None:
        """Nobody uses an auto-delete queue any more: it goes.

        Args:
            drop: deletes it.
        """
        drop(self)

    def tick(self) -> None:
        """Half a second or so has passed."""

    def committed(self) -> None:
        """A commit is on disk that this queue waited for."""

    def admit(self, message: Message) -> int:
        """Take a message that was promised room; as `publish`, but never REJECTED."""
        return self.publish(message)

    def take_over(self, message: Message) -> int:
        """Take a message that whoever sends it has to let go, taken or not; as `publish`."""
        return self.publish(message)

    def withhold(self, position: int) -> bool:
        """After a restart: a message is out; False for one that is not there, or cannot be.

        Called before `configure`, for what a distributed transaction has acknowledged that is
        prepared; the position is settled or comes back later like that of a delivery.
        """
        return False

    def ready_count(self) -> int:
        """Messages waiting for a consumer."""
        raise NotImplementedError

    def get(self) -> tuple[Message, int, bool] | None:
        """Take the next message: (message, position, redelivered), or None when there is none."""
        raise NotImplementedError

    def head(self) -> Message | None:
        """The next message, which stays ready; None when there is none, or it is not known."""
        return None

    def delivered(self, position: int) -> Message | None:
        """A message that was delivered and is not settled; None when it cannot be read again."""
        return None

    def settle(self, position: int) -> int:
        """A delivered message is done with."""
        raise NotImplementedError

    def requeue(self, position: int) -> int:
        """A delivered message comes back to its place, marked as redelivered."""
        raise NotImplementedError

    def give_back(self, position: int) -> int:
        """A delivered message comes back although nothing failed: basic.nack with requeue."""
        return self.requeue(position)

    def let_go(self, position: int, again: bool) -> int:
        """A delivered message comes back, and nothing failed.

        Args:
            position: of the message.
            again: whether it counts as delivered before, where the kind can tell.
        """
        return self.requeue(position)

    def time_out(self, position: int) -> int:
        """A delivered message was not acknowledged in time."""
        return self.requeue(position)

    def delayed_count(self) -> int:
        """Messages that wait for a time of their own before they are ready."""
        return 0

    def retry_now(self) -> int:
        """What waits for a time of its own is ready now; returns how many messages."""
        return 0

    def reject(self, position: int) -> int:
        """A delivered message is refused for good: dead-lettered, or done with."""
        raise NotImplementedError

    def drain(self) -> int:
        """Serve ready consumers as long as there is a message and one of them."""
        raise NotImplementedError

    def serve(self, consumer: Consumer | None) -> int:
        """A consumer can take more than before: serve whose turn it is.

        Args:
            consumer: that one; None where nobody consumes.
        """
        return self.drain()

    def sync_soon(self) -> int:
        """What was settled here shall be part of the next commit.

        Returns PENDING when there is something to wait for, ACCEPTED when nothing here is durable.
        """
        return ACCEPTED

    def purge(self) -> int:
        """Drop every ready message; returns how many."""
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
            tag: the consumer tag, "" when the broker will make it up.
            arguments: of the consumer.
            no_ack: whether it will acknowledge nothing.
            exclusive: whether it wants to be the only one.
            prefetch: how many deliveries at a time; 0 is no limit.

        Returns:
            Whether the consumer is the only one, where such a thing is known.
        """
        return exclusive

    def check_prefetch_global(self) -> None:
        """Refuse consumers of a channel that has one limit for all of them."""

    def check_lease(self) -> None:
        """Refuse leases, unless the kind has them."""
        thing = rendered("queue", self.name, self.vhost)
        raise precondition(
            f"no lease is possible on {thing}: its messages stay when they are read, so its "
            "readers keep positions of their own"
        )

    def check_delete(self, *, if_unused: bool, if_empty: bool) -> None:
        """Refuse conditions that the kind does not know."""

    def add_consumer(self, consumer: Consumer) -> None:
        """Serve a new consumer from now on."""
        raise NotImplementedError

    def remove_consumer(self, consumer: Consumer) -> None:
        """Serve a consumer no longer; its unacknowledged deliveries stay out."""
        raise NotImplementedError

    def first(self) -> Message | None:
        """The message that would go out next, where the kind can tell; it stays where it is."""
        return None

    def add_browser(self, consumer: Consumer) -> None:
        """Show what is ready, and what comes from now on, to somebody who takes nothing.

        `remove_consumer` ends that.
        """
        raise NotImplementedError

    def acquire(self, position: int, consumer: Consumer) -> bool:
        """Take a message that a browser was shown; False when it cannot be had."""
        return False

    def delete(self) -> int:
        """The queue is gone: tell its consumers, drop everything; returns the ready messages."""
        raise NotImplementedError
