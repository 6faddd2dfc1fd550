"""Publish exactly once: tasks stage record batches, the driver commits them by number.

    executors   stage.open, stage.append ...    the broker stores their rows, invisible
    driver      stage.commit(batch N, parts)    all rows at once, together with "N is committed"

It does not matter which rows a repeated task stages: only the parts that the driver names are
published, and a committed batch is never published again.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import pyarrow as pa

from harebell.base.limits import STAGE_PIECE_BYTES
from harebell.client import blocking
from harebell.client.errors import AMQPError, ChannelClosed, Fenced, NotFound, PreconditionFailed
from harebell.client.protocol import stages
from harebell.client.protocol.call import Call
from harebell.spark.limits import SPARK_KEPT_BYTES, SPARK_PIECES_IN_FLIGHT
from harebell.spark.writing.advice import NO_ROUTE_MEND
from harebell.spark.writing.bad_rows import LETTER_COLUMNS, BadRows
from harebell.spark.writing.reconnecting import run_reconnecting
from harebell.spark.writing.write_target import (
    SinkError,
    Task,
    TaskResult,
    WriteTarget,
    serialized,
)

_LOG = logging.getLogger("harebell.spark")
_NO_ROUTE = 312
_STAGE = "stage"
_GONE = "send the batch again"
"""The broker's error if a part is missing."""
_AGAIN = "start the query again, which goes on from its checkpoint, or write the data frame again"


class _Piece(NamedTuple):
    """Rows to stage.

    Args:
        data: in Arrow's IPC format.
        columns: its columns, in the notation of class stage.
    """

    data: memoryview
    columns: str


class StagedWriter:
    """Stage the rows of a task in the broker.

    Pieces are kept up to a limit, so that they can be sent again to a broker that has lost what was
    staged.

    Args:
        target: where they go.
        batches: the rows.
        done: the result.

    Attributes:
        progress: number of pieces that the broker has staged.
    """

    def __init__(
        self, target: WriteTarget, batches: Iterator[pa.RecordBatch], done: TaskResult
    ) -> None:
        self.progress = 0
        self._columns = target.columns.stage_notation
        self._bad = BadRows(target.options)
        self._pieces = target.pieces(batches, self._bad)
        self._done = done
        self._kept: deque[_Piece] = deque()
        self._byte_count = 0
        self._first = 0
        self._taken = 0

    def run(self, connection: blocking.Connection) -> None:
        """Stage the remaining pieces, over a new connection.

        Raises:
            SinkError: another run of the query has fenced it, or the broker has lost too much.
            AMQPError: the broker refuses the rows.
        """
        task = self._done.task
        channel = connection.channel(confirms=False)
        with _fencing_explained(task):
            # The batch is committed already: the commit of a repeated micro-batch publishes
            # nothing.
            if task.batch < channel.stage_open(task.publisher, task.run):
                return
            first, self._taken = self._first, 0
            try:
                self._stage(connection, channel)
            except PreconditionFailed as error:
                # Only the first piece of a connection can meet a broker that has lost those before
                # it.
                if not first or self._taken:
                    raise
                raise SinkError(
                    f"the broker has lost what was staged of part {task.part} of batch "
                    f"{task.batch}, as after a power loss, and the task has not kept all of it "
                    f"({error}): {_AGAIN}"
                ) from error

    def _stage(self, connection: blocking.Connection, channel: blocking.Channel) -> None:
        task = self._done.task
        waiting: deque[tuple[int, Call[int]]] = deque()
        for number, piece in self._numbered():
            call = stages.stage_append(
                channel.core,
                task.publisher,
                task.run,
                batch=task.batch,
                part=task.part,
                attempt=task.attempt,
                number=number,
                columns=piece.columns,
                data=piece.data,
            )
            waiting.append((number, call))
            # Also while the window has room: else nothing would be written until it is full.
            connection.pump(0.0)
            while len(waiting) > SPARK_PIECES_IN_FLIGHT:
                self._finish(connection, *waiting.popleft())
        while waiting:
            self._finish(connection, *waiting.popleft())

    def _numbered(self) -> Iterator[tuple[int, _Piece]]:
        """Yield kept pieces, then new ones; skip pieces that are staged already."""
        yield from enumerate(list(self._kept), self._first)
        for data in self._pieces:
            yield self._keep(_Piece(data, self._columns))
            yield from self._dead_letters()
        yield from self._dead_letters()

    def _dead_letters(self) -> Iterator[tuple[int, _Piece]]:
        """Yield what bad rows have become: with its exchange in a column."""
        for rows in self._bad.take():
            for data in serialized(rows):
                yield self._keep(_Piece(data, LETTER_COLUMNS))
        self._done.bad = self._bad.count

    def _keep(self, piece: _Piece) -> tuple[int, _Piece]:
        size = len(piece.data)
        if size > STAGE_PIECE_BYTES:
            raise SinkError(
                f"a row has {size} bytes with its properties, and with delivery=exactly-once a "
                f"row has at most {STAGE_PIECE_BYTES}: set delivery=at-least-once, or publish "
                "where its body is stored"
            )
        self._kept.append(piece)
        self._byte_count += size
        return self._first + len(self._kept) - 1, piece

    def _finish(self, connection: blocking.Connection, number: int, call: Call[int]) -> None:
        """Wait until a piece is staged."""
        self._done.rows = connection.finish(call)
        self._taken += 1
        self.progress = max(self.progress, number + 1)
        # Only pieces that are staged: the others are not in the broker yet.
        while self._byte_count > SPARK_KEPT_BYTES and self._first < self.progress:
            self._byte_count -= len(self._kept.popleft().data)
            self._first += 1


