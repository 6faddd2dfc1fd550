"""A consumer of packets: rate limited, by priority, without acknowledgements.

A packet that cannot be sent at once, because of the rate or the socket, waits in a small window of
the consumer, and further ones in the queue. If the window is full and a packet of a higher priority
arrives, the packet of the lowest priority is discarded (AMQP 0-8, class stream). Messages that were
not published as packets are never discarded: they wait.

    queue ... p3 p7 p1  ->  [ next ]  ->  window  9 7 5 5 1  ->  socket
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harebell.base.message import FAMILY_STREAM, Message
from harebell.front.common.firehose_tap import delivered
from harebell.front.convert import converted
from harebell.front.file_stream.file_stream_channel import may_deliver
from harebell.front.file_stream.windows import Rate, Window
from harebell.front.limits import STREAM_RETRY_MS, STREAM_WINDOW_BYTES, STREAM_WINDOW_MESSAGES
from harebell.model.consumer import Consumer
from harebell.model.queue.contract import Queue
from harebell.wire.v09.methods_older import StreamDeliver
from harebell.wire.v09.property_list import STREAM

if TYPE_CHECKING:
    from harebell.front.file_stream.file_stream_channel import FileStreamChannel

_HIGHEST = 9


class Packet:
    """A packet that waits for a consumer.

    Args:
        message: the message as it was published.
        position: its position in the queue's log.

    Attributes:
        discardable: whether it was published as a packet.
        redelivered: whether it may have been delivered before.
    """

    __slots__ = ("discardable", "message", "position", "redelivered")

    def __init__(self, message: Message, position: int, redelivered: bool) -> None:
        self.discardable = message.family == FAMILY_STREAM
        self.message = converted(message, FAMILY_STREAM)
        self.position = position
        self.redelivered = redelivered

    @property
    def level(self) -> int:
        """The priority, from 0 to 9."""
        return min(max(self.message.priority, 0), _HIGHEST)

    @property
    def byte_count(self) -> int:
        """The size of the body in bytes."""
        return len(self.message.body)


class StreamLane:
    """The limits for the packet consumers of a channel, and of its connection.

    Args:
        channel: where the packets are sent.
        shared: the window of each consumer of the connection.
        shared_rate: the rate of the connection.

    Attributes:
        channel: as given.
        window: the window of each consumer of the channel.
        rate: the rate of the channel.
        consumers: the packet consumers of the channel.
    """

    def __init__(self, channel: FileStreamChannel, shared: Window, shared_rate: Rate) -> None:
        self.channel = channel
        self.window = Window()
        self.rate = Rate()
        self.consumers: list[StreamConsumer] = []
        self._shared = shared
        self._shared_rate = shared_rate

    def allows(self, now: int) -> bool:
        """True if the rates allow a packet now."""
        return self.rate.allows(now) and self._shared_rate.allows(now)

    def sent(self, byte_count: int, now: int) -> None:
        """Count a sent packet."""
        self.rate.sent(byte_count, now)
        self._shared_rate.sent(byte_count, now)

    def free_at(self) -> float:
        """Return when the rates allow the next packet."""
        return max(self.rate.free_at, self._shared_rate.free_at)

    def fits(self, count: int, byte_count: int) -> bool:
        """True if that number of packets and bytes may wait."""
        # A packet larger than the window could never be sent otherwise.
        if count == 1:
            return True
        max_messages = (
            _smaller(self.window.max_messages, self._shared.max_messages) or STREAM_WINDOW_MESSAGES
        )
        max_bytes = _smaller(self.window.max_bytes, self._shared.max_bytes) or STREAM_WINDOW_BYTES
        return count <= max_messages and byte_count <= max_bytes

    def go_on(self) -> None:
        """Send what changed limits allow."""
        for consumer in list(self.consumers):
            consumer.go_on()

    def move(self, shared: Window, shared_rate: Rate) -> None:
        """Move the channel to another connection."""
        self._shared = shared
        self._shared_rate = shared_rate

    def close(self) -> None:
        """Requeue waiting packets: the channel is closed."""
        consumers, self.consumers = self.consumers, []
        for consumer in consumers:
            consumer.close()


def _smaller(one: int, other: int) -> int:
    """Return the stricter of two limits; 0 is none."""
    return min(one, other) if one and other else one or other


class StreamConsumer(Consumer):
    """Delivers packets at the allowed rate.

    Args:
        lane: of its channel.
        queue: what it consumes.
        tag: its consumer tag.
        **options: as for `Consumer`.

    Attributes:
        discarded: the number of packets discarded for higher priorities.

    It acknowledges a packet to its queue as soon as it is sent: packets that still wait when
    the client disconnects are requeued.
    """

    def __init__(self, lane: StreamLane, queue: Queue, tag: str, **options: Any) -> None:
        super().__init__(queue, tag, **options)
        self.lane = lane
        self.discarded = 0
        self._window: list[Packet] = []
        self._byte_count = 0
        self._next: Packet | None = None
        self._timer = lane.channel.connection.broker.timers.timer(self.go_on)
        self._over = False
        lane.consumers.append(self)

    # --- called by the queue --------------------------------------------------------------------

    def ready(self) -> bool:
        """True if it can take another message."""
        return self._next is None and not self._over

    def deliver(self, message: Message, position: int, redelivered: bool) -> int:
        """Send a packet, or let it wait."""
        self.unacked += 1
        self._next = Packet(message, position, redelivered)
        self._flush()
        return 0

    def again(self) -> int:
        """Request another turn."""
        return self.lane.channel.connection.ask_for_turn()

    def queue_deleted(self) -> None:
        """Send basic.cancel to clients that support it."""
        self.close()
        self.lane.channel.consumer_lost(self)

    # --- sending --------------------------------------------------------------------------------

    def go_on(self) -> None:
        """Send the packets that the rate allows now, and serve the queue."""
        if not self._over:
            self._flush()
            if self._next is None and not self.queue.deleted:
                self.queue.drain()

    def _flush(self) -> None:
        lane = self.lane
        clock = lane.channel.connection.broker.clock
        while True:
            self._admit()
            if not self._window or not lane.allows(clock.steady) or not may_deliver(lane.channel):
                break
            self._send(self._window.pop(0))
        if self._window:
            due = max(int(lane.free_at()), clock.steady + 1)
            if lane.allows(clock.steady):
                # The rates allow it, so the output is full or flow is off: look again soon.
                due = clock.steady + STREAM_RETRY_MS
            self._timer.set(due)

    def _admit(self) -> None:
        """Move the next packet into the window, if necessary in place of one of lower priority."""
        packet = self._next
        if packet is None:
            return
        count, byte_count = len(self._window) + 1, self._byte_count + packet.byte_count
        while not self.lane.fits(count, byte_count):
            last = self._least_urgent(packet.level)
            if last is None:
                return
            self._window.remove(last)
            self._byte_count -= last.byte_count
            self._settled(last)
            self.discarded += 1
            count, byte_count = count - 1, byte_count - last.byte_count
        self._next = None
        # By priority, and within a level in the order of arrival.
        index = len(self._window)
        while index and self._window[index - 1].level < packet.level:
            index -= 1
        self._window.insert(index, packet)
        self._byte_count += packet.byte_count

    def _least_urgent(self, level: int) -> Packet | None:
        """Return the packet to discard for one of that level: the oldest of the lowest level."""
        victim: Packet | None = None
        for packet in self._window:
            lower = packet.level < (level if victim is None else victim.level)
            if lower and packet.discardable:
                victim = packet
        return victim

    def _send(self, packet: Packet) -> None:
        channel, message = self.lane.channel, packet.message
        self._byte_count -= packet.byte_count
        tag = channel.next_tag
        channel.next_tag = tag + 1
        method = StreamDeliver(self.tag, tag, message.exchange, self.queue.name)
        channel.send_body(method, STREAM, message.raw, message.body)
        self.lane.sent(packet.byte_count, channel.connection.broker.clock.steady)
        if channel.router.tracer is not None:
            delivered(channel, message, self.queue.name, False)
        self._settled(packet)

    def _settled(self, packet: Packet) -> None:
        self.released()
        self.queue.settle(packet.position)

    def close(self) -> None:
        """Requeue waiting packets: the consumer is cancelled or its channel closed."""
        self._over = True
        if self in self.lane.consumers:
            self.lane.consumers.remove(self)
        self._timer.stop()
        packets, self._window, self._byte_count = self._window, [], 0
        if self._next is not None:
            packets.append(self._next)
            self._next = None
        for packet in packets:
            self.released()
            self.queue.requeue_uncounted(packet.position, packet.redelivered)
        if packets and not self.queue.deleted:
            self.queue.drain()
