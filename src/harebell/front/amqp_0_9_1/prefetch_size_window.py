"""The limit of unacknowledged bytes of a channel: the prefetch-size of qos.

    size 50    |  20  |  20  |..........|    a message of 10 bytes may follow, one of 11 not

A message is sent if it fits into the remaining window; one that is longer than the whole window is
delivered alone, as it could not be delivered otherwise. RabbitMQ has no such limit, so only the
channels of other versions have a window, and only once it is set.
"""

from __future__ import annotations

from harebell.base.message import Message
from harebell.front.common.unacked import Unacked
from harebell.model.consumer import Consumer
from harebell.model.queue.contract import Queue

FITS = 1
TOO_LONG = 0
UNKNOWN = -1
"""The message is not in its queue yet: ask again in another turn."""


class Window:
    """The window of a channel, or of a connection.

    Attributes:
        size: the limit of unacknowledged bytes; 0 is no limit.
        used: the unacknowledged bytes.
    """

    __slots__ = ("size", "used")

    def __init__(self, size: int = 0) -> None:
        self.size = size
        self.used = 0

    def admits(self, queue: Queue) -> int:
        """Check whether the next message of a queue may be sent: FITS, TOO_LONG or UNKNOWN."""
        # AMQP 0-9-1 1.8.3.1: without unacknowledged messages the size limits nothing.
        if not self.size or not self.used:
            return FITS
        if self.used >= self.size:
            # Without a look at the message, which may have to be read from disk.
            return TOO_LONG
        head = queue.head()
        if head is None:
            return UNKNOWN
        return FITS if len(head.body) <= self.size - self.used else TOO_LONG

    def add(self, size: int) -> None:
        """Count a delivery of this many bytes."""
        self.used += size

    def remove(self, size: int) -> None:
        """Stop counting a delivery of this many bytes."""
        self.used -= size

    def entry(
        self, queue: Queue, consumer: Consumer | None, position: int, tag: int, message: Message
    ) -> SizedUnacked:
        """Make an unacknowledged delivery that counts against this window."""
        return SizedUnacked((self,), message, queue, consumer, position, tag)


class SizedUnacked(Unacked):
    """An unacknowledged delivery that counts against windows.

    Args:
        windows: those of its consumer and channel, which have less room until it is settled.
        message: the delivered message.
        queue, consumer, position, tag: as for `Unacked`.
    """

    __slots__ = ("_size", "_windows")

    def __init__(
        self,
        windows: tuple[Window, ...],
        message: Message,
        queue: Queue,
        consumer: Consumer | None,
        position: int,
        tag: int,
    ) -> None:
        super().__init__(queue, consumer, position, tag)
        self._windows = windows
        self._size = len(message.body)
        for window in windows:
            window.add(self._size)

    def _leave(self) -> None:
        # Emptied: a delivery that is forgotten and then settled must not count twice.
        windows, self._windows = self._windows, ()
        for window in windows:
            window.remove(self._size)

    def forget(self) -> None:
        """Release the consumer's credit: the message is delivered again under another tag."""
        self._leave()
        super().forget()

    def settle(self) -> int:
        """Acknowledge the delivery."""
        self._leave()
        return super().settle()

    def reject(self) -> int:
        """Reject the message without requeue."""
        self._leave()
        return super().reject()

    def requeue(self) -> int:
        """Requeue the message in its position."""
        self._leave()
        return super().requeue()

    def requeue_returned(self) -> int:
        """Requeue the message without counting a failed delivery."""
        self._leave()
        return super().requeue_returned()

    def time_out(self) -> int:
        """Requeue the message after the acknowledgement timeout."""
        self._leave()
        return super().time_out()
