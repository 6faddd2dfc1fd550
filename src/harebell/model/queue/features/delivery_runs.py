"""Runs: how many messages one behind the other a consumer of a busy queue gets.

In strict turns each message of a burst goes to another consumer. With a thousand consumers on a
thousand connections that is a write to a socket for every message, which costs ten times the rest
of its way. So where many consumers take a lot, each gets a run of messages before the next one:

    turns    a b c d e f ...        one write each
    runs     a a a b b b c c c ...  one write for three

A run has as many messages as a consumer of the queue took, on average, in RUN_MS lately, so it is
done about when the same messages in turns would be. Acknowledgements say what they take: while
consumers work long on each message, or nothing is known of them, the turns are strict. Only what
comes after the first RUN_AFTER messages of a burst is in runs. A burst is the messages of a
millisecond; it goes on in the next one, RUN_GAP_MS later at most, if they were more than that.
"""

from __future__ import annotations

from harebell.base.c_types import Done, i32, i64, isize
from harebell.base.counters import Counters
from harebell.model.limits import RUN_AFTER, RUN_GAP_MS, RUN_LOOK_MS, RUN_MESSAGES, RUN_MS

_AFTER: i32 = RUN_AFTER
_GAP: i64 = RUN_GAP_MS
_LOOK: i64 = RUN_LOOK_MS
_MAX: i64 = RUN_MESSAGES
_RUN: i64 = RUN_MS


class DeliveryRuns:
    """The length of the runs of one queue.

    Args:
        counters: those of the queue.
    """

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._moment: i64 = 0
        self._of_moment: i32 = 0
        self._goes_on = False
        self._length: i32 = 1
        self._looked: i64 = 0
        self._taken: i64 = 0

    def next(self, now: i64, consumers: isize) -> i32:
        """Count a message; return how many a consumer may get before the next one's turn.

        Args:
            now: milliseconds of the steady clock, which is read once per turn of the broker.
            consumers: how many the queue has.
        """
        if now != self._moment:
            self._goes_on = self._of_moment > _AFTER and now - self._moment <= _GAP
            self._moment = now
            self._of_moment = 0
        self._of_moment += 1
        if self._of_moment == _AFTER and now - self._looked >= _LOOK:
            self._look(now, consumers)
        return self._length if self._goes_on or self._of_moment > _AFTER else 1

    def _look(self, now: i64, consumers: i64) -> Done:
        """Set the length by what was taken since the last look."""
        # Consumers without acknowledgements do not say when they are done: their deliveries count.
        taken: i64 = self._counters.ack + self._counters.deliver_no_ack
        share: i64 = (now - self._looked) * consumers
        length: i64 = (2 * (taken - self._taken) * _RUN + share) // (2 * share)
        self._length = max(1, min(length, _MAX))
        self._looked, self._taken = now, taken
        return 0
