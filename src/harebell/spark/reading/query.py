"""A query over its queues, in the Python process that Spark starts for it beside the driver.

Each queue has a `QueueReader` (`spooled`, `positions`, `leased`). Together they answer Spark's
calls: where a new query begins, where the next micro-batch ends, and which rows are in it. The
rows of a micro-batch are shared evenly; what idle queues leave is used by the others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from pyspark.sql.datasource import InputPartition

from harebell.spark.reading.errors import QueueGone
from harebell.spark.reading.offsets import ClaimOffset, QueueOffset
from harebell.spark.reading.planning import OffsetRange
from harebell.spark.reading.queue_reader import PlannedRows, QueueReader
from harebell.spark.reading.trigger_delay import TriggerDelay

_POLL_SECONDS = (0.002, 0.02)
"""Minimum and maximum pause between two polls of empty queues."""
_HELD_POLL_SECONDS = 0.1
"""Pause between two polls of queues that have too few messages for a micro-batch."""


class ClaimAhead(Protocol):
    """Make the next claims of several leased queues in one round trip (`claim_together`)."""

    def __call__(
        self,
        requested: Sequence[tuple[QueueReader, QueueOffset]],
        max_messages: int,
        byte_count: int | None,
        *,
        more: bool,
    ) -> None:
        """Make the claims.

        Args:
            requested: the readers, and the offsets that `advance` or `extend` will get.
            max_messages: the argument of `advance` or `extend`.
            byte_count: the argument of `advance` or `extend`.
            more: whether the next call is `extend`.
        """


class SourceQuery:
    """A query: the readers of its queues.

    Args:
        readers: the readers, by queue.
        long_poll: seconds that an idle query waits for a message.
        cut: splits ranges into partitions.
        discover: finds readers of new queues, or None.
        gone: called when a queue does not exist any more; raises if the query must fail; None
            if that is an error like any other.
        ahead: makes the claims of several readers in one round trip, or None.
        delay: holds micro-batches of few messages, or None.

    Attributes:
        leaving: readers of queues that are in the checkpoint and not in the options: rows that
            Spark has planned are read, then the readers are closed.
    """

    def __init__(
        self,
        readers: Mapping[str, QueueReader],
        long_poll: float,
        cut: Callable[[list[OffsetRange]], Sequence[InputPartition]],
        discover: Callable[[Mapping[str, QueueReader]], dict[str, QueueReader]] | None = None,
        gone: Callable[[str], None] | None = None,
        ahead: ClaimAhead | None = None,
        delay: TriggerDelay | None = None,
    ) -> None:
        self.readers = dict(readers)
        self.leaving: dict[str, QueueReader] = {}
        self._long_poll = long_poll
        self._cut = cut
        self._discover = discover
        self._gone = gone
        self._ahead = ahead
        self._delay = delay or TriggerDelay()
        self._draining = False
        self._turn = 0

    def fits(self, offsets: Mapping[str, QueueOffset]) -> bool:
        """True if the query has the readers that the offsets of a checkpoint need."""
        return all(
            reader is not None and isinstance(offset, reader.offset_class)
            for queue, offset in offsets.items()
            for reader in [self.readers.get(queue) or self.leaving.get(queue)]
        )

    def begin(self) -> dict[str, QueueOffset]:
        """Return the offset at which a new query begins."""
        return {queue: reader.begin() for queue, reader in self.readers.items()}

    def prepare(self) -> None:
        """End the query when the present messages are processed."""
        self._draining = True
        for queue, reader in list(self.readers.items()):
            try:
                reader.prepare()
            except QueueGone as error:
                self._leave(queue, error)

    def advance(
        self,
        start: Mapping[str, QueueOffset],
        max_messages: int,
        byte_count: int | None,
        *,
        settle: bool = True,
    ) -> dict[str, QueueOffset]:
        """Acknowledge committed rows and find the end of the next micro-batch.

        Args:
            start: where it begins.
            max_messages: maximum number of messages.
            byte_count: approximate maximum bytes of messages; None for no limit.
            settle: whether claims are acknowledged; if not, the method `settle` does it later.

        Returns:
            Its end: equal to `start` if there are no messages.
        """
        # An AvailableNow query reads the queues that it had at its beginning.
        if self._discover is not None and not self._draining:
            self.readers.update(self._discover(self.readers))
        for queue in [queue for queue in self.leaving if queue in start and settle]:
            # Spark has committed the rows that it had planned: only then does it request the next.
            self.leaving.pop(queue).leave(start[queue])
        offsets = {queue: offset for queue, offset in start.items() if queue in self.readers}
        until = time.monotonic() + self._long_poll
        pause, longest = _POLL_SECONDS
        while True:
            # Counting with `available` acknowledges, too, which is not allowed without `settle`.
            held = self._holds(offsets) if settle else self._delay.is_set
            if held:
                pause = longest = _HELD_POLL_SECONDS
                ends = dict(offsets)
            else:
                ends = self._round(offsets, max_messages, byte_count, settle=settle)
            if ends != start:
                if not held:
                    self._delay.restart()
                return ends
            if self._draining:
                # Spark asks once more after its last micro-batch, whose rows are committed then.
                for queue, reader in self.readers.items():
                    if queue in offsets:
                        reader.finish(offsets[queue])
                return ends
            if time.monotonic() >= until:
                return ends
            time.sleep(pause)
            pause = min(longest, pause * 2)

    def settle(self, start: Mapping[str, QueueOffset]) -> None:
        """Acknowledge claims that `advance` was told to leave alone."""
        for queue, offset in start.items():
            if isinstance(offset, ClaimOffset) and queue in self.readers:
                try:
                    self.readers[queue].available(offset)
                except QueueGone as error:
                    self._leave(queue, error)

    def _holds(self, offsets: dict[str, QueueOffset]) -> bool:
        """True if there are too few messages for a micro-batch; deleted queues are left."""
        if self._draining or not self._delay.is_set:
            return False
        count = 0
        for queue, reader in list(self.readers.items()):
            try:
                count += reader.available(offsets.get(queue) or reader.join())
            except QueueGone as error:
                self._leave(queue, error)
                offsets.pop(queue, None)
        return self._delay.holds(count)

    def _round(
        self,
        offsets: Mapping[str, QueueOffset],
        max_messages: int,
        byte_count: int | None,
        *,
        settle: bool,
    ) -> dict[str, QueueOffset]:
        """Advance every reader once, and those with more than their share a second time."""
        queues = sorted(self.readers)
        if not queues:
            return {}
        self._turn += 1
        # Another queue is the first one each time: each gets its turn at a limit of few messages.
        shift = self._turn % len(queues)
        queues = queues[shift:] + queues[:shift]
        ends = dict(offsets)
        share = max(1, max_messages // len(queues))
        byte_share = None if byte_count is None else max(1, byte_count // len(queues))
        busy: list[str] = []
        if self._ahead is not None and settle:
            following = [
                (self.readers[queue], offsets[queue]) for queue in queues if queue in offsets
            ]
            self._ahead(following[:max_messages], share, byte_share, more=False)
        for queue in queues:
            if len(busy) == max_messages:
                # More queues than messages: the queues take turns.
                break
            try:
                begin = offsets.get(queue) or self.readers[queue].join()
                if settle or not isinstance(begin, ClaimOffset):
                    end = self.readers[queue].advance(begin, share, byte_share)
                else:
                    end = self.readers[queue].extend(begin, begin, share, byte_share)
            except QueueGone as error:
                self._leave(queue, error)
                ends.pop(queue, None)
                continue
            if end != begin:
                busy.append(queue)
                ends[queue] = end
            elif queue in offsets:
                # A new queue is in no offset before it has rows: the change would be a micro-batch.
                ends[queue] = offsets[queue]
        idle = len(queues) - len(busy)
        more = (max_messages - share * len(busy)) // len(busy) if busy else 0
        if more:
            byte_share = None if byte_count is None else max(1, byte_count // len(queues) * idle)
            if self._ahead is not None:
                following = [(self.readers[queue], ends[queue]) for queue in busy]
                self._ahead(following, more, byte_share, more=True)
            for queue in busy:
                begin = offsets.get(queue) or self.readers[queue].before(ends[queue])
                ends[queue] = self.readers[queue].extend(begin, ends[queue], more, byte_share)
        return ends

    def plan(
        self, start: Mapping[str, QueueOffset], end: Mapping[str, QueueOffset]
    ) -> list[InputPartition]:
        """Return the partitions for the rows between two offsets."""
        planned: list[InputPartition] = []
        ranges: list[OffsetRange] = []
        for queue, last in end.items():
            try:
                rows = self._between(queue, start.get(queue), last)
            except QueueGone as error:
                self._leave(queue, error)
                continue
            for each in rows:
                if isinstance(each, OffsetRange):
                    ranges.append(each)
                else:
                    planned.append(each)
        return [*planned, *(self._cut(ranges) if ranges else [])]

    def _between(self, queue: str, first: QueueOffset | None, last: QueueOffset) -> PlannedRows:
        reader = self.readers.get(queue) or self.leaving.get(queue)
        if reader is None:
            # The queue does not exist any more; that was logged when the query was made.
            return []
        first = first or reader.before(last)
        return [] if first == last else reader.plan(first, last)

    def _leave(self, queue: str, error: QueueGone) -> None:
        """Continue without a deleted queue.

        Raises:
            QueueGone: all queues of the query have to exist.
            DataLoss: the query must fail when one was deleted.
        """
        if self._gone is None:
            raise error
        self._gone(queue)
        self.readers.pop(queue).stop()

    def report(self) -> dict[str, dict[str, Any]] | None:
        """Return the ends of the queues, if known."""
        ends = {queue: self.readers[queue].report() for queue in sorted(self.readers)}
        reported = {queue: offset for queue, offset in ends.items() if offset is not None}
        # Without one of them Spark would show a lag that is too small.
        return reported if len(reported) == len(ends) else None

    def stop(self) -> None:
        """Close all readers."""
        for reader in (*self.readers.values(), *self.leaving.values()):
            reader.stop()
