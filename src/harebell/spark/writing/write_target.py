"""The target of a write task, the task itself, and its result.

WriteTarget   where and how to publish, made on the driver, pickled to the executors
Task          which part of which batch, known on the executor only
TaskResult    what a task did: the commit message that is returned to the driver
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage

from harebell.base.errors import HarebellError
from harebell.client import blocking
from harebell.kernels.rows import Rows
from harebell.spark.connection_limits import connect_in_turn
from harebell.spark.limits import SPARK_COMMITTED_PER_SECOND, SPARK_PIECE_BYTES
from harebell.spark.options.sink_options import AT_LEAST_ONCE, SinkOptions
from harebell.spark.outages import watch
from harebell.spark.writing.sink_schema import MessageColumns
from harebell.wire.arrow.decode import decode_batch

_QUERY = "sql.streaming.queryId"
_BATCH = "streaming.sql.batchId"
_RUN = "spark.jobGroup.id"


class SinkError(HarebellError):
    """Rows cannot be written; the text says why and what to do."""


def _parted(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield a batch in parts that are not too large, or have one row."""
    count = rows.num_rows
    if count == 1 or rows.nbytes <= SPARK_PIECE_BYTES:
        yield rows
        return
    half = count // 2
    yield from _parted(rows.slice(0, half))
    yield from _parted(rows.slice(half))


def serialized(rows: pa.RecordBatch) -> Iterator[memoryview]:
    """Yield rows as messages of Arrow's IPC format that a broker takes at a time."""
    for part in _parted(rows):
        yield memoryview(part.serialize())


class RowSorting(Protocol):
    """Sort out the rows that cannot become messages."""

    def without(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows that can."""


@dataclass(frozen=True)
class WriteTarget:
    """Where and how rows are published.

    Args:
        options: the options of the user.
        columns: the columns that become messages.
        fitted: makes the rows of a batch fit the target, beyond their types; None for as they are.
    """

    options: SinkOptions
    columns: MessageColumns
    fitted: Callable[[pa.RecordBatch], pa.RecordBatch] | None = None

    def rows(self) -> Rows:
        """Return a kernel for these columns."""
        options, columns = self.options, self.columns
        return Rows(
            columns.names,
            columns.fields,
            options.exchange or "",
            options.routing_key or "",
            options.delivery_mode,
        )

    def pieces(
        self, batches: Iterator[pa.RecordBatch], sorting: RowSorting
    ) -> Iterator[memoryview]:
        """Yield batches as messages of Arrow's IPC format; skip those without rows.

        Rows that cannot become messages are sorted out by `sorting`. Spark gives out batches of a
        little more than 64 MiB, which is more than a broker takes at a time. A view, as a piece
        may be large and is mostly sent as it is.
        """
        for batch in batches:
            if batch.num_rows:
                good = sorting.without(self.columns.chosen(batch))
                rows = self.columns.fitted(good)
                if self.fitted is not None:
                    rows = self.fitted(rows)
                if rows.num_rows:
                    yield from serialized(rows)

    def load(self, rows: Rows, piece: memoryview) -> int:
        """Pass a piece to the kernel; return its number of rows."""
        data = piece.tobytes()
        batch = decode_batch(data, self.columns.names, self.columns.fields)
        rows.load(data, batch.rows, batch.entries, batch.spans)
        return batch.rows

    def connect(self, what: str, rows: int = 0, *, in_turn: bool = False) -> blocking.Connection:
        """Open a connection to the broker.

        Args:
            what: purpose of the connection, as shown in management.
            rows: rows that one call handles; more rows get more time.
            in_turn: whether to wait where a limit of the broker allows no more connections.

        Raises:
            AMQPError: it cannot be opened.
            NoConnectionFree: the limit allows none in time.
        """
        timeout = self.options.confirm_timeout + rows / SPARK_COMMITTED_PER_SECOND
        url = self.options.url
        if url.name is None:
            url = replace(url, name=f"spark: {what}")
        watch(url)
        open_one = partial(blocking.connect, url, call_timeout=timeout, background_heartbeats=True)
        if not in_turn:
            return open_one()
        return connect_in_turn(url.address, self.options.connection_wait, open_one)

    def mode(self, connection: blocking.Connection, default: str, needs: dict[str, str]) -> str:
        """Return the delivery guarantee with this broker.

        Args:
            connection: the connection to it.
            default: used if no option sets one and the broker supports it.
            needs: the class of Harebell's own that each guarantee needs.

        Raises:
            SinkError: the broker does not support the option.
        """
        requested = self.options.delivery
        need = needs.get(requested or default)
        # Publishing at least once needs no class of Harebell.
        if need is None or need in connection.extensions:
            return requested or default
        if requested is None:
            return AT_LEAST_ONCE
        product = connection.server_properties.get("product", "another broker")
        raise SinkError(
            f"delivery={requested} needs a Harebell with the class {need}, and "
            f"{self.options.url.address} is {product} without it: use delivery=at-least-once there"
        )


@dataclass(frozen=True)
class Task:
    """The identity of the rows of a task.

    Args:
        publisher: name of the publisher: from the options, or of the streaming query.
        run: run of the publisher, unique for each start of a query or batch write.
        batch: number of the batch.
        part: number of the partition.
        attempt: the attempt to write it, unique within this Spark.
    """

    publisher: str
    run: str
    batch: int
    part: int
    attempt: int

    @classmethod
    def of_query(cls) -> Task:
        """Return the task of a streaming query in this process."""
        context = _context()
        return cls(
            f"spark/{context.getLocalProperty(_QUERY)}",
            str(context.getLocalProperty(_RUN)),
            int(context.getLocalProperty(_BATCH) or 0),
            context.partitionId(),
            context.taskAttemptId(),
        )

    @classmethod
    def of_job(cls, publisher: str, run: str, batch: int) -> Task:
        """Return the task of a batch write in this process."""
        context = _context()
        return cls(publisher, run, batch, context.partitionId(), context.taskAttemptId())


def _context() -> TaskContext:
    context = TaskContext.get()
    assert context is not None, "rows are written by tasks"
    return context


@dataclass
class TaskResult(WriterCommitMessage):
    """What a task did.

    Args:
        mode: delivery guarantee.
        task: identity of the rows.
        rows: number of rows.
        unroutable: number of rows that reached no queue.
        dead_lettered: number of these that were published to the dead-letter exchange.
        examples: routes of the first of these.
        refused: number of rows that the broker answered with basic.nack.
        bad: number of rows that could not become messages.
    """

    mode: str
    task: Task
    rows: int = 0
    unroutable: int = 0
    dead_lettered: int = 0
    examples: tuple[str, ...] = ()
    refused: int = 0
    bad: int = 0
