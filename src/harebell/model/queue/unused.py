"""Queues that go when nobody has used them for a while: `x-expires`.

Consumers are use as long as they are there; `basic.get` and a declaration are at their moment. The
messages of such a queue go with it and are not dead-lettered. After a restart the time begins anew.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from harebell.base.timers import Timers

if TYPE_CHECKING:
    from harebell.model.queue.kind import Queue


class Unused:
    """Counts the time that one queue is not used.

    Args:
        queue: the queue.
        timers: of the broker.
        drop: deletes the queue.

    Attributes:
        ms: how long the queue may be unused, in milliseconds; 0 while it may be so for ever.
    """

    def __init__(self, queue: Queue, timers: Timers, drop: Callable[[Queue], object]) -> None:
        self._queue = queue
        self._clock = timers.clock
        self._drop = drop
        self._timer = timers.timer(self._look)
        self._since = 0
        self.ms = 0

    def limit(self, ms: int) -> None:
        """Let the queue be unused for so long from now on; 0 is for ever."""
        if ms != self.ms:
            self.ms = ms
            self.used()

    def used(self) -> None:
        """The queue is used now, or was until now."""
        self._since = self._clock.steady
        if self.ms:
            self._timer.set_earlier(self._since + self.ms)
        else:
            self._timer.stop()

    def stop(self) -> None:
        """The queue is gone."""
        self._timer.stop()

    def _look(self) -> None:
        """Delete the queue, or come back when it may be time; its last consumer does that too."""
        if self._queue.consumers or self._queue.browsers or not self.ms:
            return
        due = self._since + self.ms
        if due > self._clock.steady:
            self._timer.set(due)
        else:
            self._drop(self._queue)
