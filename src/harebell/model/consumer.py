"""Consumers, as a queue sees them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from harebell.base.message import Message

if TYPE_CHECKING:
    from harebell.model.queue.contract import Queue


class Consumer:
    """Someone who takes a queue's messages. The front derives from it and does the delivering.

    Args:
        queue: what is consumed.
        tag: the consumer tag.
        no_ack: whether a delivery counts as acknowledged when it is sent.
        exclusive: whether nobody else may consume.
        priority: higher ones are served first.
        prefetch: most unacknowledged deliveries at a time; 0 is no limit.
        arguments: as given by the client.
        excluded: the connection whose messages it does not want; 0 when it wants all.

    Attributes:
        unacked: deliveries that are not acknowledged yet.
        waits: whether its turn comes when others have let go what they share a limit with.
        before: its neighbour among the consumers of its queue; None when it is not one of them.
        after: the one on the other side, who is asked after it.
    """

    __slots__ = (
        "after",
        "arguments",
        "before",
        "excluded",
        "exclusive",
        "no_ack",
        "prefetch",
        "priority",
        "queue",
        "tag",
        "unacked",
        "waits",
    )

    def __init__(
        self,
        queue: Queue,
        tag: str,
        *,
        no_ack: bool = False,
        exclusive: bool = False,
        priority: int = 0,
        prefetch: int = 0,
        arguments: Mapping[str, Any] | None = None,
        excluded: int = 0,
    ) -> None:
        self.queue = queue
        self.tag = tag
        self.no_ack = no_ack
        self.exclusive = exclusive
        self.priority = priority
        self.prefetch = prefetch
        self.arguments = arguments or {}
        self.excluded = excluded
        self.unacked = 0
        self.waits = False
        self.before: Consumer | None = None
        self.after: Consumer | None = None

    def ready(self) -> bool:
        """Whether one more delivery may be handed over now."""
        raise NotImplementedError

    def fits(self, message: Message) -> bool:
        """Whether a consumer that is ready has room for this message; browsers are asked."""
        return True

    def deliver(self, message: Message, position: int, redelivered: bool) -> int:
        """Hand over a message; `position` is -1 when nothing will be acknowledged. Returns 0."""
        raise NotImplementedError

    def released(self) -> int:
        """A delivery was settled or came back."""
        self.unacked -= 1
        return 0

    def again(self) -> int:
        """There is more to look at: the queue shall be drained again in a later turn."""
        return 0

    def queue_deleted(self) -> None:
        """The queue is gone; nothing more will come."""
        raise NotImplementedError
