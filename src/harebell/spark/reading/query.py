"""A query over its queues, in the Python process that Spark keeps for it beside the driver.

Each queue has a `QueueReader` (`spooled`, `positions`, `leased`). Together they answer what Spark
asks: where a new query begins, where the next micro-batch ends, and what is in it. The rows of a
micro-batch are shared evenly; what idle queues leave goes to the others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from pyspark.sql.datasource import InputPartition

from harebell.spark.reading.offsets import QueueOffset
from harebell.spark.reading.planning import OffsetRange
from harebell.spark.reading.queue_consumer import QueueGone

_POLL_SECONDS = (0.002, 0.02)
"""Shortest and longest pause between two looks at queues that were empty."""

Planned = list[OffsetRange] | list[InputPartition]


class ClaimAhead(Protocol):
    """Makes the claims that readers are about to make, for all of them in one round trip."""

    def __call__(
        self,
        requested: Sequence[tuple[QueueReader, QueueOffset]],
        max_messages: int,
        octets: int | None,
        *,
        more: bool,
    ) -> None:
        """Ask.

        Args:
            requested: the readers, and the offsets that `advance` or `extend` will get.
            max_messages: as they will get it.
            octets: the same.
            more: whether it will be `extend`.
        """


class QueueReader(Protocol):
    """Reads one queue of a query."""

    queue: str

    def begin(self) -> QueueOffset:
        """Where a new query begins."""

    def join(self) -> QueueOffset:
        """Where a queue begins that a running query has found: with all that is in it."""

    def before(self, end: QueueOffset) -> QueueOffset:
        """Where a queue began that a running query found, and whose first rows end there."""

    def prepare(self) -> None:
        """Remember how much there is: the query ends when that is processed."""

    def advance(self, start: QueueOffset, max_messages: int, octets: int | None) -> QueueOffset:
        """Everything before `start` is committed: settle it, and say where the next rows end.

        Args:
            start: where they begin.
            max_messages: most messages.
            octets: about how many octets of messages; None for any number.

        Returns:
            The end; `start` if there is nothing.
        """

    def extend(
        self, start: QueueOffset, end: QueueOffset, max_messages: int, octets: int | None
    ) -> QueueOffset:
        """A later end of the same rows, for a micro-batch that has room left."""

    def plan(self, start: QueueOffset, end: QueueOffset) -> Planned:
        """Plan the partitions for the rows between two offsets."""

    def report(self) -> dict[str, Any] | None:
        """Where the queue ends, if that is known."""

    def finish(self, start: QueueOffset) -> None:
        """The query has ended: settle everything before `start` and leave."""

    def leave(self, start: QueueOffset) -> None:
        """The query reads this queue no longer: settle everything before `start`, keep nothing."""

    def stop(self) -> None:
        """Leave at once."""


class SourceQuery:
    """A query: the readers of its queues.

    Args:
        parts: the readers, by queue.
        long_poll: seconds that an idle query waits for a message.
        cut: makes partitions of ranges.
        discover: finds readers of new queues, or None.
        gone: hears of a queue that is not there any more, and raises if the query is to end; None
            where that is an error like any other.
        ahead: makes the claims of several readers in one round trip, or None.

    Attributes:
        leaving: readers of queues that the checkpoint has and the options do not: what Spark has
            planned is read, then they are left.
    """

    def __init__(
        self,
        parts: Mapping[str, QueueReader],
        long_poll: float,
        cut: Callable[[list[OffsetRange]], list[InputPartition]],
        discover: Callable[[Mapping[str, QueueReader]], dict[str, QueueReader]] | None = None,
        gone: Callable[[str], None] | None = None,
        ahead: ClaimAhead | None = None,
    ) -> None:
        self.parts = dict(parts)
        self.leaving: dict[str, QueueReader] = {}
        self._long_poll = long_poll
        self._cut = cut
        self._discover = discover
        self._gone = gone
        self._ahead = ahead
        self._draining = False
        self._turn = 0

    def begin(self) -> dict[str, QueueOffset]:
        """Where a new query begins."""
        return {queue: part.begin() for queue, part in self.parts.items()}

    def prepare(self) -> None:
        """The query is to end when what is there now is processed."""
        self._draining = True
        for queue, part in list(self.parts.items()):
            try:
                part.prepare()
            except QueueGone:
                self._leave(queue)

    def advance(
        self, start: Mapping[str, QueueOffset], max_messages: int, octets: int | None
    ) -> dict[str, QueueOffset]:
        """Settle what is committed and find the end of the next micro-batch.

        Args:
            start: where it begins.
            max_messages: most messages.
            octets: about how many octets of messages; None for any number.

        Returns:
            Where it ends: equal to `start` if nothing came.
        """
        if self._discover is not None and not self._draining:
            self.parts.update(self._discover(self.parts))
        for queue in [queue for queue in self.leaving if queue in start]:
            # What Spark had planned is committed, else it would not ask for what follows.
            self.leaving.pop(queue).leave(start[queue])
        points = {queue: point for queue, point in start.items() if queue in self.parts}
        until = time.monotonic() + self._long_poll
        pause, longest = _POLL_SECONDS
        while True:
            ends = self._round(points, max_messages, octets)
            if ends != start:
                return ends
            if self._draining:
                for queue, part in self.parts.items():
                    if queue in points:
                        part.finish(points[queue])
                return ends
            if time.monotonic() >= until:
                return ends
            time.sleep(pause)
            pause = min(longest, pause * 2)

    def _round(
        self, points: Mapping[str, QueueOffset], max_messages: int, octets: int | None
    ) -> dict[str, QueueOffset]:
        """Ask every reader once, and those with more than their share a second time."""
        queues = sorted(self.parts)
        if not queues:
            return {}
        self._turn += 1
        shift = self._turn % len(queues)
        queues = queues[shift:] + queues[:shift]
        ends = dict(points)
        share = max(1, max_messages // len(queues))
        octet_share = None if octets is None else max(1, octets // len(queues))
        busy: list[str] = []
        if self._ahead is not None:
            known = [(self.parts[queue], points[queue]) for queue in queues if queue in points]
            self._ahead(known[:max_messages], share, octet_share, more=False)
        for queue in queues:
            if len(busy) == max_messages:
                # More queues than messages: each has its turn.
                break
            try:
                begin = points.get(queue) or self.parts[queue].join()
                end = self.parts[queue].advance(begin, share, octet_share)
            except QueueGone:
                self._leave(queue)
                ends.pop(queue, None)
                continue
            if end != begin:
                busy.append(queue)
                ends[queue] = end
            elif queue in points:
                ends[queue] = points[queue]
        idle = len(queues) - len(busy)
        more = (max_messages - share * len(busy)) // len(busy) if busy else 0
        if more:
            octet_share = None if octets is None else max(1, octets // len(queues) * idle)
            if self._ahead is not None:
                known = [(self.parts[queue], ends[queue]) for queue in busy]
                self._ahead(known, more, octet_share, more=True)
            for queue in busy:
                begin = points.get(queue) or self.parts[queue].before(ends[queue])
                ends[queue] = self.parts[queue].extend(begin, ends[queue], more, octet_share)
        return ends

    def plan(
        self, start: Mapping[str, QueueOffset], end: Mapping[str, QueueOffset]
    ) -> list[InputPartition]:
        """Plan the partitions for the rows between two offsets."""
        planned: list[InputPartition] = []
        ranges: list[OffsetRange] = []
        for queue, last in end.items():
            try:
                found = self._between(queue, start.get(queue), last)
            except QueueGone:
                self._leave(queue)
                continue
            for one in found:
                if isinstance(one, OffsetRange):
                    ranges.append(one)
                else:
                    planned.append(one)
        return planned + (self._cut(ranges) if ranges else [])

    def _between(self, queue: str, first: QueueOffset | None, last: QueueOffset) -> Planned:
        part = self.parts.get(queue) or self.leaving.get(queue)
        if part is None:
            # The queue is gone; that was logged when the query was made.
            return []
        first = first or part.before(last)
        return [] if first == last else part.plan(first, last)

    def _leave(self, queue: str) -> None:
        """While a queue is being handled as gone: go on without it, or raise."""
        if self._gone is None:
            raise
        self._gone(queue)
        self.parts.pop(queue).stop()

    def report(self) -> dict[str, dict[str, Any]] | None:
        """Where the queues end, if that is known."""
        found = {queue: self.parts[queue].report() for queue in sorted(self.parts)}
        known = {queue: point for queue, point in found.items() if point is not None}
        return known if len(known) == len(found) else None

    def stop(self) -> None:
        """Leave the broker."""
        for part in (*self.parts.values(), *self.leaving.values()):
            part.stop()
