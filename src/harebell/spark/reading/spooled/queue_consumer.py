"""Consume a queue for Spark, over one connection.

The broker limits the number of unacknowledged messages by the prefetch of the consumers. A
micro-batch can be larger than the largest prefetch-count of AMQP (65,535), so there are as many
consumers as necessary. They share one channel, where deliveries keep the order of the queue, their
tags are 1, 2, 3..., and one basic.ack acknowledges everything before it.
"""

from __future__ import annotations

import time
from dataclasses import replace

import pyarrow as pa

from harebell.client import blocking
from harebell.client.errors import (
    AMQPError,
    ChannelClosed,
    ConnectionLost,
    ConsumerCancelled,
    NotFound,
)
from harebell.kernels.columns import ColumnSink
from harebell.spark.limits import (
    PREFETCH_MAX,
    SPARK_BATCH_BYTES,
    SPARK_CALLS_PER_TIMEOUT,
    SPARK_CONSUMERS,
)
from harebell.spark.options.source_options import Options
from harebell.spark.reading.errors import QueueGone, no_queue
from harebell.spark.reading.rows.arrow_batches import record_batch
from harebell.spark.reading.spooled.ready_count import ready_count
from harebell.spark.reading.spooled.spool import Spool
from harebell.spark.schema import ColumnSelection
from harebell.wire.v09.header_texts import count_of, headers_of

_MICROS = 1_000_000


class QueueConsumer:
    """A connection, its consumers, and the spool for their deliveries.

    Args:
        options: which queue, and how much of it.
        selection: the columns to read.
        schema: the same as Spark's Arrow schema.
        spool: where the rows are written.
        position: the number of the first delivery.

    Attributes:
        base: the number of the first delivery.
    """

    def __init__(
        self,
        options: Options,
        selection: ColumnSelection,
        schema: pa.Schema,
        spool: Spool,
        position: int,
    ) -> None:
        self.base = position
        self.spool = spool
        self._options = options
        self._schema = schema
        self._acked = 0
        self._sizes: list[tuple[int, int]] = []
        self._consuming = False
        self._sink = ColumnSink(
            selection.columns,
            selection.fields,
            options.queue,
            position,
            options.rows_per_batch,
            min(SPARK_BATCH_BYTES, options.max_bytes_per_trigger or SPARK_BATCH_BYTES),
            headers_of,
            count_of,
        )
        url = options.url
        if url.name is None:
            url = replace(url, name=f"{options.group_prefix}: {options.queue}")
        share = options.fetch_timeout / SPARK_CALLS_PER_TIMEOUT
        self._connection = blocking.connect(url, call_timeout=share)
        self._channel = self._connection.channel(confirms=False)

    @property
    def position(self) -> int:
        """Number of the next delivery."""
        return self._sink.position

    def within(self, first: int, byte_count: int | None) -> int:
        """Return the end of rows of at most this many bytes, at a record batch, or of all rows."""
        if byte_count is not None:
            for end, size in self._sizes:
                byte_count -= size if end > first else 0
                if byte_count <= 0:
                    return end
        return self.position

    def ready(self) -> int:
        """Return the number of ready messages of the queue.

        Raises:
            SourceError: the queue does not exist.
        """
        try:
            return ready_count(
                lambda: self._channel.declare_queue(self._options.queue, passive=True),
                consuming=self._consuming,
                patience=self._options.fetch_timeout,
            )
        except NotFound as error:
            raise no_queue(self._options) from error

    def consume(self) -> None:
        """Start the consumers, if they are not started.

        Raises:
            SourceError: the queue does not exist.
        """
        if self._consuming:
            return
        window = self._options.window
        consumers = -(-window // PREFETCH_MAX)
        if consumers > SPARK_CONSUMERS:
            # Larger than any prefetch that AMQP can express: use 0, which is no limit.
            consumers, window = 1, 0
        try:
            for number in range(consumers):
                share = window // consumers + (number < window % consumers)
                self._channel.consume_into(self._sink, self._options.queue, prefetch=share)
        except NotFound as error:
            raise no_queue(self._options) from error
        self._consuming = True
        # A whole micro-batch may have arrived meanwhile: account for its bytes, too.
        self._spool(everything=False)

    def pump(self, seconds: float) -> bool:
        """Wait for deliveries and receive them; write complete record batches to the spool.

        Returns:
            True if there was input.

        Raises:
            SourceError: the queue was deleted.
            AMQPError: the connection ended.
        """
        try:
            came = self._connection.pump(seconds)
        except ChannelClosed as error:
            # RabbitMQ closes the channel if acknowledgements take longer than its consumer_timeout.
            raise ConnectionLost(f"the broker closed the channel: {error}") from error
        except ConsumerCancelled as error:
            raise QueueGone(
                f"queue {self._options.queue!r} was deleted while the query read it ({error})"
            ) from error
        self._spool(everything=False)
        return came

    def seal(self) -> None:
        """Write every row to the spool and complete its file."""
        self._spool(everything=True)
        self.spool.seal()

    def _spool(self, *, everything: bool) -> None:
        # Here and not in `pump`: deliveries may also arrive while a call waits for its reply.
        self._sink.stamp(int(time.time() * _MICROS))
        for chunk in self._sink.take(everything):
            batch = record_batch(chunk, self._schema)
            self.spool.write(chunk[0], batch)
            self._sizes.append((chunk[0] + batch.num_rows, batch.nbytes))

    def settle(self, position: int) -> None:
        """Acknowledge every delivery before a position."""
        # The tags of the channel are 1, 2, 3...: one per delivery since `base`.
        tag = position - self.base
        if tag > self._acked:
            self._channel.ack(tag, multiple=True)
            self._acked = tag
            self._sizes = [one for one in self._sizes if one[0] > position]

    def close(self) -> None:
        """Close the connection gracefully: the broker requeues what is not acknowledged."""
        self._connection.close()

    def lost(self) -> None:
        """Close a connection that is broken, or whose broker does not answer, at once."""
        self._connection.abort()

    def abandon(self) -> None:
        """Close a connection that may be broken."""
        try:
            self._connection.close()
        except AMQPError:
            # The connection is closed in any case.
            return
