"""What a query needs of the reader of one queue: `spooled`, `positions` and `leased` each have one.

`strategies` has the table that chooses which of them reads a queue.
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

from pyspark.sql.datasource import InputPartition

from harebell.spark.reading.offsets import QueueOffset
from harebell.spark.reading.planning import OffsetRange

PlannedRows = list[OffsetRange] | list[InputPartition]
"""Ranges that the query cuts into partitions for its tasks, or partitions."""


class QueueReader(Protocol):
    """Read one queue of a query.

    Attributes:
        offset_class: class of the queue's offsets in a checkpoint.
        queue: the name of the queue.
    """

    offset_class: ClassVar[type[QueueOffset]]
    queue: str

    def begin(self) -> QueueOffset:
        """Return the offset at which a new query begins."""

    def join(self) -> QueueOffset:
        """Return the offset before all messages of a queue that a running query has found."""

    def before(self, end: QueueOffset) -> QueueOffset:
        """Return the offset before the first rows of a queue that a running query has found."""

    def prepare(self) -> None:
        """Remember the number of messages: the query ends when they are processed."""

    def available(self, start: QueueOffset) -> int:
        """Acknowledge everything before `start`, which Spark has committed; count the next rows.

        Returns:
            How many messages the next micro-batch could have.
        """

    def advance(self, start: QueueOffset, max_messages: int, byte_count: int | None) -> QueueOffset:
        """Acknowledge everything before `start`, which Spark has committed; return the next end.

        Args:
            start: the first offset of the micro-batch.
            max_messages: maximum number of messages.
            byte_count: approximate maximum bytes of messages; None for no limit.

        Returns:
            The end; `start` if there are no messages.
        """

    def extend(
        self, start: QueueOffset, end: QueueOffset, max_messages: int, byte_count: int | None
    ) -> QueueOffset:
        """Return a later end of the same rows, for a micro-batch that has room left."""

    def plan(self, start: QueueOffset, end: QueueOffset) -> PlannedRows:
        """Return the partitions for the rows between two offsets."""

    def report(self) -> dict[str, Any] | None:
        """Return the end of the queue, if known."""

    def finish(self, start: QueueOffset) -> None:
        """Acknowledge everything before `start` and close: the query has ended."""

    def leave(self, start: QueueOffset) -> None:
        """Acknowledge everything before `start` and delete all state: the queue left the query."""

    def stop(self) -> None:
        """Close at once."""
