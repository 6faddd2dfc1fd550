"""Read the present messages of queues as a batch, without consuming them.

After a batch read Spark gives no signal at which messages could be acknowledged, so a batch only
reads by position. With the option `pushdown` filters on queue, routing_key, offset, timestamp
and other columns (`pushed_conditions`) are pushed down, so that the broker sends less; Spark
applies every filter again. Spark refuses a reader class that takes filters unless its setting
spark.sql.python.filterPushdown.enabled is true, hence two classes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
from pyspark.sql import datasource as ds
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from harebell.spark.options.offset_limits import EARLIEST, LATEST, OffsetLimit
from harebell.spark.options.source_options import Options
from harebell.spark.plain_errors import rows_without_traceback, without_traceback
from harebell.spark.reading.broker_connection import BrokerConnection
from harebell.spark.reading.errors import SourceError
from harebell.spark.reading.planning import OffsetRange, RangePartition, planned
from harebell.spark.reading.positions.broker_conditions import joined
from harebell.spark.reading.positions.position_reader import resolved, span_of
from harebell.spark.reading.positions.pushed_conditions import condition_of
from harebell.spark.reading.queue_lookup import check_partition, find_queues
from harebell.spark.reading.rows.partition_rows import Filters, PartitionRows
from harebell.spark.reading.rows.row_layout import layout

_MICROS_PER_MS = 1000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class QueueBatchReader(DataSourceReader):
    """Read queues without consuming them.

    Args:
        options: which queues, and how.
        schema: the columns to read.
    """

    def __init__(self, options: Options, schema: StructType) -> None:
        self._rows = PartitionRows.of(layout(schema, options), options)
        self._options: Options | None = options
        self._limits = PushedLimits(options.where)

    def __getstate__(self) -> dict[str, Any]:
        # Executors use the address and password in the partitions.
        return self.__dict__ | {"_options": None}

    @without_traceback
    def partitions(self) -> Sequence[InputPartition]:
        """Return the ranges of the present messages, as partitions."""
        options = self._options
        assert options is not None, "only executors have no options"
        name = f"{options.group_prefix}: batch read"
        connection = BrokerConnection(options.url, options.fetch_timeout, name)
        try:
            if "bulk" not in connection.extensions:
                raise SourceError(
                    f"the broker at {options.url.address} ({connection.product}) cannot be read "
                    "with spark.read, which needs Harebell's bulk reads because it could not "
                    "acknowledge messages: use spark.readStream with .trigger(availableNow=True), "
                    "which ends when the queue is empty"
                )
            ranges = [
                self._range(connection, options.about(queue))
                for queue in find_queues(connection, options)
            ]
        finally:
            connection.abandon()
        pieces = planned([one for one in ranges if one is not None], options)
        # Spark handles an empty list of partitions as one partition without a value.
        return pieces or [RangePartition([], options.url)]

    def _range(self, connection: BrokerConnection, options: Options) -> OffsetRange | None:
        limits = self._limits
        if limits.queues is not None and options.queue not in limits.queues:
            return None
        span = span_of(connection, options)
        check_partition(options, span.kind)
        starting = options.starting.of(options.queue) or OffsetLimit(EARLIEST)
        ending = options.ending.of(options.queue) or OffsetLimit(LATEST)
        first = resolved(starting, span, connection, options, ending=False)
        end = resolved(ending, span, connection, options, ending=True)
        first = max(first, limits.first)
        end = min(end, span.end if limits.end is None else limits.end)
        # As if the messages were spread evenly over the positions: Spark only cuts partitions by
        # it.
        share = max(1, span.messages) * (end - first) // max(1, span.end - span.first)
        return OffsetRange(options.queue, span.generation, first, end, max(1, share))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Return the rows of a partition."""
        return rows_without_traceback(self._rows.read(partition))


class FilteredBatchReader(QueueBatchReader):
    """A batch reader with filter pushdown."""

    def pushFilters(  # noqa: N802 - Spark's name
        self, filters: list[ds.Filter]
    ) -> Iterable[ds.Filter]:
        """Narrow the ranges by filters; return all filters, because Spark applies them again."""
        for one in filters:
            self._limits.take(one)
        self._rows = replace(self._rows, filters=self._limits.filters())
        return filters


class PushedLimits:
    """What filters imply: limits on queue, routing key, position and time, and conditions.

    Args:
        where: the option `where`.
    """

    def __init__(self, where: str | None = None) -> None:
        self._where = where
        self._conditions: list[str] = []
        self.queues: set[str] | None = None
        self.first = 0
        self.end: int | None = None
        self._key: str | None = None
        self._prefix: str | None = None
        self._since = 0
        self._until = 0

    def filters(self) -> Filters:
        """Filters for the broker."""
        # The broker takes one of the two; Spark applies a prefix that contradicts the key.
        prefix = None if self._key is not None else self._prefix
        where = joined(self._where, self._conditions)
        return Filters(self._key, prefix, self._since, self._until, where)

    def take(self, one: ds.Filter) -> None:
        """Narrow the limits by one filter, if it can be pushed down."""
        attribute: tuple[str, ...] = getattr(one, "attribute", ())
        column = attribute[0] if len(attribute) == 1 else ""
        value = getattr(one, "value", None)
        if column == "queue":
            self._queue(one, value)
        elif column == "routing_key" and isinstance(value, str):
            if isinstance(one, ds.EqualTo | ds.EqualNullSafe):
                self._key = value
            elif isinstance(one, ds.StringStartsWith):
                self._prefix = max(value, self._prefix or "", key=len)
        elif column == "offset" and type(value) is int:
            self._offset(one, value)
        elif column == "timestamp" and isinstance(value, datetime | date):
            self._time(one, value)
        elif (condition := condition_of(one)) is not None:
            self._conditions.append(condition)

    def _queue(self, one: ds.Filter, value: Any) -> None:
        if isinstance(one, ds.EqualTo | ds.EqualNullSafe) and isinstance(value, str):
            queues = {value}
        elif isinstance(one, ds.In):
            queues = {each for each in value if isinstance(each, str)}
        else:
            return
        self.queues = queues if self.queues is None else self.queues & queues

    def _offset(self, one: ds.Filter, value: int) -> None:
        lowest, highest = _bounds(one, value)
        if lowest is not None:
            self.first = max(self.first, lowest)
        if highest is not None:
            end = highest + 1
            self.end = end if self.end is None else min(self.end, end)

    def _time(self, one: ds.Filter, value: Any) -> None:
        if not isinstance(value, datetime):
            value = datetime(value.year, value.month, value.day)
        if value.tzinfo is None:
            value = value.astimezone()
        since = value.astimezone(UTC) - _EPOCH
        micros = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
        lowest, highest = _bounds(one, micros)
        if lowest is not None:
            self._since = max(self._since, lowest // _MICROS_PER_MS)
        if highest is not None:
            # 0 means no limit to the broker.
            until = max(1, highest // _MICROS_PER_MS + 1)
            self._until = until if not self._until else min(self._until, until)


def _bounds(one: ds.Filter, value: int) -> tuple[int | None, int | None]:
    """Return the lowest and the highest value that pass; None for no bound."""
    if isinstance(one, ds.EqualTo | ds.EqualNullSafe):
        return value, value
    if isinstance(one, ds.GreaterThan):
        return value + 1, None
    if isinstance(one, ds.GreaterThanOrEqual):
        return value, None
    if isinstance(one, ds.LessThan):
        return None, value - 1
    if isinstance(one, ds.LessThanOrEqual):
        return None, value
    return None, None
