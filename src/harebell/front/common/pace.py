"""The pace of a publisher: whether consumers could take more if it were slower.

A publisher may fill its socket faster than a consumer can answer with acknowledgements. Then each
turn of the loop accepts thousands of messages, and delivers as many as a prefetch allows. Messages
that wait leave the caches of the processor, and cost twice as much. So a publisher whose queue has
a backlog is read more slowly while consumers take many messages. One whose consumers are slow, or
stand still, is not.

A link of AMQP 1.0 is slowed down by its credit, without a pause in reading: it gets new credit when
its queue has no backlog any more, and after CREDIT_PACE_MS at the latest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from harebell.front.limits import CREDIT_PACE_LINKS, CREDIT_PACE_MS, PACE_DELIVERIES

if TYPE_CHECKING:
    from harebell.base.counters import Counters
    from harebell.base.timers import Timer, Timers
    from harebell.model.queue.contract import Queue


class Pace:
    """What the consumers of a queue had taken when its publisher was looked at last."""

    __slots__ = ("_counters", "_taken")

    def __init__(self) -> None:
        # The counters and not the queue, which may be deleted meanwhile.
        self._counters: Counters | None = None
        self._taken = 0

    def outruns(self, queue: Queue) -> bool:
        """True if a publisher is to be slowed down: its consumers take messages fast.

        Args:
            queue: what the publisher has published to; it has a backlog and consumers.
        """
        counters = queue.counters
        taken = counters.deliver + counters.deliver_no_ack
        fast = counters is self._counters and taken - self._taken >= PACE_DELIVERIES
        self._counters, self._taken = counters, taken
        return fast


class Paced(Protocol):
    """A link by which a publisher sends."""

    def caught_up(self) -> None:
        """Give the publisher credit."""


class HeldCredit:
    """The links that get credit when the consumers of their queue have caught up.

    Attributes:
        links: each with its queue.
    """

    def __init__(self) -> None:
        self.links: list[tuple[Paced, Queue]] = []
        self._timer: Timer | None = None

    def hold(self, link: Paced, queue: Queue, timers: Timers) -> bool:
        """Let a link wait for the consumers of a queue; False if it need not.

        Args:
            link: it may send less than half of its credit.
            queue: where its messages wait.
            timers: of the broker.
        """
        if len(self.links) >= CREDIT_PACE_LINKS or not queue.ready_count():
            return False
        if self._timer is None:
            self._timer = timers.timer(self.release)
        self._timer.set_earlier(timers.clock.steady + CREDIT_PACE_MS)
        self.links.append((link, queue))
        return True

    def look(self) -> None:
        """Give the links credit whose queues have no backlog any more."""
        held, self.links = self.links, []
        for link, queue in held:
            if queue.ready_count():
                self.links.append((link, queue))
            else:
                link.caught_up()

    def release(self) -> None:
        """Give all links credit: their consumers need longer than a publisher should wait."""
        held, self.links = self.links, []
        for link, _ in held:
            link.caught_up()
