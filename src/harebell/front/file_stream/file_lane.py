"""Files on their way to the consumers of one channel: staged at the client, then delivered.

    open  ->                identifier and size
          <-  open-ok       how much the client has already
    stage ->                the rest, as a content
    deliver ->              by the identifier

open-ok does not identify its file, so files are sent one at a time. The identifier consists of
queue and position: when the file is redelivered after a lost connection, the client can report how
much of it has arrived.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from harebell.base.message import FAMILY_FILE, Message
from harebell.front.common.errors import hard, soft
from harebell.front.common.firehose_tap import delivered
from harebell.front.convert import converted
from harebell.front.file_stream.file_consumer import FileConsumer, FileUnacked
from harebell.front.file_stream.file_stream_channel import may_deliver
from harebell.front.file_stream.windows import Window
from harebell.front.limits import FILE_ASIDE_COUNT, FILE_RETRY_MS
from harebell.model.queue.contract import Queue
from harebell.model.queue.queue import MessageQueue
from harebell.wire.v09.methods_older import FileDeliver, FileOpen, FileStage
from harebell.wire.v09.property_list import FILE

if TYPE_CHECKING:
    from harebell.front.file_stream.file_stream_channel import FileStreamChannel

_CLASS = 70
_OPEN_OK = 41


class Outgoing:
    """A file on its way.

    Args:
        consumer: the consumer that gets it.
        message: the file.
        position: its position in the queue's log.
        redelivered: whether it was delivered before.

    Attributes:
        opened: whether file.open was sent.
    """

    def __init__(
        self, consumer: FileConsumer, message: Message, position: int, redelivered: bool
    ) -> None:
        self.consumer = consumer
        self.message = message
        self.position = position
        self.redelivered = redelivered
        self.opened = False
        self.identifier = f"{consumer.queue.identity}-{position}"


class FileLane:
    """Files that are being delivered, and files that the client refused.

    Args:
        channel: where the files are sent.
        shared: the window of its connection.

    Attributes:
        channel: as given.
        window: of the channel.
    """

    def __init__(self, channel: FileStreamChannel, shared: Window) -> None:
        self.channel = channel
        self.window = Window()
        self._shared = shared
        self._now: Outgoing | None = None
        # More than one waits only after a recover without requeue.
        self._waiting: deque[Outgoing] = deque()
        # Files that this client rejected with requeue, and those of them that came here again.
        self._refused: dict[tuple[Queue, int], None] = {}
        self._aside: list[tuple[FileConsumer, int]] = []
        self._standing_back = False
        self._over = False
        self._timer = channel.connection.broker.timers.timer(self._retry)

    # --- called by the queue --------------------------------------------------------------------

    def ready(self) -> bool:
        """True if another file can be staged."""
        if self._now is not None or self._standing_back or len(self._aside) >= FILE_ASIDE_COUNT:
            return False
        if self._over:
            return False
        return may_deliver(self.channel)

    def take(
        self, consumer: FileConsumer, message: Message, position: int, redelivered: bool
    ) -> None:
        """Take a file for a consumer."""
        if (consumer.queue, position) in self._refused:
            self._take_refused(consumer, position)
            return
        message = converted(message, FAMILY_FILE)
        self._waiting.append(Outgoing(consumer, message, position, redelivered))
        self.go_on()

    # --- staging at the client ------------------------------------------------------------------

    def go_on(self) -> None:
        """Send file.open for the next file, if it fits into the windows."""
        if self._now is None and self._waiting:
            self._now = self._waiting.popleft()
        now = self._now
        if now is None or now.opened:
            return
        byte_count = len(now.message.body)
        # A file that needs no acknowledgement would never give its room in the windows back.
        if not now.consumer.automatic:
            if not (self.window.fits(byte_count) and self._shared.fits(byte_count)):
                return
            self.window.add(byte_count)
            self._shared.add(byte_count)
        now.opened = True
        self.channel.say(FileOpen(now.identifier, byte_count))

    def opened(self, staged: int) -> None:
        """file.open-ok: send what the client does not have, and deliver the file.

        Raises:
            ProtocolError: 503 if no file is open, 406 if the client has more than the file.
        """
        now, channel = self._now, self.channel
        if now is None or not now.opened:
            raise hard(503, "file.open-ok answers no file.open", _CLASS, _OPEN_OK)
        message, consumer = now.message, now.consumer
        if staged > len(message.body):
            text = f"staged-size {staged} is more than the {len(message.body)} octets of the file"
            raise soft(406, text, _CLASS, _OPEN_OK)
        # Also with nothing left to send: file.stage carries the properties.
        channel.send_body(FileStage(), FILE, message.raw, message.body, staged)
        self._now = None
        tag = channel.next_tag
        channel.next_tag = tag + 1
        deliver = FileDeliver(
            consumer.tag, tag, now.redelivered, message.exchange, message.routing_key,
            now.identifier,
        )  # fmt: skip
        channel.say(deliver)
        if channel.router.tracer is not None:
            delivered(channel, message, consumer.queue.name, now.redelivered)
        if consumer.automatic:
            consumer.released()
            consumer.queue.settle(now.position)
        else:
            channel.outstanding += 1
            byte_count = len(message.body)
            channel.unacked.put(tag, FileUnacked(self, consumer, now.position, tag, byte_count))
        self.go_on()
        channel.serve()

    def released(self, byte_count: int) -> None:
        """Release the window after a file was acknowledged or requeued."""
        self.channel.outstanding -= 1
        self._make_room(byte_count)

    def _make_room(self, byte_count: int) -> None:
        self.window.remove(byte_count)
        self._shared.remove(byte_count)
        for each in self.channel.companions():
            each.files.go_on()

    def move(self, shared: Window) -> None:
        """Move the channel to another connection, whose window counts its deliveries."""
        self._shared.count -= self.window.count
        self._shared.byte_count -= self.window.byte_count
        shared.count += self.window.count
        shared.byte_count += self.window.byte_count
        self._shared = shared

    def cancelled(self, consumer: FileConsumer) -> None:
        """Requeue the files of a cancelled consumer that were not announced to the client."""
        if self._now is not None and not self._now.opened:
            self._waiting.appendleft(self._now)
            self._now = None
        waiting, self._waiting = self._waiting, deque()
        for each in waiting:
            if each.consumer is consumer:
                self._requeue(consumer, each.position, redelivered=each.redelivered)
            else:
                self._waiting.append(each)
        aside, self._aside = self._aside, []
        for other, position in aside:
            if other is consumer:
                self._requeue(consumer, position)
            else:
                self._aside.append((other, position))
        self.go_on()

    def _requeue(self, consumer: FileConsumer, position: int, *, redelivered: bool = True) -> None:
        consumer.released()
        consumer.queue.requeue_uncounted(position, redelivered)

    # --- rejected with requeue ------------------------------------------------------------------

    def refused(self, queue: Queue, position: int) -> None:
        """file.reject with requeue: the file never comes to this channel again."""
        self._refused[queue, position] = None
        # The oldest are forgotten: a client that rejects without end must not fill memory.
        while len(self._refused) > FILE_ASIDE_COUNT:
            del self._refused[next(iter(self._refused))]

    def _take_refused(self, consumer: FileConsumer, position: int) -> None:
        """Handle a rejected file that came again: dead-letter it if there is no other consumer."""
        queue = consumer.queue
        letters = isinstance(queue, MessageQueue) and queue.dead_letters is not None
        if letters and not any(self._is_other(each) for each in queue.consumers):
            consumer.released()
            queue.reject(position)
        else:
            self._put_aside(consumer, position)

    def _put_aside(self, consumer: FileConsumer, position: int) -> None:
        """Keep a file for which there was no other consumer."""
        self._aside.append((consumer, position))
        self._timer.set_earlier(self.channel.connection.broker.clock.steady + FILE_RETRY_MS)

    def _retry(self) -> None:
        """Offer the kept files to other consumers."""
        aside, self._aside = self._aside, []
        for consumer, position in aside:
            queue = consumer.queue
            if queue.deleted:
                consumer.released()
            elif any(self._is_other(each) and each.ready() for each in queue.consumers):
                # This channel is not ready while the queue chooses, so another consumer gets it.
                self._standing_back = True
                try:
                    self._requeue(consumer, position)
                    queue.drain()
                finally:
                    self._standing_back = False
                queue.drain()
            else:
                self._aside.append((consumer, position))
        if self._aside:
            self._timer.set_earlier(self.channel.connection.broker.clock.steady + FILE_RETRY_MS)

    def _is_other(self, consumer: object) -> bool:
        return getattr(consumer, "lane", None) is not self

    def close(self) -> None:
        """Requeue the files that are being delivered: the channel is closed."""
        self._over = True
        self._timer.stop()
        now, self._now = self._now, None
        aside, self._aside = self._aside, []
        if now is not None:
            # Only an opened file counts in the windows; the shared one outlives the channel.
            if now.opened and not now.consumer.automatic:
                self._make_room(len(now.message.body))
            aside.append((now.consumer, now.position))
        aside += [(each.consumer, each.position) for each in self._waiting]
        self._waiting.clear()
        for consumer, position in aside:
            self._requeue(consumer, position)
        for queue in {consumer.queue: None for consumer, _ in aside}:
            if not queue.deleted:
                queue.drain()