def commit(
    target: WriteTarget, task: Task, finished: list[TaskResult], *, forget: bool
) -> stages.Committed:
    """Publish what tasks have staged, unless the batch is committed already.

    Args:
        target: where the rows go.
        task: any task of the batch.
        finished: results of all tasks.
        forget: whether to delete the publisher, which has no other batches.

    Raises:
        SinkError: rows are unroutable, another run of the query has fenced this one, or its
            checkpoint is older than what was published.
        AMQPError: the broker refuses the batch.
    """

    def work(connection: blocking.Connection) -> stages.Committed:
        channel = connection.channel(confirms=False)
        with _fencing_explained(task):
            # For a batch without rows this may be the first request of this run to the broker.
            following = channel.stage_open(task.publisher, task.run)
            _check_order(task, following, streaming=not (forget or target.options.publisher))
            committed = _commit(target, channel, task, finished)
        if forget:
            _forget(channel, task)
        return committed

    rows = sum(one.rows for one in finished)
    return run_reconnecting(target, "commit", work, known=True, rows=rows)


def _check_order(task: Task, following: int, *, streaming: bool) -> None:
    """Compare the number of a batch with the first one that the broker does not have.

    Args:
        task: any task of the batch.
        following: that number.
        streaming: whether each batch has the number after the last one, which alone is repeated.

    Raises:
        SinkError: the checkpoint of the query is older than what was published.
    """
    if task.batch < following - 1:
        text = (
            f"batch {task.batch} of {task.publisher!r} comes, and the broker has its batches up to "
            f"{following - 1}"
        )
        if not streaming:
            _LOG.warning("%s: it is passed over", text)
            return
        raise SinkError(
            f"{text}: the checkpoint of the query was put back to an older state, and what comes "
            "under these numbers would not be published. Put the newer checkpoint back; or publish "
            "again what came after the older state, with "
            f"`harebell publishers forget {task.publisher}`"
        )
    if streaming and task.batch > following:
        _LOG.warning(
            "the rows of %d batches of %r before batch %d are not on this broker: it was restored "
            "to an older state, it has forgotten the publisher, or the query wrote to another one",
            task.batch - following,
            task.publisher,
            task.batch,
        )


def _forget(channel: blocking.Channel, task: Task) -> None:
    """Delete a publisher that is not used again; an error here changes nothing published."""
    try:
        channel.publisher_forget(task.publisher)
    except AMQPError as error:
        _LOG.warning("the publisher %s is not forgotten yet: %s", task.publisher, error)


def _commit(
    target: WriteTarget, channel: blocking.Channel, task: Task, finished: list[TaskResult]
) -> stages.Committed:
    options = target.options
    try:
        return channel.stage_commit(
            task.publisher,
            task.run,
            batch=task.batch,
            parts=[(one.task.part, one.task.attempt, one.rows) for one in finished],
            exchange=options.exchange or "",
            routing_key=options.routing_key or "",
            delivery_mode=options.delivery_mode,
            mandatory=options.mandatory,
            dead_letter=options.dead_letter,
        )
    except PreconditionFailed as error:
        if _GONE not in error.text:
            raise
        raise SinkError(
            f"batch {task.batch} was not published: the broker has lost what was staged, as after "
            f"a power loss ({error.text}): {_AGAIN}"
        ) from error
    except ChannelClosed as error:
        if error.code != _NO_ROUTE:
            raise
        mend = NO_ROUTE_MEND
        if options.dead_letter:
            mend = (
                f"They reach none by the dead-letter exchange {options.dead_letter!r} either: bind "
                "a queue to it"
            )
        raise SinkError(
            f"batch {task.batch} was not published, for not every row reaches a queue: "
            f"{error}. {mend}"
        ) from error


def abort(target: WriteTarget, task: Task) -> None:
    """Delete what tasks have staged.

    Raises:
        AMQPError: the broker cannot be reached; it deletes staged rows after a while itself.
    """
    with target.connect("abort") as connection:
        if _STAGE not in connection.extensions:
            return
        try:
            connection.channel(confirms=False).stage_abort(
                task.publisher, task.run, batch=task.batch
            )
        except NotFound:
            _LOG.debug("no task of %s has staged anything", task.publisher)


def discard(target: WriteTarget, task: Task) -> None:
    """Delete what one attempt has staged; if that fails the broker does it after a while."""
    try:
        with target.connect("discard") as connection:
            connection.channel(confirms=False).stage_discard(
                task.publisher, task.run, batch=task.batch, part=task.part, attempt=task.attempt
            )
    except AMQPError as error:
        _LOG.warning("what part %d has staged could not be dropped: %s", task.part, error)


@contextmanager
def _fencing_explained(task: Task) -> Iterator[None]:
    """Translate the error of a fenced publisher into the terms of a query."""
    try:
        yield
    except Fenced as error:
        raise SinkError(
            f"another run of the publisher {task.publisher!r} has taken over, and this one may "
            f"not write any more: stop one of the two queries that use the same checkpoint "
            f"({error})"
        ) from error
