"""A consumer of files, and an unacknowledged delivery of a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harebell.base.message import Message
from harebell.front.common.unacked import Unacked
from harebell.front.limits import FILE_DELIVERIES_COUNT
from harebell.model.consumer import Consumer
from harebell.model.queue.contract import Queue
from harebell.model.queue.features.failure_counts import FAILURES
from harebell.model.queue.queue import MessageQueue

if TYPE_CHECKING:
    from harebell.front.file_stream.file_lane import FileLane


class FileConsumer(Consumer):
    """Delivers one file at a time, because each must be staged at the client first.

    Args:
        lane: of its channel.
        queue: what it consumes.
        tag: its consumer tag.
        automatic: whether a file counts as acknowledged when it has been delivered.
        **options: as for `Consumer`.

    For its queue it is never automatic: a file whose staging is interrupted is requeued.
    """

    def __init__(
        self, lane: FileLane, queue: Queue, tag: str, *, automatic: bool, **options: Any
    ) -> None:
        super().__init__(queue, tag, **options)
        self.lane = lane
        self.automatic = automatic

    def ready(self) -> bool:
        """True if its channel can stage another file."""
        return self.lane.ready()

    def deliver(self, message: Message, position: int, redelivered: bool) -> int:
        """Stage a file at the client, then deliver it."""
        self.unacked += 1
        self.lane.take(self, message, position, redelivered)
        return 0

    def again(self) -> int:
        """Request another turn."""
        return self.lane.channel.connection.ask_for_turn()

    def queue_deleted(self) -> None:
        """Send basic.cancel to clients that support it."""
        self.lane.channel.consumer_lost(self)


class FileUnacked(Unacked):
    """A file that was delivered and not acknowledged.

    Args:
        lane: of its channel.
        consumer: the consumer that got it.
        position: its position in the queue's log.
        tag: its delivery tag.
        byte_count: of its body.

    Attributes:
        refused: whether the client rejected it with requeue and does not get it again.
    """

    def __init__(
        self, lane: FileLane, consumer: FileConsumer, position: int, tag: int, byte_count: int
    ) -> None:
        super().__init__(consumer.queue, consumer, position, tag)
        self.lane = lane
        self.byte_count = byte_count
        self.refused = False

    def settle(self) -> int:
        """Acknowledge the delivery."""
        self.lane.released(self.byte_count)
        return super().settle()

    def reject(self) -> int:
        """Reject the file without requeue."""
        self.lane.released(self.byte_count)
        return super().reject()

    def requeue(self) -> int:
        """Requeue the file, or dead-letter it after too many failed deliveries."""
        if failed_too_often(self.queue, self.position):
            # AMQP 0-8, file.deliver: after a number of deliveries it should become a dead letter.
            return self.reject()
        if self.refused:
            self.lane.refused(self.queue, self.position)
        self.lane.released(self.byte_count)
        return super().requeue()

    def requeue_returned(self) -> int:
        """Requeue the message without counting a failed delivery."""
        self.lane.released(self.byte_count)
        return super().requeue_returned()

    def forget(self) -> None:
        """Stop counting it against limits; the file stays unacknowledged."""
        self.lane.released(self.byte_count)
        super().forget()

    def time_out(self) -> int:
        """Requeue the message after the acknowledgement timeout."""
        self.lane.released(self.byte_count)
        return super().time_out()


def failed_too_often(queue: Queue, position: int) -> bool:
    """Count an unacknowledged delivery; True if the file is a dead letter now.

    Without a dead-letter exchange it stays in its queue, whatever the count. A quorum queue
    counts on its own.
    """
    if not isinstance(queue, MessageQueue) or queue.quorum is not None or queue.deleted:
        return False
    count = queue.order.delivery_count(position)
    if count & FAILURES < FAILURES:
        queue.order.set_delivery_count(position, count + 1)
    return queue.dead_letters is not None and (count & FAILURES) + 1 >= FILE_DELIVERIES_COUNT
