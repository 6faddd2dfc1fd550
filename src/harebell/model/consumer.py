"""Consumers as a queue sees them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from harebell.base.c_types import C, Done, Py, i32, i64
from harebell.base.counters import UNCOUNTED, Counters
from harebell.base.message import Message
from harebell.kernels.output import OutputPassage
from harebell.model.queue.features.selector_group import SelectorGroup

if TYPE_CHECKING:
    from harebell.model.filter.condition import Filter
    from harebell.model.queue.contract import Queue


class Consumer:
    """A consumer of a queue. The front derives from it and implements the delivery.

    Args:
        queue: the queue that it gets messages from.
        tag: the consumer tag.
        no_ack: whether a delivery counts as acknowledged when it is sent.
        exclusive: whether the queue may have no other consumer.
        priority: higher ones are served first.
        prefetch: most unacknowledged deliveries; 0 is no limit.
        arguments: as given by the client.
        excluded: with no-local, its connection, whose messages it does not get; else 0.

    Attributes:
        unacked: deliveries that are not acknowledged yet.
        kept: about how much memory it takes, in bytes.
        waits: whether it waits for credit of a limit that it shares with other consumers.
        counters: those of its channel.
        details: those of its channel and queue.
        before: the consumer before it in the ring; None if it is in no ring.
        after: the consumer after it in the ring.
        selector: which messages it wants; None for all.
        group: with a selector, the consumers of its queue that have an equal one; see
            `queue.features.selecting`. Streams have none.
    """

    def __init__(
        self,
        queue: Queue,
        tag: str,
        *,
        no_ack: bool = False,
        exclusive: bool = False,
        priority: i32 = 0,
        prefetch: i32 = 0,
        arguments: Mapping[str, Any] | None = None,
        excluded: i64 = 0,
    ) -> None:
        self.queue: Py[Queue] = queue
        self.tag = tag
        self.no_ack = no_ack
        self.exclusive = exclusive
        self.priority = priority
        self.prefetch = prefetch
        self.arguments = arguments or {}
        self.excluded = excluded
        self.unacked: i32 = 0
        self.kept: i64 = 0
        self.waits = False
        self.counters: Counters = UNCOUNTED
        self.details: Counters = UNCOUNTED
        self.before: Consumer | None = None
        self.after: Consumer | None = None
        self.selector: Filter | None = None
        self.group: SelectorGroup | None = None

    def ready(self) -> C[bool]:
        """True if it has credit for one more delivery."""
        raise NotImplementedError

    def fits(self, message: Message) -> C[bool]:
        """True if a ready consumer has room for this message; called for browsers."""
        return True

    def deliver(self, message: Message, position: i64, redelivered: bool) -> Done:
        """Deliver a message; `position` is -1 if it is not to be acknowledged. Return 0."""
        raise NotImplementedError

    def passage(self, exchange: str, routing_key: str, family: i32) -> C[OutputPassage | None]:
        """Return how messages of a route get into its output without being kept.

        It is ready and takes no acknowledgements. None if it has to see each message, or converts
        those of the family.
        """
        return None

    def passed(self, count: i64) -> Done:
        """Note that messages have got to it through a passage."""
        raise NotImplementedError

    def released(self) -> Done:
        """Give back credit: a delivery was settled or requeued."""
        self.unacked -= 1
        return 0

    def released_some(self, count: i64) -> Done:
        """Give back the credit of several deliveries."""
        for _ in range(count):
            self.released()
        return 0

    def again(self) -> i32:
        """Have the queue drained again in a later turn."""
        return 0

    def is_active(self, active: bool) -> None:
        """Note that it becomes the single active consumer of its queue, or is it no more."""

    def queue_deleted(self) -> None:
        """Cancel the consumer: the queue was deleted."""
        raise NotImplementedError
