"""Publish at least once: build frames from columns, track confirms and returns.

Works with every broker that supports AMQP 0-9-1 with confirms. Spark repeats a failed task from its
first row, and also a micro-batch that was not committed: rows may be published more than once, and
none is lost. The same holds when the connection is lost: unconfirmed rows are published again over
a new one.

With `publishing-id` each row has the number of its micro-batch and its own number within the
partition, and the broker drops duplicates. That is exactly once if a repeated partition has the
same rows in the same order, as it has without a shuffle over a source that can be read again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa

from harebell.client import blocking
from harebell.client.blocking.rows import RowPublisher
from harebell.client.errors import AccessRefused, AMQPError, BulkPublishFailed, PublishReturned
from harebell.client.message import Message
from harebell.client.protocol.recovery import recoverable
from harebell.spark.limits import SPARK_EXAMPLES
from harebell.spark.options.sink_options import PUBLISHING_ID
from harebell.spark.writing.bad_rows import BadRows
from harebell.spark.writing.write_target import SinkError, TaskResult, WriteTarget

_OF_ANOTHER = "publishers hand-over"
"""The broker's error if another user has the publisher."""
_ROW_BITS = 32
"""Bits of a publishing id for the row; the number of the micro-batch is above them."""


class _Piece(NamedTuple):
    """A record batch.

    Args:
        data: in Arrow's IPC format.
        first: number of its first row within the partition.
    """

    data: memoryview
    first: int


class ConfirmedWriter:
    """Publish the rows of a task until all are confirmed.

    Args:
        target: where they go.
        batches: the rows.
        done: the result, updated while rows are published.

    Attributes:
        progress: rows below this number are confirmed or returned.
    """

    def __init__(
        self, target: WriteTarget, batches: Iterator[pa.RecordBatch], done: TaskResult
    ) -> None:
        self.progress = 0
        self._target = target
        self._bad = BadRows(target.options)
        self._pieces = target.pieces(batches, self._bad)
        self._rows = target.rows()
        self._done = done
        self._kept: deque[_Piece] = deque()
        self._returns = _Returns(target, done)

    def run(self, connection: blocking.Connection) -> None:
        """Publish what is not confirmed, over a new connection.

        Raises:
            AMQPError: the broker refused them.
            BatchError: a row cannot become a message.
        """
        options, done = self._target.options, self._done
        publisher = RowPublisher(
            connection,
            window=options.max_in_flight,
            mandatory=options.mandatory,
            patience=options.confirm_timeout,
        )
        if done.mode == PUBLISHING_ID:
            self._number(publisher)
        before = self.progress
        try:
            self._returns.begin(connection, publisher)
            for piece in self._numbered():
                self._publish(publisher, piece, before)
                self._publish_dead_letters(connection)
            self._publish_dead_letters(connection)
            publisher.settle()
            self._returns.take()
        finally:
            # The tally counts from 1 on each connection, and the task's rows from 0 over all of
            # them.
            self.progress = before + publisher.tally.oldest - 1
            done.unroutable += publisher.tally.returned_count
            done.refused += publisher.tally.refused

    def _numbered(self) -> Iterator[_Piece]:
        """Yield unconfirmed pieces, then new ones."""
        yield from list(self._kept)
        for data in self._pieces:
            piece = _Piece(data, self._done.rows)
            self._kept.append(piece)
            yield piece

    def _publish_dead_letters(self, connection: blocking.Connection) -> None:
        """Publish what bad rows have become; it is kept until that is confirmed."""
        self._done.bad = self._bad.count
        if not self._bad.letters:
            return
        letters = [one for rows in self._bad.letters for one in rows.to_pylist()]
        with connection.channel() as channel:
            try:
                channel.publish_many(map(_message, letters), mandatory=True)
            except BulkPublishFailed as error:
                reason = error.failures[0][1]
                if recoverable(reason):
                    raise reason from error
                raise SinkError(
                    f"{len(letters)} rows that cannot become messages could not go to the "
                    f"dead-letter exchange {self._target.options.dead_letter!r} either: {error}"
                ) from error
        self._bad.letters.clear()

    def _number(self, publisher: RowPublisher) -> None:
        """Let the broker drop rows that were published before.

        Raises:
            SinkError: another user has published for the query.
            AMQPError: the broker refuses the publisher.
        """
        name, part = self._done.task.publisher, self._done.task.part
        try:
            publisher.number(f"{name}/{part}")
        except AccessRefused as error:
            if _OF_ANOTHER not in error.text:
                raise
            raise SinkError(f"{error}. Hand over '{name}', which has all partitions") from error

    def _publish(self, publisher: RowPublisher, piece: _Piece, before: int) -> None:
        """Publish the unconfirmed rows of one piece, as the window allows."""
        rows, done = self._rows, self._done
        count = self._target.load(rows, piece.data)
        done.rows = max(done.rows, piece.first + count)
        if done.mode == PUBLISHING_ID:
            # A repeated micro-batch gets the same numbers, by which the broker knows its rows.
            rows.number_from = (done.task.batch << _ROW_BITS) + piece.first
        # The rows before it were confirmed on an earlier connection.
        row = max(0, before - piece.first)
        while row < count:
            row = publisher.publish(rows, len(piece.data), row, count)
            self._returns.take()
        settled = before + publisher.tally.oldest - 1
        # A piece may go when the next one begins with confirmed rows: all of it is confirmed.
        while len(self._kept) > 1 and self._kept[1].first <= settled:
            self._kept.popleft()


