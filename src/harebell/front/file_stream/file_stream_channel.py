"""The channel interface that the classes file and stream need.

Staging, windows and rates are the same in every version; how something is said to the peer is not.

    0-8, 0-9, transitional 0-10     harebell.front.amqp_0_9_1.channel
    final 0-10, beside a session    harebell.front.amqp_0_10.file_stream_adapter

The classes know no more of a channel than this.
"""

from __future__ import annotations

from collections.abc import Sequence as Several
from typing import TYPE_CHECKING, Any, Protocol

from harebell.base.limits import OUTPUT_HIGH_BYTES
from harebell.front.common.channel_like import ChannelLike

if TYPE_CHECKING:
    from harebell.base.message import Message
    from harebell.base.sequence import Sequence
    from harebell.model.consumer import Consumer
    from harebell.model.queue.contract import Queue
    from harebell.wire.v09.method import Method
    from harebell.wire.v09.property_list import PropertyList


class WaitingFiles(Protocol):
    """Files on their way to the consumers of a channel."""

    def go_on(self) -> None:
        """Send the next file when there is room for it."""


class ChannelClasses(Protocol):
    """The state of the classes file and stream for one channel; see `Classes`."""

    @property
    def files(self) -> WaitingFiles:
        """Files on their way to the channel's consumers."""

    def cancelled(self, consumer: Consumer) -> None:
        """Return what waits for a cancelled consumer to its queue."""

    def go_on(self) -> None:
        """Send files and packets that had to wait."""

    def close(self) -> None:
        """Stop staging and delivering: the channel is closed."""


class FileStreamChannel(ChannelLike, Protocol):
    """A channel, or the adapter of a session.

    Attributes:
        next_tag: the next delivery tag, from 1.
        outstanding: files that are delivered and not acknowledged.
    """

    next_tag: int
    outstanding: int

    @property
    def classes(self) -> ChannelClasses | None:
        """The state of the classes; None until one of them is used."""

    @property
    def unacked(self) -> Sequence:
        """Deliveries that are not acknowledged, by their tags."""

    @property
    def last_queue(self) -> str:
        """The queue that was declared last; "" for none."""

    def started(self) -> dict[str, Any]:
        """The consumers that were started here, by tag."""

    def companions(self) -> Several[ChannelClasses]:
        """The state of the classes on all channels of this connection."""

    def find_queue(self, name: str) -> Queue:
        """The queue that a name means."""

    def check_presented(self, number: int, right: str, place: tuple[int, int]) -> None:
        """Refuse what an access ticket does not allow, where the version has tickets."""

    def say(self, method: Method) -> None:
        """Send a method."""

    def send_body(
        self, method: Method, listed: PropertyList, raw: bytes, body: bytes, offset: int = 0
    ) -> None:
        """Send a method with a content: properties, and the body from an octet on."""

    def hand_over(self, message: Message, queues: tuple[Queue, ...], flags: int) -> int:
        """Publish a routed message, at once or in a transaction; returns the bits of its queues."""

    def put_off(self) -> int:
        """The publish that is being carried out has to wait; returns its number, 0 for none."""

    def went_through(self, number: int, result: int) -> None:
        """A publish is done.

        Args:
            number: from `put_off`; 0 for the one that is being carried out.
            result: the bits that its queues answered.
        """

    def stop_publisher(self, stop: bool) -> None:
        """Nothing more can be taken for now, or can again."""

    def caught(self, error: Exception, class_id: int, method_id: int, number: int) -> None:
        """A publish that had to wait has failed."""

    def consumer_lost(self, consumer: Consumer) -> None:
        """Forget a consumer whose queue was deleted."""

    def serve(self) -> int:
        """Deliver what the consumers here can take now."""


def may_deliver(channel: FileStreamChannel) -> bool:
    """Whether a delivery may be sent now: flow is on, and the output has room."""
    connection = channel.connection
    if connection.congested or connection.out.size >= OUTPUT_HIGH_BYTES:
        connection.starved = True
        return False
    asked = getattr(channel, "may_deliver", None)
    return asked is None or bool(asked())
