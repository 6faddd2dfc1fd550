"""The state of the classes `file` and `stream`, per channel and per connection.

Both are made when one of their methods is used for the first time: a channel that only knows
`basic` pays for nothing.
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
        files: of files that are not acknowledged.
        packets: how many packets may wait for a consumer.
        rate: of packets.
    """

    def __init__(self) -> None:
        self.files = Window()
        self.packets = Window()
        self.rate = Rate()


class Classes:
    """The state of one channel.

    Args:
        channel: the channel.

    Attributes:
        arrivals: files that are being staged and published here.
        files: files on their way to the channel's consumers.
        packets: packets on their way to them.
    """

    def __init__(self, channel: FileStreamChannel) -> None:
        shared = shared_of(channel.connection)
        self.arrivals = Arrivals(channel)
        self.files = FileLane(channel, shared.files)
        self.packets = StreamLane(channel, shared.packets, shared.rate)

    def cancelled(self, consumer: Consumer) -> None:
        """Return what waits for a cancelled consumer to its queue."""
        if isinstance(consumer, FileConsumer):
            self.files.cancelled(consumer)
        elif isinstance(consumer, StreamConsumer):
            consumer.close()

    def move(self, shared: Shared) -> None:
        """Move the channel to another connection with limits of its own."""
        self.files.move(shared.files)
        self.packets.move(shared.packets, shared.rate)

    def go_on(self) -> None:
        """Something may go that had to wait."""
        self.files.go_on()
        self.packets.go_on()

    def close(self) -> None:
        """Stop staging and delivering: the channel is closed."""
        self.arrivals.close()
        self.files.close()
        self.packets.close()


class ClassesHolder(FileStreamChannel, Protocol):
    """A channel that keeps `Classes` from their first use on."""

    classes: ChannelClasses | None


def shared_of(connection: BaseConnection) -> Shared:
    """Get the limits that the channels of a connection share."""
    found = connection.shared
    if found is None:
        found = connection.shared = Shared()
    assert isinstance(found, Shared), "nothing else is kept there"
    return found


def classes_of(channel: ClassesHolder) -> Classes:
    """Get the state of a channel, created at first use."""
    found = channel.classes
    if found is None:
        found = channel.classes = Classes(channel)
    assert isinstance(found, Classes)
    return found
