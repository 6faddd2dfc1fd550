"""Copy the messages of a stream to its tier, and let the broker know how far the tier is.

    stream    | in the tier, may go by retention | next file | ...
                                                 ^ offset that the tier's consumer tag acknowledged

With the argument `x-tier` a stream keeps the messages above that offset, whatever its limits are.
The offset is acknowledged when the files are verified, so a job may die at any moment: the next one
continues behind the last file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harebell.client import blocking
from harebell.client.errors import AMQPError, ResourceLocked
from harebell.client.url import URL
from harebell.pipeline.errors import PipelineError
from harebell.pipeline.tier.tier_files import TierFiles
from harebell.spark.options.source_options import for_batch, parse
from harebell.spark.reading.broker_connection import BrokerConnection
from harebell.spark.reading.errors import SourceError
from harebell.spark.reading.planning import OffsetRange, RangePartition
from harebell.spark.reading.positions.position_reader import span_of
from harebell.spark.reading.rows.partition_rows import PartitionRows
from harebell.spark.reading.rows.row_layout import layout
from harebell.spark.schema import message_schema

if TYPE_CHECKING:
    import pyarrow as pa

_STREAM = "stream"
_ACK_SECONDS = 30.0


@dataclass(frozen=True)
class TierJob:
    """A stream and its tier.

    Args:
        address: URL of the broker.
        stream: the name of the stream that is copied.
        name: of the tier: the consumer tag whose offset says how far it is.
        files: where its parts are stored.
        file_bytes: size of rows after which a file ends.
        accept_gap: whether to go on although messages went before the tier had them.
    """

    address: str
    stream: str
    name: str
    files: TierFiles
    file_bytes: int
    accept_gap: bool = False

    @contextmanager
    def alone(self) -> Iterator[Callable[[], None]]:
        """Keep out other jobs for this stream; yield a check that this one is still alone.

        Raises:
            PipelineError: another job runs.
        """
        url = URL.parse(self.address)
        lock = f"harebell.tier.{self.stream}"
        try:
            with blocking.connect(url, background_heartbeats=True) as connection:
                channel = connection.channel()
                # The broker releases this lock with the connection, wherever the job dies.
                channel.declare_queue(lock, exclusive=True)
                self.files.clear()
                yield lambda: _check_lock(channel, lock)
        # An exclusive queue refuses other connections with 405, which is how the other job is seen.
        except ResourceLocked:
            raise PipelineError(f"another job copies the stream {self.stream} to a tier") from None
        except (AMQPError, SourceError) as error:
            raise PipelineError(str(error)) from error

    def run(self, check: Callable[[], None], say: Callable[[str], None]) -> int:
        """Copy what the tier does not have; return the number of messages.

        Args:
            check: raises if another job may have taken over.
            say: prints a line.

        Raises:
            PipelineError: why it cannot go on; the stream keeps what is not in the tier.
        """
        options = for_batch(parse({"url": self.address, "queue": self.stream}))
        schema = message_schema(raw=True)
        rows = PartitionRows.of(layout(schema, options), options)
        connection = BrokerConnection(options.url, options.fetch_timeout, "harebell lake tier")
        try:
            span = span_of(connection, options)
            eras = connection.eras(self.stream)
        finally:
            connection.abandon()
        if span.kind != _STREAM:
            raise PipelineError(f"{self.stream} is a {span.kind} queue: only streams have tiers")
        parts = self.files.take_up(options.url.vhost, self.stream, span.generation, eras, span.end)
        first = parts[-1].end if parts else span.first
        if parts:
            # The last job may have died between its last file and the acknowledgement.
            self.files.verify(parts[-1])
            self._check_gap(first, span.first)
            first = max(first, span.first)
        else:
            self._check_beginning(span.first)
        count = 0
        last = first - 1
        missing = OffsetRange(self.stream, span.generation, first, span.end, span.messages)
        for piece in _pieces(rows.read(RangePartition([missing], options.url)), self.file_bytes):
            offsets = piece["offset"]
            low, last = offsets[0].as_py(), offsets[-1].as_py()
            # Before each file: a job that has lost its lock must not write beside another.
            check()
            part = self.files.add(piece, low, last + 1)
            count += part.rows
            say(f"{self.stream}: {part.rows} messages from offset {low} in {part.name}")
        # Also without a new file: the job before may have died before it acknowledged its last one.
        if last >= span.first:
            self._acknowledge(last)
        return count

    def rows(self) -> int:
        """Return the number of messages that the tier has."""
        return sum(part.rows for part in self.files.parts())

    def _check_gap(self, tiered: int, first: int) -> None:
        if first > tiered and not self.accept_gap:
            raise PipelineError(
                f"the messages {tiered} to {first - 1} of the stream {self.stream} went before the "
                f"tier had them: declare it with x-tier={self.name}, so that it keeps them, and go "
                "on with --accept-gap"
            )

    def _check_beginning(self, first: int) -> None:
        """Check that an empty tier is not in the place of one that cannot be seen.

        Its offset would be acknowledged, so that the broker lets messages go which the right tier
        does not have.
        """
        if first > 0 and not self.accept_gap:
            raise PipelineError(
                f"there is no tier in {self.files.place}, and the messages 0 to {first - 1} of the "
                f"stream {self.stream} are gone: if a tier has them, correct --to or mount its "
                f"place; --accept-gap begins a new one with message {first}"
            )

    def _acknowledge(self, offset: int) -> None:
        """Let the broker know that the tier has the messages up to an offset."""
        arguments = {"x-stream-offset": offset, "x-stream-automatic-offset-tracking": True}
        with (
            blocking.connect(URL.parse(self.address)) as connection,
            connection.channel().consume(
                self.stream, prefetch=1, tag=self.name, arguments=arguments, timeout=_ACK_SECONDS
            ) as messages,
        ):
            for message in messages:
                # The last message of a file is there as long as the tier has not acknowledged it.
                if message.headers["x-stream-offset"] == offset:
                    message.ack()
                # One message is enough: the acknowledgement is of an offset, not of all messages
                # before it one by one.
                break


def _check_lock(channel: blocking.Channel, lock: str) -> None:
    # An exclusive queue lives as long as the connection, and so does this call.
    channel.declare_queue(lock, passive=True)


def _pieces(batches: Iterator[pa.RecordBatch], byte_count: int) -> Iterator[pa.Table]:
    """Gather record batches to tables of about a size."""
    import pyarrow as pa

    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        if batch.num_rows:
            held.append(batch)
            size += batch.nbytes
        if size >= byte_count:
            yield pa.Table.from_batches(held)
            held, size = [], 0
    if held:
        yield pa.Table.from_batches(held)
