"""Counters of traffic, which only grow.

    Counters     messages, of a channel, a queue, or all channels of a vhost that have closed
    Traffic      bytes and reads and writes, of a connection, or of those that have ended
    Churn        what was opened, closed, declared, created and deleted in the broker

The names are those of `message_stats` in RabbitMQ's HTTP API. They are incremented per message, so
they are plain C integers in the compiled classes. A rate is the difference of two samples.
"""

from __future__ import annotations

from harebell.base.c_types import C, Done, i64

NAMES = (
    "publish",
    "confirm",
    "return_unroutable",
    "drop_unroutable",
    "deliver",
    "deliver_no_ack",
    "get",
    "get_no_ack",
    "get_empty",
    "redeliver",
    "ack",
)
"""The counters of `Counters`, in order."""


class Counters:
    """Counters of messages.

    Attributes:
        publish: messages that were published; of a queue, messages that arrived in it.
        confirm: publishes that were confirmed.
        return_unroutable: unroutable messages that were returned to their publisher.
        drop_unroutable: unroutable messages that were dropped.
        deliver: deliveries to consumers that acknowledge.
        deliver_no_ack: deliveries to consumers that do not acknowledge.
        get: messages taken by basic.get that are acknowledged.
        get_no_ack: messages taken by basic.get that are not acknowledged.
        get_empty: basic.get of an empty queue.
        redeliver: those of the deliveries that were marked as redelivered.
        ack: acknowledgements.
        seen: the sum of all counters at the last call of `moved`.
        moved_at: when `moved` was last true; 0 for never.
    """

    def __init__(self) -> None:
        self.publish: i64 = 0
        self.confirm: i64 = 0
        self.return_unroutable: i64 = 0
        self.drop_unroutable: i64 = 0
        self.deliver: i64 = 0
        self.deliver_no_ack: i64 = 0
        self.get: i64 = 0
        self.get_no_ack: i64 = 0
        self.get_empty: i64 = 0
        self.redeliver: i64 = 0
        self.ack: i64 = 0
        self.seen: i64 = 0
        self.moved_at: i64 = 0

    def moved(self, now: i64) -> C[bool]:
        """True if a counter has changed since the last call.

        Args:
            now: milliseconds since 1970.
        """
        total: i64 = (
            self.publish
            + self.confirm
            + self.return_unroutable
            + self.drop_unroutable
            + self.deliver
            + self.deliver_no_ack
            + self.get
            + self.get_no_ack
            + self.get_empty
            + self.redeliver
            + self.ack
        )
        if total == self.seen:
            return False
        self.seen = total
        self.moved_at = now
        return True

    def add(self, other: Counters) -> Done:
        """Add other counters to these."""
        self.publish += other.publish
        self.confirm += other.confirm
        self.return_unroutable += other.return_unroutable
        self.drop_unroutable += other.drop_unroutable
        self.deliver += other.deliver
        self.deliver_no_ack += other.deliver_no_ack
        self.get += other.get
        self.get_no_ack += other.get_no_ack
        self.get_empty += other.get_empty
        self.redeliver += other.redeliver
        self.ack += other.ack
        return 0

    def values(self) -> tuple[int, ...]:
        """Return the counters in the order of `NAMES`."""
        return (
            self.publish,
            self.confirm,
            self.return_unroutable,
            self.drop_unroutable,
            self.deliver,
            self.deliver_no_ack,
            self.get,
            self.get_no_ack,
            self.get_empty,
            self.redeliver,
            self.ack,
        )


UNCOUNTED = Counters()
"""Stands for counters that do not exist yet."""


class Traffic:
    """Counters of a connection's input and output.

    Attributes:
        recv_oct: bytes that were received, without TLS.
        recv_cnt: reads.
        send_oct: bytes that were sent, without TLS.
        send_cnt: writes.
        seen: the sum of octets at the last call of `moved`.
    """

    def __init__(self) -> None:
        self.recv_oct: i64 = 0
        self.recv_cnt: i64 = 0
        self.send_oct: i64 = 0
        self.send_cnt: i64 = 0
        self.seen: i64 = 0

    def moved(self) -> C[bool]:
        """True if octets were received or sent since the last call."""
        total: i64 = self.recv_oct + self.send_oct
        if total == self.seen:
            return False
        self.seen = total
        return True

    def add(self, other: Traffic) -> Done:
        """Add other counters to these."""
        self.recv_oct += other.recv_oct
        self.recv_cnt += other.recv_cnt
        self.send_oct += other.send_oct
        self.send_cnt += other.send_cnt
        return 0


BY_CLIENT, BY_LOSS, BY_HEARTBEAT = "client", "lost", "heartbeat"
BY_ERROR, BY_FORCE = "error", "forced"
"""Why connections end: the client closes them, their socket ends without that, heartbeats are
missed, the client makes a mistake, or an operator, a shutdown or an expired login closes them."""


class Churn:
    """Counters of opened and closed objects.

    Attributes:
        closed_by: how many connections have ended, by reason.
        connection_created: connections that were opened (connection.open).
        connection_closed: those of them that have ended.
        channel_created: channels, and sessions of AMQP 0-10, that were opened.
        channel_closed: those of them that were closed.
        queue_declared: declarations of queues, also of those that existed.
        queue_created: queues that were made.
        queue_deleted: queues that were deleted.
    """

    NAMES = (
        "connection_created",
        "connection_closed",
        "channel_created",
        "channel_closed",
        "queue_declared",
        "queue_created",
        "queue_deleted",
    )

    __slots__ = ("closed_by", *NAMES)

    def __init__(self) -> None:
        self.closed_by = dict.fromkeys((BY_CLIENT, BY_LOSS, BY_HEARTBEAT, BY_ERROR, BY_FORCE), 0)
        self.connection_created = 0
        self.connection_closed = 0
        self.channel_created = 0
        self.channel_closed = 0
        self.queue_declared = 0
        self.queue_created = 0
        self.queue_deleted = 0
