"""The state of the classes `file` and `stream`, per channel and per connection.

Both are created with the first method of these classes: a channel that only uses `basic` has no
cost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from harebell.front.file_stream.file_consumer import FileConsumer
from harebell.front.file_stream.file_lane import FileLane
from harebell.front.file_stream.file_stream_channel import ChannelClasses, FileStreamChannel
from harebell.front.file_stream.incoming import Arrivals
from harebell.front.file_stream.stream_consumer import StreamConsumer, StreamLane
from harebell.front.file_stream.windows import Rate, Window
from harebell.model.consumer import Consumer

if TYPE_CHECKING:
    from harebell.front.common.base_connection import BaseConnection


class Shared:
    """The limits of a connection as a whole, shared by its channels.

    Attributes:
        files: the window of unacknowledged files.
        packets: the window of packets that wait for a consumer.
        rate: the rate of packets.
    """

    def __init__(self) -> None:
        self.files = Window()
        self.packets = Window()
        self.rate = Rate()


class Classes:
    """The state of one channel.

    Args:
        channel: a channel, or a session that stands for one.

    Attributes:
        arrivals: files that the client stages and publishes.
        files: files on their way to the channel's consumers.
        packets: packets on their way to the channel's consumers.
    """

    def __init__(self, channel: FileStreamChannel) -> None:
        shared = shared_of(channel.connection)
        self.arrivals = Arrivals(channel)
        self.files = FileLane(channel, shared.files)
        self.packets = StreamLane(channel, shared.packets, shared.rate)

    def cancelled(self, consumer: Consumer) -> None:
        """Requeue what waits for a cancelled consumer."""
        if isinstance(consumer, FileConsumer):
            self.files.cancelled(consumer)
        elif isinstance(consumer, StreamConsumer):
            consumer.close()

    def move(self, shared: Shared) -> None:
        """Move the channel to another connection, which has its own limits."""
        self.files.move(shared.files)
        self.packets.move(shared.packets, shared.rate)

    def go_on(self) -> None:
        """Send files and packets that had to wait."""
        self.files.go_on()
        self.packets.go_on()

    def close(self) -> None:
        """Stop staging and delivering: the channel is closed."""
        self.arrivals.close()
        self.files.close()
        self.packets.close()


class ClassesHolder(FileStreamChannel, Protocol):
    """A channel that has `Classes` after their first use."""

    classes: ChannelClasses | None


def shared_of(connection: BaseConnection) -> Shared:
    """Return the limits that the channels of a connection share."""
    shared = connection.shared
    if shared is None:
        shared = connection.shared = Shared()
    assert isinstance(shared, Shared), "nothing else is kept there"
    return shared


def classes_of(channel: ClassesHolder) -> Classes:
    """Return the state of a channel, created at first use."""
    classes = channel.classes
    if classes is None:
        classes = channel.classes = Classes(channel)
    assert isinstance(classes, Classes)
    return classes
