"""Queue expiry (`x-expires`, of streams `x-stream-expires`): delete a queue that is not used.

A queue is in use while it has consumers; a `basic.get` or a declaration restarts the time, and so
does a restart of the broker. The messages are deleted with the queue, not dead-lettered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from harebell.base.timers import Timers

if TYPE_CHECKING:
    from harebell.model.queue.contract import Queue


class QueueExpiry:
    """The expiry of one queue.

    Args:
        queue: the queue that is deleted when it is unused.
        timers: the timers of the broker.
        drop: deletes the queue.

    Attributes:
        ms: how long the queue may be unused, in milliseconds; 0 for no limit.
    """

    def __init__(self, queue: Queue, timers: Timers, drop: Callable[[Queue], object]) -> None:
        self._queue = queue
        self._clock = timers.clock
        self._drop = drop
        self._timer = timers.timer(self._check)
        self._since = 0
        self.ms = 0

    def limit(self, ms: int) -> None:
        """Set how long the queue may be unused; 0 for no limit."""
        if ms != self.ms:
            self.ms = ms
            self.used()

    def used(self) -> None:
        """Restart the time."""
        self._since = self._clock.steady
        # Moving the timer for each basic.get would be slow: `_check` sets it again if it is early.
        if self.ms:
            self._timer.set_earlier(self._since + self.ms)
        else:
            self._timer.stop()

    def stop(self) -> None:
        """Stop the timer of a deleted queue."""
        self._timer.stop()

    def _check(self) -> None:
        """Delete the queue if its time is over, else set the timer again."""
        # With consumers no timer is needed: `used` is called when the last one is removed.
        if self._queue.consumers or self._queue.browsers or not self.ms:
            return
        due = self._since + self.ms
        if due > self._clock.steady:
            self._timer.set(due)
        else:
            self._drop(self._queue)
