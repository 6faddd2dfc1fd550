"""The pace of a publisher: whether consumers could take more if it were slower.

A publisher may fill its socket faster than a consumer can answer with acknowledgements. Then each
turn of the loop accepts thousands of messages, and delivers as many as a prefetch allows. Messages
that wait leave the caches of the processor, and cost twice as much. So a publisher whose queue has
a backlog is read more slowly while consumers take many messages. One whose consumers are slow, or
stand still, is not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.front.limits import PACE_DELIVERIES

if TYPE_CHECKING:
    from harebell.base.counters import Counters
    from harebell.model.queue.contract import Queue


class Pace:
    """What the consumers of a queue had taken when its publisher was looked at last."""

    __slots__ = ("_counters", "_taken")

    def __init__(self) -> None:
        # The counters and not the queue, which may be deleted meanwhile.
        self._counters: Counters | None = None
        self._taken = 0

    def outruns(self, queue: Queue) -> bool:
        """True if a publisher is to be read more slowly: its consumers take messages fast.

        Args:
            queue: what the publisher has published to; it has a backlog and consumers.
        """
        counters = queue.counters
        taken = counters.deliver + counters.deliver_no_ack
        fast = counters is self._counters and taken - self._taken >= PACE_DELIVERIES
        self._counters, self._taken = counters, taken
        return fast
