"""Make a query with the readers of its queues: new, from a checkpoint, or for queues that join.

`strategies` says which class reads a queue. Afterwards the query calls its readers; it comes back
here only to look for queues that join it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial

import pyarrow as pa

from harebell.spark.options.source_options import Options
from harebell.spark.reading.broker_connection import BrokerConnection
from harebell.spark.reading.data_loss_policy import DataLossPolicy
from harebell.spark.reading.errors import QueueGone, SourceError
from harebell.spark.reading.leased.claims import claim_together
from harebell.spark.reading.offsets import LogOffset, OffsetError, QueueOffset, SpoolOffset
from harebell.spark.reading.planning import planned
from harebell.spark.reading.positions.position_reader import span_of
from harebell.spark.reading.positions.private_stream import PrivateStream
from harebell.spark.reading.query import SourceQuery
from harebell.spark.reading.queue_lookup import find_queues
from harebell.spark.reading.queue_reader import QueueReader
from harebell.spark.reading.spooled.spooled_reader import SpooledReader
from harebell.spark.reading.strategies import (
    Strategy,
    check_continued,
    check_plain,
    continued_strategy,
    new_strategy,
)
from harebell.spark.reading.trigger_delay import TriggerDelay
from harebell.spark.schema import ColumnSelection

_LOG = logging.getLogger("harebell.spark")
_EXTENSIONS = ("bulk", "lease")
"""Extensions of the protocol that every strategy but that of plain AMQP needs."""


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
        names = options.pattern or options.exchange or options.dead_letters_of
        self._connection = BrokerConnection(
            options.url,
            options.fetch_timeout,
            f"{options.group_prefix}: {names or ', '.join(options.queues)}",
        )
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
        options = self._options
        named = {queue: reader for queue, reader in readers.items() if self._names(queue)}
        # Readers of spools wait in `advance` themselves.
        waits = any(isinstance(reader, SpooledReader) for reader in named.values())
        query = SourceQuery(
            named,
            0.0 if waits else options.long_poll_ms / 1000,
            lambda ranges: planned(ranges, options),
            self._discovered if options.discovers else None,
            DataLossPolicy(options).report_deleted_queue if options.discovers else None,
            partial(claim_together, self._connection),
            TriggerDelay(options.min_offsets_per_trigger, options.max_trigger_delay),
        )
        query.leaving = {queue: one for queue, one in readers.items() if queue not in named}
        if query.leaving:
            _LOG.warning(
                "the option %s does not name %s any more: what was planned of them is read, and "
                "then the query leaves them",
                "queues" if options.pattern is None else "queuePattern",
                ", ".join(sorted(query.leaving)),
            )
        return query

    def leave(self) -> None:
        """Close the connection."""
        self._connection.abandon()

    def _names(self, queue: str) -> bool:
        """True if the options name a queue of the checkpoint; dead letters may go elsewhere now."""
        if self._options.pattern is not None:
            return re.fullmatch(self._options.pattern, queue) is not None
        return self._options.discovers or queue in self._options.queues

    @property
    def _has_leases(self) -> bool:
        """True if the broker is one of Harebell, with leases and bulk reads."""
        return all(name in self._connection.extensions for name in _EXTENSIONS)

    # --- a new query ----------------------------------------------------------------------------

    def _new_readers(self) -> dict[str, QueueReader]:
        options = self._options
        if not self._has_leases:
            product = self._connection.product
            check_plain(options, product)
            if options.delivery is None:
                _LOG.warning(
                    "the broker at %s (%s) has no leases: queue %s is read at least once, and a "
                    "message can be processed twice after a failure",
                    options.url.address,
                    product,
                    ", ".join(options.queues),
                )
            self._reader_count = len(options.queues)
            readers = {queue: self._reader(SpooledReader, queue) for queue in options.queues}
            # Each reader of a spool has a connection of its own.
            self.leave()
            return readers
        if options.exchange is not None:
            self._read_private_stream(PrivateStream(options, self._connection))
        queues = find_queues(self._connection, self._options)
        self._reader_count = len(queues)
        return {queue: self._new_reader(queue) for queue in queues}

    def _new_reader(self, queue: str) -> QueueReader:
        options = self._options.about(queue)
        kind = span_of(self._connection, options).kind
        return self._reader(new_strategy(options, kind), queue, kind)

    def _discovered(self, known: Mapping[str, QueueReader]) -> dict[str, QueueReader]:
        """Return readers of queues that the options name and the query does not have yet."""
        readers: dict[str, QueueReader] = {}
        if not self._options.discovers:
            return readers
        for queue in find_queues(self._connection, self._options, some=False):
            if queue not in known:
                # It may be deleted between two requests; then it is ignored.
                with suppress(QueueGone):
                    readers[queue] = self._new_reader(queue)
        return readers

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
                # The query leaves a queue that the options do not name, so its end is no loss.
                if self._names(queue):
                    if not self._options.discovers:
                        raise
                    DataLossPolicy(self._options).report_deleted_queue(queue)
        return readers

    def _reader_from(self, queue: str, offset: QueueOffset) -> QueueReader:
        options = self._options.about(queue)
        strategy = continued_strategy(options, offset)
        if isinstance(offset, SpoolOffset):
            return self._reader(strategy, queue)
        if not self._has_leases:
            raise SourceError(
                f"the checkpoint was begun with Harebell, and the broker at {options.url.address} "
                f"({self._connection.product}) has no leases: use a new checkpoint"
            )
        span = span_of(self._connection, options)
        check_continued(options, offset, span)
        return self._reader(strategy, queue, span.kind)

    def _check_queues(self, offsets: Mapping[str, QueueOffset]) -> None:
        """Check that every queue of the query is in the checkpoint; queues only there are left.

        Raises:
            OffsetError: a queue is missing, or none of the checkpoint's queues is left.
        """
        options = self._options
        if options.discovers:
            if options.pattern is not None and offsets and not any(map(self._names, offsets)):
                what = "queuePattern" if options.super_stream is None else "superStream"
                raise OffsetError(
                    f"the checkpoint belongs to a query over {', '.join(sorted(offsets))}, and the "
                    f"option {what}, {options.super_stream or options.pattern!r}, names none of "
                    "them: use another checkpoint"
                )
            return
        if not set(options.queues) <= set(offsets):
            raise OffsetError(
                f"the checkpoint belongs to a query over {', '.join(sorted(offsets))}, and this "
                f"one reads {', '.join(sorted(set(options.queues)))}: use another checkpoint"
            )

    # --- a query over an exchange ---------------------------------------------------------------

    def _read_private_stream(self, stream: PrivateStream) -> None:
        stream.make()
        self._private = stream
        self._options = stream.options_of_query()

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
        try:
            span_of(self._connection, self._options.about(name))
        except QueueGone:
            DataLossPolicy(self._options).report(
                f"the stream {name!r} of the query is gone: nothing had read it for streamExpires, "
                "or it was deleted; what it had collected is lost"
            )
        self._read_private_stream(PrivateStream(self._options, self._connection, name))

    # --- one reader -----------------------------------------------------------------------------

    def _reader(self, strategy: Strategy, queue: str, kind: str = "") -> QueueReader:
        options = self._options.about(queue)
        if issubclass(strategy, SpooledReader):
            # Readers of spools are called one after the other, so they share the long poll.
            options = replace(options, long_poll_ms=options.long_poll_ms // self._reader_count)
            return SpooledReader(options, self._selection, self._schema)
        return strategy(options, self._connection, kind)
