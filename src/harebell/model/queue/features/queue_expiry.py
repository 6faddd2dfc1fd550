"""Queue expiry (`x-expires`): delete a queue that was not used for some time.

A queue is used while it has consumers, and at the moment of a `basic.get` or a declaration. The
messages of such a queue are deleted with it, not dead-lettered. A restart begins the time anew.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from harebell.base.timers import Timers

if TYPE_CHECKING:
    from harebell.model.queue.contract import Queue


class QueueExpiry:
    """The time for which one queue is not used.

    Args:
        queue: the queue.
        timers: of the broker.
        drop: deletes the queue.

    Attributes:
        ms: how long the queue may be unused, in milliseconds; 0 for ever.
    """

    def __init__(self, queue: Queue, timers: Timers, drop: Callable[[Queue], object]) -> None:
        self._queue = queue
        self._clock = timers.clock
        self._drop = drop
        self._timer = timers.timer(self._look)
        self._since = 0
        self.ms = 0

    def limit(self, ms: int) -> None:
        """Let the queue be unused for so long from now on; 0 means for ever."""
        if ms != self.ms:
            self.ms = ms
            self.used()

    def used(self) -> None:
        """Begin the time anew."""
        self._since = self._clock.steady
        if self.ms:
            self._timer.set_earlier(self._since + self.ms)
        else:
            self._timer.stop()

    def stop(self) -> None:
        """Stop the timer of a deleted queue."""
        self._timer.stop()

    def _look(self) -> None:
        """Delete the queue, or look again when its time may be over."""
        if self._queue.consumers or self._queue.browsers or not self.ms:
            return
        due = self._since + self.ms
        if due > self._clock.steady:
            self._timer.set(due)
        else:
            self._drop(self._queue)
