"""Publishing at least once: frames from columns, confirms in flight, returns counted.

Works with every broker that speaks AMQP 0-9-1 with confirms. A task that fails is tried again by
Spark from its first row, and so is a micro-batch that was not committed: rows may be published
more than once, and none is lost.

With `publishing-id` each row carries the number of its micro-batch and its own within the
partition, and the broker drops what it has taken before. That is exactly once when a repeated
partition has the same rows in the same order, as it has without a shuffle over a source that can
be read again.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from harebell.base.limits import SPARK_EXAMPLES
from harebell.client import blocking
from harebell.client.blocking_rows import RowPublisher
from harebell.client.errors import BulkPublishFailed, ChannelClosed, PublishReturned
from harebell.client.message import Message
from harebell.spark.aim import Aim, Done, SinkError
from harebell.spark.sink_options import PUBLISHING_ID

_ROW_BITS = 32
"""Of a publishing id: those of the row; the number of the micro-batch stands above them."""


def publish(
    aim: Aim, connection: blocking.Connection, batches: Iterator[pa.RecordBatch], done: Done
) -> None:
    """Publish the rows of a task and wait until they are confirmed.

    Args:
        aim: where they go.
        connection: to the broker.
        batches: the rows.
        done: is filled in.

    Raises:
        AMQPError: the broker did not take them.
        BatchError: a row cannot become a message.
    """
    options = aim.options
    publisher = RowPublisher(
        connection,
        window=options.max_in_flight,
        mandatory=options.mandatory,
        patience=options.confirm_timeout,
    )
    returns = _Returns(aim, connection, publisher, done)
    rows = aim.rows()
    first = None
    if done.mode == PUBLISHING_ID:
        task = done.task
        publisher.number(f"{task.publisher}/{task.part}")
        first = task.batch << _ROW_BITS
    for piece in aim.pieces(batches):
        count = aim.load(rows, piece)
        if first is not None:
            rows.number_from = first + done.rows
        at = 0
        while at < count:
            at = publisher.publish(rows, len(piece), at, count)
            returns.take()
        done.rows += count
    publisher.settle()
    returns.take()
    done.unroutable = publisher.tally.returned_count
    done.refused = publisher.tally.refused


class _Returns:
    """What came back, and goes to the dead-letter exchange or is counted.

    Args:
        aim: where rows go.
        connection: to the broker.
        publisher: whose rows they are.
        done: is filled in.
    """

    def __init__(
        self, aim: Aim, connection: blocking.Connection, publisher: RowPublisher, done: Done
    ) -> None:
        self._exchange = aim.options.dead_letter
        self._publisher = publisher
        self._done = done
        self._channel = connection.channel() if self._exchange else None
        # No more can come back at once than wait for their confirm, and those of the next step.
        # Without a dead-letter exchange a few are enough to say what is wrong.
        most = 2 * aim.options.max_in_flight
        publisher.keep_returned = most if self._exchange else SPARK_EXAMPLES

    def take(self) -> None:
        """Publish what has come back to the dead-letter exchange, or keep the first of them."""
        returned = self._publisher.returned
        if not returned:
            return
        room = SPARK_EXAMPLES - len(self._done.examples)
        self._done.examples += tuple(_where(one) for one in returned[: max(room, 0)])
        if self._channel is None:
            if room <= 0:
                self._publisher.keep_returned = 0
            self._publisher.returned = []
            return
        self._publisher.returned = []
        try:
            # As they were, to the other exchange, under their own routing keys.
            self._channel.publish_many(
                (_letter(one, self._exchange) for one in returned), mandatory=True
            )
        except (BulkPublishFailed, ChannelClosed) as error:
            raise SinkError(
                f"{len(returned)} rows that no queue wanted could not go to the dead-letter "
                f"exchange {self._exchange!r} either: {error}"
            ) from error
        self._done.dead_lettered += len(returned)


def _letter(returned: PublishReturned, exchange: str) -> Message:
    came = returned.message
    letter = Message(came.body, exchange=exchange, routing_key=came.routing_key)
    letter.encoded = came.encoded
    return letter


def _where(returned: PublishReturned) -> str:
    message = returned.message
    return f"{message.routing_key!r} at exchange {message.exchange!r}"
