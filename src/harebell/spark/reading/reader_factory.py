"""Choose how to read each queue of a query: `spooled`, `positions` or `leased`.

    peer                      delivery                      stream       another queue
    Harebell                  exactly-once (default)        positions    leased
    Harebell                  at-least-once, at-most-once   positions    spooled
    Harebell                  peek                          positions    positions
    anything else             at-least-once (default),      spooled      spooled
                              at-most-once

A query that continues from a checkpoint is read as its offsets require.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from harebell.client.bulk import Span
from harebell.spark.options.offset_limits import EARLIEST, OffsetLimit, OffsetLimits
from harebell.spark.options.source_options import (
    AT_LEAST_ONCE,
    AT_MOST_ONCE,
    EXACTLY_ONCE,
    PEEK,
    OptionError,
    Options,
)
from harebell.spark.reading.broker_connection import BrokerConnection
from harebell.spark.reading.data_loss_policy import DataLossPolicy
from harebell.spark.reading.errors import QueueGone, SourceError
from harebell.spark.reading.leased.claims import claim_together
from harebell.spark.reading.leased.leased_reader import LeasedReader
from harebell.spark.reading.offsets import (
    ClaimOffset,
    LogOffset,
    OffsetError,
    QueueOffset,
    SpoolOffset,
)
from harebell.spark.reading.planning import OffsetRange, planned
from harebell.spark.reading.positions.position_reader import STREAM, PositionReader, span_of
from harebell.spark.reading.positions.private_stream import PrivateStream
from harebell.spark.reading.query import SourceQuery
from harebell.spark.reading.queue_lookup import check_partition, find_queues
from harebell.spark.reading.queue_reader import QueueReader
from harebell.spark.reading.spooled.spooled_reader import SpooledReader
from harebell.spark.reading.trigger_delay import TriggerDelay
from harebell.spark.schema import ColumnSelection

_LOG = logging.getLogger("harebell.spark")
NEEDED = ("bulk", "lease")
_SPOOLED = (AT_LEAST_ONCE, AT_MOST_ONCE)


class ReaderFactory:
    """Makes the readers of a query.

    Args:
        options: which queues, and how.
        selection: the columns to read.
        schema: of record batches as the broker sends them.
    """

    def __init__(self, options: Options, selection: ColumnSelection, schema: pa.Schema) -> None:
        self._options = options
        self._selection = selection
        self._schema = schema
        self._connection: BrokerConnection | None = None
        self._reader_count = 1
        self._private: PrivateStream | None = None

    def query(self, offsets: Mapping[str, QueueOffset] | None) -> SourceQuery:
        """Make a query, from the offsets of a checkpoint, or a new one without them.

        Raises:
            SourceError: the broker does not support the requested options.
            OptionError: an option contradicts another one.
        """
        if offsets is None:
            readers = self._new_readers()
        else:
            readers = self._readers_from(offsets)
            self._check_queues(offsets)
            readers |= self._discovered(readers)
        kept = {queue: reader for queue, reader in readers.items() if self._reads(queue)}
        finding = self._options.discovers
        query = SourceQuery(
            kept,
            self._long_poll(kept),
            self._partitions,
            self._discovered if finding else None,
            self._queue_deleted if finding else None,
            self._claim_together,
            self._delay(),
        )
        query.leaving = {queue: one for queue, one in readers.items() if queue not in kept}
        if query.leaving:
            _LOG.warning(
                "the option %s does not name %s any more: what was planned of them is read, and "
                "then the query leaves them",
                "queues" if self._options.pattern is None else "queuePattern",
                ", ".join(sorted(query.leaving)),
            )
        return query

    def _reads(self, queue: str) -> bool:
        """True if the options name a queue of the checkpoint; dead letters may go elsewhere now."""
        if self._options.pattern is not None:
            return re.fullmatch(self._options.pattern, queue) is not None
        return self._options.discovers or queue in self._options.queues

    def fit(self, query: SourceQuery, offsets: Mapping[str, QueueOffset]) -> bool:
        """True if a query has the readers that these offsets need."""
        return all(
            isinstance(query.readers.get(queue) or query.leaving.get(queue), _reader_class(offset))
            for queue, offset in offsets.items()
        )

    def leave(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.abandon()

    # --- a new query ----------------------------------------------------------------------------

    def _new_readers(self) -> dict[str, QueueReader]:
        delivery = self._options.delivery
        connection = self._connect()
        able = all(name in connection.extensions for name in NEEDED)
        if not able:
            check_plain(self._options, connection)
            if delivery is None:
                _LOG.warning(
                    "the broker at %s (%s) has no leases: queue %s is read at least once, and a "
                    "message can be processed twice after a failure",
                    self._options.url.address,
                    connection.product,
                    ", ".join(self._options.queues),
                )
            self._reader_count = len(self._options.queues)
            readers: dict[str, QueueReader] = {q: self._spooled(q) for q in self._options.queues}
            self.leave()
            return readers
        if self._options.exchange is not None:
            self._read_private_stream(PrivateStream(self._options, connection))
        found = find_queues(connection, self._options)
        self._reader_count = len(found)
        return {queue: self._new_reader(queue) for queue in found}

    def _read_private_stream(self, stream: PrivateStream) -> None:
        """Make the stream of a query over an exchange, and read it from its first message."""
        stream.make()
        self._private = stream
        self._options = replace(
            self._options,
            queue=stream.name,
            queues=(stream.name,),
            starting=OffsetLimits(OffsetLimit(EARLIEST)),
        )

    def _resume_private_stream(self, offsets: Mapping[str, QueueOffset]) -> None:
        """Go on with the stream of a query over an exchange, which the checkpoint names.

        Raises:
            OffsetError: the checkpoint is of another query.
            DataLoss: the stream is gone.
        """
        if len(offsets) != 1 or not all(isinstance(one, LogOffset) for one in offsets.values()):
            raise OffsetError(
                f"the checkpoint belongs to a query over {', '.join(sorted(offsets))}, and this "
                f"one reads exchange {self._options.exchange!r}: use another checkpoint"
            )
        (name,) = offsets
        earlier = self._private
        if earlier is not None and earlier.name != name and self._options.group is None:
            # Spark asked where the query begins before it showed the checkpoint.
            earlier.delete()
        connection = self._connect()
        try:
            span_of(connection, self._options.about(name))
        except QueueGone:
            DataLossPolicy(self._options).report(
                f"the stream {name!r} of the query is gone: nothing had read it for streamExpires, "
                "or it was deleted; what it had collected is lost"
            )
        self._read_private_stream(PrivateStream(self._options, connection, name))

    def _new_reader(self, queue: str) -> QueueReader:
        """Return the way to read for the option `delivery`."""
        about = self._options.about(queue)
        connection = self._connect()
        kind = span_of(connection, about).kind
        check_partition(about, kind)
        if kind == STREAM or about.delivery == PEEK:
            return PositionReader(about, connection, kind)
        check_unmatched(about, kind)
        if about.delivery in _SPOOLED:
            if _is_not_head(about.starting.of(queue)):
                raise OptionError(
                    f"the option startingOffsets does not go with delivery={about.delivery} for "
                    f"the {kind} queue {queue!r}, which is always read from its head: say earliest "
                    "or nothing"
                )
            return self._spooled(queue)
        return LeasedReader(about, connection, kind)

    def _discovered(self, known: Mapping[str, QueueReader]) -> dict[str, QueueReader]:
        """Return readers of new queues that match the pattern."""
        if not self._options.discovers:
            return {}
        readers = {}
        for queue in find_queues(self._connect(), self._options, some=False):
            if queue not in known:
                # It may be deleted between two requests; then it is ignored.
                with suppress(QueueGone):
                    readers[queue] = self._new_reader(queue)
        return readers

    def _queue_deleted(self, queue: str) -> None:
        """Handle the deletion of a queue that the pattern had matched, or that had dead letters.

        Raises:
            DataLoss: the query must fail.
        """
        DataLossPolicy(self._options).report(
            f"queue {queue!r}, which the query was reading, was deleted; messages that were not "
            "read are gone"
        )

    # --- from a checkpoint ----------------------------------------------------------------------

    def _readers_from(self, offsets: Mapping[str, QueueOffset]) -> dict[str, QueueReader]:
        readers = {}
        if self._options.exchange is not None:
            self._resume_private_stream(offsets)
        self._reader_count = max(1, len(offsets))
        for queue, offset in offsets.items():
            try:
                readers[queue] = self._reader_from(queue, offset)
            except QueueGone:
                # Others the query leaves anyway.
                if self._reads(queue):
                    if not self._options.discovers:
                        raise
                    self._queue_deleted(queue)
        return readers

    def _reader_from(self, queue: str, offset: QueueOffset) -> QueueReader:
        """Return the way to read that the checkpoint was begun with."""
        delivery = self._options.delivery
        allowed: dict[type[QueueOffset], tuple[str | None, ...]] = {
            SpoolOffset: (None, *_SPOOLED),
            ClaimOffset: (None, EXACTLY_ONCE),
            LogOffset: (None, PEEK, EXACTLY_ONCE, *_SPOOLED),
        }
        if delivery not in allowed[type(offset)]:
            was = (
                "exactly-once"
                if isinstance(offset, ClaimOffset)
                else "at-least-once or at-most-once"
            )
            raise OffsetError(
                f"the option delivery is {delivery}, but the checkpoint was begun with {was} for "
                f"queue {queue!r}: use that, or a new checkpoint"
            )
        about = self._options.about(queue)
        if isinstance(offset, SpoolOffset):
            if about.where is not None:
                raise OffsetError(
                    f"the checkpoint consumes queue {queue!r} over plain AMQP, which has no option "
                    "where: filter in the query, or use a new checkpoint"
                )
            return self._spooled(queue)
        connection = self._connect()
        if not all(name in connection.extensions for name in NEEDED):
            raise SourceError(
                f"the checkpoint was begun with Harebell, and the broker at {about.url.address} "
                f"({connection.product}) has no leases: use a new checkpoint"
            )
        span = span_of(connection, about)
        _check_kind(about, offset, span)
        if isinstance(offset, ClaimOffset):
            check_unmatched(about, span.kind)
            return LeasedReader(about, connection, span.kind)
        return PositionReader(about, connection, span.kind)

    def _check_queues(self, offsets: Mapping[str, QueueOffset]) -> None:
        """Check that every queue of the query is in the checkpoint; queues only there are left.

        Raises:
            OffsetError: a queue is missing, or none of the checkpoint's queues is left.
        """
        options = self._options
        if options.discovers:
            if options.pattern is not None and offsets and not any(map(self._reads, offsets)):
                what = "queuePattern" if options.super_stream is None else "superStream"
                raise OffsetError(
                    f"the checkpoint belongs to a query over {', '.join(sorted(offsets))}, and the "
                    f"option {what}, {options.super_stream or options.pattern!r}, names none of "
                    "them: use another checkpoint"
                )
            return
        requested, found = set(self._options.queues), set(offsets)
        if not requested <= found:
            raise OffsetError(
                f"the checkpoint belongs to a query over {', '.join(sorted(found))}, and this one "
                f"reads {', '.join(sorted(requested))}: use another checkpoint"
            )

    # --- parts of readers -----------------------------------------------------------------------

    def _connect(self) -> BrokerConnection:
        if self._connection is None:
            options = self._options
            names = options.pattern or options.exchange or options.dead_letters_of
            names = names or ", ".join(options.queues)
            name = f"{self._options.group_prefix}: {names}"
            self._connection = BrokerConnection(
                self._options.url, self._options.fetch_timeout, name
            )
        return self._connection

    def _spooled(self, queue: str) -> SpooledReader:
        about = self._options.about(queue)
        # They are called one after the other.
        about = replace(about, long_poll_ms=about.long_poll_ms // self._reader_count)
        return SpooledReader(about, self._selection, self._schema)

    def _claim_together(
        self,
        requested: Sequence[tuple[QueueReader, QueueOffset]],
        max_messages: int,
        byte_count: int | None,
        *,
        more: bool,
    ) -> None:
        """Make the claims of all leased queues in one round trip."""
        leased = [
            (reader, offset) for reader, offset in requested if isinstance(reader, LeasedReader)
        ]
        wanted = [
            (reader, reader.wanted(offset, max_messages, byte_count, more=more))
            for reader, offset in leased
        ]
        if self._connection is not None:
            claim_together(
                self._connection, [(reader, ask) for reader, ask in wanted if ask is not None]
            )

    def _delay(self) -> TriggerDelay:
        options = self._options
        return TriggerDelay(options.min_offsets_per_trigger, options.max_trigger_delay)

    def _long_poll(self, readers: Mapping[str, QueueReader]) -> float:
        # Readers of spools wait in `advance` themselves.
        spooled = any(isinstance(reader, SpooledReader) for reader in readers.values())
        return 0.0 if spooled else self._options.long_poll_ms / 1000

    def _partitions(self, ranges: list[OffsetRange]) -> list[InputPartition]:
        return list(planned(ranges, self._options))


def check_plain(options: Options, connection: BrokerConnection) -> None:
    """Check that a broker without Harebell's extensions supports the options.

    Raises:
        SourceError: it does not.
    """
    broker = f"the broker at {options.url.address} ({connection.product})"
    if options.delivery in (EXACTLY_ONCE, PEEK):
        raise SourceError(
            f"{broker} cannot do delivery={options.delivery}, which needs Harebell's leases and "
            "bulk reads: use delivery=at-least-once"
        )
    if options.where is not None:
        raise SourceError(
            f"{broker} has no filters: leave the option where out and filter in the query"
        )
    if options.ordering_key is not None:
        raise SourceError(
            f"{broker} cannot be read by several tasks: leave partitionBy=key out, and one reads "
            "all keys in their order"
        )
    if options.exchange is not None:
        raise SourceError(
            f"{broker} has no streams that can be read by position over AMQP: bind a queue to "
            f"exchange {options.exchange!r} and read it with the option queue"
        )
    if options.dead_letters_of is not None:
        raise SourceError(
            f"{broker} does not tell over AMQP where dead letters of a queue go: name the queues "
            "with the option queues instead of deadLettersOf"
        )
    if options.pattern is not None:
        raise SourceError(
            f"{broker} does not tell its queues over AMQP: name them with the option queues "
            f"instead of {'queuePattern' if options.super_stream is None else 'superStream'}"
        )
    if any(_is_not_head(place) for place in options.starting.all):
        raise SourceError(
            f"{broker} has no positions over AMQP: leave the option startingOffsets out or say "
            "earliest, and a queue is read from its head"
        )


def check_unmatched(options: Options, kind: str) -> None:
    """Check that a query that consumes says what happens to messages that it does not select.

    Raises:
        OptionError: it does not.
    """
    if options.where is not None and options.unmatched is None:
        raise OptionError(
            f"the option where selects some messages of the {kind} queue {options.queue!r}, and a "
            "query that consumes the queue acknowledges the others too: add unmatched=discard if "
            "they may be lost, or use delivery=peek"
        )


def _is_not_head(place: OffsetLimit | None) -> bool:
    """True if a limit is not the head of a queue."""
    return place is not None and place.kind != EARLIEST


def _check_kind(options: Options, offset: ClaimOffset | LogOffset, span: Span) -> None:
    """Check that a queue can still be read as the checkpoint was begun.

    Raises:
        OffsetError: it has another type now, or the option `delivery` requires another way.
    """
    queue, delivery = options.queue, options.delivery
    leased, streamed = isinstance(offset, ClaimOffset), span.kind == STREAM
    # A stream has no leases. Other queues are read by positions only without consuming.
    if leased != streamed or (not leased and delivery == PEEK):
        return
    if offset.generation != span.generation:
        raise OffsetError(
            f"queue {queue!r} was deleted and declared again since the checkpoint, and is a "
            f"{span.kind} queue now, which is read in another way: use a new checkpoint"
        )
    if delivery is not None:
        raise OffsetError(
            f"the option delivery is {delivery}, but the checkpoint was begun with peek for queue "
            f"{queue!r}: use that, or a new checkpoint"
        )


def _reader_class(offset: QueueOffset) -> type:
    if isinstance(offset, SpoolOffset):
        return SpooledReader
    return LeasedReader if isinstance(offset, ClaimOffset) else PositionReader
