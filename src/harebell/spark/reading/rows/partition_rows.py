"""Read the rows of a partition in a task, from the spool or from the broker.

Connections are those of `task_connections`. A lost one is reopened for at most `fetchTimeout`, and
reading continues where it stopped; ranges give the same rows however often they are read.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Generator, Iterator
from dataclasses import asdict, dataclass, field, replace

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from harebell.client.errors import (
    ChannelClosed,
    Fenced,
    GenerationChanged,
    LeaseLost,
    NotFound,
    RangeGone,
    RecordDamaged,
)
from harebell.spark.options.source_options import BINARY, KAFKA, Options
from harebell.spark.outages import Retries
from harebell.spark.reading.broker_connection import LOST, BrokerConnection, turned_away
from harebell.spark.reading.data_loss_policy import DataLoss
from harebell.spark.reading.errors import GroupGone, SourceError, fenced, group_gone, is_group
from harebell.spark.reading.planning import OffsetRange, RangePartition
from harebell.spark.reading.positions.tier import Tier
from harebell.spark.reading.rows import deaths
from harebell.spark.reading.rows.bodies import decoded
from harebell.spark.reading.rows.deaths import with_deaths
from harebell.spark.reading.rows.key_shares import of_share
from harebell.spark.reading.rows.row_layout import RowLayout, as_kafka
from harebell.spark.reading.rows.task_connections import ConnectionSettings, task_connection
from harebell.spark.reading.spooled import spool as spools
from harebell.spark.schema import broker_columns
from harebell.spark.task_process import begin_task

_LOG = logging.getLogger("harebell.spark")
_RETRY_SECONDS = 0.2


@dataclass(frozen=True)
class Filters:
    """The filters that the broker applies.

    Args:
        routing_key: only messages with this one.
        routing_key_prefix: only messages whose routing key begins with it.
        since: only messages of this time or later, in milliseconds since 1970; 0 for all.
        until: only earlier messages; 0 for all.
        where: only messages for which this condition of the filter language is true.
    """

    routing_key: str | None = None
    routing_key_prefix: str | None = None
    since: int = 0
    until: int = 0
    where: str | None = None


@dataclass(frozen=True)
class PartitionRows:
    """How to read the rows of a partition; pickled to the executors.

    Args:
        columns: names of the columns, as the broker knows them.
        wanted: the schema that Spark expects.
        raw: the schema as the broker sends it.
        body_format: type of `value`.
        mode: how invalid bodies are handled.
        rows_per_batch: rows of a record batch.
        compression: of record batches on the wire.
        connecting: how tasks connect.
        fail_on_data_loss: whether lost messages are an error.
        filters: the filters that the broker applies.
        kafka: whether rows have the columns of Spark's Kafka source.
        super_stream: the super stream whose partitions are read; None for other queues.
        ordering_key: whose rows tasks share; None for none.
        tier: where the tier of the stream is; None without one.
    """

    columns: tuple[str, ...]
    wanted: pa.Schema
    raw: pa.Schema
    body_format: str
    mode: str
    rows_per_batch: int
    compression: str
    connecting: ConnectionSettings
    fail_on_data_loss: bool
    filters: Filters = field(default_factory=Filters)
    kafka: bool = False
    super_stream: str | None = None
    ordering_key: str | None = None
    tier: str | None = field(default=None, repr=False)

    @classmethod
    def of(cls, columns: RowLayout, options: Options) -> PartitionRows:
        """Return the settings for these options."""
        selection, wanted, raw = columns
        return cls(
            tuple(broker_columns(selection.columns, selection.fields)),
            wanted,
            raw,
            options.body_format,
            options.mode,
            options.rows_per_batch,
            "" if options.compression == "none" else options.compression,
            ConnectionSettings(
                options.fetch_timeout,
                f"{options.group_prefix}: task",
                options.max_connections,
                options.connection_wait,
            ),
            options.fail_on_data_loss,
            Filters(where=options.where),
            options.columns == KAFKA,
            options.super_stream,
            options.ordering_key,
            options.tier,
        )

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the record batches of a partition, as Spark expects them.

        Raises:
            SourceError: they cannot be read.
            BodyError: a body is bad, and the mode is FAILFAST.
        """
        begin_task()
        if isinstance(partition, spools.SpoolPartition):
            batches = spools.read(partition, self.raw)
        else:
            assert isinstance(partition, RangePartition), "a partition of this source"
            batches = self._fetched(partition)
        death = deaths.NAME in self.wanted.names
        exact = self.raw.names == self.wanted.names
        for each in batches:
            batch = with_deaths(each, self.wanted.field(deaths.NAME)) if death else each
            if self.kafka:
                yield as_kafka(batch, self.wanted, self.super_stream)
            elif self.body_format == BINARY:
                yield batch if exact else batch.select(self.wanted.names)
            else:
                yield decoded(batch, self.wanted, self.body_format, self.mode)

    def _fetched(self, partition: RangePartition) -> Iterator[pa.RecordBatch]:
        if not partition.ranges:
            return
        key = self.ordering_key
        with task_connection(partition.url, self.connecting) as connection:
            for one in partition.ranges:
                for batch in self._whole(connection, one):
                    if key is None:
                        yield batch
                    elif (own := of_share(batch, key, partition.share, partition.shares)).num_rows:
                        yield own

    def _whole(self, connection: BrokerConnection, one: OffsetRange) -> Iterator[pa.RecordBatch]:
        """Read one range from the tier, and what the tier does not have from the broker.

        While this goes on, the tier may get messages and retention may then remove them from the
        broker. So what the broker does not have is looked for in the tier once more.
        """
        if self.tier is None:
            yield from self._range(connection, one)
            return
        tier, position, gone = Tier(self.tier), one.first, -1
        while position < one.end:
            for part in tier.parts():
                if part.end > position and part.first < one.end:
                    yield from tier.batches(part, self.raw, position, one.end, self.rows_per_batch)
                    position = min(part.end, one.end)
            if position == one.end:
                return
            first = connection.call(lambda channel: channel.span(one.queue)).first
            if first <= position:
                position = yield from self._range(connection, replace(one, first=position))
            # The second time at this position: the tier has not got these messages meanwhile.
            elif gone == position:
                position = self._after_gap(one, position, first)
            else:
                gone = position

    def _after_gap(self, one: OffsetRange, position: int, first: int) -> int:
        """Return where the broker goes on after messages that the tier does not have either.

        Raises:
            DataLoss: that is an error.
        """
        text = (
            f"messages {position} to {min(first, one.end) - 1} of stream {one.queue!r} are gone: "
            "retention has let them go before the tier had them; declare the stream with x-tier"
        )
        if self.fail_on_data_loss:
            raise DataLoss(f"{text}; the option failOnDataLoss=false reads on")
        _LOG.warning(text)
        return min(first, one.end)

    def _range(
        self, connection: BrokerConnection, one: OffsetRange
    ) -> Generator[pa.RecordBatch, None, int]:
        """Read one range, reconnecting when the connection is lost; return where it ended.

        With a tier, it ends where retention has removed something.
        """
        position = one.first
        # With a tier, what the broker does not have is in the tier before it is lost.
        skip_lost = not self.fail_on_data_loss and self.tier is None
        give_up = time.monotonic() + self.connecting.timeout
        retries = Retries(connection.url.address)
        while position < one.end:
            try:
                for batch in connection.opened().arrow_batches(
                    one.queue,
                    position,
                    one.end,
                    columns=self.columns,
                    rows=self.rows_per_batch,
                    generation=one.generation,
                    compression=self.compression,
                    skip_lost=skip_lost,
                    group=one.group,
                    epoch=one.epoch,
                    claim=one.claim,
                    **asdict(self.filters),
                ):
                    if batch.lost:
                        _LOG.warning(
                            "%d messages of queue %r before position %d are lost",
                            batch.lost,
                            one.queue,
                            batch.next,
                        )
                    if batch.rows:
                        yield pa.ipc.read_record_batch(pa.py_buffer(batch.data), self.raw)
                    position = batch.next
                    retries.progressed()
                    # The time-out is for a standstill, not for the whole range.
                    give_up = time.monotonic() + self.connecting.timeout
                return one.end
            except ChannelClosed as error:
                connection.channel_is_over()
                if self.tier is not None and isinstance(error, RangeGone):
                    return position
                if isinstance(error, RecordDamaged) and not (self.fail_on_data_loss or skip_lost):
                    skip_lost = True
                    continue
                raise _explained(one, error) from error
            except LOST as error:
                connection.lost()
                if turned_away(error, known=connection.made > 0):
                    raise SourceError(
                        f"a task that reads queue {one.queue!r} is not let in by the broker at "
                        f"{connection.url.address}: {error}"
                    ) from error
                if time.monotonic() >= give_up:
                    raise SourceError(
                        f"a task could not read queue {one.queue!r} from position {position} on "
                        f"in {self.connecting.timeout:g} s (fetchTimeout), on as many connections "
                        f"to {connection.url.address} as it took: {error}"
                    ) from error
                retries.failed(error)
                time.sleep(_RETRY_SECONDS)
        return position


