"""Acknowledgement timeout: close channels and sessions that hold a delivery for too long.

Nothing is stored per message. Every check sets a mark: up to this delivery tag everything was
delivered by now. The first mark at or after the oldest unacknowledged tag has the latest time at
which that delivery was sent: a channel may be closed a little late, and never early. As with
RabbitMQ 3.13 only the oldest delivery of a channel is checked.

There may be hundreds of thousands of channels, so a round over all of them takes several ticks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from harebell.front import limits
from harebell.model.queue.arguments import CONSUMER_TIMEOUT
from harebell.model.resource import rendered

if TYPE_CHECKING:
    from harebell.front.common.base_connection import BaseConnection
    from harebell.front.common.channel_like import DeliveryHolder
    from harebell.front.common.connection_registry import ConnectionRegistry
    from harebell.model.queue.contract import Queue


Marks = deque[tuple[int, float]]
"""Delivery tags, and the time at which everything up to them was delivered, in seconds."""

_SETTING = "consumer-timeout"
_MS = 1_000


def holders(connection: BaseConnection) -> list[DeliveryHolder]:
    """Return what has unacknowledged deliveries of a connection."""
    # A session that uses the classes file and stream stores its files separately.
    return [
        place
        for channel in connection.channels.values()
        for place in (channel, getattr(channel, "extras", None))
        if place is not None and place.unacked.count
    ]


class DeliveryAckTimeout:
    """Watches the deliveries of all channels.

    Args:
        registry: the registry of the connections.
        timeout_ms: for deliveries of queues and consumers without their own timeout; 0 is no limit.
    """

    def __init__(self, registry: ConnectionRegistry, timeout_ms: int) -> None:
        self._registry = registry
        self._timeout_ms = timeout_ms or None
        self._marks: dict[DeliveryHolder, Marks] = {}
        # Those of the round before. They go with it, so closed channels and channels without
        # deliveries have none.
        self._before: dict[DeliveryHolder, Marks] = {}
        self._known: dict[Queue, int | None] = {}
        self._round: Iterator[list[BaseConnection]] = iter(())

    def set_timeout(self, timeout_ms: int) -> None:
        """Change the timeout; 0 is no limit."""
        self._timeout_ms = timeout_ms or None

    def excuse(self, late: float) -> None:
        """Do not count seconds in which the broker could not read acknowledgements."""
        for each in (self._before, self._marks):
            for channel, marks in each.items():
                each[channel] = deque((tag, since + late) for tag, since in marks)

    def look(self, now: float) -> None:
        """Close channels whose oldest delivery is unacknowledged for too long.

        Args:
            now: the time in seconds.
        """
        piece = next(self._round, None)
        if piece is None:
            self._before, self._marks, self._known = self._marks, {}, {}
            self._round = self._registry.in_pieces(limits.CHANNELS_PER_TICK, only_active=True)
            piece = next(self._round, [])
        guard = self._registry.turns.failures.guard
        for connection in piece:
            for place in holders(connection):
                guard(self._look_at, place, self._before.get(place) or deque(), now)

    def _look_at(self, channel: DeliveryHolder, marks: Marks, now: float) -> None:
        oldest = channel.unacked.first()
        entry: Any = channel.unacked.get(oldest)
        timeout_ms = self._timeout_of(channel, entry)
        if timeout_ms is None:
            return
        # Everything up to these marks is acknowledged.
        while marks and marks[0][0] < oldest:
            marks.popleft()
        newest = channel.next_tag - 1
        # The distance of marks is a fraction of the timeout, so there are few, however long it is.
        apart = timeout_ms / _MS / limits.TIMEOUT_MARKS
        if not marks or (newest > marks[-1][0] and now - marks[-1][1] >= apart):
            marks.append((newest, now))
        if (now - marks[0][1]) * _MS >= timeout_ms:
            _close(channel, entry, timeout_ms)
        else:
            self._marks[channel] = marks

    def _timeout_of(self, channel: DeliveryHolder, entry: Any) -> int | None:
        """Return the timeout in ms: the consumer's, the queue's or the broker's."""
        if entry.consumer is not None:
            own: int | None = entry.consumer.arguments.get(CONSUMER_TIMEOUT)
            if own is not None:
                return own
        queue = entry.queue
        if queue not in self._known:
            settings = channel.vhost.policies.settings_of(queue)
            self._known[queue] = settings.get(_SETTING, self._timeout_ms)
        return self._known[queue]


def _close(channel: DeliveryHolder, entry: Any, timeout_ms: int) -> None:
    """Close a channel because of its oldest delivery; its deliveries are requeued."""
    connection = channel.connection
    tag = entry.consumer.tag if entry.consumer is not None else ""
    queue = rendered("queue", entry.queue.name, channel.vhost.name)
    connection.log(
        "warning",
        f"{connection.peer}: consumer '{tag}' of {queue} on channel {channel.number} has not "
        f"acknowledged the delivery with tag {entry.tag} within {timeout_ms} ms",
    )
    text = (
        f"delivery acknowledgement on channel {channel.number} timed out. Timeout value used: "
        f"{timeout_ms} ms. This timeout value can be configured, see consumers doc guide to "
        "learn more"
    )
    channel.overdue(entry, text)
