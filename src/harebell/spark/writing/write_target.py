"""The target of a write task, the task itself, and its result.

Aim           where rows go and how, made on the driver, pickled to the executors
Task          which part of which batch this is; only executors know that
Done          what a task did: the commit message that goes back to the driver
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage

from harebell.base.errors import HarebellError
from harebell.base.limits import SPARK_COMMITTED_PER_SECOND
from harebell.client import blocking
from harebell.kernels.rows import Rows
from harebell.spark.options.sink_options import AT_LEAST_ONCE, SinkOptions
from harebell.spark.writing.sink_schema import Written
from harebell.wire.arrow.decode import decode_batch

_QUERY = "sql.streaming.queryId"
_BATCH = "streaming.sql.batchId"
_RUN = "spark.jobGroup.id"


class SinkError(HarebellError):
    """Rows cannot be written; the text says why and what to do."""


@dataclass(frozen=True)
class WriteTarget:
    """Where rows go, and how.

    Args:
        options: what the user asked for.
        written: which columns become messages.
    """

    options: SinkOptions
    written: Written

    def rows(self) -> Rows:
        """A kernel for these columns."""
        options, written = self.options, self.written
        return Rows(
            written.columns,
            written.fields,
            options.exchange or "",
            options.routing_key or "",
            options.delivery_mode,
        )

    def pieces(self, batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
        """Each batch as one message of Arrow's IPC format; those without rows are left out."""
        for batch in batches:
            if batch.num_rows:
                yield self.written.fitted(batch).serialize().to_pybytes()

    def load(self, rows: Rows, piece: bytes) -> int:
        """Hand a piece to the kernel; how many rows it has."""
        found = decode_batch(piece, self.written.columns, self.written.fields)
        rows.load(piece, found.rows, found.entries, found.spans)
        return found.rows

    def connect(self, what: str, rows: int = 0) -> blocking.Connection:
        """A connection to the broker.

        Args:
            what: it is for, as operators see it.
            rows: that one call is about; each gives it some more time.
        """
        timeout = self.options.confirm_timeout + rows / SPARK_COMMITTED_PER_SECOND
        url = self.options.url
        if url.name is None:
            url = replace(url, name=f"spark: {what}")
        return blocking.connect(url, call_timeout=timeout, background_heartbeats=True)

    def mode(self, connection: blocking.Connection, default: str, needs: dict[str, str]) -> str:
        """How often rows are published with this broker.

        Args:
            connection: to it.
            default: when no option says it and the broker can.
            needs: the class of Harebell's own that each way needs.

        Raises:
            SinkError: the option asks for what the broker cannot.
        """
        requested = self.options.delivery
        need = needs.get(requested or default)
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
    """Which rows these are.

    Args:
        publisher: the name of the publisher: that of the options, or of the streaming query.
        run: of the publisher, which is new with every start of a query or a batch write.
        batch: which of its batches.
        part: the partition.
        attempt: the attempt to write it, unlike all others of this Spark.
    """

    publisher: str
    run: str
    batch: int
    part: int
    attempt: int

    @classmethod
    def of_query(cls) -> Task:
        """The task of a streaming query that this process works on."""
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
        """The task of a batch write that this process works on."""
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
        mode: how it published.
        task: which rows.
        rows: how many.
        unroutable: how many no queue wanted.
        dead_lettered: how many of these went to the dead-letter exchange.
        examples: where the first of these were to go.
        refused: how many the broker answered with basic.nack.
    """

    mode: str
    task: Task
    rows: int = 0
    unroutable: int = 0
    dead_lettered: int = 0
    examples: tuple[str, ...] = ()
    refused: int = 0
