"""Retries: delays before a message is delivered again.

    x-retry-delays: [1000, 5000]     a rejected message is retried after 1 s, the second time after
                                     5 s, and the third time it is dead-lettered
    x-delayed-retry-type, -min, -max a message requeued in a quorum queue waits min, 2 min, 3 min
                                     ... and at most max, up to the delivery limit

`harebell.model.queue.features.quorum` counts failed deliveries and compares them with the limit.
The log stores the count of a message, see `failure_counts`. It does not store when a delay began:
after a restart the whole delay begins again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from harebell.base.schedule import Schedule
from harebell.base.slices import Slices
from harebell.base.timers import Timers
from harebell.model.limits import RELEASED_PER_TURN
from harebell.model.queue.arguments import delays_of
from harebell.model.queue.browse_cursor import WaitingCursor
from harebell.model.queue.features.failure_counts import FAILURES, REJECTIONS_SHIFT

if TYPE_CHECKING:
    from harebell.model.queue.features.queue_internals import QueueInternals

DELAYS = "x-retry-delays"
DELAYS_KEY = "retry"
TYPE_KEY, MIN_KEY, MAX_KEY = "delayed-retry-type", "delayed-retry-min", "delayed-retry-max"
ALL, FAILED, RETURNED = "all", "failed", "returned"
TYPES = ("disabled", ALL, FAILED, RETURNED)
_NONE = -1
_ONE_REJECTION = 1 << REJECTIONS_SHIFT


class Rules:
    """The retry delays of one queue, in milliseconds.

    Args:
        arguments: the arguments of the queue.
        settings: arguments and policies merged.

    Attributes:
        delays: the delay after each rejection.
        failed: whether a message is delayed whose delivery failed.
        returned: whether a message is delayed that the client returned.
    """

    def __init__(self, arguments: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
        self.delays = delays_of(arguments.get(DELAYS, settings.get(DELAYS_KEY)))
        kind = settings.get(TYPE_KEY)
        self._minimum: int = settings.get(MIN_KEY, 0)
        self._maximum: int | None = settings.get(MAX_KEY)
        self.failed = kind in (ALL, FAILED) and self._minimum > 0
        self.returned = kind in (ALL, RETURNED) and self._minimum > 0

    def __bool__(self) -> bool:
        return bool(self.delays) or self.failed or self.returned

    def after_rejection(self, count: int) -> int:
        """Return the delay after that many rejections; -1 after the last one."""
        # After the last delay the message is dead-lettered.
        return self.delays[count - 1] if 0 < count <= len(self.delays) else _NONE

    def after_return(self, count: int, *, failed: bool) -> int:
        """Return the delay of a returned message; -1 for no delay."""
        if not (self.failed if failed else self.returned):
            return _NONE
        # RabbitMQ grows the delay by the minimum with each failure. A returned message without a
        # failure waits as if it were the first.
        delay = self._minimum * max(count, 1)
        return delay if self._maximum is None else min(delay, self._maximum)

    def after_restart(self, count: int) -> int:
        """Return the delay of a message with that count in the log; -1 for no delay."""
        delay = self.after_rejection(count >> REJECTIONS_SHIFT)
        if delay < 0 and count & FAILURES:
            delay = self.after_return(count & FAILURES, failed=self.failed)
        return delay


class Retry:
    """The messages of one queue that wait for their retry.

    Args:
        queue: whose failed messages wait.
        timers: the timers of the broker.
    """

    def __init__(self, queue: QueueInternals, timers: Timers) -> None:
        self._queue = queue
        self._clock = timers.clock
        self._timer = timers.timer(self.release)
        self._schedule = Schedule()
        self.rules = Rules({}, {})

    def __len__(self) -> int:
        return len(self._schedule)

    def takes(self, position: int) -> bool:
        """True if a message would be delayed if it were rejected now."""
        count = self._queue.order.delivery_count(position) + _ONE_REJECTION
        return self.rules.after_rejection(count >> REJECTIONS_SHIFT) >= 0

    def rejected(self, position: int) -> bool:
        """Delay a message that was rejected or timed out; False if it is not delayed."""
        queue = self._queue
        count = queue.order.delivery_count(position) + _ONE_REJECTION
        delay = self.rules.after_rejection(count >> REJECTIONS_SHIFT)
        if delay < 0:
            return False
        # In the log before the delay: after a crash the next delay must not be the first again.
        queue.order.set_delivery_count(position, count)
        self._wait(position, delay)
        return True

    def requeued(self, position: int, count: int, *, failed: bool) -> bool:
        """Delay a requeued message with that delivery count; False if it is not delayed."""
        delay = self.rules.after_return(count, failed=failed)
        if delay < 0:
            return False
        self._wait(position, delay)
        return True

    def restore(self) -> None:
        """After a restart, delay messages that had failed before."""
        for position in self._queue.order.counted_positions():
            delay = self.rules.after_restart(self._queue.order.delivery_count(position))
            # A message of a lease or a prepared transaction is not ready: it waits for them.
            if delay > 0 and self._queue.order.hold(position):
                self._wait(position, delay)

    def _wait(self, position: int, delay: int) -> None:
        due = self._clock.steady + delay
        self._schedule.add(due, position)
        # The next message of its ordering key must not overtake it.
        self._queue.pause(position)
        self._timer.set_earlier(due)

    def release(self) -> None:
        """Make messages ready whose delay is over."""
        now = self._clock.steady
        for _ in range(RELEASED_PER_TURN):
            position = self._schedule.pop(now)
            if position < 0:
                break
            self._queue.restore(position, True)
        self._timer.set_earlier(self._schedule.due)
        self._queue.drain()

    def release_all(self) -> int:
        """Make all delayed messages ready; return how many."""
        positions = sorted(self._schedule)
        # Before the first delivery, which may fail at once and wait again.
        self.clear()
        for position in positions:
            self._queue.restore(position, True)
        self._queue.drain()
        return len(positions)

    def soonest(self, count: int) -> Slices[WaitingCursor]:
        """Return a cursor over the messages whose delays end first."""
        waiting = yield from self._schedule.soonest(count)
        order = self._queue.order
        logs = {level: each.log for level, each in order.levels()}
        bits = order.level_bits

        def deliveries(position: int) -> int:
            failed: int = order.delivery_count(position)
            return (failed & FAILURES) + (failed >> REJECTIONS_SHIFT)

        return WaitingCursor(
            waiting,
            lambda position: (logs[position & (1 << bits) - 1], position >> bits),
            deliveries,
        )

    def due_of(self, position: int) -> Slices[int]:
        """Return when the delay of a message ends; NEVER if it does not wait here."""
        return self._schedule.find(position)

    def release_one(self, position: int) -> Slices[bool]:
        """End the delay of a message; False if it does not wait here."""
        due = yield from self.due_of(position)
        if not self._schedule.remove(due, position):
            return False
        self._queue.restore(position, True)
        self._queue.drain()
        return True

    def cancel_one(self, position: int) -> Slices[bool]:
        """Drop a message that waits; False if it does not wait here."""
        due = yield from self._schedule.find(position)
        if not self._schedule.remove(due, position):
            return False
        # Ready for the moment, so that it goes as others that are withdrawn.
        self._queue.restore(position, True)
        message = self._queue.order.read(position)
        gone = message is not None and self._queue.withdraw(position, message)
        # Its ordering key is free.
        self._queue.drain()
        return gone

    def take_all(self) -> list[int]:
        """Return the positions of all delayed messages, and forget them."""
        positions = sorted(self._schedule)
        self.clear()
        return positions

    def clear(self) -> None:
        """Forget all delayed messages."""
        self._schedule.clear()
        self._timer.stop()
