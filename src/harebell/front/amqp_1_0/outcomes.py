"""The outcomes of what a session receives, and when the peer hears of them.

A delivery that is stored in a durable queue is accepted when its commit is on disk, every other one
at the end of its turn. Deliveries in a row of one link that wait for the same commit are one run,
which costs a message a comparison, and leaves as one disposition:

    deliveries   1 2 3 4 | 5 6 7 | 8        | 9 10 11
                 run     | run   | released | the newest run
    waits for    none    | 7     | none     | 8
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from harebell.base.c_types import Done, i32, i64
from harebell.base.ports import Commit
from harebell.wire.v1.composites import Accepted

if TYPE_CHECKING:
    from harebell.front.amqp_1_0.connection import Connection

_AT_ONCE = 0
ACCEPTED = Accepted().encoded()


class Outcomes:
    """Collects the outcomes of the deliveries of a session, and sends them.

    Args:
        connection: where dispositions are written.
        number: the channel of the session.

    Attributes:
        waiting: whether some wait for a commit.
    """

    def __init__(self, connection: Connection, number: int) -> None:
        self._connection = connection
        self._number: i32 = number
        self._commit: Commit = connection.commit
        # The newest run: its link, first and last delivery, and the commit that it waits for.
        self._link: Any = None
        self._first: i64 = 0
        self._last: i64 = -1
        self._ticket: i64 = _AT_ONCE
        # (ticket, link, first, last, outcome) of those before it.
        self._marks: deque[tuple[int, Any, int, int, Any]] = deque()

    def accepted(self, link: Any, number: i64, pending: bool) -> Done:
        """Note that a delivery is accepted.

        Args:
            link: where it came from; `confirmed` is called with how many are settled.
            number: its delivery-id.
            pending: whether that is only when the commit that gathers now is on disk.
        """
        ticket: i64 = self._commit.ticket if pending else _AT_ONCE
        if self._link is link and number == self._last + 1 and ticket == self._ticket:
            self._last = number
            return 0
        self._push()
        self._link = link
        self._first = self._last = number
        self._ticket = ticket
        if pending:
            # An outcome alone is no change: without this the broker might see nothing to commit.
            self._commit.urgent = True
            self._connection.registry.waiting[self] = None
        return 0

    def refused(self, link: Any, number: i64, outcome: bytes) -> Done:
        """Note the encoded outcome of a delivery that no queue has taken."""
        self._push()
        self._marks.append((_AT_ONCE, link, number, number, outcome))
        return 0

    def _push(self) -> Done:
        """Put the newest run behind the others."""
        if self._link is not None:
            self._marks.append((self._ticket, self._link, self._first, self._last, ACCEPTED))
            self._link = None
        return 0

    def report(self) -> None:
        """Send what is known by now."""
        done = self._commit.done
        if self._link is not None and self._ticket <= done:
            self._push()
        if not self._marks:
            return
        kept: deque[tuple[int, Any, int, int, Any]] = deque()
        ranges: list[tuple[int, int, Any, bool]] = []
        for mark in self._marks:
            ticket, link, first, last, outcome = mark
            if ticket > done:
                kept.append(mark)
                continue
            settled = link.unsettled is None
            if not settled:
                link.unsettled.decide(first, last, outcome)
            if ranges and ranges[-1][1:] == (first - 1, outcome, settled):
                # Runs of several links are one range: delivery-ids are those of the session.
                ranges[-1] = (ranges[-1][0], last, outcome, settled)
            else:
                ranges.append((first, last, outcome, settled))
            link.confirmed(last - first + 1, outcome is ACCEPTED)
        self._marks = kept
        for first, last, outcome, settled in ranges:
            self._connection.frames.disposition(self._number, True, first, last, settled, outcome)
        self._connection.touch()

    def committed(self) -> None:
        """Send the outcomes that waited for a commit that is on disk."""
        self.report()
        if self._waits():
            # The rest waits for a later commit; the registry has removed this object.
            self._connection.registry.waiting[self] = None

    def _waits(self) -> bool:
        return bool(self._marks) or self._link is not None

    def close(self) -> None:
        """Send the outcomes behind an output barrier: the session ends."""
        self._connection.registry.waiting.pop(self, None)
        self._push()
        if not self._marks:
            return
        newest = max(ticket for ticket, *_ in self._marks)
        if newest > self._commit.done:
            # The end must not overtake them, so the whole output waits for their commit.
            self._connection.hold_until(newest)
        self._marks = deque((_AT_ONCE, *rest) for _, *rest in self._marks)
        self.report()

    def forget(self) -> None:
        """Drop all outcomes: the peer is gone."""
        self._connection.registry.waiting.pop(self, None)
        self._link = None
        self._marks.clear()
