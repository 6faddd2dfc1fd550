"""The messages of a queue as a stream of Arrow batches, of which DuckDB reads as it goes on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from harebell.client.bulk import schema_of
from harebell.client.errors import AMQPError
from harebell.pipeline.errors import PipelineError
from harebell.pipeline.sql.embedded.pushing import Wanted

if TYPE_CHECKING:
    import pyarrow as pa

    from harebell.client.blocking import Connection


class QueueStream:
    """The messages that are in a queue now; DuckDB opens it by Arrow's C stream interface.

    Args:
        connection: to the broker.
        queue: the name of a queue or stream.
        wanted: what is read of it.

    Attributes:
        failure: what went wrong while it was read; None if nothing did.
        rows: number of messages that the broker has sent.

    Raises:
        AMQPError: the queue does not exist, or cannot be read.
    """

    def __init__(self, connection: Connection, queue: str, wanted: Wanted) -> None:
        import pyarrow as pa

        self.failure: AMQPError | None = None
        self.rows = 0
        self._queue = queue
        self._columns = wanted.names()
        self._where = wanted.where()
        # A channel of its own: other queues are read between its batches.
        self._channel = connection.channel()
        span = self._channel.span(queue)
        self._generation = span.generation
        self._first, self._end = wanted.span(span.first, span.end)
        self._schema: pa.Schema = pa.ipc.read_schema(pa.py_buffer(schema_of(self._columns)))
        self._opened = False

    def __arrow_c_schema__(self) -> Any:
        """Return the columns."""
        return self._schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Return the messages, once."""
        import pyarrow as pa

        if self._opened:
            # Another reading could find other messages.
            raise PipelineError(f"queue {self._queue!r} is read a second time")
        self._opened = True
        reader = pa.RecordBatchReader.from_batches(self._schema, self._batches())
        return reader.__arrow_c_stream__(requested_schema)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        if self._first >= self._end:
            return
        try:
            for batch in self._channel.arrow_batches(
                self._queue,
                self._first,
                self._end,
                columns=self._columns,
                generation=self._generation,
                where=self._where,
                skip_lost=True,
            ):
                self.rows += batch.rows
                if batch.rows:
                    yield pa.ipc.read_record_batch(pa.py_buffer(batch.data), self._schema)
        except AMQPError as error:
            self.failure = error
            raise
