"""How old the oldest messages of queues are: those that are ready, and those that are delivered.

Nothing is counted for it while messages pass. A scrape looks at the head of each queue, whose time
of arrival is in the log. The head of a queue that stands still is read from disk once.

The oldest unacknowledged message of a queue is the one whose delivery has waited longest: of each
channel only the first deliveries are looked at, as a channel may have a million of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from harebell.management.limits import AGE_UNACKED_SCANNED

if TYPE_CHECKING:
    from harebell.base.ports import Log
    from harebell.front.common.channel_like import AnyChannel
    from harebell.management.metrics.source import Source
    from harebell.model.queue.contract import Queue

_MS = 1_000
_UNKNOWN = 0
Heads = dict["Log", tuple[int, int]]
"""The first ready position of each log, and when its message arrived in ms since 1970."""


class Ages:
    """The ages at one moment.

    Args:
        source: the broker.
        before: the heads of the last scrape.

    Attributes:
        heads: the heads of this one.
    """

    def __init__(self, source: Source, before: Heads) -> None:
        self._source = source
        self._before = before
        self._unacked: dict[Queue, int] = {}
        self.heads: Heads = {}

    def look(self) -> Iterator[None]:
        """Find the deliveries that wait longest; each step is one slice of work."""
        for _, channel in self._source.channels():
            for holder in (channel, getattr(channel, "extras", None)):
                if holder is not None and holder.unacked.count:
                    self._look_at(channel, holder)
                    yield

    def _look_at(self, channel: AnyChannel, holder: Any) -> None:
        """Note the first delivery of each queue in a channel."""
        consumers = (channel.consumers or {}).values()
        consumed = {each.queue for each in consumers if each.unacked}
        deliveries = holder.unacked
        got = deliveries.count > sum([each.unacked for each in consumers])
        seen: set[Queue] = set()
        number = deliveries.first()
        for tag in range(number, min(deliveries.next, number + AGE_UNACKED_SCANNED)):
            entry = deliveries.get(tag)
            if entry is None or entry.queue in seen:
                continue
            seen.add(entry.queue)
            moment = entry.queue.time_of(entry.position)
            if moment != _UNKNOWN:
                oldest = self._unacked.get(entry.queue, moment)
                self._unacked[entry.queue] = min(oldest, moment)
            # Deliveries of basic.get have no consumer, so their queues are not known beforehand.
            if not got and seen >= consumed:
                break

    def of(self, queue: Queue) -> tuple[float | None, float | None]:
        """Return the ages of the oldest ready and the oldest unacknowledged message, in seconds.

        None stands for no such message, or for one whose time of arrival cannot be read.
        """
        now = self._source.broker.clock.ms
        moments = [self._moment(log, position) for log, position in queue.heads_by_log()]
        arrivals = [moment for moment in moments if moment != _UNKNOWN]
        ready = _age(now, min(arrivals)) if arrivals else None
        delivered = self._unacked.get(queue) if queue.unacked else None
        return ready, None if delivered is None else _age(now, delivered)

    def _moment(self, log: Log, position: int) -> int:
        """Return when a message arrived, in milliseconds since 1970."""
        moment = self._before.get(log)
        if moment is None or moment[0] != position:
            # A large message on disk is not read for this.
            far = log.has_large and log.is_spilled(position)
            moment = (position, _UNKNOWN if far else log.time_of(position))
        self.heads[log] = moment
        return moment[1]


def _age(now: int, moment: int) -> float:
    return max(now - moment, 0) / _MS