def _explained(one: OffsetRange, error: ChannelClosed) -> SourceError:
    """Translate the broker's refusal of a read into an error of the query."""
    queue, group = one.queue, one.group
    if is_group(error):
        return GroupGone(f"{group_gone(queue, group)} ({error.text})")
    if isinstance(error, NotFound):
        return SourceError(f"queue {queue!r} was deleted while the query read it ({error.text})")
    if isinstance(error, GenerationChanged):
        return DataLoss(
            f"queue {queue!r} was deleted and declared again while the query read it ({error.text})"
        )
    if isinstance(error, RangeGone):
        return DataLoss(
            f"messages of queue {queue!r} are gone: retention has let them go before they were "
            f"read ({error.text}); the option failOnDataLoss=false reads on"
        )
    if isinstance(error, RecordDamaged):
        return DataLoss(
            f"a message of queue {queue!r} cannot be read from the broker's disk ({error.text}); "
            "the option failOnDataLoss=false reads on"
        )
    if isinstance(error, Fenced):
        return fenced(error, queue, group)
    if isinstance(error, LeaseLost):
        return DataLoss(
            f"claim {one.claim} of group {group!r} on queue {queue!r} is lost ({error.text}): its "
            "messages went back to the queue; start the query again"
        )
    return SourceError(f"queue {queue!r} cannot be read: {error}")
