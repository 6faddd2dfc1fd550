"""Messages that a session has rejected for other consumers.

    another session's consumer is ready    it gets the message at once
    there is none at all, and the queue    the message is dead-lettered
    has a dead-letter exchange
    otherwise                              kept here until another consumer is ready; when the
                                           session ends it is requeued in its position

The specification recommends the first two and forbids a redelivery to the same client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.front.limits import REFUSED_RETRY_MS

if TYPE_CHECKING:
    from harebell.base.timers import Timer
    from harebell.front.amqp_0_10_transitional.channel import TransitionalChannel
    from harebell.front.common.unacked import Unacked
    from harebell.model.queue.contract import Queue

_DEAD_LETTERS = "dead-letter-exchange"


class Refused:
    """The rejected messages of one session.

    Attributes:
        tags: delivery tags that basic.reject named with requeue, perhaps in a transaction.
        offering: the session's own consumers are not ready while a message is offered to others.
    """

    def __init__(self, channel: TransitionalChannel) -> None:
        self._channel = channel
        self._kept: list[tuple[Queue, int]] = []
        self._timer: Timer | None = None
        self.tags: set[int] = set()
        self.offering = False

    def refuse(self, entries: list[Unacked]) -> None:
        """Requeue rejected deliveries of the session for other consumers."""
        for entry in entries:
            queue = entry.queue
            if not self._others(queue) and self._has_dead_letters(queue):
                entry.reject()
                continue
            # The client is done with it: the message no longer counts against its prefetch.
            entry.forget()
            if not self._offer(queue, entry.position):
                self._kept.append((queue, entry.position))
        self._channel.serve_queues(entries)
        self._look_again()

    def _others(self, queue: Queue) -> list[object]:
        own = (self._channel.consumers or {}).values()
        return [consumer for consumer in queue.consumers if consumer not in own]

    def _has_dead_letters(self, queue: Queue) -> bool:
        return _DEAD_LETTERS in self._channel.vhost.policies.settings_of(queue)

    def _offer(self, queue: Queue, position: int) -> bool:
        """Requeue a message if another consumer takes it at once."""
        own = (self._channel.consumers or {}).values()
        if not any(each.ready() for each in queue.consumers if each not in own):
            return False
        self.offering = True
        try:
            queue.requeue(position)
            queue.drain()
        finally:
            self.offering = False
        return True

    def _look_again(self) -> None:
        if not self._kept:
            return
        timers = self._channel.connection.broker.timers
        if self._timer is None:
            self._timer = timers.timer(self._try)
        self._timer.set(timers.clock.steady + REFUSED_RETRY_MS)

    def _try(self) -> None:
        kept, self._kept = self._kept, []
        for queue, position in kept:
            if not queue.deleted and not self._offer(queue, position):
                self._kept.append((queue, position))
        self._look_again()

    def requeue_all(self) -> None:
        """Requeue every message of an ended session."""
        if self._timer is not None:
            self._timer.stop()
        kept, self._kept = self._kept, []
        for queue, position in kept:
            if not queue.deleted:
                queue.requeue(position)
        for queue in {queue: None for queue, _ in kept}:
            if not queue.deleted:
                queue.drain()
