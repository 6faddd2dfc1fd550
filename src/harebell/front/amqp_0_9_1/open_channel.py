"""The channel interface for the parts of a channel: transactions, confirms, consumers, settling.

`Channel` imports these parts, so they are typed by this protocol and not by the class.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence as Entries
from typing import TYPE_CHECKING, Any, Protocol

from harebell.front.common.unacked import Unacked

if TYPE_CHECKING:
    from harebell.auth.topics import TopicPermission
    from harebell.auth.users import User
    from harebell.base.message import Message, Properties
    from harebell.base.sequence import Sequence
    from harebell.front.amqp_0_9_1.connection import Connection
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
        """How many publishes, and how many settled deliveries, it has."""

    def rollback(self, channel: Any) -> None:
        """Do none of it."""


class ChannelConfirms(Protocol):
    """The confirms of a channel."""

    taken: int
    sent: int

    def published(self, result: int) -> int:
        """Number another publish, with the bits that its queues answered."""

    def close(self) -> None:
        """Write the remaining confirms: the channel is closed."""


class ChannelPublisher(Protocol):
    """The publisher that a channel belongs to, whose repeats are dropped."""

    def passes_over(self, properties: Properties) -> bool:
        """Whether a message was published before."""

    def taken(self, result: int) -> int:
        """Note the answer of the queues to the message that was looked at last."""

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
    topic: TopicPermission | None
    reply_queue: ReplyQueue | None
    last_queue: str

    @property
    def connection(self) -> Connection:
        """The connection it belongs to."""

    @property
    def vhost(self) -> VHost:
        """Where its queues and exchanges are."""

    @property
    def user(self) -> User:
        """Whose permissions count."""

    @property
    def router(self) -> Router:
        """Of the vhost."""

    @property
    def unacked(self) -> Sequence:
        """Deliveries not acknowledged yet, by delivery tag."""

    def return_message(self, message: Message) -> None:
        """Send an unroutable mandatory message back."""

    def take_some(self, last: int, most: int) -> list[Unacked]:
        """Remove and return the first deliveries up to a tag, no more than so many."""

    def take_effect(self, entries: Entries[Unacked], kind: int) -> None:
        """Settle deliveries as a transaction says that is committed."""

    def accept(self, message: Message, queues: tuple[Queue, ...], flags: int) -> int:
        """Hand a routed message to its queues."""

    def serve_queues(self, entries: list[Unacked]) -> None:
        """Serve the queues of some deliveries."""

    def wait_turn(self, consumer: Consumer) -> int:
        """A consumer waits until the channel may have more out."""

    def take_turns(self) -> int:
        """Serve the consumers that wait, a message each."""

    def consumer_lost(self, consumer: Consumer) -> None:
        """Forget a consumer whose queue is gone, and tell the client."""

    def hold_until_recorded(self) -> None:
        """Hold output until everything that is declared in the vhost is on disk."""

    def readable(self, raw: bytes, class_id: int) -> bytes:
        """A property list of a class with headers that the client can read."""

    def write_frames(self, octets: bytes) -> None:
        """Write a method with its content that are frames already."""

    def close(self) -> None:
        """End the channel."""
