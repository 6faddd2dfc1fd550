"""Publishing exactly once: tasks stage record batches, the driver commits them by number.

    executors   stage.open, stage.append ...    their rows wait in the broker, and nobody sees them
    driver      stage.commit(batch N, parts)    all rows at once, together with "N is committed"

Which rows a task staged does not matter for what happens when it is repeated: only the parts that
the driver names are published, and a batch that is committed is never published again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import pyarrow as pa

from harebell.base.limits import SPARK_PIECES_IN_FLIGHT
from harebell.client import blocking, stages
from harebell.client.call import Call
from harebell.client.errors import ChannelClosed, Fenced
from harebell.spark.aim import Aim, Done, SinkError, Task

_NO_ROUTE = 312


def stage(
    aim: Aim, connection: blocking.Connection, batches: Iterator[pa.RecordBatch], done: Done
) -> None:
    """Stage the rows of a task.

    Args:
        aim: where they go.
        connection: to the broker.
        batches: the rows.
        done: is filled in.

    Raises:
        SinkError: another run of the query has taken over.
        AMQPError: the broker refuses the rows.
    """
    task = done.task
    channel = connection.channel(confirms=False)
    with _telling(task):
        committed = task.batch < channel.stage_open(task.publisher, task.run)
        waiting: deque[Call[int]] = deque()
        for number, piece in enumerate(aim.pieces(batches)):
            if committed:
                continue
            call = stages.stage_append(
                channel.core,
                task.publisher,
                task.run,
                batch=task.batch,
                part=task.part,
                attempt=task.attempt,
                number=number,
                columns=aim.written.words,
                data=piece,
            )
            waiting.append(call)
            # Also when there is room: else nothing would be written before it is full.
            connection.pump(0.0)
            while len(waiting) > SPARK_PIECES_IN_FLIGHT:
                done.rows = connection.finish(waiting.popleft())
        while waiting:
            done.rows = connection.finish(waiting.popleft())


def commit(aim: Aim, task: Task, finished: list[Done], *, forget: bool) -> stages.Committed:
    """Publish what tasks have staged, unless that was done before.

    Args:
        aim: where the rows go.
        task: any of the batch.
        finished: what all of its tasks did.
        forget: whether the publisher has no other batches.

    Raises:
        SinkError: rows reach no queue, or another run of the query has taken over.
        AMQPError: the broker refuses the batch.
    """
    connection = aim.connect("commit")
    try:
        channel = connection.channel(confirms=False)
        with _telling(task):
            # A batch without rows may be the first that this run has to do with the broker.
            channel.stage_open(task.publisher, task.run)
            committed = _commit(aim, channel, task, finished)
            if forget:
                channel.publisher_forget(task.publisher)
            return committed
    finally:
        connection.close()


def _commit(
    aim: Aim, channel: blocking.Channel, task: Task, finished: list[Done]
) -> stages.Committed:
    options = aim.options
    try:
        return channel.stage_commit(
            task.publisher,
            task.run,
            batch=task.batch,
            parts=[(one.task.part, one.task.attempt, one.rows) for one in finished],
            exchange=options.exchange or "",
            routing_key=options.routing_key or "",
            delivery_mode=options.delivery_mode,
            mandatory=options.mandatory and not options.dead_letter,
            dead_letter=options.dead_letter,
        )
    except ChannelClosed as error:
        if error.code != _NO_ROUTE:
            raise
        raise SinkError(
            f"batch {task.batch} was not published, for not every row reaches a queue: "
            f"{error}. Bind a queue, or set deadLetter, or mandatory=false"
        ) from error


def abort(aim: Aim, task: Task) -> None:
    """Forget what tasks have staged.

    Raises:
        AMQPError: the broker cannot be asked; what is staged goes after a while by itself.
    """
    connection = aim.connect("abort")
    try:
        connection.channel(confirms=False).stage_abort(task.publisher, task.run, batch=task.batch)
    finally:
        connection.close()


class _telling:  # noqa: N801 - used as a statement
    """Says in the words of a query that it was fenced."""

    def __init__(self, task: Task) -> None:
        self._task = task

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Fenced):
            raise SinkError(
                f"another run of the publisher {self._task.publisher!r} has taken over, and this "
                f"one may not write any more: stop one of the two queries that use the same "
                f"checkpoint ({error})"
            ) from error
