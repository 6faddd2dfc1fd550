"""The stream reader: Spark's calls, their order, and what the answers guarantee.

    initialOffset()       where a new query begins; called twice, answered once
    latestOffset(start)   everything before start is in Spark's commit log: it is acknowledged, and
                          the end of the next micro-batch is found
    partitions(a, b)      the rows between a and b, split for the cores
    read(partition)       in an executor: the rows

A message is acknowledged only after Spark has committed its micro-batch. `commit` is no evidence
of that, because Spark never calls it for the last micro-batch of a query. A request for the offset
after X is evidence that X is committed, also after a restart, and at the end of an AvailableNow
query.

With asynchronous progress tracking it is none: Spark asks, plans, and logs later or never. Spark
does not say that a query is such a one. Its `commit` of the first micro-batch comes too late, or
not at all, which `_LoggedFirst` notices when the second one is planned. Until then the claims of
the first one are acknowledged by `commit`, or when Spark has had the time to log it.

Spark calls `partitions` first when it restarts in the middle of a micro-batch.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from harebell.spark.limits import SPARK_LOG_SECONDS
from harebell.spark.options.source_options import Options
from harebell.spark.plain_errors import rows_without_traceback, without_traceback
from harebell.spark.reading.errors import SourceError
from harebell.spark.reading.offsets import (
    LogOffset,
    QueueOffset,
    SpoolOffset,
    is_spooled,
    offsets_json,
    offsets_of,
)
from harebell.spark.reading.query import SourceQuery
from harebell.spark.reading.reader_factory import ReaderFactory
from harebell.spark.reading.rows.partition_rows import PartitionRows
from harebell.spark.reading.rows.row_layout import layout
from harebell.spark.schema import ColumnSelection


class _LoggedFirst:
    """Whether Spark logs each micro-batch before it plans the next one."""

    def __init__(self) -> None:
        self._planned: dict[str, Any] | None = None
        self._committed: dict[str, Any] | None = None
        self._known = False
        self._until = 0.0

    def committed(self, end: dict[str, Any]) -> None:
        """Record a call of `commit`."""
        self._committed = end

    def planned(self, start: dict[str, Any], end: dict[str, Any]) -> bool:
        """Record a call of `partitions`; return whether `start` is logged, as far as is known."""
        # A micro-batch that begins where the last planned one ends: that one should be logged.
        follows = self._planned == start != end
        self._planned = end
        self._known = self._known or self._committed == start
        self._until = time.monotonic() + SPARK_LOG_SECONDS
        return not follows or self._committed == start

    def may_lack(self, start: dict[str, Any]) -> bool:
        """Return whether what Spark says was processed may not be logged yet."""
        return self._planned == start and not self._known and time.monotonic() < self._until


class QueueStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Read queues as a stream.

    Spark makes three of these: in its planner, in the process that serves the query, and, pickled,
    in the executors. Only the second one connects, and not before its first call.

    Args:
        options: which queues, and how.
        schema: the columns to read.
    """

    def __init__(self, options: Options, schema: StructType) -> None:
        columns = layout(schema, options)
        self._selection: ColumnSelection = columns.selection
        self._schema: pa.Schema = columns.raw
        self._rows = PartitionRows.of(columns, options)
        self._options: Options | None = options
        self._query: SourceQuery | None = None
        self._readers: ReaderFactory | None = None
        self._initial: dict[str, Any] | None = None
        self._now = False
        self._log = _LoggedFirst()

    def __getstate__(self) -> dict[str, Any]:
        # Executors use the address and password in the partitions, where necessary.
        return self.__dict__ | {"_options": None, "_query": None, "_readers": None}

    # --- in the process that serves the query ---------------------------------------------------

    @without_traceback
    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Return the offset where a new query begins; the same for both calls of Spark."""
        if self._initial is None:
            self._initial = self._json(self._query_for(None).begin())
        return self._initial

    @without_traceback
    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Remember the number of messages: the query ends when they are processed."""
        self._query_for(None).prepare()
        self._now = True

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return the default limit of a micro-batch."""
        return ReadMaxRows(self._driver_options().max_offsets_per_trigger)

    @without_traceback
    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """Acknowledge what is committed and find the end of the next micro-batch."""
        offsets, options = self._offsets(start), self._driver_options()
        max_messages, byte_count = options.window, options.max_bytes_per_trigger
        if isinstance(limit, ReadMaxRows):
            max_messages = limit.max_rows
        elif isinstance(limit, ReadMaxBytes):
            byte_count = min(limit.max_bytes, byte_count or limit.max_bytes)
        query = self._query_for(offsets)
        # AvailableNow has no asynchronous log: Spark logs each micro-batch before the next.
        settle = self._now or not self._log.may_lack(start)
        end = query.advance(offsets, max_messages, byte_count, settle=settle)
        # Return the identical text if nothing is new: Spark compares offsets as text.
        return start if end == offsets else self._json(end)

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        """Return the ends of the queues, for the query's progress."""
        ends = None if self._query is None else self._query.report()
        if ends is not None and len(ends) == 1:
            (end,) = ends.values()
            # One queue over plain AMQP: the same form as in the checkpoint (`_json`).
            return end if is_spooled(end) else ends
        return ends

    @without_traceback
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Plan a micro-batch, a new one or, after a restart, one that was not committed.

        Raises:
            SourceError: Spark may not have logged what it said was processed.
        """
        first, last = self._offsets(start), self._offsets(end)
        replayable = all(isinstance(each, LogOffset) for each in first.values())
        logged = self._log.planned(start, end)
        # With AvailableNow Spark refuses to log later.
        if not (logged or replayable or self._now):
            raise SourceError(
                "this query tracks its progress asynchronously (asyncProgressTrackingEnabled): "
                "Spark logs its micro-batches later or not at all, so messages of which the "
                "checkpoint does not know would be acknowledged and could be lost. Start it with "
                '.option("asyncProgressTrackingEnabled", "false"), or read a stream, which '
                "returns its messages again"
            )
        return self._query_for(last).plan(first, last)

    @without_traceback
    def commit(self, end: dict[str, Any]) -> None:
        """Acknowledge the first micro-batch; `latestOffset` does so with the others, see above."""
        if self._query is not None and self._log.may_lack(end):
            self._query.settle(self._offsets(end))
        self._log.committed(end)

    def stop(self) -> None:
        """Close; the broker requeues what is not acknowledged."""
        if self._query is not None:
            self._query.stop()
        if self._readers is not None:
            self._readers.leave()

    def _driver_options(self) -> Options:
        assert self._options is not None, "only executors have no options"
        return self._options

    def _offsets(self, offset: dict[str, Any]) -> dict[str, QueueOffset]:
        return offsets_of(offset, self._driver_options().queue)

    def _json(self, offsets: Mapping[str, QueueOffset]) -> dict[str, Any]:
        """Format an offset; one queue over plain AMQP is not nested, as in old checkpoints."""
        if self._driver_options().pattern is None and len(offsets) == 1:
            (offset,) = offsets.values()
            if isinstance(offset, SpoolOffset):
                return offset.to_json()
        return offsets_json(offsets)

    def _query_for(self, offsets: Mapping[str, QueueOffset] | None) -> SourceQuery:
        """Return the query; make it on the first call.

        Args:
            offsets: offsets of the checkpoint; None for a new query.
        """
        if self._readers is None:
            self._readers = ReaderFactory(self._driver_options(), self._selection, self._schema)
        if self._query is None or not (offsets is None or self._query.fits(offsets)):
            if self._query is not None:
                self._query.stop()
            self._query = self._readers.query(offsets)
            if self._now:
                self._query.prepare()
        return self._query

    # --- in an executor -------------------------------------------------------------------------

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Return the rows of a partition."""
        return rows_without_traceback(self._rows.read(partition))
