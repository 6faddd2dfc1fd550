"""The sink: the writers that Spark calls, for batch writes and streaming queries.

    writer(), streamWriter()   on the driver, for every batch: options and columns are checked
    write(batches)             in a task, on an executor: the rows go to the broker
    commit(), abort()          on the driver, in a new process each time

Objects are pickled from the one to the next, so nothing is connected in between.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from harebell.client.blocking import Connection
from harebell.client.errors import AMQPError
from harebell.spark.options.sink_options import (
    AT_LEAST_ONCE,
    DROP,
    EXACTLY_ONCE,
    PUBLISHING_ID,
    SinkOptions,
    parse_sink,
)
from harebell.spark.options.values import OptionError
from harebell.spark.plain_errors import without_traceback
from harebell.spark.task_process import begin_task
from harebell.spark.writing import confirmed, staged
from harebell.spark.writing.advice import NO_ROUTE_MEND
from harebell.spark.writing.reconnecting import run_reconnecting
from harebell.spark.writing.sink_schema import message_columns
from harebell.spark.writing.super_stream import by_partition, partition_count
from harebell.spark.writing.write_target import SinkError, Task, TaskResult, WriteTarget

_LOG = logging.getLogger("harebell.spark")
_NEEDS = {EXACTLY_ONCE: "stage", PUBLISHING_ID: "publisher"}

Messages = Sequence[WriterCommitMessage | None]


class SinkSource(DataSource):
    """The writing side of the format."""

    @without_traceback
    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:
        """Return a writer for df.write."""
        target = _target(self.options, schema, overwrite)
        options = target.options
        run = str(uuid.uuid4())
        job = Job(options.publisher or f"spark-job/{run}", run, options.version or 0)
        return BatchWriter(target, job)

    @without_traceback
    def streamWriter(  # noqa: N802 - Spark's name
        self, schema: StructType, overwrite: bool
    ) -> StreamWriter:
        """Return a writer for df.writeStream."""
        target = _target(self.options, schema, overwrite=False)
        if target.options.publisher is not None:
            raise OptionError(
                "the options txnAppId and txnVersion belong to batch writes: a streaming query "
                "has an id and batch numbers of its own"
            )
        return StreamWriter(target)


@dataclass(frozen=True)
class Job:
    """The identity of a batch write.

    Args:
        publisher: name of the publisher.
        run: of the publisher.
        batch: number of its batch.
    """

    publisher: str
    run: str
    batch: int


def _target(given: Mapping[str, str], schema: StructType, overwrite: bool) -> WriteTarget:
    options: SinkOptions = parse_sink(given)
    if overwrite:
        raise OptionError(
            'messages that were published cannot be overwritten: write with .mode("append")'
        )
    columns = message_columns(
        schema,
        ignore_unknown=options.ignore_unknown,
        has_routing_key=options.routing_key is not None,
        has_exchange=options.exchange is not None,
    )
    return WriteTarget(options, columns)


class BatchWriter(DataSourceArrowWriter):
    """Write a data frame.

    Args:
        target: where and how to publish.
        job: identity of the write.
    """

    def __init__(self, target: WriteTarget, job: Job) -> None:
        self._target = target
        self._job = job

    @without_traceback
    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskResult:
        """Write one partition, on an executor."""
        job = self._job
        task = Task.of_job(job.publisher, job.run, job.batch)
        return _write(self._target, task, iterator, known=False)

    @without_traceback
    def commit(self, messages: Messages) -> None:
        """Commit the batch: all partitions are written."""
        # A write without a name is never repeated: its publisher is not used again.
        _commit(self._target, messages, forget=self._target.options.publisher is None)

    @without_traceback
    def abort(self, messages: Messages) -> None:
        """Abort the batch: a partition failed."""
        # If every task failed there are no results, and yet rows may be staged.
        job = self._job
        _abort(self._target, messages, Task(job.publisher, job.run, job.batch, 0, 0))


class StreamWriter(DataSourceStreamArrowWriter):
    """Write the micro-batches of a streaming query.

    Args:
        target: where and how to publish.
    """

    def __init__(self, target: WriteTarget) -> None:
        self._target = target

    @without_traceback
    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskResult:
        """Write one partition of a micro-batch, on an executor."""
        task = Task.of_query()
        # The query has connected to the broker before.
        return _write(self._target, task, iterator, known=task.batch > 0)

    @without_traceback
    def commit(self, messages: Messages, batchId: int) -> None:  # noqa: N803 - Spark's name
        """Commit a micro-batch: all partitions are written; repeated after a restart."""
        _commit(self._target, messages)

    @without_traceback
    def abort(self, messages: Messages, batchId: int) -> None:  # noqa: N803
        """Abort a micro-batch: a partition failed."""
        _abort(self._target, messages)


class _TaskWriter:
    """Publish the rows of a task.

    Args:
        target: where and how to publish.
        task: identity of the rows.
        batches: the rows.

    Attributes:
        done: the result.
    """

    def __init__(self, target: WriteTarget, task: Task, batches: Iterator[pa.RecordBatch]) -> None:
        self.done = TaskResult("", task)
        self._target = target
        self._batches = batches
        self._writer: staged.StagedWriter | confirmed.ConfirmedWriter | None = None

    def run(self, connection: Connection) -> None:
        """Continue over a new connection."""
        if self._writer is None:
            mode = self.done.mode = self._target.mode(connection, EXACTLY_ONCE, _NEEDS)
            kind = staged.StagedWriter if mode == EXACTLY_ONCE else confirmed.ConfirmedWriter
            self._writer = kind(self._target_of_task(connection), self._batches, self.done)
        self._writer.run(connection)

    def _target_of_task(self, connection: Connection) -> WriteTarget:
        """Return the target; the partitions of a super stream are counted for each task."""
        options = self._target.options
        if not options.super_stream:
            return self._target
        count = partition_count(connection, options.exchange or "")
        return replace(self._target, fitted=partial(by_partition, count=count))

    def give_up(self) -> None:
        """Discard what the failed task has staged."""
        # Without a staged piece the broker has nothing of this attempt.
        if isinstance(self._writer, staged.StagedWriter) and self._writer.progress:
            staged.discard(self._target, self.done.task)

    def progress(self) -> int:
        """Amount of work that the broker has accepted."""
        return 0 if self._writer is None else self._writer.progress


def _write(
    target: WriteTarget, task: Task, batches: Iterator[pa.RecordBatch], *, known: bool
) -> TaskResult:
    begin_task()
    writer = _TaskWriter(target, task, batches)
    what = f"write {task.publisher}"
    try:
        run_reconnecting(target, what, writer.run, writer.progress, known=known)
    except AMQPError as error:
        writer.give_up()
        address = target.options.url.address
        raise SinkError(f"rows could not be written to {address}: {error}") from error
    except SinkError:
        # The broker is unreachable, or another run has deleted what was staged.
        raise
    except BaseException:
        # The rows themselves are invalid, or Spark stops the task.
        writer.give_up()
        raise
    return writer.done


def _done(messages: Messages) -> list[TaskResult]:
    return [message for message in messages if isinstance(message, TaskResult)]


def _commit(target: WriteTarget, messages: Messages, *, forget: bool = False) -> None:
    finished = _done(messages)
    if not finished:
        return
    if bad := sum(one.bad for one in finished):
        where = f"went to exchange {target.options.dead_letter!r} with the reason"
        where = "were dropped" if target.options.bad_rows == DROP else where
        _LOG.warning("%d rows could not become messages and %s", bad, where)
    first = finished[0]
    if first.mode == EXACTLY_ONCE:
        try:
            committed = staged.commit(target, first.task, finished, forget=forget)
        except AMQPError as error:
            address = target.options.url.address
            raise SinkError(
                f"batch {first.task.batch} could not be committed at {address}: {error}"
            ) from error
        if committed.repeated:
            _LOG.info("batch %d was committed before", first.task.batch)
        return
    if target.options.delivery is None and first.mode == AT_LEAST_ONCE:
        _LOG.warning(
            "%s is not Harebell: rows are published at least once", target.options.url.address
        )
    _complain(target, finished)


def _complain(target: WriteTarget, finished: list[TaskResult]) -> None:
    """Raise an error if rows that must reach a queue did not."""
    rows = sum(one.rows for one in finished)
    refused = sum(one.refused for one in finished)
    if refused:
        raise SinkError(
            f"{refused} of {rows} rows were refused by {target.options.url.address} (basic.nack): "
            "a queue is full and set to reject-publish, or the broker is in trouble"
        )
    lost = sum(one.unroutable - one.dead_lettered for one in finished)
    if lost:
        shown = [text for one in finished for text in one.examples]
        raise SinkError(
            f"{lost} of {rows} rows reached no queue, the first with routing key "
            f"{', '.join(dict.fromkeys(shown[:3]))}. {NO_ROUTE_MEND}"
        )


def _abort(target: WriteTarget, messages: Messages, job: Task | None = None) -> None:
    """Delete what was staged.

    Args:
        target: where it is staged.
        messages: results of the tasks that have ended.
        job: identity of the write, if known without a result.
    """
    finished = _done(messages)
    staging = [one.task for one in finished if one.mode == EXACTLY_ONCE]
    # Tasks of another mode have published their rows: there is nothing to abort.
    task = staging[0] if staging else None if finished else job
    if task is None or target.options.delivery not in (None, EXACTLY_ONCE):
        return
    try:
        staged.abort(target, task)
    except AMQPError as error:
        # The broker deletes it after a while, and never publishes it.
        _LOG.warning("what was staged could not be dropped: %s", error)
