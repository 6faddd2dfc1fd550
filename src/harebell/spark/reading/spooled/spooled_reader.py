"""Read a queue over plain AMQP: deliveries are written to a spool, which executors read.

At least once: a delivery is acknowledged when Spark has committed its micro-batch. At most once:
it is acknowledged when it is in the spool, before Spark has seen it, and a micro-batch that
another process planned is never read again.
"""

from __future__ import annotations

import logging
from typing import Any, ClassVar

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from harebell.spark.options.source_options import AT_MOST_ONCE, Options
from harebell.spark.reading.errors import SourceError
from harebell.spark.reading.offsets import START, QueueOffset, SpoolOffset, expected
from harebell.spark.reading.spooled import spool as spools
from harebell.spark.reading.spooled.receiver import Receiver
from harebell.spark.schema import ColumnSelection

_LOG = logging.getLogger("harebell.spark")
_BROKERS_OWN = "headers_json"


class SpooledReader:
    """Read one queue over plain AMQP.

    Args:
        options: which queue, and how.
        selection: the columns to read.
        schema: of the record batches in the spool.

    Raises:
        SourceError: a column is requested that only Harebell provides.
    """

    offset_class: ClassVar[type[QueueOffset]] = SpoolOffset

    def __init__(self, options: Options, selection: ColumnSelection, schema: pa.Schema) -> None:
        if _BROKERS_OWN in selection.columns:
            raise SourceError(
                f"column {_BROKERS_OWN} is made by the broker, and cannot be had with deliveries "
                "over plain AMQP: leave it out, or read from Harebell with delivery=exactly-once"
            )
        if options.min_offsets_per_trigger:
            raise SourceError(
                f"queue {options.queue!r} is read over plain AMQP, where the option "
                "minOffsetsPerTrigger cannot wait for messages without holding them: leave it out, "
                "or read from Harebell with delivery=exactly-once"
            )
        self.queue = options.queue
        self._options = options
        self._root = options.spool_dir or spools.default_root()
        self._receiver = Receiver(options, selection, schema, self._root)
        self._backlog: int | None = None
        self._target: int | None = None

    def begin(self) -> QueueOffset:
        """Return the offset before the first delivery."""
        return START

    def join(self) -> QueueOffset:
        """Return the offset before the first delivery."""
        return START

    def before(self, end: QueueOffset) -> QueueOffset:
        """Return the offset before the first delivery: the query numbers deliveries."""
        return START

    def prepare(self) -> None:
        """Remember the number of messages."""
        self._backlog = self._receiver.backlog()
        self._target = None

    def available(self, start: QueueOffset) -> int:
        """Return 0: micro-batches over plain AMQP never wait."""
        return 0

    def advance(self, start: QueueOffset, max_messages: int, byte_count: int | None) -> QueueOffset:
        """Acknowledge what is committed and receive the next micro-batch."""
        here = self._own(start)
        draining = self._backlog is not None
        if self._backlog is not None:
            # Only now is the offset known from which the messages of `prepare` are counted.
            if self._target is None:
                self._target = here.position + self._backlog
            max_messages = min(max_messages, self._target - here.position)
        if max_messages <= 0:
            return here
        end = self._receiver.advance(here, max_messages, byte_count, draining=draining)
        if self._options.delivery == AT_MOST_ONCE and end != here:
            # Before Spark logs the micro-batch: a crash from here on loses it, and repeats nothing.
            self._receiver.settle_early(end)
        return end

    def extend(
        self, start: QueueOffset, end: QueueOffset, max_messages: int, byte_count: int | None
    ) -> QueueOffset:
        """Return the same end: one call of `advance` gathers enough."""
        return end

    def plan(self, start: QueueOffset, end: QueueOffset) -> list[InputPartition]:
        """Return the spooled rows between two offsets, split for the cores."""
        first, last = self._own(start), self._own(end)
        if first.position >= last.position:
            return []
        if self._options.delivery == AT_MOST_ONCE and not self._receiver.holds(last.spool):
            _LOG.warning(
                "messages of queue %r that were planned before are not read again: they were "
                "acknowledged, and delivery is at-most-once",
                self.queue,
            )
            return []
        try:
            return list(
                spools.plan(
                    self._root,
                    last.spool,
                    first.position,
                    last.position,
                    self._options.partitions,
                    self._options.max_records_per_partition,
                    self._options.least_rows,
                )
            )
        except FileNotFoundError as error:
            if self._receiver.holds(last.spool):
                raise SourceError(
                    f"the spool was removed while the query ran ({error}); nothing is lost: start "
                    "the query again, and the messages are delivered again"
                ) from error
            # Planned by a process that has ended, and never acknowledged: the queue still has them.
            _LOG.warning("messages that were planned before are taken from the queue: %s", error)
            return []

    def report(self) -> dict[str, Any] | None:
        """Return the end of the queue."""
        lag = self._receiver.lag()
        return None if lag is None else SpoolOffset(lag, "").to_json()

    def finish(self, start: QueueOffset) -> None:
        """Acknowledge the last messages and close the connection."""
        here = self._own(start)
        self._target = here.position
        self._receiver.finish(here)

    def leave(self, start: QueueOffset) -> None:
        """Acknowledge what is committed; the broker requeues the rest."""
        self.finish(start)

    def stop(self) -> None:
        """Close; the broker requeues what is not acknowledged."""
        self._receiver.stop()

    def _own(self, offset: QueueOffset) -> SpoolOffset:
        return expected(offset, SpoolOffset, self.queue)