class _Returns:
    """Returned messages: publish them to the dead-letter exchange, or count them.

    Args:
        target: where rows go.
        done: the result.
    """

    def __init__(self, target: WriteTarget, done: TaskResult) -> None:
        self._exchange = target.options.dead_letter
        self._done = done
        self._publisher: RowPublisher | None = None
        self._channel: blocking.Channel | None = None
        # No more can be returned at once than are unconfirmed, plus those of the next step.
        # Without a dead-letter exchange a few are enough for the error text.
        max_kept = 2 * target.options.max_in_flight
        self._keep = max_kept if self._exchange else SPARK_EXAMPLES

    def begin(self, connection: blocking.Connection, publisher: RowPublisher) -> None:
        """Continue with the publisher of a new connection."""
        # Messages that the connection before returned and that are not handled yet.
        unhandled = [] if self._publisher is None else self._publisher.returned
        self._publisher = publisher
        self._channel = connection.channel() if self._exchange else None
        publisher.keep_returned = self._keep
        publisher.returned = unhandled
        self.take()

    def take(self) -> None:
        """Publish returned messages to the dead-letter exchange, or keep the first ones."""
        publisher = self._publisher
        assert publisher is not None, "it has begun"
        returned = publisher.returned
        if not returned:
            return
        publisher.returned = []
        if self._channel is None:
            self._show(returned)
            if len(self._done.examples) >= SPARK_EXAMPLES:
                self._keep = publisher.keep_returned = 0
            return
        try:
            # Unchanged, with their own routing keys.
            self._channel.publish_many(
                (_letter(one, self._exchange) for one in returned), mandatory=True
            )
        except AMQPError as error:
            reason = error.failures[0][1] if isinstance(error, BulkPublishFailed) else error
            if recoverable(reason):
                # They are published again on the next connection, before new ones.
                publisher.returned = returned + publisher.returned
                raise reason from error
            raise SinkError(
                f"{len(returned)} rows that no queue wanted could not go to the dead-letter "
                f"exchange {self._exchange!r} either: {error}"
            ) from error
        self._show(returned)
        self._done.dead_lettered += len(returned)

    def _show(self, returned: list[PublishReturned]) -> None:
        room = SPARK_EXAMPLES - len(self._done.examples)
        self._done.examples += tuple(_where(one) for one in returned[: max(room, 0)])


def _message(letter: dict[str, Any]) -> Message:
    properties = {name: text for name, text in letter["properties"].items() if text is not None}
    return Message(
        letter["value"],
        exchange=letter["exchange"],
        routing_key=letter["routing_key"],
        headers=dict(letter["headers"]),
        delivery_mode=2,
        **properties,
    )


def _letter(returned: PublishReturned, exchange: str) -> Message:
    came = returned.message
    letter = Message(came.body, exchange=exchange, routing_key=came.routing_key)
    letter.encoded = came.encoded
    return letter


def _where(returned: PublishReturned) -> str:
    message = returned.message
    return f"{message.routing_key!r} at exchange {message.exchange!r}"
