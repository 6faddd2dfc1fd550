"""The channel interface for the parts of a channel: transactions, confirms, consumers, settling.

`Channel` imports these parts, so they are typed by this protocol and not by the class.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence as Entries
from typing import TYPE_CHECKING, Any, Protocol

from harebell.front.common.unacked import Unacked, UnackedDeliveries

if TYPE_CHECKING:
    from harebell.auth.topics import TopicRule
    from harebell.auth.users import User
    from harebell.base.counters import Counters
    from harebell.base.message import Message, Properties
    from harebell.front.amqp_0_9_1.connection import Connection
    from harebell.front.common.channel_details import ChannelDetails
    from harebell.model.consumer import Consumer
    from harebell.model.queue.contract import Queue
    from harebell.model.queue.reply import ReplyQueue
    from harebell.model.router import Router
    from harebell.model.vhost import VHost


class ChannelWork(Protocol):
    """Work that a channel does at commit: a transaction of its own, or a branch."""

    def publish(self, message: Message, queues: tuple[Queue, ...], flags: int) -> None:
        """Keep a publish."""

    def settle(self, entries: list[Unacked], kind: int) -> None:
        """Keep acknowledgements or rejections."""

    def pending(self) -> tuple[int, int]:
        """Return the numbers of publishes and of settled deliveries."""

    def rollback(self, channel: Any) -> None:
        """Roll back."""


class ChannelConfirms(Protocol):
    """The confirms of a channel."""

    taken: int
    sent: int

    def published(self, result: int) -> int:
        """Number a publish; `result` has the bits of its queues."""

    def passed(self, count: int) -> int:
        """Number publishes whose messages were delivered at once."""

    def publishes_at(self, details: Counters) -> None:
        """Count confirms of later publishes for another exchange."""

    def count_details(self) -> None:
        """Count for each exchange the publishes that were confirmed since the last call."""

    def close(self) -> None:
        """Write the remaining confirms: the channel is closed."""


class ChannelPublisher(Protocol):
    """The named publisher of a channel, whose repeated messages are dropped."""

    def passes_over(self, properties: Properties) -> bool:
        """True if a message was published before."""

    def taken(self, result: int) -> int:
        """Note the result bits of the queues for the message that was checked last."""

    def close(self) -> None:
        """Release the publisher: the channel is closed, or has another publisher."""


class OpenChannel(Protocol):
    """A channel; see `Channel` for its attributes."""

    number: int
    next_tag: int
    consumers: dict[str, Consumer] | None
    prefetch: int
    prefetch_global: int
    outstanding: int
    allowed: int
    waiting: deque[Consumer] | None
    confirms: ChannelConfirms | None
    transaction: ChannelWork | None
    publisher: ChannelPublisher | None
    topic: TopicRule | None
    reply_queue: ReplyQueue | None
    last_queue: str
    counters: Counters
    details: ChannelDetails | None
    at_exchange: Counters

    @property
    def connection(self) -> Connection:
        """The connection it belongs to."""

    @property
    def vhost(self) -> VHost:
        """The vhost of its queues and exchanges."""

    @property
    def user(self) -> User:
        """The user whose permissions are checked."""

    @property
    def router(self) -> Router:
        """The router of the vhost."""

    @property
    def unacked(self) -> UnackedDeliveries:
        """Deliveries not acknowledged yet, by delivery tag."""

    def return_message(self, message: Message, code: int = 312) -> None:
        """Send an undeliverable message back to its publisher with a reply code."""

    def take_some(self, last: int, limit: int) -> list[Unacked]:
        """Remove and return the first deliveries up to a tag, at most so many."""

    def take_effect(self, entries: Entries[Unacked], kind: int) -> None:
        """Settle the deliveries of a committed transaction."""

    def accept(self, message: Message, queues: tuple[Queue, ...], flags: int) -> int:
        """Publish a routed message to its queues."""

    def serve_queues(self, entries: list[Unacked]) -> None:
        """Serve the queues of some deliveries."""

    def await_prefetch(self, consumer: Consumer) -> int:
        """Let a consumer wait until the channel may have more deliveries."""

    def share_prefetch(self) -> int:
        """Serve the waiting consumers, a message each."""

    def consumer_lost(self, consumer: Consumer) -> None:
        """Remove a consumer whose queue was deleted, and send basic.cancel."""

    def hold_until_recorded(self) -> None:
        """Hold output until everything that is declared in the vhost is on disk."""

    def readable(self, raw: bytes, class_id: int) -> bytes:
        """Convert the headers of a property list to types that the client can read."""

    def write_frames(self, data: bytes) -> None:
        """Write the frames of a method with content."""

    def close(self) -> None:
        """End the channel."""
