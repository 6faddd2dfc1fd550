"""The channel interface that the classes file and stream need.

Staging, windows and rates are the same in every version; the methods to the peer are not.

    0-8, 0-9, transitional 0-10     harebell.front.amqp_0_9_1.channel
    final 0-10, beside a session    harebell.front.amqp_0_10.file_stream_adapter

The classes use only this interface.
"""

from __future__ import annotations

from collections.abc import Sequence as Several
from typing import TYPE_CHECKING, Any, Protocol

from harebell.front.common.channel_like import ChannelLike
from harebell.front.limits import OUTPUT_HIGH_BYTES

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
        """Send the next file if it fits into the windows."""


class ChannelClasses(Protocol):
    """The state of the classes file and stream for one channel; see `Classes`."""

    @property
    def files(self) -> WaitingFiles:
        """Files on their way to the channel's consumers."""

    def cancelled(self, consumer: Consumer) -> None:
        """Requeue what waits for a cancelled consumer."""

    def go_on(self) -> None:
        """Send files and packets that had to wait."""

    def close(self) -> None:
        """Stop staging and delivering: the channel is closed."""


class FileStreamChannel(ChannelLike, Protocol):
    """A channel, or the adapter of a session.

    Attributes:
        next_tag: the next delivery tag, from 1.
        outstanding: the number of unacknowledged files.
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
        """Resolve a queue name."""

    def check_presented(self, number: int, right: str, place: tuple[int, int]) -> None:
        """Refuse what an access ticket does not allow, if the version has tickets."""

    def say(self, method: Method) -> None:
        """Send a method."""

    def send_body(
        self, method: Method, listed: PropertyList, raw: bytes, body: bytes, offset: int = 0
    ) -> None:
        """Send a method with a content: properties, and the body from an offset on."""

    def forward(self, message: Message, queues: tuple[Queue, ...], flags: int) -> int:
        """Publish a routed message, at once or in a transaction; return the bits of its queues."""

    def put_off(self) -> int:
        """Let the current publish wait; return its number, 0 for none."""

    def went_through(self, number: int, result: int) -> None:
        """Complete a publish.

        Args:
            number: from `put_off`; 0 for the current one.
            result: the result bits of its queues.
        """

    def stop_publisher(self, stop: bool) -> None:
        """Stop the publisher, or let it continue."""

    def caught(self, error: Exception, class_id: int, method_id: int, number: int) -> None:
        """Handle the failure of a publish that had to wait."""

    def consumer_lost(self, consumer: Consumer) -> None:
        """Forget a consumer whose queue was deleted."""

    def serve(self) -> int:
        """Serve the consumers."""


def may_deliver(channel: FileStreamChannel) -> bool:
    """True if a delivery may be sent now: flow is on, and the output has space."""
    connection = channel.connection
    if connection.congested or connection.out.size >= OUTPUT_HIGH_BYTES:
        connection.starved = True
        return False
    asked = getattr(channel, "may_deliver", None)
    return asked is None or bool(asked())
